"""From counts of an attack's errors to what the release at least gives away, with confidence.

An attack says "in" or "out" for many independent draws, half of them with the canary in. FPR is its
rate of false alarms, FNR its rate of misses. (epsilon, delta)-DP in both directions says

    FNR >= 1 - delta - e^epsilon FPR    and    FPR >= 1 - delta - e^epsilon FNR.

With upper limits of both rates that hold with probability 1 - alpha, an epsilon at which one of the
two fails is refuted at level alpha. The threshold must not have seen the draws that are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri
from scipy.stats import binom

from confide.accounting import gdp

Rows = NDArray[np.float64]
Curve = Callable[[float], float]
"""The least FNR that a claim allows at an FPR."""


@dataclass(frozen=True)
class Counts:
    """False alarms among the draws without the canary, and misses among those with it."""

    alarms: int
    outs: int
    misses: int
    ins: int

    def limits(self, alpha: float) -> tuple[float, float]:
        """Upper limits of FPR and FNR, both right with probability 1 - alpha."""
        return (
            upper_limit(self.alarms, self.outs, alpha / 2),
            upper_limit(self.misses, self.ins, alpha / 2),
        )


def upper_limit(events: int, trials: int, alpha: float) -> float:
    """Clopper and Pearson: the largest probability under which so few events are not too rare."""
    if not 0 <= events <= trials or trials < 1:
        raise ValueError(
            f"Counts: {events} of {trials}, allowed are 0 to {trials} of at least one draw."
        )
    return 1.0 if events == trials else float(betaincinv(events + 1, trials - events, 1 - alpha))


def epsilon_of_counts(counts: Counts, delta: float, alpha: float) -> float:
    """The least epsilon that is not refuted, whatever the mechanism is."""
    fpr, fnr = counts.limits(alpha)
    odds = [(1 - delta - a) / b for a, b in ((fpr, fnr), (fnr, fpr))]
    return max([0.0, *(log(one) for one in odds if one > 0)])


def mu_of_counts(counts: Counts, alpha: float) -> float:
    """The least mu that is not refuted, if the release is Gaussian; 0 for a useless attack."""
    fpr, fnr = counts.limits(alpha)
    return max(0.0, float(ndtri(1 - fpr) - ndtri(fnr))) if max(fpr, fnr) < 1 else 0.0


def epsilon_if_gaussian(counts: Counts, delta: float, alpha: float) -> float:
    """The same as an epsilon."""
    mu = mu_of_counts(counts, alpha)
    return gdp.epsilon(mu, delta) if mu > 0 else 0.0


def refutes(counts: Counts, curve: Curve, alpha: float) -> bool:
    """Whether the claimed trade-off curve is impossible, but for probability alpha.

    The curve is that of the worse direction, so it may be read both ways.
    """
    fpr, fnr = counts.limits(alpha)
    return fnr < curve(fpr) or fpr < curve(fnr)


def fitted_mu(ins: Rows, outs: Rows, alpha: float) -> float:
    """The lower limit of mu for scores that look normal in both worlds; 0 where they do not.

    An estimate: the mean shift over the standard deviation, and its limit as for normal scores.
    """
    spread = float((ins.var() + outs.var()) / 2) ** 0.5
    if spread == 0 or not (looks_normal(ins) and looks_normal(outs)):
        return 0.0
    mu = float(ins.mean() - outs.mean()) / spread
    n, m = len(ins), len(outs)
    error = (1 / n + 1 / m + mu * mu / (2 * (n + m))) ** 0.5
    return max(0.0, mu - float(ndtri(1 - alpha)) * error)


def looks_normal(scores: Rows) -> bool:
    """Whether the third and fourth moments are within four deviations of a normal law's."""
    n, deviation = len(scores), float(scores.std())
    if deviation == 0:
        return False
    z = (scores - scores.mean()) / deviation
    skew, excess = float((z**3).mean()), float((z**4).mean()) - 3
    return abs(skew) <= 4 * (6 / n) ** 0.5 and abs(excess) <= 4 * (24 / n) ** 0.5


# One run with many canaries ---------------------------------------------------------------------


@dataclass(frozen=True)
class Guesses:
    """One run with `canaries` coins: so many guesses of them were made, so many were right."""

    canaries: int
    made: int
    right: int

    def __post_init__(self) -> None:
        """In order."""
        if not 0 <= self.right <= self.made <= self.canaries or self.canaries < 1:
            raise ValueError(
                f"Guesses: {self.right} right of {self.made} made of {self.canaries}, allowed is "
                "that order, with at least one canary."
            )


def chance_of(guesses: Guesses, epsilon: float, delta: float) -> float:
    """The most probable such luck can be, if one run is (epsilon, delta)-DP for every canary.

    Steinke, Nasr, Jagielski: Privacy Auditing with One (1) Training Run, 2023, Theorem 1: given
    what was released, the number of right guesses lies below a binomial with success
    e^epsilon / (1 + e^epsilon), up to delta.
    """
    odds = 1 / (1 + exp(-epsilon))
    v = guesses.right
    tail = float(binom.sf(v - 1, guesses.made, odds))
    if delta == 0 or v == 0:
        return min(1.0, tail)
    i = np.arange(1, v + 1)
    steps = (binom.sf(v - i - 1, guesses.made, odds) - tail) / i
    return min(1.0, tail + 2 * guesses.canaries * delta * float(steps.max()))


def epsilon_of_guesses(guesses: Guesses, delta: float, alpha: float) -> float:
    """The least epsilon that so many right guesses do not refute."""
    return least(lambda e: chance_of(guesses, e, delta) > alpha, 60.0)


def possible(guesses: Guesses, curve: Curve, alpha: float) -> bool:
    """Whether a trade-off curve allows so many right guesses, but for probability alpha.

    Mahloujifar, Melis, Chaudhuri: Auditing f-Differential Privacy in One Run, 2024. With m canaries
    and c guesses made, let r_i be the share of the event that exactly i of them are right, and h_i
    what more than i has. The curve bounds each from the one after it, so that luck at the observed
    count of probability above alpha needs r + h at most c / m in the end.
    """
    m, c, v = guesses.canaries, guesses.made, guesses.right
    if c == 0:
        return True
    r, h = alpha * v / m, alpha * (c - v) / m
    for i in range(v - 1, -1, -1):
        further = max(h, missed(curve, r))
        r, h = r + i / (c - i) * (further - h), further
    return r + h <= c / m


def missed(curve: Curve, share: float) -> float:
    """The least h at which 1 - f(h) reaches this share.

    That is the inverse of f at 1 - share, and the curves here are read both ways: f is its own.
    """
    return curve(max(0.0, 1 - share))


def epsilon_of_one_run(guesses: Guesses, delta: float, alpha: float) -> float:
    """The least epsilon of Gaussian curves that the guesses do not refute."""
    return least(lambda e: possible(guesses, gaussian(gdp.mu(e, delta)), alpha), 60.0)


# Curves -----------------------------------------------------------------------------------------


def gaussian(mu: float) -> Curve:
    """The trade-off curve of N(0, 1) against N(mu, 1)."""
    from scipy.special import ndtr

    return lambda fpr: float(ndtr(ndtri(1 - fpr) - mu))


def of_pairs(pairs: list[tuple[float, float]]) -> Curve:
    """The largest curve that all these (epsilon, delta) allow: never above the claimed one."""
    epsilons, deltas = np.array(pairs).T
    up, down = np.exp(epsilons), np.exp(-epsilons)

    def curve(fpr: float) -> float:
        lines = np.maximum(1 - deltas - up * fpr, down * (1 - deltas - fpr))
        return max(0.0, float(lines.max()))

    return curve


def least(holds: Callable[[float], bool], most: float) -> float:
    """The least number from 0 to `most` at which something that rises to true holds."""
    if holds(1e-9):
        return 0.0
    low, high = 1e-9, most
    if not holds(high):
        return inf
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low
