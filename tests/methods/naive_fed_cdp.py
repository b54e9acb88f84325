"""Fed-CDP (Wei et al. 2021) and its baselines, done naively from the printed algorithms."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from methods.world import DIM, LAYERS, ROUNDS, Case, Vector, World, shortened_layers


def bound(method: Any, t: int) -> float:
    """C, or a line from C to C_last over the T rounds."""
    last = getattr(method, "C_last", method.C)
    return method.C + (last - method.C) * t / (method.T - 1)


def fed_cdp(world: World, method: Any) -> Vector:
    """Algorithm 2: every layer of every example's gradient clipped, noise for every example."""
    w = world.start()
    for t in range(ROUNDS):
        C, total = bound(method, t), np.zeros(DIM)
        for client in world.fixed(t, method.K_t):
            mine, noise = w.copy(), world.stream(t, client, "example")
            for batch in world.subsets(t, client, method.L, method.B):
                sanitised = np.zeros(DIM)
                for x, y in batch:
                    g = shortened_layers(world.gradient(mine, x, y), C)
                    sanitised += g + method.sigma * C * noise.normal(DIM)
                mine = mine - method.eta * sanitised / method.B
            total += mine - w
        w = w + total / method.K_t
    return w


def fed_cdp_c(world: World, method: Any) -> Vector:
    """Coins for records, noise of multiplier sigma over S = C sqrt(M) once for each batch."""
    w, velocity = world.start(), np.zeros(DIM)
    cohorts = [
        list(range(world.M)) if method.K_t is None else world.fixed(t, method.K_t)
        for t in range(ROUNDS)
    ]
    for t, cohort in enumerate(cohorts):
        C, total = bound(method, t), np.zeros(DIM)
        for client in cohort:
            mine, noise = w.copy(), world.stream(t, client, "batch")
            rate = method.B / min(world.sizes)
            for batch in world.coins(t, client, method.L, rate):
                clipped = np.zeros(DIM)
                for x, y in batch:
                    clipped += shortened_layers(world.gradient(mine, x, y), C)
                clipped += method.sigma * C * sqrt(len(LAYERS)) * noise.normal(DIM)
                mine = mine - method.eta * clipped / method.B
            total += mine - w
        velocity = method.beta * velocity + total / len(cohort)
        w = w + velocity
    return w


PRINTED = {"T": ROUNDS, "K_t": 3, "L": 2, "B": 3, "C": 0.5, "sigma": 0.7, "eta": 0.2}
CORRECTED = {**PRINTED, "B": 4.0, "beta": 0.5}
# Batches of all 8 records: the same steps as epochs of one batch.
OFF = {"B": 8, "C": 1e12, "sigma": 0.0}
FEDAVG = {"T": ROUNDS, "m": 3, "E": 2, "B": 8, "eta": 0.2}
WRONG = (
    ({"K_t": 7}, "m = 7"),
    ({"sigma": -0.1}, "sigma = -0.1"),
    ({"C": 0.0}, "C = 0.0"),
    ({"L": 0}, "L = 0"),
    ({"T": 0}, "T = 0"),
    ({"eta": 0.0}, "eta = 0.0"),
)
LARGE = ({"B": 9}, "m = 9")  # no client has that many records
DECAY = {"C": 0.6, "C_last": 0.2}
OFF_DECAY = {"C": 1e12, "C_last": 1e12}

CASES: dict[str, Case] = {
    "fed-cdp": Case(fed_cdp, PRINTED, OFF, FEDAVG, wrong=(*WRONG, LARGE)),
    "fed-cdp-c": Case(fed_cdp_c, CORRECTED, {**OFF, "beta": 0.0}, FEDAVG, wrong=WRONG),
    "fed-cdp-decay": Case(
        fed_cdp, {**PRINTED, **DECAY}, {**OFF, **OFF_DECAY}, FEDAVG, wrong=(*WRONG, LARGE)
    ),
    "fed-cdp-decay-c": Case(
        fed_cdp_c,
        {**CORRECTED, **DECAY},
        {**OFF, **OFF_DECAY, "beta": 0.0},
        FEDAVG,
        wrong=(*WRONG, ({"C_last": 0.0}, "C_last = 0.0")),
    ),
}
