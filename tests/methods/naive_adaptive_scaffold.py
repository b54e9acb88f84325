"""Adaptive clipping (Andrew et al. 2021) and DP-SCAFFOLD (Noble et al. 2022), done naively."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

import numpy as np

from methods.world import DIM, ROUNDS, Case, Vector, World, shortened


def adaptive(world: World, method: Any) -> Vector:
    """Andrew et al. 2021, Algorithm 1, with coins for clients."""
    w, velocity, C = world.start(), np.zeros(DIM), method.C_0
    m = method.q * world.M
    sigma_b = max(m / 20, method.z) if method.sigma_b is None else method.sigma_b
    z_delta = 1 / sqrt(1 / method.z**2 - 1 / (2 * sigma_b) ** 2)
    for t in range(ROUNDS):
        total, bits, came = np.zeros(DIM), 0, 0
        for client in world.poisson(t, method.q):
            mine = w.copy()
            for batch in world.epochs(t, client, method.E, method.B):
                mine = mine - method.eta * world.mean_gradient(mine, batch)
            length = sqrt(float((mine - w) @ (mine - w)))
            came += 1
            bits += length <= C
            total += shortened(mine - w, C)
        total += z_delta * C * world.stream(t, None, "publish update").normal(DIM)
        noisy = bits - came / 2 + sigma_b * float(world.stream(t, None, "publish bit").normal(1)[0])
        velocity = method.beta * velocity + total / m
        w = w + velocity
        C = C * exp(-method.eta_C * (0.5 + noisy / m - method.gamma))
    return w


def dp_scaffold(world: World, method: Any) -> Vector:
    """Noble et al. 2022: SCAFFOLD along noisy means of clipped gradients."""
    x, c = world.start(), np.zeros(DIM)
    own = [np.zeros(DIM) for _ in range(world.M)]
    m, B = round(method.l * world.M), round(method.s * min(world.sizes))
    for t in range(ROUNDS):
        moved, controls = np.zeros(DIM), np.zeros(DIM)
        for i in world.fixed(t, m):
            y, seen, noise = x.copy(), np.zeros(DIM), world.stream(t, i, "batch")
            for batch in world.subsets(t, i, method.K, B):
                H = np.zeros(DIM)
                for record in batch:
                    H += shortened(world.gradient(y, *record), method.C) / B
                H += 2 * method.C / B * method.sigma_g * noise.normal(DIM)
                seen += H / method.K
                y = y - method.eta_l * (H - own[i] + c)
            # Option II's new control is the mean of the noisy gradients.
            moved, controls, own[i] = moved + y - x, controls + seen - own[i], seen
        x = x + method.eta_g * moved / m
        c = c + controls / world.M
    return x


ADAPTIVE = {
    "T": ROUNDS, "q": 0.6, "z": 0.7, "C_0": 0.3, "eta_C": 0.5, "gamma": 0.4, "E": 2, "B": 3,
    "eta": 0.3, "beta": 0.5,
}  # fmt: skip
CONTROLS = {
    "T": ROUNDS, "l": 0.5, "s": 0.5, "K": 3, "C": 0.6, "sigma_g": 0.3, "eta_l": 0.2, "eta_g": 0.9,
}  # fmt: skip
FEDAVG = {"T": ROUNDS, "m": 6, "E": 2, "B": 3, "eta": 0.3}

CASES: dict[str, Case] = {
    "dp-fedavg-adaptive": Case(
        adaptive,
        ADAPTIVE,
        {"q": 1.0, "z": 0.0, "C_0": 1e12, "eta_C": 0.0, "beta": 0.0},
        FEDAVG,
        wrong=(
            ({"q": 1.2}, "q = 1.2"),
            ({"z": -0.1}, "z = -0.1"),
            ({"z": 3.0, "sigma_b": 1.5}, "z = 3.0"),
            ({"sigma_b": 0.0}, "sigma_b = 0.0"),
            ({"gamma": 1.5}, "gamma = 1.5"),
            ({"C_0": 0.0}, "C_0 = 0.0"),
            ({"eta_C": -1.0}, "eta_C = -1.0"),
            ({"T": 0}, "T = 0"),
            ({"eta": 0.0}, "eta = 0.0"),
        ),
    ),
    # With everybody there and one step on all records, the controls cancel in the mean.
    "dp-scaffold": Case(
        dp_scaffold,
        CONTROLS,
        {"l": 1.0, "s": 1.0, "K": 1, "C": 1e12, "sigma_g": 0.0, "eta_l": 0.3, "eta_g": 1.0},
        {**FEDAVG, "E": 1, "B": 8},
        wrong=(
            ({"l": 0.0}, "l = 0.0"),
            ({"s": 1.1}, "s = 1.1"),
            ({"K": 0}, "K = 0"),
            ({"C": 0.0}, "C = 0.0"),
            ({"sigma_g": -1.0}, "sigma_g = -1.0"),
            ({"eta_l": 0.0}, "eta = 0.0"),
            ({"eta_g": 0.0}, "eta_g = 0.0"),
            ({"T": 0}, "T = 0"),
        ),
    ),
}
