"""What the server looks at besides releases: its own records, and no client's."""

from dataclasses import replace

import numpy as np
import torch

import small
from confide.data import Federation
from confide.engine.public import ServersRecords
from confide.engine.trainers import Recipe
from confide.randomness import Key

HANDS = (np.arange(0, 100), np.arange(100, 200))
OWN = np.arange(200, 240)


def records(labels: torch.Tensor) -> ServersRecords:
    """The last forty digits are for validation and public, the others are two clients'."""
    held = Federation(replace(small.digits(), y_train=labels), HANDS, OWN[:20], OWN[20:], "", 1)
    return ServersRecords(Recipe(small.mlp(), "cross-entropy", held, Key.from_seed(0)))


def test_nothing_that_the_server_computes_depends_on_a_clients_record() -> None:
    labels = small.digits().y_train
    model = torch.linspace(-0.1, 0.1, sum(p.numel() for p in small.mlp().parameters()))
    told = records(labels)
    for at in range(240):
        if 0 < at < 195:
            continue  # a few of the clients' are enough
        changed = labels.clone()
        changed[at] = (changed[at] + 1) % 10
        other = records(changed)
        same = other.loss(model) == told.loss(model)
        assert same == (not 200 <= at < 220), at
        gradients = [
            r.gradient(model, Key.from_seed(0).stream(0, None, "tree"), 100) for r in (told, other)
        ]
        assert torch.equal(*gradients) == (not 220 <= at < 240), at
