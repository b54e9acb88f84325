"""Exact Gaussian differential privacy: what a Gaussian release of ratio `mu` = S / sigma hides.

For P = N(mu, 1) and Q = N(0, 1) the privacy loss is mu x - mu^2/2, so the best test is a half-line
and, with a = mu/2 - epsilon/mu and b = a - mu,

    delta(epsilon) = Phi(a) - e^epsilon Phi(b).

Because b^2 - a^2 = 2 epsilon, the second term is phi(a) times the Mills ratio at -b: both terms
share the factor phi(a), which is taken out so that no digit is lost in the tails; with
near = -a / sqrt 2 and far = -b / sqrt 2, delta = e^{-near^2} (erfcx(near) - erfcx(far)) / 2. What
rounding can take from log delta is added to it, so that no delta is below the truth. A composition
of Gaussian releases shifts along one direction by sqrt(sum mu_i^2) after whitening, hence is again
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
    plain,
)
from confide.accounting.relations import Refused

Array = npt.NDArray[np.float64]
ROOT_HALF = math.sqrt(0.5)
ROUNDING = 1e-12  # of log delta, where near and far are small
LEAST_MU = 1e-140  # a smaller one counts as this
LARGEST_MU = 1e100  # a larger one hides nothing: its squares must stay numbers
NARROW = 0.01  # below this mu differences of erfcx lose digits
FAR = 30.0  # beyond it delta is below 1e-390, and erfcx(near) <= 1 has to do


def delta(mu: float, epsilon: float) -> float:
    """Return the delta of a mu-GDP release at this epsilon (any real number), never below it."""
    log = log_delta(mu, epsilon)
    return 0.0 if epsilon == math.inf > mu else min(1.0, math.nextafter(math.exp(log), 1.0))


def deltas(mus: Array, epsilon: float) -> Array:
    """Return delta at one epsilon >= 0 for many positive mu at once, never below it."""
    return np.minimum(np.nextafter(np.exp(_log_deltas(mus, epsilon)), 1.0), 1.0)


def ratio(event: DpEvent) -> float | None:
    """Return mu of an event made of un-sampled Gaussian releases only, else None."""
    return _ratio(plain(event))


def _ratio(event: DpEvent) -> float | None:
    """Root of the sum of squared 1/z, without squares that overflow or vanish."""
    match event:
        case GaussianDpEvent():
            z = event.noise_multiplier
            return 1 / z if z > 0 else None
        case NoOpDpEvent():
            return 0.0
        case SelfComposedDpEvent():
            one = _ratio(event.event)
            return one if not one else math.sqrt(event.count) * one if event.count else 0.0
        case ComposedDpEvent():
            parts = [_ratio(part) for part in event.events]
            known = [part for part in parts if part is not None]
            return math.hypot(*known) if len(known) == len(parts) else None
        case _:
            return None


def log_delta(mu: float, epsilon: float) -> float:
    """Return log delta, never below it; it stays finite where delta itself would underflow."""
    _require_positive("mu", mu)
    if math.isnan(epsilon):
        raise Refused("epsilon is nan; it must be a number")
    if math.isinf(mu):
        return 0.0
    if epsilon == math.inf:
        return -math.inf
    if epsilon < 0:  # delta(-e) = 1 - e^-e + e^-e delta(e), the two worlds exchanged
        swapped = -math.expm1(epsilon) + math.exp(epsilon) * delta(mu, -epsilon)
        return min(math.log(swapped) + ROUNDING, 0.0)
    return float(_log_deltas(np.array([float(mu)]), float(epsilon))[0])


def _log_deltas(mus: Array, epsilon: float) -> Array:
    """Log delta for epsilon >= 0; delta rises with mu, so that a vanishing mu may be raised.

    What rounding moves `near` and `far` by, and mu before that, is given back: log delta changes
    by less than 2 (1 + near) (1 + far) times the relative error of either.
    """
    told = mus > LARGEST_MU
    mus = np.clip(mus, LEAST_MU, LARGEST_MU)
    # Log delta falls as `near` rises, so that one beyond all use may be cut.
    near = np.minimum((epsilon / mus - mus / 2) * ROOT_HALF, LARGEST_MU)
    far = near + mus * ROOT_HALF
    inside = np.clip(near, 0.0, FAR)
    gap = np.where(mus < NARROW, _narrow_gap(near, mus), special.erfcx(inside) - special.erfcx(far))
    with np.errstate(divide="ignore"):
        behind = np.log(np.where(near > FAR, 1.0, gap) / 2) - near * near
        missed = special.erfc(-np.minimum(near, 0.0)) + np.exp(-near * near) * special.erfcx(far)
        ahead = np.log1p(-missed / 2)
    logs = np.where((near < 0) & (mus >= NARROW), ahead, behind)
    logs = np.minimum(logs + ROUNDING * (1 + np.maximum(near, 0.0)) * (1 + far), 0.0)
    return np.where(told, 0.0, logs)


def _narrow_gap(near: Array, mus: Array) -> Array:
    """erfcx(near) - erfcx(far) for small mu: Simpson's rule on -erfcx', where nothing cancels.

    erfcx is a mixture of decaying exponentials, so that the fourth derivative of -erfcx' is
    positive and the rule lies above the integral.
    """
    width = mus * ROOT_HALF
    places = np.clip(near, -1.0, FAR) + width * np.array([[0.0], [0.5], [1.0]])
    slopes = 2 / math.sqrt(math.pi) - 2 * places * special.erfcx(places)
    return width * (slopes[0] + 4 * slopes[1] + slopes[2]) / 6


def epsilon(mu: float, delta: float) -> float:
    """Return the least epsilon >= 0 at which a mu-GDP release has at most this delta."""
    _require_positive("mu", mu)
    _require_probability(delta)
    mu, delta = float(mu), float(delta)
    if mu > LARGEST_MU:
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
    epsilon, delta = float(epsilon), float(delta)
    if epsilon == 0:
        return 2 * float(special.erfinv(delta)) / ROOT_HALF * (1 - 4 * ROUNDING)
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
