"""Integer noises whose output law is exact, and the Laplace noise that rests on one of them.

Their parameters are floats, and a float is a fraction, so each law is an exact mathematical object;
docs/proofs/sampling-noise.md shows that each sampler follows it. The one exception is a draw that
64 bits cannot hold, which stops with an error and has a probability below exp(-1000).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from confide.randomness.inversion import Words, below, exp_negative, table
from confide.randomness.laws import CountLaw, Decay, SkellamLaw
from confide.randomness.streams import Shape, count_of

LAPLACE_SLACK = 1 + 2.0**-42
"""The factor by which the grid of `GriddedLaplace` can raise a norm (proof: section 6)."""

LAPLACE_STEP = 2.0**-40
"""What rounding can add to a distance no norm bounds, in scales per coordinate (section 5)."""

_GRID_BITS = 40  # steps of the Laplace grid in one scale, as a power of two
_WIDEST = 2.0**50  # the largest sigma and scale: every step of the block sampler then fits 64 bits
_FARTHEST = 20  # log2 of the number of blocks that those 64 bits allow for
_SATURATED = 1 << 62


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(x) proportional to exp(-x**2 / (2 sigma**2)) on the integers."""

    sigma: float

    def __post_init__(self) -> None:
        """Refuse a sigma outside (0, 2**50]."""
        _check("DiscreteGaussian", "sigma", self.sigma, _WIDEST)

    def draw(self, stream: Words, shape: Shape) -> NDArray[np.int64]:
        """Return independent values."""
        rate = 1 / (2 * Fraction(self.sigma) ** 2)
        shift = math.frexp(self.sigma)[1] - 12  # blocks: sigma between 2**11 and 2**12 of them
        return _draw(stream, shape, rate, 2, max(shift, 0))


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(x) proportional to exp(-|x| / scale) on the integers."""

    scale: float

    def __post_init__(self) -> None:
        """Refuse a scale outside (0, 2**50]."""
        _check("DiscreteLaplace", "scale", self.scale, _WIDEST)

    def draw(self, stream: Words, shape: Shape) -> NDArray[np.int64]:
        """Return independent values."""
        shift = math.frexp(self.scale)[1] - 10  # blocks: scale between 2**9 and 2**10 of them
        return _draw(stream, shape, 1 / Fraction(self.scale), 1, max(shift, 0))


@dataclass(frozen=True)
class Skellam:
    """The difference of two Poisson values of mean variance / 2; sums of it add their variances."""

    variance: float

    def __post_init__(self) -> None:
        """Refuse a variance outside (0, 2**36]."""
        _check("Skellam", "variance", self.variance, 2.0**36)

    def draw(self, stream: Words, shape: Shape) -> NDArray[np.int64]:
        """Return independent values; above variance 2**28, each is a sum of equal shares."""
        shares = 1 << max(0, math.frexp(self.variance)[1] - 28)
        law = table(SkellamLaw(Fraction(self.variance) / shares))
        count = count_of(shape)
        total = law.draw(stream, count)
        for _ in range(shares - 1):
            total += law.draw(stream, count)
        return total.reshape(shape)


@dataclass(frozen=True)
class BinomialLaw:
    """Successes in `trials` trials of probability p, less `centre`, the integer nearest the mean.

    `bias` is the rest of the mean, a public constant within 1/2.
    """

    trials: int
    p: float = 0.5

    def __post_init__(self) -> None:
        """Refuse a p outside (0, 1), and a variance outside (0, 2**30]."""
        if isinstance(self.trials, bool) or not 1 <= self.trials <= 1 << 53:
            raise ValueError(f"BinomialLaw: trials={self.trials!r} must be in [1, 2**53].")
        if not 0 < self.p < 1:
            raise ValueError(f"BinomialLaw: p={self.p!r} must be strictly between 0 and 1.")
        _check("BinomialLaw", "variance", self.trials * self.p * (1 - self.p), 2.0**30)

    @property
    def centre(self) -> int:
        """What is taken from each count."""
        return round(self.trials * Fraction(self.p))

    @property
    def bias(self) -> float:
        """The mean of a draw."""
        return float(self.trials * Fraction(self.p) - self.centre)

    def draw(self, stream: Words, shape: Shape) -> NDArray[np.int64]:
        """Return independent values."""
        law = table(CountLaw(int(self.trials), Fraction(self.p)))
        return (law.draw(stream, count_of(shape)) - self.centre).reshape(shape)


@dataclass(frozen=True)
class GriddedLaplace:
    """Laplace noise of this scale for floats, in law within `LAPLACE_SLACK`, with no float in it.

    Values are rounded towards zero to multiples of `grid`, a power of two between scale / 2**41 and
    scale / 2**40, and the noise is a discrete Laplace number of steps. Rounding never raises a norm
    of the vector that is rounded, nor the distance 2C of two vectors of norm C. It can raise other
    distances by a step per coordinate (`LAPLACE_STEP`): where noise goes on a sum, charge that, or
    take each summand `to_grid` first and add the integers.
    """

    scale: float

    def __post_init__(self) -> None:
        """Refuse a scale whose grid would leave the range of normal floats."""
        if not 2.0**-900 <= self.scale <= 2.0**900:
            raise ValueError(
                f"GriddedLaplace: scale={self.scale!r} must be between 2**-900 and 2**900."
            )

    @property
    def grid(self) -> float:
        """The step between two neighbouring outputs."""
        return math.ldexp(1.0, self._exponent)

    @property
    def _exponent(self) -> int:
        return math.frexp(self.scale)[1] - 1 - _GRID_BITS

    def to_grid(self, x: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return the number of steps from 0 to each value, towards zero; saturates at 2**62."""
        if not np.all(np.isfinite(x)):
            raise ValueError("GriddedLaplace: x has a value that is not finite; clip it first.")
        with np.errstate(over="ignore", under="ignore"):
            # Division by a power of two is exact; what overflows saturates, what underflows is 0.
            steps = np.ldexp(x.astype(np.float64), -self._exponent)
        return np.clip(np.trunc(steps), -_SATURATED, _SATURATED).astype(np.int64)

    def noise(self, stream: Words, shape: Shape) -> NDArray[np.int64]:
        """Return noise in steps of the grid."""
        steps_in_scale = math.ldexp(self.scale, -self._exponent)
        return DiscreteLaplace(steps_in_scale).draw(stream, shape)

    def from_grid(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the floats nearest to so many steps: a function of the integers alone."""
        return np.ldexp(steps.astype(np.float64), self._exponent)

    def add(self, stream: Words, x: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return x with noise, where the sensitivity is a norm of x itself."""
        return self.from_grid(self.to_grid(x) + self.noise(stream, x.shape))


def _check(owner: str, name: str, value: float, most: float) -> None:
    if isinstance(value, bool) or not 0 < value <= most:
        raise ValueError(f"{owner}: {name}={value!r} must be positive and at most {most:g}.")


def _draw(stream: Words, shape: Shape, rate: Fraction, power: int, shift: int) -> NDArray[np.int64]:
    """Draw from weights exp(-rate |x|**power) on all integers."""
    if shift:
        return _draw_blocks(stream, count_of(shape), rate, power, shift).reshape(shape)
    return table(Decay(rate, power, both_sides=True)).draw(stream, count_of(shape)).reshape(shape)


def _draw_blocks(
    stream: Words, count: int, rate: Fraction, power: int, shift: int
) -> NDArray[np.int64]:
    """Draw x = sign (2**shift block + place) when the law is too wide for a table.

    A block comes from a table with the weight of its likeliest member, a place in it uniformly; the
    pair is kept with its weight over that of the block. Negative zero is refused, because zero
    would otherwise be reached twice.
    """
    blocks = table(Decay(rate * (1 << power * shift), power, both_sides=False))
    unit = np.uint64(math.ceil(rate * (1 << 64 + (power - 1) * 2 * shift)))
    mask = np.uint64((1 << shift) - 1)
    out = np.empty(count, np.int64)
    left = np.arange(count)
    while len(left):
        block = blocks.draw(stream, len(left))
        if block.max() >> _FARTHEST:
            raise OverflowError("A draw left the integers of 64 bits; its chance is exp(-1000).")
        word = stream.uint64(len(left))
        place = (word & mask).astype(np.int64)
        negative = word >> np.uint64(63) == 1
        value = (block << shift) + place
        # 1 - exp(-cost) <= cost <= doubt / 2**64, so a word at least that far from the top accepts.
        doubt = unit * (place if power == 1 else 2 * block + 1).astype(np.uint64)
        trial = stream.uint64(len(left))
        keep = ~(negative & (value == 0))
        for at in np.flatnonzero(keep & (~trial < doubt)):
            cost = rate * (int(value[at]) ** power - int(block[at] << shift) ** power)
            keep[at] = below(int(trial[at]), partial(exp_negative, cost), stream)
        out[left[keep]] = np.where(negative, -value, value)[keep]
        left = left[~keep]
    return out
