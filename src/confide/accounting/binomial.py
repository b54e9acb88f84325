"""Centred binomial noise on integers: exact in one dimension, cpSGD's Theorem 1 in more.

Shifted copies of a binomial law do not share their support, so no Renyi divergence is finite and
nothing here has a Renyi curve. In one dimension the pmf f is log-concave: f(x) / f(x - s) falls in
x, the best test is a half-line, and its advantage F(t) - e^eps F(t - s) rises with s. The worst
shift is therefore the largest, in each direction, at every epsilon. For p = 1/2 the noise is
symmetric and both directions are one pair, which may be composed and sampled. For other p the two
differ, and which is worse may change from round to round with the sign of the unit's value: the
exact curve is then given for a single release only.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from confide.accounting import roots
from confide.accounting.events import ApproximateDpEvent, BinomialDpEvent
from confide.accounting.pairs import Array, Atoms
from confide.accounting.relations import Refused

DEVIATIONS = 12.0
LARGEST_EPSILON = 1e6
LEFT_OUT = 1e-30  # more than the binomial mass beyond so many deviations: given to the observer


def pair(event: BinomialDpEvent) -> Atoms:
    """Return the law of one-dimensional noise and the same law moved by the largest shift."""
    _check(event)
    if event.dim != 1:
        raise Refused(f"dim = {event.dim}: the exact binomial curve is proved for dim = 1 only")
    # The bounds are reals that an integer must not exceed; rounding must not lose that integer.
    shift = math.floor(min(event.l1, event.l2, event.linf) * (1 + 1e-9))
    mean, variance = event.trials * event.p, event.trials * event.p * (1 - event.p)
    reach = DEVIATIONS * math.sqrt(variance) + DEVIATIONS**2
    low = max(0, math.floor(mean - reach))
    high = min(event.trials, math.ceil(mean + reach)) + shift
    support = np.arange(low, high + 1, dtype=float)
    upper, lower = _log_pmf(event, support), _log_pmf(event, support - shift)
    rest = math.log(LEFT_OUT)
    return Atoms(np.append(upper, [rest, -math.inf]), np.append(lower, [-math.inf, rest]))


def delta(event: BinomialDpEvent, epsilon: float) -> float:
    """Return the exact delta of one one-dimensional release, the worse of the two directions."""
    forward = pair(event)
    return max(forward.hockey_stick(epsilon), forward.reverse.hockey_stick(epsilon))


def epsilon(event: BinomialDpEvent, delta: float) -> float:
    """Return the least epsilon with this delta for one one-dimensional release."""
    forward = pair(event)

    def excess(value: float) -> float:
        stuck = max(forward.hockey_stick(value), forward.reverse.hockey_stick(value))
        return stuck - delta

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
        if high > LARGEST_EPSILON:
            return math.inf
    return roots.root(excess, 0.0, high, 1e-12) * (1 + 1e-9) + 2e-12


def certificate(event: BinomialDpEvent, delta: float) -> ApproximateDpEvent:
    """Return the (epsilon, delta) that cpSGD's Theorem 1 gives one release in any dimension.

    Distances are in grid steps. The theorem asks for trials x p (1 - p) of at least
    max(23 log(10 dim / delta), 2 linf); a smaller number is refused.
    """
    _check(event)
    if not 0 < delta < 1:
        raise Refused(f"delta is {delta}; it must lie strictly between 0 and 1")
    p = min(event.p, 1 - event.p)  # the noise mirrored: every bound is on a norm
    variance = event.trials * p * (1 - p)
    needed = max(23 * math.log(10 * event.dim / delta), 2 * event.linf)
    if variance < needed:
        raise Refused(
            f"binomial variance trials x p (1 - p) = {variance:g}: cpSGD's Theorem 1 needs at "
            f"least {needed:g} at delta = {delta:g} in dimension {event.dim}"
        )
    squares, cubes = p**2 + (1 - p) ** 2, p**3 + (1 - p) ** 3
    b, c, d = 2 / 3 * squares + 1 - 2 * p, math.sqrt(2) * (3 * cubes + 2 * squares), 4 / 3 * squares
    near, ten = math.log(1.25 / delta), math.log(10 / delta)
    gaussian = event.l2 * math.sqrt(2 * near / variance)
    skew = (event.l2 * c * math.sqrt(ten) + event.l1 * b) / (variance * (1 - delta / 10))
    largest = event.linf * (2 / 3 * near + d * math.log(20 * event.dim / delta) * ten) / variance
    return ApproximateDpEvent(gaussian + skew + largest, delta)


def _log_pmf(event: BinomialDpEvent, counts: Array) -> Array:
    inside = (counts >= 0) & (counts <= event.trials)
    k = np.where(inside, counts, 0.0)
    n = float(event.trials)
    choose = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    value = choose + k * math.log(event.p) + (n - k) * math.log1p(-event.p)
    return np.where(inside, value, -math.inf)


def _check(event: BinomialDpEvent) -> None:
    if event.trials < 1:
        raise Refused(f"binomial trials = {event.trials}: must be at least 1")
    if not 0 < event.p < 1:
        raise Refused(f"binomial p = {event.p}: must lie strictly between 0 and 1")
    if event.dim < 1:
        raise Refused(f"binomial dim = {event.dim}: must be at least 1")
    for name in ("l1", "l2", "linf"):
        value = getattr(event, name)
        if not (value > 0 and math.isfinite(value)):
            raise Refused(f"binomial {name} = {value}: must be positive and finite")
