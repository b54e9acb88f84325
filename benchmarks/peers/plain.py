"""The plain loop: one client after the other, one example after the other. The reference.

With `--double --verify` its parameters are what every other side is compared with. Norms are taken
in double precision in any case.

`python benchmarks/peers/plain.py WORKLOAD --initial PATH [--variant private|without-privacy]`
"""

from __future__ import annotations

import copy

import torch
from networks import arrays, build, clock_of, tensors
from protocol import Task, report, task
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


def clip(vectors: list[Tensor], bound: float) -> list[Tensor]:
    norm = sum(float(v.double().square().sum()) for v in vectors) ** 0.5
    return [v * (bound / norm) for v in vectors] if norm > bound else vectors


def noise_like(vector: Tensor, scale: float) -> Tensor:
    return torch.randn_like(vector) * scale if scale else torch.zeros_like(vector)


def update(model: nn.Module, x: Tensor, y: Tensor, what: Task) -> list[Tensor]:
    """How one client's epoch moves the model."""
    local = copy.deepcopy(model)
    optimizer = torch.optim.SGD(local.parameters(), lr=what.work.rate)
    for rows, labels in zip(x.split(what.work.batch), y.split(what.work.batch), strict=True):
        if len(rows):
            optimizer.zero_grad()
            cross_entropy(local(rows), labels).backward()
            optimizer.step()
    pairs = zip(local.parameters(), model.parameters(), strict=True)
    return [(after - before).detach() for after, before in pairs]


def clients_round(
    model: nn.Module, data: list[tuple[Tensor, Tensor]], members: list[int], what: Task
) -> None:
    total = [torch.zeros_like(p) for p in model.parameters()]
    for client in members:
        moved = clip(update(model, *data[client], what), what.clip)
        for into, part in zip(total, moved, strict=True):
            into += part
    scale = what.work.clip * what.noise
    with torch.no_grad():
        for parameter, into in zip(model.parameters(), total, strict=True):
            parameter += (into + noise_like(into, scale)) / len(members)


def examples_round(model: nn.Module, x: Tensor, y: Tensor, what: Task) -> None:
    """DP-SGD in one client, the gradient of one example at a time."""
    parameters = list(model.parameters())
    scale = what.work.clip * what.noise
    for rows, labels in zip(x.split(what.work.batch), y.split(what.work.batch), strict=True):
        total = [torch.zeros_like(p) for p in parameters]
        for at in range(len(rows)):
            loss = cross_entropy(model(rows[at : at + 1]), labels[at : at + 1])
            gradient = clip(list(torch.autograd.grad(loss, parameters)), what.clip)
            for into, part in zip(total, gradient, strict=True):
                into += part
        with torch.no_grad():
            for parameter, into in zip(parameters, total, strict=True):
                parameter -= what.work.rate * (into + noise_like(into, scale)) / len(rows)


def sgd_round(model: nn.Module, x: Tensor, y: Tensor, what: Task) -> None:
    """What a client does without privacy: the step that the private one is compared with."""
    optimizer = torch.optim.SGD(model.parameters(), lr=what.work.rate)
    for rows, labels in zip(x.split(what.work.batch), y.split(what.work.batch), strict=True):
        optimizer.zero_grad()
        cross_entropy(model(rows), labels).backward()
        optimizer.step()


def run(what: Task) -> None:
    if what.threads:
        torch.set_num_threads(what.threads)
    torch.manual_seed(0)
    kind = {"double": what.double, "device": what.device}
    data = [tensors(x, y, **kind) for x, y in what.data()]
    clock = clock_of(what.device)
    model = build(what.work.network, what.initial, dropout=what.dropout, **kind)
    for number in range(what.rounds):
        members = what.work.members(number)
        if what.work.unit == "client":
            clients_round(model, data, members, what)
        else:
            alone = sgd_round if what.variant == "without-privacy" else examples_round
            alone(model, *data[members[0]], what)
        clock.round()
    report(what, clock, arrays(model), ("torch",))


if __name__ == "__main__":
    run(task(__doc__, ("private", "without-privacy")))
