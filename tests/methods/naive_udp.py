"""UDP and CRD (Wei et al. 2022), done naively from the printed algorithms.

The printed noise N(0, sigma_i^2) on the model is recorded here as |D_i|/eta times itself on the sum
of gradients, as docs/papers/udp-crd.md says. The loss of w_{t+1} is known a round later.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, log, sqrt
from typing import Any

import numpy as np

from confide.accounting import gdp
from methods.world import DIM, ROUNDS, Case, Naive, Vector, World, shortened

Sigma = Callable[[Any, int, list[int], float], float]  # method, t, every T so far, epsilon


def test_loss(world: World, w: Vector, client: int) -> list[float]:
    """The losses of w on the client's test records: every M-th of them."""
    data = world.data
    mine = range(client, len(data.x_test), world.M)
    return [world.loss(w, data.x_test[i].double().numpy(), int(data.y_test[i])) for i in mine]


def told(world: World, m: Any, w: Vector, t: int, client: int, releases: int) -> float:
    """What the client says about its test loss: the mean as printed, or cut and noised."""
    losses = test_loss(world, w, client)
    if not releases:
        return sum(losses) / len(losses)
    total = min(m.V_max, sum(min(m.V_max, one) for one in losses) / m.n_test)
    std = m.V_max / m.n_test * sqrt(releases) / (gdp.mu(m.epsilon, m.delta) * (1 - 1e-5))
    return total + std * float(world.stream(t, client, "upload loss").normal((1,))[0])


def cohort_of(world: World, m: Any, t: int, took_part: list[int]) -> list[int]:
    """All clients, or K of those who may still take part."""
    free = list(range(world.M))
    if getattr(m, "at_most", None) is not None:
        free = [k for k in free if took_part[k] < m.at_most]
    chosen = free
    if world.M != m.K:
        chosen = [free[i] for i in world.stream(t, None, "cohort").choose(len(free), m.K)]
    for k in chosen:
        took_part[k] += 1
    return chosen


def udp(sigma: Sigma, releases: int = 0, discounts: Callable[..., int] | None = None) -> Naive:
    """Algorithm 1, and Algorithm 2 with `discounts`."""

    def naive(world: World, m: Any) -> Vector:
        w, T, seen = world.start(), [m.T], [0.0] * 0
        took_part = [0] * world.M
        for t in range(ROUNDS):
            if discounts is not None and t:
                T.append(discounts(m, T[-1], seen, t))
            cohort = cohort_of(world, m, t, took_part)
            total, losses = np.zeros(DIM), 0.0
            for client in cohort:
                records = world.records(client)
                D, summed = len(records), np.zeros(DIM)
                for x, y in records:
                    summed += shortened(world.gradient(w, x, y), m.C)
                e = m.epsilon[client] if isinstance(m.epsilon, tuple) else m.epsilon
                printed = sigma(m, t, T, e) * 2 * m.eta * m.C / D
                draws = world.stream(t, client, "batch").normal((DIM,))
                total += w - m.eta / D * summed - printed * draws
                losses += told(world, m, w, t, client, releases)
            w, seen = total / m.K, [*seen, losses / m.K]
        return w

    return naive


def eq_10(m: Any, t: int, T: list[int], e: float) -> float:
    """sqrt(2 q T ln(1/delta)) / epsilon, with q = K / 6."""
    return sqrt(2 * m.K / 6 * m.T * log(1 / m.delta)) / e


def exactly(m: Any, t: int, T: list[int], e: float) -> float:
    """T equal rounds of the exact budget."""
    n = m.T if m.at_most is None else min(m.T, m.at_most)
    return sqrt(n) / (gdp.mu(e, m.delta) * (1 - 1e-5))


def eq_25(cap: Callable[[Any, float], float]) -> Sigma:
    """sqrt((T - t) / (cap - sum of 1 / sigma^2)), all earlier sigmas computed anew."""

    def sigma(m: Any, t: int, T: list[int], e: float) -> float:
        past: list[float] = []
        for now in range(t + 1):
            left = cap(m, e) - sum(1 / s**2 for s in past)
            past.append(sqrt((T[now] - now) / left))
        return past[-1]

    return sigma


def printed_cap(m: Any, e: float) -> float:
    return e**2 / (2 * m.K / 6 * log(1 / m.delta))


def exact_cap(m: Any, e: float) -> float:
    return (gdp.mu(e, m.delta) * (1 - 1e-5)) ** 2


def stalls(m: Any, T: int, seen: list[float], t: int) -> int:
    """Line 16, with the last two losses that are known."""
    if len(seen) >= 2 and seen[-2] - seen[-1] < m.zeta:
        return floor(m.beta * (T - t)) + t
    return T


def stalls_smoothly(m: Any, T: int, seen: list[float], t: int) -> int:
    """The mean of the last two against that of the two before; windows of one step here."""
    means = [sum(seen[max(0, i - m.window + 1) : i + 1]) / min(i + 1, m.window) for i in range(t)]
    if len(means) > m.window and means[-1 - m.window] - means[-1] < m.zeta:
        return floor(m.beta * (T - t)) + t
    return T


def falls(per_round: Callable[[Any, float], float]) -> Sigma:
    """From `first` to `last` times the noise of T equal rounds."""

    def sigma(m: Any, t: int, T: list[int], e: float) -> float:
        return (m.first + (m.last - m.first) * t / (m.T - 1)) * per_round(m, e)

    return sigma


def printed_round(m: Any, e: float) -> float:
    return eq_10(m, 0, [], e)


def exact_round(m: Any, e: float) -> float:
    return sqrt(m.T) / (gdp.mu(e, m.delta) * (1 - 1e-5))


WRONG = (
    ({"K": 7}, "K = 7"),
    ({"T": 0}, "T = 0"),
    ({"C": 0.0}, "C = 0.0"),
    ({"epsilon": -1.0}, "epsilon = -1.0"),
    ({"delta": 1.0}, "delta = 1.0"),
    ({"weights": "loss"}, "weights = 'loss'"),
)
OURS = {"T": ROUNDS, "K": 6, "C": 0.7, "eta": 0.4, "epsilon": 900.0}
OFF = {"scale": 0.0, "C": 1e6}
AVERAGING = {"T": ROUNDS, "m": 6, "E": 1, "B": 8, "eta": 0.4}
LONGER = {**OURS, "T": 6}
BETA = ({"beta": 1.0}, "beta = 1.0")

CASES: dict[str, Case] = {
    "udp": Case(
        udp(eq_10),
        {**OURS, "K": 3, "epsilon": (900.0, 500.0, 800.0, 900.0, 700.0, 600.0)},
        {**OFF, "epsilon": 900.0, "K": 6},
        AVERAGING,
        wrong=WRONG,
    ),
    "udp-c": Case(
        udp(exactly, releases=2), {**OURS, "at_most": 2, "K": 3}, {**OFF, "K": 6, "at_most": None},
        AVERAGING, wrong=WRONG,
    ),
    "udp-crd": Case(
        udp(eq_25(printed_cap), discounts=stalls),
        {**LONGER, "zeta": 10.0, "beta": 0.5},  # 6 rounds become 4, then 3
        {**OFF, "T": ROUNDS, "zeta": -1e9},
        AVERAGING,
        wrong=(*WRONG, BETA),
    ),
    "udp-crd-c": Case(
        udp(eq_25(exact_cap), releases=6, discounts=stalls_smoothly),
        {**LONGER, "zeta": 10.0, "beta": 0.5, "window": 1},
        {**OFF, "T": ROUNDS, "zeta": -1e9},
        AVERAGING,
        wrong=(*WRONG, BETA, ({"trigger": "luck"}, "trigger = 'luck'")),
    ),
    "udp-lei": Case(
        udp(falls(printed_round)), {**OURS, "T": 4}, OFF, AVERAGING,
        wrong=(*WRONG, ({"first": 0.0}, "first = 0.0")),
    ),
    "udp-lei-c": Case(
        udp(falls(exact_round), releases=4), {**OURS, "T": 4}, OFF, AVERAGING,
        wrong=(*WRONG, ({"last": -1.0}, "last = -1.0")),
    ),
}  # fmt: skip
