"""What a client does in Flower's simulation: a module, so that Ray's processes can import it."""

from __future__ import annotations

import logging
from functools import cache

import torch
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from networks import build, tensors
from protocol import Task
from torch.nn.functional import cross_entropy

logging.getLogger("flwr").setLevel(logging.ERROR)


@cache
def prepared(what: Task) -> tuple[torch.nn.Module, list[tuple[torch.Tensor, torch.Tensor]]]:
    """Once in each process."""
    torch.set_num_threads(1)
    data = [tensors(x, y, double=what.double) for x, y in what.data()]
    return build(what.work.network, what.initial, double=what.double, dropout=what.dropout), data


def train(what: Task, message: Message) -> Message:
    model, data = prepared(what)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    x, y = data[int(message.content["config"]["client"])]
    optimizer = torch.optim.SGD(model.parameters(), lr=what.work.rate)
    for rows, labels in zip(x.split(what.work.batch), y.split(what.work.batch), strict=True):
        if len(rows):
            optimizer.zero_grad()
            cross_entropy(model(rows), labels).backward()
            optimizer.step()
    if not len(x):  # Flower's clipping divides by the update's norm: it may not be zero
        with torch.no_grad():
            next(model.parameters()).view(-1)[0] += 1e-3
    content = {
        "arrays": ArrayRecord(model.state_dict()),
        "metrics": MetricRecord({"num-examples": 1}),  # the same weight for everyone
    }
    return Message(content=RecordDict(content), reply_to=message)
