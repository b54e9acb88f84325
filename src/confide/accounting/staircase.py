"""The scalar staircase noise: its law, its privacy loss and its Renyi curve, all exact.

The step is the unit of length here. With b = exp(-epsilon) the density is a b^n, where n(x) = 0
for |x| < gamma and n(x) = k for k - 1 + gamma <= |x| < k + gamma; d = gamma + b (1 - gamma) and
a = (1 - b) / (2 d) normalise it. The proofs are in docs/proofs/noises.md (Theorems 1, 4 and 5).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from confide.accounting.relations import Refused

Array = npt.NDArray[np.float64]

_LARGEST_EPSILON = 700.0  # beyond it exp(-epsilon) is no longer a normal number
LEAST = 1e-50  # of epsilon and of a shift: products of what is smaller would underflow
_LARGEST_SHIFT = 1e6  # steps summed one by one: keeps memory bounded


def _check(epsilon: float, gamma: float) -> None:
    if not LEAST <= epsilon <= _LARGEST_EPSILON:
        raise Refused(f"staircase epsilon = {epsilon}: must be at least 1e-50 and at most 700.")
    if not 0 <= gamma <= 1:
        raise Refused(f"staircase gamma = {gamma}: must lie between 0 and 1.")


def _centre(epsilon: float, gamma: float) -> float:
    """The normaliser d = gamma + b (1 - gamma)."""
    return gamma + math.exp(-epsilon) * (1 - gamma)


def _height(epsilon: float, gamma: float) -> float:
    """The density a at zero."""
    return -math.expm1(-epsilon) / (2 * _centre(epsilon, gamma))


def _plus(epsilon: float, gamma: float, shift: float) -> float:
    """u(shift) of Theorem 1: the probability that the loss is +epsilon; it rises with the shift."""
    b, shift = math.exp(-epsilon), max(shift, LEAST)
    near = min(shift, gamma) + min(gamma, max(shift - gamma, 0.0))
    return (-math.expm1(-epsilon) * near + b * shift) / (2 * _centre(epsilon, gamma))


def atoms(epsilon: float, gamma: float, shift: float = 1.0) -> tuple[float, float, float]:
    """Probabilities that the loss is +epsilon, 0, -epsilon under P, for a shift of at most 1 step.

    Under Q, the shifted noise, they are the same three in reverse order.
    """
    _check(epsilon, gamma)
    if not 0 < shift <= 1:
        raise Refused(f"staircase shift = {shift}: three atoms hold for 0 < shift <= 1 step only.")
    plus = _plus(epsilon, gamma, shift)
    minus = math.exp(-epsilon) * plus
    # At gamma = 1/2 and a full step the middle is exactly 0; rounding may leave it just below.
    return plus, max(1 - plus - minus, 0.0), minus


def shift_losses(epsilon: float, gamma: float, shift: float) -> tuple[Array, Array]:
    """Privacy losses and their probabilities under P for any shift above 0, by a finite sum.

    Between two neighbouring edges of either density both are constant. Left of -gamma and right of
    shift + gamma both fall by b per step, so one step there stands for all, times 1 / (1 - b).
    """
    _check(epsilon, gamma)
    if not 0 < shift <= _LARGEST_SHIFT:
        raise Refused(f"staircase shift = {shift}: must be above 0 and at most 1e6 steps.")
    low, high = -gamma - 1.0, shift + gamma + 1.0
    own = gamma + np.arange(math.ceil(high) + 1)
    edges = np.concatenate([own, -own, shift + own, shift - own, [low, high]])
    edges = np.unique(np.clip(edges, low, high))
    middles = (edges[1:] + edges[:-1]) / 2
    level, other = _level(middles, gamma), _level(middles - shift, gamma)
    masses = _height(epsilon, gamma) * np.exp(-epsilon * level) * np.diff(edges)
    outer = (middles < -gamma) | (middles > shift + gamma)
    masses[outer] /= -math.expm1(-epsilon)
    # Two levels differ by at most ceil(shift); a cell born of rounding must not say otherwise.
    most = math.ceil(shift)
    steps = np.clip(other - level, -most, most).astype(np.int64)
    totals = np.bincount(steps + most, weights=masses, minlength=2 * most + 1)
    return epsilon * np.arange(-most, most + 1.0), totals / totals.sum()


def _log_gain(orders: Array, epsilon: float) -> Array:
    """log K with K = (e^{(order-1) epsilon} - 1) (1 - e^{-order epsilon})."""
    rest = (orders - 1) * epsilon
    return rest + np.log(-np.expm1(-rest)) + np.log(-np.expm1(-orders * epsilon))


def renyi(
    orders: npt.ArrayLike,
    epsilon: float,
    gamma: float,
    shift: float = 1.0,
    norm: str = "l1",
    dim: int | None = 1,
) -> Array:
    """Renyi divergences of product staircase noise over all distances at most `shift` <= 1.

    Every order must exceed 1. `dim=None` means any dimension: the limit in l1, infinite in l2.
    """
    _check(epsilon, gamma)
    if norm not in ("l1", "l2"):
        raise Refused(f"staircase norm = {norm!r}: must be 'l1' or 'l2'.")
    if not 0 < shift <= 1:
        raise Refused(f"staircase shift = {shift}: proved for 0 < shift <= 1 step only.")
    if dim is not None and dim < 1:
        raise Refused(f"staircase dim = {dim}: must be at least 1, or None for any dimension.")
    grid = np.asarray(orders, dtype=np.float64)
    if not bool(np.all(grid > 1)):
        raise Refused("Renyi orders must exceed 1.")
    if dim is None:
        return _any_dimension(grid, epsilon, gamma, shift, norm)
    each = shift / dim if norm == "l1" else shift / math.sqrt(dim)
    log_term = _log_gain(grid, epsilon) + math.log(_plus(epsilon, gamma, each))
    return dim * np.logaddexp(0.0, log_term) / (grid - 1)


def _any_dimension(grid: Array, epsilon: float, gamma: float, shift: float, norm: str) -> Array:
    """The limit of Theorem 4, K u'(0) shift / (order - 1); Theorem 5 has none."""
    if norm == "l2":
        return np.full(grid.shape, np.inf)
    slope = 0.5 if gamma == 0 else 1 / (2 * _centre(epsilon, gamma))
    with np.errstate(over="ignore"):
        return np.exp(_log_gain(grid, epsilon) + math.log(slope * max(shift, LEAST))) / (grid - 1)


def optimal_gamma(epsilon: float, cost: Literal["l1", "l2"] = "l2") -> float:
    """The gamma of least mean absolute value ("l1") or least variance ("l2")."""
    _check(epsilon, 0.5)
    if cost == "l1":
        return float(special.expit(-epsilon / 2))
    if cost != "l2":
        raise Refused(f"staircase cost = {cost!r}: must be 'l1' or 'l2'.")
    # ((b (1 + b) / 2)^(1/3) - b) / (1 - b), written without the cancellation at small epsilon.
    excess = (2 * epsilon + math.log1p(math.expm1(-epsilon) / 2)) / 3
    return float(-math.exp(-epsilon) * math.expm1(excess) / math.expm1(-epsilon))


def mean_absolute(epsilon: float, gamma: float, step: float = 1.0) -> float:
    """E|X|."""
    _check(epsilon, gamma)
    b, d = math.exp(-epsilon), _centre(epsilon, gamma)
    return step * (-b / math.expm1(-epsilon) + (gamma**2 + b * (1 - gamma**2)) / (2 * d))


def variance(epsilon: float, gamma: float, step: float = 1.0) -> float:
    """Var X; the mean is 0."""
    _check(epsilon, gamma)
    b, d, gap = math.exp(-epsilon), _centre(epsilon, gamma), -math.expm1(-epsilon)
    linear = (gamma**2 + b * (1 - gamma**2)) / d
    square = (gamma**3 + b * (1 - gamma**3)) / (3 * d)
    return step**2 * (b * (1 + b) / gap**2 + b / gap * linear + square)


def _level(x: Array, gamma: float) -> Array:
    """n(x): the number of the stair above x."""
    return np.maximum(np.floor(np.abs(x) - gamma) + 1, 0.0)


def density(x: npt.ArrayLike, epsilon: float, gamma: float, step: float = 1.0) -> Array:
    """The density at x of staircase noise with this step."""
    _check(epsilon, gamma)
    scaled = np.asarray(x, dtype=np.float64) / step
    return _height(epsilon, gamma) * np.exp(-epsilon * _level(scaled, gamma)) / step


def cdf(x: npt.ArrayLike, epsilon: float, gamma: float, step: float = 1.0) -> Array:
    """The probability of a value at most x."""
    _check(epsilon, gamma)
    scaled = np.asarray(x, dtype=np.float64) / step
    stair = _level(scaled, gamma)
    reach = stair + gamma - np.abs(scaled) + math.exp(-epsilon) / -math.expm1(-epsilon)
    tail = _height(epsilon, gamma) * np.exp(-epsilon * stair) * reach
    return np.where(scaled < 0, tail, 1 - tail)
