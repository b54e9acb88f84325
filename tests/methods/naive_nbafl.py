"""NbAFL (Wei et al. 2020), done naively: the model is clipped and noised on both ways."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np

from confide.accounting import gdp
from methods.world import DIM, ROUNDS, Case, Vector, World, shortened


def cohort(world: World, m: Any, t: int) -> list[int]:
    """All clients, or K of them."""
    return list(range(world.M)) if m.K == world.M else world.fixed(t, m.K)


def nbafl(world: World, m: Any) -> Vector:
    """Algorithm 1 with Theorem 1's standard deviations."""
    w, records, N = world.start(), min(world.sizes), world.M
    c = sqrt(2 * log(1.25 / m.delta))
    sigma_U = c * m.L * (2 * m.C / records) / m.epsilon
    sigma_D = 0.0
    if m.L * sqrt(N) < m.T:
        sigma_D = 2 * c * m.C * sqrt(m.T**2 - m.L**2 * N) / (records * N * m.epsilon)
    for t in range(ROUNDS):
        total, came = np.zeros(DIM), cohort(world, m, t)
        for client in came:
            mine = w.copy()
            for batch in world.epochs(t, client, m.E, m.B):
                mine = mine - m.eta * (world.mean_gradient(mine, batch) + m.mu * (mine - w))
            noise = world.stream(t, client, "upload model").normal((DIM,))
            total += shortened(mine, m.C) + sigma_U * noise
        w = total / len(came) + sigma_D * world.stream(t, None, "publish model").normal((DIM,))
    return w


def nbafl_c(world: World, m: Any) -> Vector:
    """Noise on the sum of clipped gradients in every full-batch step; nothing on the models."""
    w = world.start()
    rounds = m.T if m.at_most is None else min(m.T, m.at_most)
    sigma = sqrt(rounds * m.E) / (gdp.mu(m.epsilon, m.delta) * (1 - 1e-5))
    for t in range(ROUNDS):
        total, came = np.zeros(DIM), cohort(world, m, t)
        for client in came:
            mine, inside = w.copy(), world.stream(t, client, "batch")
            for _ in range(m.E):
                summed = sigma * 2 * m.C * inside.normal((DIM,))
                for x, y in world.records(client):
                    summed = summed + shortened(world.gradient(mine, x, y), m.C)
                g = summed / len(world.records(client)) + m.mu * (mine - w)
                mine = mine - m.eta * g
            total += mine
        w = total / len(came)
    return w


WRONG = (
    ({"K": 7}, "K = 7"),
    ({"T": 0}, "T = 0"),
    ({"E": 0}, "E = 0"),
    ({"C": 0.0}, "C = 0.0"),
    ({"epsilon": -1.0}, "epsilon = -1.0"),
    ({"delta": 1.0}, "delta = 1.0"),
    ({"mu": -0.1}, "mu = -0.1"),
    ({"scale": -1.0}, "scale = -1.0"),
)
OURS = {"T": ROUNDS, "E": 2, "eta": 0.3, "mu": 0.4}
OFF = {"scale": 0.0, "C": 1e6, "mu": 0.0, "K": 6}

CASES: dict[str, Case] = {
    "nbafl": Case(
        nbafl,
        {**OURS, "K": 4, "B": 3, "C": 1.5, "L": 1, "epsilon": 60.0},
        OFF,
        {"T": ROUNDS, "m": 6, "E": 2, "B": 3, "eta": 0.3},
        wrong=(*WRONG, ({"L": 0}, "L = 0"), ({"B": 0}, "B = 0")),
    ),
    "nbafl-c": Case(
        nbafl_c,
        {**OURS, "K": 6, "C": 0.6, "epsilon": 40.0},
        OFF,
        {"T": ROUNDS, "m": 6, "E": 2, "B": 8, "eta": 0.3},
        wrong=(*WRONG, ({"at_most": 0}, "at_most = 0")),
    ),
}
