"""UDP, CRD and what they are compared with (Wei et al. 2022), done naively from the paper.

The printed noise N(0, sigma_i^2) on the model is recorded here as |D_i|/eta times itself on the sum
of gradients, as docs/papers/udp-crd.md says. The loss of w_{t+1} is known a round later.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, log, sqrt
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from methods.world import DIM, ROUNDS, Case, Naive, Vector, World, shortened

Sigma = Callable[[Any, int, list[int], float, float], float]  # method, t, every T so far, e, delta


def gaussian_mu(e: float, delta: float) -> float:
    """The mu at which N(0, 1) against N(mu, 1) has this delta, less what a clip's slack takes."""

    def excess(mu: float) -> float:
        first = norm.cdf(mu / 2 - e / mu)
        return float(first - np.exp(e + norm.logcdf(-mu / 2 - e / mu)) - delta)

    return float(brentq(excess, 1e-3, 1e3, xtol=1e-14)) * (1 - 1e-5)


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
    std = m.V_max / m.n_test * sqrt(releases) / gaussian_mu(*budget(m, client))
    return total + std * float(world.stream(t, client, "upload loss").normal((1,))[0])


def budget(m: Any, client: int) -> tuple[float, float]:
    """A client's epsilon and delta."""
    e = m.epsilon[client] if isinstance(m.epsilon, tuple) else m.epsilon
    return e, m.delta[client] if isinstance(m.delta, tuple) else m.delta


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


def one_step(
    world: World, m: Any, w: Vector, t: int, cohort: list[int], sigma: Callable[..., float]
) -> Vector:
    """Lines 4 to 14: the mean of the clients' noised models."""
    sizes = [len(records) for records in world.federation.clients]
    largest, least = max(sizes), min(n for n in sizes if n)
    total = np.zeros(DIM)
    for client in cohort:
        records = world.records(client)
        D, summed = len(records), np.zeros(DIM)
        for x, y in records:
            summed += shortened(world.gradient(w, x, y), m.C)
        noise = sigma(*budget(m, client)) * 2 * m.eta * m.C / D
        draws = world.stream(t, client, "batch").normal((DIM,))
        p = 1 / m.K if m.weights == "uniform" else D / (m.K * (largest + least) / 2)
        total += p * (m.eta / D * summed + noise * draws)
    return w - total


def udp(sigma: Sigma, releases: int = 0, discounts: Callable[..., int] | None = None) -> Naive:
    """Algorithm 1, and Algorithm 2 with `discounts`."""

    def naive(world: World, m: Any) -> Vector:
        w, T, seen = world.start(), [m.T], [0.0] * 0
        took_part = [0] * world.M
        for t in range(ROUNDS):
            if discounts is not None and t:
                T.append(discounts(m, T[-1], [*seen, server_loss(world, w)], t))
            cohort = cohort_of(world, m, t, took_part)
            sizes = [len(world.records(client)) for client in cohort]
            told_by = [told(world, m, w, t, client, releases) for client in cohort]
            if m.weights == "size":
                ends = [len(records) for records in world.federation.clients]
                by = m.K * (max(ends) + min(ends)) / 2
                known = sum(n * one for n, one in zip(sizes, told_by, strict=True)) / by
            else:
                known = sum(told_by) / m.K
            if getattr(m, "trigger", "clients") == "public":
                known = server_loss(world, w)

            def own(e: float, delta: float, t: int = t) -> float:
                return sigma(m, t, T, e, delta)

            w, seen = one_step(world, m, w, t, cohort, own), [*seen, known]
        return w

    return naive


def server_loss(world: World, w: Vector) -> float:
    """The mean loss on the server's validation records."""
    data, held = world.data, world.federation.validation
    if not len(held):
        return float("nan")
    losses = [world.loss(w, data.x_train[i].double().numpy(), int(data.y_train[i])) for i in held]
    return sum(losses) / len(losses)


def optimal(sigma: Sigma, releases: int = 0) -> Naive:
    """Algorithm 1 for T/tries, 2T/tries, ... rounds; the model whose last told loss is least."""

    def naive(world: World, m: Any) -> Vector:
        reached: list[tuple[float, Vector]] = []
        t = 0
        for number in range(m.tries):
            w, T = world.start(), round(m.T * (number + 1) / m.tries)
            loss = 0.0
            for _ in range(T):
                cohort = cohort_of(world, m, t, [0] * world.M)
                loss = sum(told(world, m, w, t, client, releases) for client in cohort)

                def own(e: float, delta: float, t: int = t, T: int = T) -> float:
                    return sigma(m, t, [T], e, delta)

                w, t = one_step(world, m, w, t, cohort, own), t + 1
            reached.append((loss, w))
        return min(reached, key=lambda pair: pair[0])[1]

    return naive


def eq_10(m: Any, t: int, T: list[int], e: float, delta: float) -> float:
    """sqrt(2 q T ln(1/delta)) / epsilon, with q = K / 6."""
    return sqrt(2 * m.K / 6 * T[0] * log(1 / delta)) / e


def exactly(m: Any, t: int, T: list[int], e: float, delta: float) -> float:
    """T equal rounds of the exact budget."""
    n = m.T if m.at_most is None else min(m.T, m.at_most)
    return sqrt(n) / gaussian_mu(e, delta)


def shared(m: Any, t: int, T: list[int], e: float, delta: float) -> float:
    """T equal rounds of one run, of which there are `tries` within the exact budget."""
    return sqrt(m.tries * T[0]) / gaussian_mu(e, delta)


def eq_25(cap: Callable[[Any, float, float], float]) -> Sigma:
    """sqrt((T - t) / (cap - sum of 1 / sigma^2)), all earlier sigmas computed anew."""

    def sigma(m: Any, t: int, T: list[int], e: float, delta: float) -> float:
        past: list[float] = []
        for now in range(t + 1):
            left = cap(m, e, delta) - sum(1 / s**2 for s in past)
            past.append(sqrt((T[now] - now) / left))
        return past[-1]

    return sigma


def printed_cap(m: Any, e: float, delta: float) -> float:
    return e**2 / (2 * m.K / 6 * log(1 / delta))


def exact_cap(m: Any, e: float, delta: float) -> float:
    return gaussian_mu(e, delta) ** 2


def stalls(m: Any, T: int, seen: list[float], t: int) -> int:
    """Lines 16 to 18 after round t - 1, with the last two losses that the clients have told."""
    known = seen[:-1]
    if len(known) >= 2 and known[-2] - known[-1] < m.zeta:
        return floor(m.beta * (T - (t - 1))) + t - 1
    return T


def stalls_smoothly(m: Any, T: int, seen: list[float], t: int) -> int:
    """The mean over a window against that of `window` rounds before; windows of one step here."""
    known = seen if m.trigger == "public" else seen[:-1]
    if len(known) >= 2 and known[-2] - known[-1] < m.zeta:
        return floor(m.beta * (T - (t - 1))) + t - 1
    return T


def falls(per_round: Callable[[Any, float, float], float]) -> Sigma:
    """From `first` to `last` times the noise of T equal rounds."""

    def sigma(m: Any, t: int, T: list[int], e: float, delta: float) -> float:
        return (m.first + (m.last - m.first) * t / (m.T - 1)) * per_round(m, e, delta)

    return sigma


def printed_round(m: Any, e: float, delta: float) -> float:
    return eq_10(m, 0, [m.T], e, delta)


def exact_round(m: Any, e: float, delta: float) -> float:
    return sqrt(m.T) / gaussian_mu(e, delta)


WRONG = (
    ({"K": 7}, "K = 7"),
    ({"K": 0}, "K = 0"),
    ({"T": 0}, "T = 0"),
    ({"C": 0.0}, "C = 0.0"),
    ({"eta": -0.1}, "eta = -0.1"),
    ({"scale": -1.0}, "scale = -1.0"),
    ({"epsilon": -1.0}, "epsilon = -1.0"),
    ({"epsilon": ()}, "epsilon = ()"),
    ({"epsilon": (8.0,) * 5}, "epsilon has 5 numbers"),
    ({"delta": 1.0}, "delta = 1.0"),
    ({"delta": (0.001,) * 7}, "delta has 7 numbers"),
    ({"epsilon": (8.0,) * 6, "delta": (0.001,) * 5}, "delta has 5 numbers"),
    ({"weights": "loss"}, "weights = 'loss'"),
)
NOISED = (({"V_max": 0.0}, "V_max = 0.0"), ({"n_test": 0}, "n_test = 0"))
DISCOUNT = (({"beta": 1.0}, "beta = 1.0"), ({"zeta": float("nan")}, "zeta = nan"))
LINE = (
    ({"first": 0.0}, "first = 0.0"),
    ({"last": -1.0}, "last = -1.0"),
    ({"first": 0.2}, "last = 0.5"),
    ({"last": 1.5}, "last = 1.5"),
)
TRIES = (({"tries": 0}, "tries = 0"), ({"tries": 5}, "tries = 5"))
OURS = {"T": ROUNDS, "K": 6, "C": 0.7, "eta": 0.4, "epsilon": 900.0}
OFF = {"scale": 0.0, "C": 1e6}
AVERAGING = {"T": ROUNDS, "m": 6, "E": 1, "B": 8, "eta": 0.4}
LONGER = {**OURS, "T": 8, "zeta": 10.0, "beta": 0.5}  # 8 rounds become 4, then 3
STILL = {**OFF, "T": ROUNDS, "zeta": -1e9}
OWN = (900.0, 500.0, 800.0, 900.0, 700.0, 600.0)

CASES: dict[str, Case] = {
    "udp": Case(
        udp(eq_10),
        {**OURS, "K": 3, "epsilon": OWN},
        {**OFF, "epsilon": 900.0, "K": 6},
        AVERAGING,
        wrong=WRONG,
    ),
    "udp-c": Case(
        udp(exactly, releases=2),
        {**OURS, "at_most": 2, "K": 3},
        {**OFF, "K": 6, "at_most": None},
        AVERAGING,
        wrong=(*WRONG, *NOISED, ({"at_most": 0}, "at_most = 0")),
    ),
    "udp-crd": Case(
        udp(eq_25(printed_cap), discounts=stalls), LONGER, STILL, AVERAGING,
        wrong=(*WRONG, *DISCOUNT),
    ),
    "udp-crd-c": Case(
        udp(eq_25(exact_cap), releases=8, discounts=stalls_smoothly),
        {**LONGER, "window": 1},
        STILL,
        AVERAGING,
        wrong=(
            *WRONG, *NOISED, *DISCOUNT,
            ({"trigger": "luck"}, "trigger = 'luck'"), ({"window": 0}, "window = 0"),
        ),
    ),
    "udp-lei": Case(
        udp(falls(printed_round)), {**OURS, "T": 4}, OFF, AVERAGING, wrong=(*WRONG, *LINE)
    ),
    "udp-lei-c": Case(
        udp(falls(exact_round), releases=4), {**OURS, "T": 4}, OFF, AVERAGING,
        wrong=(*WRONG, *NOISED, *LINE),
    ),
    "udp-optimal": Case(
        optimal(eq_10), {**OURS, "T": 2, "tries": 2},  # one round, then two
        {**OFF, "T": ROUNDS, "tries": 1}, AVERAGING, wrong=(*WRONG, *TRIES),
    ),
    "udp-optimal-c": Case(
        optimal(shared, releases=3), {**OURS, "T": 2, "tries": 2},
        {**OFF, "T": ROUNDS, "tries": 1}, AVERAGING, wrong=(*WRONG, *NOISED, *TRIES),
    ),
}  # fmt: skip
