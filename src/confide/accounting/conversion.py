"""From a Renyi curve to (epsilon, delta) and back, and from one unit to a group of k.

Group rules hold only for a guarantee of the very kind they name: a Poisson-sampled run has neither
a GDP nor a zCDP guarantee of useful form, so for it only `group_approximate` applies. Under
add-remove, replacing a whole client counts the records it had and the records it has, and neither
the sampling rate nor a normaliser may change with the number of records.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from confide.accounting.relations import Refused

Array = npt.NDArray[np.float64]

ROUNDING = 1e-15
"""What rounding can take from a sum, in parts of its terms; it is given back."""


def _checked(orders: npt.ArrayLike, rdp: npt.ArrayLike) -> tuple[Array, Array]:
    """Both as arrays; what is not a number, or below 0, counts as infinite."""
    grid, curve = np.asarray(orders, dtype=np.float64), np.asarray(rdp, dtype=np.float64)
    if grid.ndim != 1 or grid.shape != curve.shape or grid.size == 0:
        raise Refused("orders and rdp must be two non-empty lists of equal length.")
    if not bool(np.all(grid > 1)):
        raise Refused("Renyi orders must exceed 1.")
    return grid, np.where(curve >= 0, curve, np.inf)


def check_delta(delta: float) -> float:
    """A delta at which an epsilon may be asked for."""
    if not 0 <= delta < 1:
        raise Refused(f"delta = {delta}: must be at least 0 and below 1.")
    return float(delta)


def check_epsilon(epsilon: float) -> float:
    """An epsilon at which a delta may be asked for."""
    if not 0 <= epsilon < math.inf:
        raise Refused(f"epsilon = {epsilon}: must be at least 0 and finite.")
    return float(epsilon)


def epsilons(orders: Array, rdp: Array, delta: float) -> Array:
    """The epsilon that each order alone proves at this delta > 0.

    delta(epsilon) = E_P max(0, 1 - e^{epsilon - loss}) and, with t = order - 1,
    max(0, 1 - e^-y) <= e^{t y} t^t / (t + 1)^{t + 1} for every y, with equality at
    e^-y = t / (t + 1). So delta <= e^{t (rdp - epsilon)} t^t / (t + 1)^{t + 1}; solve for epsilon
    and never go below 0. A release of divergence r has total variation at most sqrt(1 - e^-r)
    (Bretagnolle and Huber): where delta reaches that, epsilon is 0.
    """
    logs = math.log(delta) + np.log(orders)
    needed = rdp + np.log1p(-1 / orders) - logs / (orders - 1)
    needed = needed + ROUNDING * (1 + rdp + (1 + abs(logs)) / (orders - 1))
    needed = np.where(-np.expm1(-rdp) < delta**2, 0.0, needed)
    return np.where(np.isnan(needed), np.inf, np.maximum(needed, 0.0))


def epsilon_from_curve(
    orders: npt.ArrayLike, rdp: npt.ArrayLike, delta: float
) -> tuple[float, float]:
    """The least epsilon over all orders, and the order that gives it."""
    grid, curve = _checked(orders, rdp)
    delta = check_delta(delta)
    if delta == 0:
        return (0.0 if bool(np.any(curve == 0)) else math.inf), float(grid[-1])
    each = epsilons(grid, curve, delta)
    best = int(np.argmin(each))
    return float(each[best]), float(grid[best])


def delta_from_curve(
    orders: npt.ArrayLike, rdp: npt.ArrayLike, epsilon: float
) -> tuple[float, float]:
    """The least delta over all orders, never above 1, and the order that gives it."""
    grid, curve = _checked(orders, rdp)
    epsilon = check_epsilon(epsilon)
    with np.errstate(divide="ignore"):
        logs = (grid - 1) * (curve - epsilon + np.log1p(-1 / grid)) - np.log(grid)
        logs = np.minimum(logs, np.log(-np.expm1(-curve)) / 2)
    logs = logs + ROUNDING * (1 + np.log(grid) + (grid - 1) * (1 + curve + epsilon))
    logs = np.where(np.isnan(logs), 0.0, np.minimum(logs, 0.0))
    best = int(np.argmin(logs))
    if curve[best] == 0:  # nothing is released
        return 0.0, float(grid[best])
    # A delta below every double is not 0.
    return min(1.0, math.nextafter(math.exp(float(logs[best])), 1.0)), float(grid[best])


def classic_epsilon(orders: npt.ArrayLike, rdp: npt.ArrayLike, delta: float) -> tuple[float, float]:
    """The older, weaker rule rdp + log(1 / delta) / (order - 1), for comparison with others."""
    grid, curve = _checked(orders, rdp)
    if not 0 < delta < 1:
        raise Refused(f"delta = {delta}: must be above 0 and below 1.")
    each = curve - math.log(delta) / (grid - 1)
    best = int(np.argmin(each))
    return float(each[best]), float(grid[best])


def zcdp_epsilon(rho: float, delta: float) -> float:
    """rho + 2 sqrt(rho log(1 / delta)): the classic rule at the best real order of order x rho."""
    if not rho >= 0:
        raise Refused(f"rho = {rho}: must be at least 0.")
    if not 0 < delta < 1:
        raise Refused(f"delta = {delta}: must be above 0 and below 1.")
    return rho + 2 * math.sqrt(-rho * math.log(delta))


def _check_group(size: int) -> int:
    if not (size >= 1 and size == int(size)):
        raise Refused(f"group size = {size}: must be a whole number, at least 1.")
    return int(size)


def group_pure(epsilon: float, size: int) -> float:
    """epsilon-DP for one is (k epsilon)-DP for k: the ratios of k steps multiply."""
    if not epsilon >= 0:
        raise Refused(f"epsilon = {epsilon}: must be at least 0.")
    return epsilon * _check_group(size)


def group_approximate(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """(epsilon, delta) for one is (k epsilon, delta (1 + e^epsilon + ... + e^{(k-1) epsilon})).

    Change one unit at a time: each step multiplies all that came before by e^epsilon and adds
    delta. The second number is (e^{k epsilon} - 1) / (e^epsilon - 1) times delta, at most 1.
    """
    if not (epsilon >= 0 and 0 <= delta <= 1):
        raise Refused(
            f"epsilon = {epsilon}, delta = {delta}: epsilon must be at least 0, delta within 0..1."
        )
    count = _check_group(size)
    if delta == 0 or count == 1:
        return count * epsilon, delta
    if epsilon == 0:
        return 0.0, min(count * delta, 1.0)
    log_terms = (count - 1) * epsilon + math.log(
        math.expm1(-count * epsilon) / math.expm1(-epsilon)
    )
    return count * epsilon, math.exp(min(log_terms + math.log(delta), 0.0))


def group_zcdp(rho: float, size: int) -> float:
    """rho-zCDP for one is (k^2 rho)-zCDP for k; only for a true zCDP guarantee, unsampled."""
    if not rho >= 0:
        raise Refused(f"rho = {rho}: must be at least 0.")
    return rho * _check_group(size) ** 2


def group_gdp(mu: float, size: int) -> float:
    """mu-GDP for one is (k mu)-GDP for k; only for a true GDP guarantee: unsampled Gaussians."""
    if not mu >= 0:
        raise Refused(f"mu = {mu}: must be at least 0.")
    return mu * _check_group(size)
