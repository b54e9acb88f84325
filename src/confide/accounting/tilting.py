"""The composed privacy loss after tilting: delta at an epsilon, epsilon at a delta.

Write F for the log-moment at theta and y for the tilted law, so that the loss l has probability
e^{F - theta l} y(l). Then delta(epsilon) is the sum over l > epsilon of
e^{F - theta l} (1 - e^{epsilon - l}) y(l), plus the mass at infinity. Every factor in front of y is
at most e^{F - theta epsilon}, so an error of y of total size e moves delta by at most
e x e^{F - theta epsilon}; that term is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy import fft

from confide.accounting import roots
from confide.accounting.laws import Law
from confide.accounting.pairs import Array

OUTSIDE = 1e-9  # tilted mass left outside the window at each end
FADED = 18.0
UNIT = 2.0**-53  # rounding of a double


@dataclass(frozen=True, eq=False)
class Tilted:
    """One tilted law in a window of losses, and a bound on all that is missing from it."""

    theta: float
    log_moment: float
    infinite: float
    losses: Array
    masses: Array
    error: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at this epsilon."""
        first, last = np.searchsorted(self.losses, [epsilon, epsilon + FADED / self.theta], "right")
        over = self.losses[first:last] - epsilon
        # Not np.dot: its threads stall where all cores are busy.
        weights = np.exp(-self.theta * over) * -np.expm1(-over)
        # Losses further up have weights of at most e^-FADED.
        faded = math.exp(-FADED) * float(np.abs(self.masses[last:]).sum())
        sticking_out = float((weights * self.masses[first:last]).sum()) + self.error + faded
        scale = self.log_moment - self.theta * epsilon
        if sticking_out <= 0:
            return self.infinite
        return min(1.0, self.infinite + math.exp(min(scale + math.log(sticking_out), 0.0)))

    def epsilon(self, delta: float, ceiling: float) -> float:
        """Return an epsilon >= 0 with at most this delta; `ceiling` is one up to rounding."""
        target = math.log(delta)

        def excess(epsilon: float) -> float:
            return math.log(max(self.delta(epsilon), 1e-320)) - target

        high, step = max(ceiling, 0.0), 0.01 / self.theta
        while (spare := excess(high)) > 0:
            high, step = high + step, 2 * step
            if step > 1e6 * (1 + high):
                return math.inf
        # Around here log delta falls by about theta per unit of epsilon.
        stride = (0.01 - 1.3 * spare) / self.theta
        low = max(0.0, high - stride)
        while excess(low) <= 0:
            if low == 0:
                return 0.0
            high, stride = low, 2 * stride
            low = max(0.0, low - stride)
        fine = 1e-6 * max(high, 1e-9)
        found = roots.root(excess, low, high, fine) + fine
        while excess(found) > 0:
            found += fine
        return found


def window(law: Law, theta: float, width: float, scale: float) -> tuple[int, int]:
    """Return the grid indices between which all but 2 x OUTSIDE of the tilted mass lies.

    By Chernoff: the tilted mean of e^{s loss} is a ratio of two moments, for any s of either sign.
    """
    base = law.log_moment(theta)
    low, high = law.bounds
    top = math.log(1e4 / scale)

    def reach(sign: int) -> float:
        def bound(log_s: float) -> float:
            s = math.exp(log_s)
            return (law.log_moment(theta + sign * s) - base - math.log(OUTSIDE)) / s

        return roots.least(bound, top - 25, top, 0.3)[1] / width

    return max(low, math.floor(-reach(-1))), min(high, math.ceil(reach(1)))


def tilt(law: Law, theta: float, width: float, low: int, high: int) -> Tilted:
    """Compose by one transform; the window is [low, high] in grid widths."""
    size = cast(int, fft.next_fast_len(high - low + 1, real=True))
    spectrum = law.transform(theta, size)
    wrapped = np.asarray(fft.irfft(spectrum.values, size), float)
    losses: Array = width * np.arange(low, low + size, dtype=np.float64)
    # A transform passes at most log2(size) roundings to an entry, and its inverse turns the mean
    # square of such errors into their sum. The exponentials of the tilt are off by the size of
    # their exponents, once in every round.
    furthest = theta * width * max(abs(end) for end in law.bounds) / law.rounds
    magnified = math.sqrt(2) * math.sqrt(float(np.square(spectrum.gain + 1).sum()))
    rounding = 8 * UNIT * math.log2(size + 2) * magnified
    rounding += 8 * UNIT * law.rounds * (1 + furthest)
    return Tilted(
        theta=theta,
        log_moment=law.log_moment(theta),
        infinite=-math.expm1(law.log_finite),
        losses=losses,
        masses=np.roll(wrapped, -(low % size)),
        error=rounding if (low, high) == law.bounds else rounding + 2 * OUTSIDE,
    )
