"""cpSGD (Agarwal et al. 2018), done naively: a dense Hadamard matrix, coordinate by coordinate."""

from __future__ import annotations

from math import ceil, exp, floor, log, sqrt
from typing import Any

import numpy as np

from confide.randomness import Stream
from confide.randomness.exact import BinomialLaw
from methods.naive_dp_fedags import summed_gradients
from methods.world import DIM, ROUNDS, Case, Vector, World, shortened

PADDED = 64  # the power of two above the network's 39 parameters


def rotation(world: World, t: int) -> Vector:
    """H D / sqrt(d): H[i, j] = (-1)^(number of ones that i and j share), D the round's signs."""
    signs = world.stream(t, None, "shared rotate").signs((PADDED,))
    H = [[(-1) ** (i & j).bit_count() for j in range(PADDED)] for i in range(PADDED)]
    return np.array(H) * signs[None, :] / sqrt(PADDED)


def grid(m: Any, clients: float) -> tuple[float, float]:
    """X and the step between k levels of [-X, X]."""
    X = m.C * sqrt(2 * log(2 * clients * PADDED / m.delta) / PADDED)
    return X, 2 * X / (m.k - 1)


def rounded(x: Vector, X: float, step: float, draws: Stream) -> Vector:
    """Each coordinate up or down to a level, without bias; the levels' numbers."""
    lifts = draws.uniform((PADDED,))
    levels = np.zeros(PADDED)
    for j in range(PADDED):
        place = min(X, max(-X, x[j])) / step
        levels[j] = floor(place) + (1 if lifts[j] <= place - floor(place) else 0)
    return levels


def longest(norm: float, beta: float) -> float:
    """How long a rounded vector may be, in steps, from the vector's own length in steps."""
    likely = norm**2 + PADDED / 4 + sqrt(2 * log(1 / beta)) * (norm + sqrt(PADDED) / 2)
    return min(sqrt(likely), norm + sqrt(PADDED))


def theorem_1(m: Any, step: float, trials: int) -> float:
    """Epsilon of one round, written out for p = 1/2."""
    l2 = longest(m.C * (1 + 4e-6) / step, 1e-100)
    l1, linf = min(sqrt(PADDED) * l2, l2**2), (m.k - 1) / 2
    near, ten, v = log(1.25 / m.delta), log(10 / m.delta), trials / 4
    if v < max(23 * log(10 * PADDED / m.delta), 2 * linf):
        return float("inf")
    c, d = sqrt(2) * (3 / 4 + 1), 2 / 3
    skew = (l2 * c * sqrt(ten) + l1 / 3) / (v * (1 - m.delta / 10))
    far = linf * (2 / 3 * near + d * log(20 * PADDED / m.delta) * ten) / v
    return l2 * sqrt(2 * near / v) + skew + far


def fewest(m: Any, step: float) -> int:
    """By halving: the least number of trials for which Theorem 1 gives epsilon."""
    low, high = 1, 1 << 40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if theorem_1(m, step, middle) <= m.epsilon else (middle, high)
    return high


def cpsgd(world: World, m: Any) -> Vector:
    """As printed: a share of Bin(trials, 1/2) with every report."""
    w = world.start()
    X, step = grid(m, m.m)
    trials = 2 * ceil(m.scale**2 * fewest(m, step) / m.m / 2)
    for t in range(ROUNDS):
        R, total = rotation(world, t), np.zeros(PADDED)
        for client in world.fixed(t, m.m):
            g = shortened(summed_gradients(world, m, t, client, w), m.C)
            draws = world.stream(t, client, "upload update")
            total += rounded(R @ np.pad(-g, (0, PADDED - DIM)), X, step, draws)
            total += BinomialLaw(trials, 0.5).draw(draws, (PADDED,))
        w = w + m.eta * (R.T @ (total * step))[:DIM] / m.m
    return w


def cpsgd_c(world: World, m: Any) -> Vector:
    """Coins, rounding again until it is short enough, and noise once on the sum."""
    w = world.start()
    expected = m.q * world.M
    X, step = grid(m, expected)
    limit = longest(m.C * (1 + 4e-6) / step, exp(-1 / 2))
    trials = 2 * ceil(2 * (m.sigma * m.C / step) ** 2)
    for t in range(ROUNDS):
        R, total = rotation(world, t), np.zeros(PADDED)
        for client in world.poisson(t, m.q):
            g = shortened(summed_gradients(world, m, t, client, w), m.C)
            draws = world.stream(t, client, "upload update")
            levels = rounded(R @ np.pad(-g, (0, PADDED - DIM)), X, step, draws)
            while sqrt(float(levels @ levels)) > limit:
                levels = rounded(R @ np.pad(-g, (0, PADDED - DIM)), X, step, draws)
            total += levels
        noise = BinomialLaw(trials, 0.5).draw(world.stream(t, None, "publish update"), (PADDED,))
        w = w + m.eta * (R.T @ ((total + noise) * step))[:DIM] / expected
    return w


LOCAL = {"T": ROUNDS, "E": 2, "B": 3, "eta": 0.3, "C": 0.5, "k": 9}
OFF = {"k": None, "C": 1e12}
FEDAVG = {"T": ROUNDS, "m": 3, "E": 2, "B": 3, "eta": 0.3}
WRONG = (
    ({"T": 0}, "T = 0"),
    ({"E": 0}, "E = 0"),
    ({"C": 0.0}, "C = 0.0"),
    ({"eta": 0.0}, "eta = 0.0"),
    ({"k": 8}, "k = 8"),
    ({"k": 1}, "k = 1"),
    ({"k": None}, "k = None"),
    ({"delta": 1.0}, "delta = 1.0"),
)

CASES: dict[str, Case] = {
    "cpsgd": Case(
        cpsgd,
        {**LOCAL, "m": 3, "epsilon": 20.0},
        {**OFF, "scale": 0.0},
        FEDAVG,
        wrong=(
            *WRONG,
            ({"m": 7}, "m = 7"),
            ({"epsilon": 0.0}, "epsilon = 0.0"),
            ({"scale": -1.0}, "scale = -1.0"),
        ),
    ),
    "cpsgd-c": Case(
        cpsgd_c,
        {**LOCAL, "q": 0.5, "sigma": 0.7},
        {**OFF, "q": 1.0, "sigma": 0.0},
        {**FEDAVG, "m": 6},
        wrong=(*WRONG, ({"q": 1.2}, "q = 1.2"), ({"sigma": -0.1}, "sigma = -0.1")),
    ),
}
