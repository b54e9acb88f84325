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


def fedsgd(world: World, method: Any) -> Vector:
    """The same paper: w minus eta times the mean of the clients' full gradients."""
    w = world.start()
    for t in range(ROUNDS):
        cohort = world.fixed(t, method.m)
        gradients = [world.mean_gradient(w, world.records(client)) for client in cohort]
        w = w - method.eta / method.m * np.sum(gradients, axis=0)
    return w


def fedprox(world: World, method: Any) -> Vector:
    """Li et al. 2020: every gradient is that of F_k(w) + mu/2 ‖w - w_t‖^2."""
    w = world.start()
    for t in range(ROUNDS):
        ends: list[Vector] = []
        for client in world.fixed(t, method.m):
            mine = w.copy()
            for batch in world.epochs(t, client, method.E, method.B):
                pull = method.mu * (mine - w)
                mine = mine - method.eta * (world.mean_gradient(mine, batch) + pull)
            ends.append(mine)
        w = np.mean(ends, axis=0)
    return w


def scaffold(world: World, method: Any) -> Vector:
    """Karimireddy et al. 2020, Algorithm 1 with option II."""
    x, c = world.start(), np.zeros(DIM)
    own = [np.zeros(DIM) for _ in range(world.M)]
    for t in range(ROUNDS):
        moved, controls = np.zeros(DIM), np.zeros(DIM)
        for i in world.fixed(t, method.m):
            y, steps = x.copy(), 0
            for batch in world.epochs(t, i, method.E, method.B):
                y = y - method.eta * (world.mean_gradient(y, batch) - own[i] + c)
                steps += 1
            new = own[i] - c + (x - y) / (steps * method.eta)
            moved, controls, own[i] = moved + y - x, controls + new - own[i], new
        x = x + method.eta_g * moved / method.m
        c = c + controls / world.M
    return x


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
    "fedsgd": Case(
        fedsgd, {**PLAIN}, {}, {**PLAIN, "E": 1, "B": 8}, wrong=(*WRONG, ({"m": 0}, "m = 0"))
    ),
    "fedprox": Case(
        fedprox,
        {**PLAIN, "E": 2, "B": 3, "mu": 0.8},
        {"mu": 0.0},
        {**PLAIN, "E": 2, "B": 3},
        wrong=(*WRONG, ({"mu": -1.0}, "mu = -1.0"), ({"B": 0}, "B = 0")),
    ),
    # With everybody there and one step, the controls cancel in the mean.
    "scaffold": Case(
        scaffold,
        {**PLAIN, "E": 2, "B": 3, "eta_g": 0.9},
        {"m": 6, "E": 1, "B": 8, "eta_g": 1.0},
        {**PLAIN, "m": 6, "E": 1, "B": 8},
        wrong=(*WRONG, ({"eta_g": 0.0}, "eta_g = 0.0")),
    ),
}
