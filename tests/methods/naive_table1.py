"""The systems of UDP-FL's Table 1, done naively from docs/papers/udp-fl-table1.md.

Randomisers are written from their definitions; only their uniform and normal draws are recorded.
"""

from __future__ import annotations

from math import exp, gamma, pi, sqrt, tanh
from typing import Any

import numpy as np

from confide.randomness.exact import GriddedLaplace
from methods.naive_dp_fedsam import descent, random_mask
from methods.world import DIM, LAYERS, ROUNDS, Case, Vector, World, shortened


def ordinary(world: World, m: Any, t: int, client: int, start: Vector) -> Vector:
    """Epochs of plain descent: where the client's model ends."""
    w = start.copy()
    for batch in world.epochs(t, client, m.E, m.B):
        w = w - m.eta * descent(world, m, w, start, batch)
    return w


def two_points(x: Vector, C: float, epsilon: float, toss: Vector) -> Vector:
    """Every entry becomes A or -A, with itself as expectation."""
    A = C * (exp(epsilon) + 1) / (exp(epsilon) - 1)
    out = np.empty_like(x)
    for j, value in enumerate(np.clip(x, -C, C)):
        out[j] = A if toss[j] <= 0.5 * (1 + value / A) else -A
    return out


def ordinal(x: Vector, C: float, levels: int, epsilon: float, toss: Vector) -> Vector:
    """The exponential mechanism over the levels by inversion of its distribution function."""
    grid = np.linspace(-C, C, levels)
    out = np.empty_like(x)
    for j, value in enumerate(np.clip(x, -C, C)):
        here = int(np.argmin(np.abs(grid - value)))
        weights = [exp(-epsilon * abs(here - i) / (levels - 1)) for i in range(levels)]
        reached = np.cumsum(weights) / sum(weights)
        out[j] = grid[int(np.argmax(reached >= toss[j]))]
    return out


def ldp_fed(world: World, m: Any) -> Vector:
    """A public mask, every entry of it randomised, the mean over the cohort."""
    w = world.start()
    for t in range(ROUNDS):
        mask, total = random_mask(world, t, m.p), np.zeros(DIM)
        share = m.epsilon / (mask.sum() if type(m).__name__.endswith("C") else 1)
        for client in world.fixed(t, m.k):
            toss = world.stream(t, client, "upload update").uniform(DIM)
            update = ordinary(world, m, t, client, w) - w
            total += mask * ordinal(mask * update, m.C, m.levels, share / m.scale, toss)
        w = w + total / m.k
    return w


def ldp_fl(world: World, m: Any) -> Vector:
    """The mean of randomised models."""
    w = world.start()
    for t in range(ROUNDS):
        total = np.zeros(DIM)
        for client in world.fixed(t, m.m):
            toss = world.stream(t, client, "upload model").uniform(DIM)
            total += two_points(ordinary(world, m, t, client, w), m.r, m.epsilon / m.scale, toss)
        w = total / m.m
    return w


def ldp_fl_c(world: World, m: Any) -> Vector:
    """The entries of a public mask share epsilon."""
    w = world.start()
    for t in range(ROUNDS):
        mask, total = random_mask(world, t, m.p), np.zeros(DIM)
        for client in world.fixed(t, m.m):
            toss = world.stream(t, client, "upload update").uniform(DIM)
            update = mask * (ordinary(world, m, t, client, w) - w)
            total += mask * two_points(update, m.C, m.epsilon / m.scale / mask.sum(), toss)
        w = w + total / m.m
    return w


def ball(x: Vector, C: float, epsilon: float, world: World, t: int, client: int) -> Vector:
    """Duchi, Jordan and Wainwright's randomiser of the l2 ball."""
    stream, length = world.stream(t, client, "upload update"), float(np.sqrt(x @ x))
    axis = x / length
    if stream.uniform(1)[0] > 0.5 + length / (2 * C):
        axis = -axis
    kept = stream.uniform(1)[0] <= exp(epsilon) / (1 + exp(epsilon))
    point = stream.normal(DIM)
    point = point / np.sqrt(point @ point)
    if (point @ axis >= 0) != kept:
        point = -point
    along = gamma(DIM / 2) / (sqrt(pi) * gamma((DIM + 1) / 2))  # E |point @ axis|
    return point * C / (along * tanh(epsilon / 2))


def cldp_sgd(world: World, m: Any) -> Vector:
    """One record of each client of the cohort, its clipped gradient randomised."""
    w = world.start()
    for t in range(ROUNDS):
        total = np.zeros(DIM)
        for client in world.fixed(t, m.k):
            [[(x, y)]] = world.subsets(t, client, 1, 1)
            g = shortened(world.gradient(w, x, y), m.C)
            total += ball(-m.eta * g, m.eta * m.C, m.epsilon_0 / m.scale, world, t, client)
        w = w + total / m.k
    return w


def laplace(world: World, t: int, client: int, scale: float) -> Vector:
    """The recorded draws."""
    stream = world.stream(t, client, "upload update")
    return GriddedLaplace(scale).add(stream, np.zeros(DIM))


def cofel_avg(world: World, m: Any) -> Vector:
    """Each client noises the layers that it has changed most, and sends no others."""
    w = world.start()
    for t in range(ROUNDS):
        total = np.zeros(DIM)
        for client in world.fixed(t, m.m):
            update = shortened(ordinary(world, m, t, client, w) - w, m.C)
            noisy = update + laplace(world, t, client, m.scale * m.C / m.epsilon)
            ends = np.cumsum(LAYERS)
            means = [np.abs(p).mean() for p in np.split(update, ends[:-1])]
            for layer in np.argsort(means)[-m.k :]:
                part = slice(ends[layer] - LAYERS[layer], ends[layer])
                total[part] += noisy[part]
        w = w + total / m.m
    return w


def cofel_avg_c(world: World, m: Any) -> Vector:
    """The layers take turns."""
    w = world.start()
    for t in range(ROUNDS):
        mask, ends = np.zeros(DIM), np.cumsum(LAYERS)
        for i in range(m.k):
            layer = (t + i) % len(LAYERS)
            mask[ends[layer] - LAYERS[layer] : ends[layer]] = 1
        total = np.zeros(DIM)
        for client in world.fixed(t, m.m):
            update = mask * (ordinary(world, m, t, client, w) - w)
            update = update * min(1.0, m.C / np.abs(update).sum())
            total += mask * (update + laplace(world, t, client, 2 * m.scale * m.C / m.epsilon))
        w = w + total / m.m
    return w


def noised_mean(world: World, m: Any, w: Vector, batch: list[Any], noise: Any, by: float) -> Vector:
    """Clipped examples, noise on their sum, divided by a public number."""
    total = np.zeros(DIM)
    for x, y in batch:
        total += shortened(world.gradient(w, x, y), m.C)
    return (total + m.sigma * m.C * noise.normal(DIM)) / by


def rdp_pfl(world: World, m: Any) -> Vector:
    """An inner step, and the gradient found there moves the model."""
    w = world.start()
    for t in range(ROUNDS):
        total = np.zeros(DIM)
        for client in world.fixed(t, m.m):
            mine, noise = w.copy(), world.stream(t, client, "batch")
            if type(m).__name__.endswith("C"):
                batches = world.coins(t, client, m.L, m.B / min(world.sizes))
            else:
                batches = world.subsets(t, client, m.L, m.B)
            for batch in batches:
                inner = mine - m.alpha * noised_mean(world, m, mine, batch, noise, m.B)
                mine = mine - m.eta * noised_mean(world, m, inner, batch, noise, m.B)
            total += mine - w
        w = w + total / m.m
    return w


def steps_of(world: World, m: Any, Gamma: float, last: int, t: int, spent: int) -> int:
    """The rounded minimiser of the bound."""
    noise = m.sigma**2 * m.C**2 * DIM / (m.q * min(world.sizes)) ** 2
    come = min((m.T - t) * max(1, last), m.R_c - spent)
    above = 4 / m.mu**2 + 3 * m.C**2 + 2 * Gamma * come * m.mu + noise
    best = sqrt(1 + above / ((2 + 2 / come) * (m.C**2 + noise)))
    return min(max(1, int(best + 0.5)), m.most, m.R_c - spent)


def als_dpfl(world: World, m: Any) -> Vector:
    """Noisy local steps; how many follows the mean of the losses that were reported."""
    w, steps, spent, Gamma = world.start(), 0, 0, getattr(m, "Gamma", 0.0)
    for t in range(ROUNDS):
        steps = steps_of(world, m, Gamma, steps, t, spent)
        spent += steps
        total, losses = np.zeros(DIM), []
        for client in world.fixed(t, m.m):
            mine, noise = w.copy(), world.stream(t, client, "batch")
            for batch in world.coins(t, client, steps, m.q):
                mine = mine - m.eta * noised_mean(
                    world, m, mine, batch, noise, m.q * min(world.sizes)
                )
            total += mine - w
            held = world.records(client)
            losses.append(sum(world.loss(w, x, y) for x, y in held) / len(held))
        if not hasattr(m, "Gamma"):
            Gamma = sum(losses) / len(losses)
        w = w + total / m.m
    return w


EPOCHS = {"T": ROUNDS, "E": 2, "B": 3, "eta": 0.3}
FEDAVG = {**EPOCHS, "m": 3}
WHOLE = {"T": ROUNDS, "m": 3, "E": 2, "B": 8, "eta": 0.3}
WRONG = (
    ({"T": 0}, "T = 0"),
    ({"eta": 0.0}, "eta = 0.0"),
    ({"scale": -1.0}, "scale = -1.0"),
)
FED = {**EPOCHS, "k": 3, "p": 0.4, "C": 0.2, "levels": 21, "epsilon": 3.0}
FED_OFF = {"p": 1.0, "C": 1e12, "scale": 0.0}
FED_WRONG = (
    *WRONG,
    ({"k": 7}, "m = 7"),
    ({"p": 0.0}, "p = 0.0"),
    ({"epsilon": 0.0}, "epsilon = 0.0"),
    ({"levels": 1}, "k = 1"),
)
FL = {**EPOCHS, "m": 3, "r": 1.0, "epsilon": 3.0}
FL_C = {**EPOCHS, "m": 3, "p": 0.4, "C": 0.2, "epsilon": 20.0}
FL_WRONG = (*WRONG, ({"m": 7}, "m = 7"), ({"epsilon": 0.0}, "epsilon = 0.0"))
FL_MORE = (({"epsilon": 21.0}, "epsilon = 21.0"), ({"r": 0.0}, "r = 0.0"))
COFEL = {**EPOCHS, "m": 3, "k": 1, "C": 0.5, "epsilon": 5.0}
COFEL_OFF = {"k": len(LAYERS), "C": 1e12, "scale": 0.0}
COFEL_WRONG = (*WRONG, ({"k": 9}, "k = 9"), ({"k": 0}, "k = 0"), ({"C": 0.0}, "C = 0.0"))
PFL = {"T": ROUNDS, "m": 3, "L": 2, "B": 4, "C": 0.5, "sigma": 0.7, "eta": 0.3, "alpha": 0.2}
PFL_OFF = {"B": 8, "C": 1e12, "sigma": 0.0, "alpha": 0.0}
PFL_WRONG = (
    *WRONG[:2],
    ({"m": 7}, "m = 7"),
    ({"sigma": -1.0}, "sigma = -1.0"),
    ({"alpha": -1.0}, "alpha = -1.0"),
)
ALS = {"T": ROUNDS, "R_c": 9, "m": 3, "q": 0.5, "C": 0.5, "sigma": 0.4, "eta": 0.3, "mu": 1.0}
ALS_OFF = {"q": 1.0, "C": 1e12, "sigma": 0.0, "most": 1}
ALS_PLAIN = {**WHOLE, "E": 1}
ALS_WRONG = (
    *WRONG[:2],
    ({"q": 1.5}, "q = 1.5"),
    ({"mu": 0.0}, "mu = 0.0"),
    ({"R_c": 0}, "R_c = 0"),
)
ONE_RECORD = World((1, 1, 1, 1, 1, 1))

CASES: dict[str, Case] = {
    "ldp-fed": Case(ldp_fed, FED, FED_OFF, FEDAVG, wrong=FED_WRONG),
    "ldp-fed-c": Case(ldp_fed, {**FED, "epsilon": 30.0}, FED_OFF, FEDAVG, wrong=FED_WRONG),
    "ldp-fl": Case(ldp_fl, FL, {"r": 1e12, "scale": 0.0}, FEDAVG, wrong=(*FL_WRONG, *FL_MORE)),
    "ldp-fl-c": Case(ldp_fl_c, FL_C, FED_OFF, FEDAVG, wrong=FL_WRONG),
    "cldp-sgd": Case(
        cldp_sgd,
        {"T": ROUNDS, "k": 3, "C": 0.5, "epsilon_0": 4.0, "eta": 0.3},
        {"C": 1e12, "scale": 0.0},
        {"T": ROUNDS, "m": 3, "E": 1, "B": 1, "eta": 0.3},
        wrong=(*WRONG, ({"k": 7}, "m = 7"), ({"epsilon_0": 0.0}, "epsilon_0 = 0.0")),
        world=ONE_RECORD,
    ),
    "cofel-avg": Case(cofel_avg, COFEL, COFEL_OFF, FEDAVG, wrong=COFEL_WRONG),
    "cofel-avg-c": Case(cofel_avg_c, COFEL, COFEL_OFF, FEDAVG, wrong=COFEL_WRONG),
    "rdp-pfl": Case(rdp_pfl, PFL, PFL_OFF, WHOLE, wrong=(*PFL_WRONG, ({"B": 9}, "m = 9"))),
    "rdp-pfl-c": Case(rdp_pfl, PFL, PFL_OFF, WHOLE, wrong=PFL_WRONG),
    "als-dpfl": Case(als_dpfl, ALS, ALS_OFF, ALS_PLAIN, wrong=ALS_WRONG),
    "als-dpfl-c": Case(
        als_dpfl,
        {**ALS, "Gamma": 0.3},
        ALS_OFF,
        ALS_PLAIN,
        wrong=(*ALS_WRONG, ({"Gamma": -1.0}, "Gamma = -1.0")),
    ),
}
