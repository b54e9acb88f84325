"""UDP-FL (Feng et al. 2024), done naively from Algorithms 1 to 3.

The printed Harmonizer is worked out again from the paper's formulas; the corrected one's multiplier
is a recorded number here, and test_statements_udp_fl.py holds it against its budget.
"""

from __future__ import annotations

from math import comb, exp, expm1, log
from typing import Any

import numpy as np
from scipy.optimize import brentq

from confide.accounting.staircase import optimal_gamma
from confide.engine.rounds import Sizes
from confide.randomness import Stream, floating
from confide.randomness.exact import GriddedLaplace
from methods.world import DIM, LAYERS, ROUNDS, Case, Vector, World, shortened

ORDERS = (*range(2, 33), *range(34, 65, 2), 80, 96, 128, 160, 192, 256)


def gaussian(a: int, z: float) -> float:
    return a / (2 * z**2)


def laplace(a: int, z: float) -> float:
    t = 1 / z
    rest = a / (2 * a - 1) + (a - 1) / (2 * a - 1) * exp((1 - 2 * a) * t)
    return t + log(rest) / (a - 1)


def staircase(a: int, z: float) -> float:
    """Theorem 1 with nu of Lemma 1, which is below 1/2, and a logarithm around it."""
    lam = 1 / z
    nu = 1 / (1 + exp(lam / 2))
    both = 1 + exp((1 - 2 * a) * lam)  # all over e^((a - 1) lam)
    drop = abs(2 * nu - 1) * exp((1 - a) * lam)
    last = (both * (1 - nu) + drop) * (1 - exp(-1)) / (2 * (nu + exp(-lam) * (1 - nu)))
    return lam + log(both / 2 + last) / (a - 1)


DIVERGENCES = {"gaussian": gaussian, "laplace": laplace, "staircase": staircase}


def printed_multiplier(m: Any, epsilon: float, delta: float, clients: int | None) -> float:
    """Where min over orders of (T I divergences + log(1/delta) / (order - 1)) is epsilon."""

    def one(a: int, z: float) -> float:
        gamma = DIVERGENCES[m.noise](a, z)
        if clients is None or gamma > 300:  # where a float ends, the shuffler's is not the least
            return gamma
        return log(1 + comb(a, 2) * 4 * expm1(gamma) ** 2 / clients) / (a - 1)

    def total(log_z: float) -> float:
        z = exp(log_z)
        budget = (m.T * m.I * one(a, z) + log(1 / delta) / (a - 1) for a in ORDERS)
        return min(budget) - epsilon

    return exp(float(brentq(total, log(0.05), log(1e4), xtol=1e-13)))


def draw(m: Any, stream: Stream, z: float, radial: bool) -> Vector:
    """The recorded noise of one vector."""
    if m.noise == "gaussian":
        return z * m.c * stream.normal((DIM,))
    if m.noise == "laplace":
        return GriddedLaplace(z * m.c).add(stream, np.zeros(DIM))
    nu = optimal_gamma(1 / z, "l2")
    if radial:
        return floating.radial_staircase(stream, DIM, 1 / z, m.c, nu)
    return floating.staircase(stream, (DIM,), 1 / z, m.c, nu)


def cut(m: Any, g: Vector, radial: bool) -> Vector:
    """To length c, in l1 for the radial staircase."""
    return g * min(1.0, m.c / float(np.abs(g).sum())) if radial else shortened(g, m.c)


def joined(world: World, m: Any, models: list[Vector], coins: Stream) -> Vector:
    """Lines 16 to 29 and Algorithm 2, on the public records."""
    data, public = world.data, world.federation.public
    records = [(data.x_train[i].double().numpy(), int(data.y_train[i])) for i in public]
    while len(models) > 1:
        following: list[Vector] = []
        for i in range(0, len(models) - 1, 2):
            w1, w2 = models[i], models[i + 1]
            theta = (w1 + w2) / 2
            for _ in range(m.curve_steps):
                p = float(coins.uniform((1,))[0])
                coins.uint64(1)  # for dropout, which this network has none of
                if m.curve == "bezier":
                    on, slope = (
                        (1 - p) ** 2 * w1 + 2 * p * (1 - p) * theta + p * p * w2,
                        2 * p * (1 - p),
                    )
                elif p <= 0.5:
                    on, slope = 2 * (p * theta + (0.5 - p) * w1), 2 * p
                else:
                    on, slope = 2 * ((p - 0.5) * w2 + (1 - p) * theta), 2 * (1 - p)
                theta = theta - m.eta * slope * world.mean_gradient(on, records)
            following.append(theta)
        if len(models) % 2:
            following.append(models[-1])
        models = following
    return models[0]


def naive(world: World, m: Any) -> Vector:
    """Algorithm 1 with section 3.3; the corrected one has one noise for each batch."""
    corrected, M = m.name.endswith("-c"), world.M
    radial = corrected and m.noise == "staircase"
    epsilons = m.epsilon if isinstance(m.epsilon, tuple) else (m.epsilon,) * M
    deltas = m.delta if isinstance(m.delta, tuple) else (m.delta,) * M
    if corrected:
        found = m.multipliers(Sizes(M, min(world.sizes), LAYERS))
        z = found if len(found) == M else found * M
    else:
        behind = M if m.shuffle else None
        z = [printed_multiplier(m, e, d, behind) for e, d in zip(epsilons, deltas, strict=True)]
    strongest = epsilons.index(max(epsilons))
    w, c, w_max = world.start(), np.zeros(DIM), None
    own = [np.zeros(DIM) for _ in range(M)]
    for t in range(ROUNDS):
        cohort = list(range(M)) if m.K == M else sorted(world.fixed(t, m.K))
        models: dict[int, Vector] = {}
        moved = np.zeros(DIM)
        for k in cohort:
            mine, inside = w.copy(), world.stream(t, k, "batch" if corrected else "example")
            lam = (max(epsilons) - epsilons[k]) / max(epsilons)
            for batch in world.coins(t, k, m.I, m.q):
                g = np.zeros(DIM)
                for x, y in batch:
                    g = g + cut(m, world.gradient(mine, x, y), radial)
                    if not corrected:
                        g = g + draw(m, inside, z[k], radial)
                if corrected:
                    g = (g + draw(m, inside, z[k], radial)) / (m.q * min(world.sizes))
                else:
                    g = g / max(1, len(batch))
                if w_max is not None:
                    g = g + lam * (mine - w_max)
                mine = mine - m.eta * (g - own[k] + c if m.local == "scaffold" else g)
            models[k] = mine
            if m.local == "scaffold":
                new = own[k] - c + (w - mine) / (m.I * m.eta)
                moved, own[k] = moved + new - own[k], new
        if strongest in models and len(set(epsilons)) > 1:
            w_max = models[strongest]
        if m.aggregate == "mean":
            w = np.mean([models[k] for k in cohort], axis=0)
        else:
            ordered = [models[k] for k in cohort]
            if m.shuffle:
                order = world.stream(t, None, "shuffled uploads").permutation(len(cohort))
                ordered = [ordered[i] for i in order]
            w = joined(world, m, ordered, world.stream(t, None, "curve"))
        c = c + moved / M
    return w


OURS = {"T": ROUNDS, "K": 6, "I": 2, "q": 0.5, "c": 0.8, "eta": 0.3, "epsilon": 12.0, "delta": 1e-3}
OFF = {"scale": 0.0, "c": 1e6, "q": 1.0}
AVERAGING = {"T": ROUNDS, "m": 6, "E": 2, "B": 8, "eta": 0.3}
UNEQUAL = {"epsilon": (9.0, 12.0, 6.0, 12.0, 10.0, 4.0)}
TREE = {"aggregate": "mode-connectivity", "curve_steps": 3}
WRONG = (
    ({"K": 7}, "K = 7"),
    ({"I": 0}, "I = 0"),
    ({"q": 0.0}, "q = 0.0"),
    ({"q": 1.5}, "q = 1.5"),
    ({"c": -1.0}, "c = -1.0"),
    ({"epsilon": 0.0}, "epsilon = 0.0"),
    ({"delta": 1.0}, "delta = 1.0"),
    ({"scale": -0.5}, "scale = -0.5"),
    ({"noise": "cauchy"}, "noise = 'cauchy'"),
    ({"aggregate": "median"}, "aggregate = 'median'"),
    ({"curve": "spline"}, "curve = 'spline'"),
    ({"local": "adam"}, "local = 'adam'"),
    ({"curve_steps": 0}, "curve_steps = 0"),
    ({"epsilon": (8.0, 4.0)}, "2 numbers"),
    ({"epsilon": (8.0, 4.0), "delta": (0.1, 0.1, 0.1)}, "different lengths"),
    ({**UNEQUAL, "shuffle": True}, "shuffle = True"),
)

CASES: dict[str, Case] = {
    "udp-fl": Case(naive, {**OURS, **UNEQUAL}, {**OFF, "epsilon": 1.0}, AVERAGING, wrong=WRONG),
    "udp-fl-c": Case(naive, {**OURS, **UNEQUAL}, {**OFF, "epsilon": 1.0}, AVERAGING, wrong=WRONG),
}

VARIANTS: list[dict[str, Any]] = [
    {"noise": "laplace"},
    {"noise": "staircase", "K": 4},
    {"noise": "staircase", **UNEQUAL},
    {"noise": "laplace", **UNEQUAL, "delta": (1e-3, 1e-4, 1e-3, 1e-2, 1e-3, 1e-3), "K": 5},
    {"shuffle": True},
    {**TREE, "K": 5},
    {**TREE, "curve": "bezier", "noise": "laplace"},
    {**TREE, "shuffle": True, "K": 3},
    {"local": "scaffold", "K": 4},
    {**TREE, "local": "scaffold", **UNEQUAL},
]
"""Further settings, each for both methods."""
