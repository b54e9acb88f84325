"""Exact Gaussian differential privacy: what a Gaussian release of ratio `mu` = S / sigma hides.

For P = N(mu, 1) and Q = N(0, 1) the privacy loss is mu x - mu^2/2, so the best test is a half-line
and, with a = mu/2 - epsilon/mu and b = a - mu,

    delta(epsilon) = Phi(a) - e^epsilon Phi(b).

Because b^2 - a^2 = 2 epsilon, the second term is phi(a) times the Mills ratio at -b: both terms
share the factor phi(a), which is taken out so that no digit is lost in the tails. A composition of
Gaussian releases shifts along one direction by sqrt(sum mu_i^2) after whitening, hence is again
of this form. The curve rises in mu and falls in epsilon, so both inverses are roots of one
monotone function; each is returned on the side that claims less privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from dp_accounting import NoOpDpEvent
from scipy import special

from confide.accounting import roots
from confide.accounting.events import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.relations import Refused

Array = npt.NDArray[np.float64]
ROOT_HALF = math.sqrt(0.5)


def delta(mu: float, epsilon: float) -> float:
    """Return the exact delta of a mu-GDP release at this epsilon (any real number)."""
    return min(1.0, math.exp(log_delta(mu, epsilon)))


def deltas(mus: Array, epsilon: float) -> Array:
    """Return delta at one epsilon >= 0 for many positive mu at once."""
    near = (epsilon / mus - mus / 2) * ROOT_HALF
    far = (epsilon / mus + mus / 2) * ROOT_HALF
    common, mills_far = np.exp(-near * near), special.erfcx(far)
    ahead = special.erfc(near) - common * mills_far
    behind = common * (special.erfcx(np.maximum(near, 0.0)) - mills_far)
    return np.clip(np.where(near < 0, ahead, behind) / 2, 0.0, 1.0)


def ratio(event: DpEvent) -> float | None:
    """Return mu of an event made of un-sampled Gaussian releases only, else None."""
    precision = _precision(event)
    return None if precision is None else math.sqrt(precision)


def _precision(event: DpEvent) -> float | None:
    """Sum of 1/z^2 over the Gaussian releases of the event; None if anything else is in it."""
    match event:
        case GaussianDpEvent():
            z = event.noise_multiplier
            return 1 / (z * z) if z > 0 else None
        case NoOpDpEvent():
            return 0.0
        case SelfComposedDpEvent():
            one = _precision(event.event)
            return None if one is None else event.count * one
        case ComposedDpEvent():
            parts = [_precision(part) for part in event.events]
            known = [part for part in parts if part is not None]
            return math.fsum(known) if len(known) == len(parts) else None
        case _:
            return None


def log_delta(mu: float, epsilon: float) -> float:
    """Return log delta; it stays finite where delta itself would underflow."""
    _require_positive("mu", mu)
    if math.isnan(epsilon):
        raise Refused("epsilon is nan; it must be a number")
    if math.isinf(mu):
        return 0.0
    if epsilon == math.inf:
        return -math.inf
    if epsilon < 0:  # delta(-e) = 1 - e^-e + e^-e delta(e), the two worlds exchanged
        return math.log(-math.expm1(epsilon) + math.exp(epsilon) * delta(mu, -epsilon))
    if epsilon == 0:
        return math.log(float(special.erf(mu * ROOT_HALF / 2)))
    near = (epsilon / mu - mu / 2) * ROOT_HALF
    far = (epsilon / mu + mu / 2) * ROOT_HALF
    mills_far = float(special.erfcx(far))
    if near < 0:
        return math.log(float(special.erfc(near)) / 2 - math.exp(-near * near) * mills_far / 2)
    gap = float(special.erfcx(near)) - mills_far
    return -math.inf if gap <= 0 else -near * near + math.log(gap / 2)


def epsilon(mu: float, delta: float) -> float:
    """Return the least epsilon >= 0 at which a mu-GDP release has at most this delta."""
    _require_positive("mu", mu)
    _require_probability(delta)
    if math.isinf(mu):
        return math.inf
    target = math.log(delta)
    if log_delta(mu, 0.0) <= target:
        return 0.0
    # delta < Phi(a) <= e^(-a^2/2) gives a point that is certainly far enough.
    enough = mu * mu / 2 + mu * math.sqrt(-2 * target)
    return _root(lambda value: log_delta(mu, value) - target, 0.0, enough)


def mu(epsilon: float, delta: float) -> float:
    """Return the largest mu whose release stays within (epsilon, delta)."""
    _require_probability(delta)
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise Refused(f"epsilon is {epsilon}; it must be finite and at least 0")
    if epsilon == 0:
        return 2 * float(special.erfinv(delta)) / ROOT_HALF * (1 - 1e-15)
    target = math.log(delta)
    tail = math.sqrt(-2 * target)
    safe = 2 * epsilon / (tail + math.sqrt(tail * tail + 2 * epsilon))
    unsafe = 2 * safe
    while log_delta(unsafe, epsilon) <= target:
        unsafe *= 2
    return _root(lambda value: log_delta(value, epsilon) - target, unsafe, safe)


def _root(excess: Callable[[float], float], above: float, below: float) -> float:
    """Return a point next to the root of `excess` where it is <= 0, between the two ends."""
    width = abs(above - below)
    root = roots.root(excess, above, below, 1e-14 * width)
    step = max(1e-14 * width, 4e-16 * abs(root))
    while excess(root) > 0:
        root += math.copysign(step, below - above)
        step *= 2
    return root


def _require_positive(name: str, value: float) -> None:
    if not value > 0:
        raise Refused(f"{name} is {value}; it must be positive")


def _require_probability(delta: float) -> None:
    if not 0 < delta < 1:
        raise Refused(f"delta is {delta}; it must lie strictly between 0 and 1")
