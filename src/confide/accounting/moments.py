"""Moments of a likelihood ratio, added up from positive terms so that nothing cancels.

With r = P/Q and x = q (r - 1), a release that happens with probability q has the moment
E_Q (1 + x)^order. As E_Q x = 0, it exceeds 1 by E_Q[(1 + x)^order - 1 - order x], whose integrand
is never negative; that excess is what is summed here. Every bound is in docs/proofs/sampling.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LARGEST_ORDER = 100_000  # a longer binomial sum is not worth its time: infinite instead
BLOCKS = (1.0, 4.0, 16.0, 256.0, 4096.0, float(LARGEST_ORDER))
_POWERS = 24  # |order x| <= 1.6 below: 1.6^25 / 25! is under 1e-19
_MOST_TERMS = 1_000_000  # of binomial sums held in memory at once
LEAST_DISTANCE = 1e-100  # a smaller one counts as this: its square must stay a number
LEAST_RATE = 1e-30  # likewise


def rounded_up(values: Array, orders: Array) -> Array:
    """What rounding can take away from a divergence is given back twice over, or more.

    Logarithms of factorials lose digits in proportion to the order. The tests compare with mpmath.
    """
    return values * (1 + 2e-11 * (1 + orders / 1000))


def added(total: Array, cost: Array) -> Array:
    """The sum, never below the exact one, so that no number of small costs is lost."""
    return np.where(cost == 0, total, np.nextafter(total + cost, np.inf))


@dataclass(frozen=True)
class Law:
    """Values of log(P/Q) and the logarithms of their weights under Q."""

    log_ratios: Array
    log_weights: Array


def excess(orders: Array, rate: float, law: Law) -> tuple[Array, Array]:
    """The excess of the moment over 1 and its logarithm, for orders within one block.

    Where the moment is beyond e^30 the excess is given as the moment itself.
    """
    steps = log_steps(rate, law.log_ratios)
    terms = orders[:, None] * steps + law.log_weights
    peaks = terms.max(axis=1)
    logs, tall = np.full(orders.shape, -np.inf), peaks > 30
    if bool(tall.any()):
        heights = peaks[tall, None]
        logs[tall] = peaks[tall] + np.log(np.exp(terms[tall] - heights).sum(axis=1))
    if not bool(tall.all()):
        with np.errstate(divide="ignore"):
            logs[~tall] = np.log(_small_excess(orders[~tall], rate, law, steps))
    with np.errstate(over="ignore"):
        return np.exp(logs), logs


def _lift(rate: float, log_ratios: Array) -> Array:
    """x = rate (r - 1), cut where it is huge and only its logarithm serves."""
    return rate * np.expm1(np.minimum(log_ratios, 700.0))


def log_steps(rate: float, log_ratios: Array) -> Array:
    """log(1 + x), accurate where x is small and finite where r is not."""
    x = _lift(rate, log_ratios)
    far = np.logaddexp(math.log1p(-rate), math.log(rate) + log_ratios)
    return np.where(x < 1, np.log1p(np.minimum(x, 1.0)), far)


def _small_excess(orders: Array, rate: float, law: Law, steps: Array) -> Array:
    """Sum of w ((1 + x)^order - 1 - order x): by powers, by expm1 or by logs as x grows."""
    top = float(orders.max())
    x = _lift(rate, law.log_ratios)
    tiny = np.abs(x) <= min(0.1, 1.6 / top)
    large = ~tiny & (steps > min(1.0, 600 / top))
    middle = ~tiny & ~large
    weights = np.exp(law.log_weights)
    total = _by_powers(orders, x[tiny], weights[tiny])
    column = orders[:, None]
    near, far, logs = steps[middle], steps[large], law.log_weights[large]
    total += (np.expm1(column * near) - column * np.expm1(near)) @ weights[middle]
    total += np.exp(column * far + logs).sum(axis=1)
    total += (orders - 1) * weights[large].sum() - orders * np.exp(far + logs).sum()
    return total


def _by_powers(orders: Array, x: Array, weights: Array) -> Array:
    """Sum of w sum_k C(order, k) x^k from k = 2; the moments of x serve all orders at once."""
    coefficient = orders * (orders - 1) / 2
    power = weights * x * x
    total = np.zeros(orders.shape)
    for k in range(2, _POWERS + 1):
        total += coefficient * power.sum()
        coefficient = coefficient * (orders - k) / (k + 1)
        power = power * x
    return total


@lru_cache(maxsize=16)
def _binomials(orders: tuple[int, ...]) -> tuple[Array, Integers, Integers]:
    """log C(order, k) for k = 2..order, order after order; the k; where each order starts."""
    sizes = np.array(orders, dtype=np.int64) - 1
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    tops = np.repeat(np.array(orders, dtype=np.int64), sizes)
    ks = np.arange(int(sizes.sum()), dtype=np.int64) - np.repeat(starts, sizes) + 2
    logs = special.gammaln(tops + 1.0) - special.gammaln(ks + 1.0)
    logs -= special.gammaln(tops - ks + 1.0)
    return logs, ks, starts


def log_binomial_sum(orders: Integers, log_terms: Array) -> Array:
    """log of sum_{k=2}^{order} C(order, k) e^{log_terms[k]} for each integer order >= 2."""
    parts = np.split(orders, np.flatnonzero(np.diff(np.cumsum(orders) // _MOST_TERMS)) + 1)
    return np.concatenate([_one_binomial_sum(part, log_terms) for part in parts])


def _one_binomial_sum(orders: Integers, log_terms: Array) -> Array:
    logs, ks, starts = _binomials(tuple(int(order) for order in orders))
    terms = logs + log_terms[ks]
    peaks = np.maximum.reduceat(terms, starts)
    finite = np.where(np.isfinite(peaks), peaks, 0.0)
    spread = np.repeat(finite, np.diff(np.append(starts, terms.size)))
    with np.errstate(divide="ignore", over="ignore"):
        return finite + np.log(np.add.reduceat(np.exp(terms - spread), starts))


def log_expm1(x: Array) -> Array:
    """log(e^x - 1) for x >= 0."""
    with np.errstate(divide="ignore"):
        return np.where(np.isinf(x), np.inf, x + np.log(-np.expm1(-x)))


def between_integers(orders: Array, at_integers: Callable[[Integers], Array]) -> Array:
    """Upper bounds on the log-moment, which is convex in the order and 0 at order 1."""
    low, high = np.floor(orders), np.ceil(orders)
    needed = np.unique(np.concatenate([low, high]))
    needed = needed[(needed >= 2) & (needed <= LARGEST_ORDER)].astype(np.int64)
    known = np.zeros(0) if needed.size == 0 else at_integers(needed)
    keys = np.concatenate([[1.0], needed, [np.inf]])
    values = np.concatenate([[0.0], known, [np.inf]])
    at_low, at_high = (values[np.searchsorted(keys, side)] for side in (low, high))
    part = orders - low
    with np.errstate(invalid="ignore"):
        mixed = (1 - part) * at_low + part * at_high
    return np.where(part == 0, at_low, mixed)


def log_poisson(orders: Array, rate: float, growth: Callable[[Array], Array]) -> Array:
    """The binomial formula for any release; growth(k) bounds log E_Q r^k and log E_P r^-k."""

    def at_integers(integers: Integers) -> Array:
        ks = np.arange(2.0, integers[-1] + 1)
        odds = math.log(rate) - math.log1p(-rate)
        terms = np.concatenate([[-np.inf, -np.inf], log_expm1(growth(ks)) + ks * odds])
        sums = log_binomial_sum(integers, terms) + integers * math.log1p(-rate)
        return np.logaddexp(0.0, sums)

    return between_integers(orders, at_integers)


def log_even(powers: Integers, law: Law) -> Array:
    """log of sum w (r - 1)^power."""
    size = np.abs(law.log_ratios)
    distances = log_expm1(size) + np.minimum(law.log_ratios, 0.0)
    terms = powers[:, None] * distances + law.log_weights
    return np.asarray(special.logsumexp(terms, axis=1), dtype=np.float64)


def laplace_renyi(orders: Array, distance: float) -> Array:
    """Renyi divergences of two Laplace laws of scale 1 this far apart."""
    if distance == 0:
        return np.zeros(orders.shape)
    up, down = (orders - 1) * distance, orders * distance
    near = orders * _exp_excess(np.minimum(up, 1.0))
    near += (orders - 1) * _exp_excess(-np.minimum(down, 1.0))
    near = np.log1p(near / (2 * orders - 1)) / (orders - 1)
    drop = (orders - 1) * np.expm1(-(up + down)) / (2 * orders - 1)
    far = distance + np.log1p(drop) / (orders - 1)
    return np.where(down < 1, near, far)


def _exp_excess(x: Array) -> Array:
    """e^x - 1 - x for |x| <= 1, without cancellation."""
    total = np.zeros(x.shape)
    for k in range(20, 1, -1):
        total = (total + 1) * x / k
    return total * x
