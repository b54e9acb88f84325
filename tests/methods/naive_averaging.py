"""Federated averaging and its non-private relatives, done naively."""

from __future__ import annotations

from typing import Any

import numpy as np

from methods.world import DIM, ROUNDS, Case, Vector, World


def fedavg(world: World, method: Any) -> Vector:
    """McMahan et al. 2017: the mean of models after E epochs."""
    w = world.start()
    for t in range(ROUNDS):
        total = np.zeros(DIM)
        for client in world.fixed(t, method.m):
            mine = w.copy()
            for batch in world.epochs(t, client, method.E, method.B):
                mine = mine - method.eta * world.mean_gradient(mine, batch)
            total += mine
        w = total / method.m
    return w


WRONG = (({"m": 7}, "m = 7"), ({"T": 0}, "T = 0"), ({"eta": 0.0}, "eta = 0.0"))
PLAIN = {"T": ROUNDS, "m": 3, "eta": 0.3}

CASES: dict[str, Case] = {
    "fedavg": Case(
        fedavg,
        {**PLAIN, "E": 2, "B": 3},
        {},
        {**PLAIN, "E": 2, "B": 3},
        wrong=(*WRONG, ({"E": 0}, "E = 0"), ({"B": 0}, "B = 0")),
    ),
}
