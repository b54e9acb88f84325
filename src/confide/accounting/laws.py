"""Laws of a sum of privacy losses, known by their moments and their Fourier transforms.

Losses of independent releases add up, so moments and transforms multiply; a public coin mixes
them. Probability that a loss is infinite is kept apart: a law is that of the finite losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import fft

from confide.accounting.pairs import Array, Grid

NOTHING = 100.0  # e^-100 of a transform is far below its rounding


@dataclass(frozen=True, eq=False)
class Transform:
    """Half a discrete Fourier transform, and how it magnifies an error in those it is made of."""

    values: npt.NDArray[np.complex128]
    gain: Array


class Law(Protocol):
    """The law of a sum of losses on a grid, known by its moments and its transform."""

    @property
    def bounds(self) -> tuple[int, int]:
        """Lowest and highest finite loss, in grid widths."""
        ...

    @property
    def log_finite(self) -> float:
        """The log of the probability that the loss is finite."""
        ...

    @property
    def rounds(self) -> float:
        """How many grid laws are added up."""
        ...

    def log_moment(self, theta: float) -> float:
        """Log of the mean of e^{theta loss} over the finite losses."""
        ...

    def transform(self, theta: float, size: int) -> Transform:
        """Transform the tilted law, wrapped to `size` points."""
        ...


@dataclass(frozen=True)
class Single:
    """One release."""

    grid: Grid

    @property
    def bounds(self) -> tuple[int, int]:
        """Lowest and highest finite loss, in grid widths."""
        return self.grid.first, self.grid.first + len(self.grid.mass) - 1

    @property
    def log_finite(self) -> float:
        """The log of the probability that the loss is finite."""
        return math.log1p(-min(self.grid.infinite, 1 - 2.0**-53))

    @property
    def rounds(self) -> float:
        """How many grid laws are added up."""
        return 1.0

    @cached_property
    def _losses(self) -> tuple[Array, Array]:
        low, high = self.bounds
        with np.errstate(divide="ignore"):
            losses: Array = self.grid.width * np.arange(low, high + 1, dtype=np.float64)
            return losses, np.log(self.grid.mass)

    def log_moment(self, theta: float) -> float:
        """Log of the mean of e^{theta loss} over the finite losses."""
        losses, log_mass = self._losses
        exponents = log_mass + theta * losses
        top = float(exponents.max())
        return top + math.log(float(np.exp(exponents - top).sum())) if top > -math.inf else top

    def transform(self, theta: float, size: int) -> Transform:
        """Transform the tilted law, wrapped to `size` points."""
        losses, log_mass = self._losses
        tilted = np.exp(log_mass + theta * losses - self.log_moment(theta))
        start = self.grid.first % size
        wrapped = np.zeros(-(-(start + len(tilted)) // size) * size)
        wrapped[start : start + len(tilted)] = tilted
        values = np.asarray(fft.rfft(wrapped.reshape(-1, size).sum(axis=0)), complex)
        return Transform(values, np.ones(len(values)))


@dataclass(frozen=True)
class Sum:
    """Several releases, each a number of times."""

    parts: tuple[tuple[Law, int], ...]

    @property
    def bounds(self) -> tuple[int, int]:
        """Lowest and highest finite loss, in grid widths."""
        pairs = [(law.bounds, count) for law, count in self.parts]
        return sum(b[0] * n for b, n in pairs), sum(b[1] * n for b, n in pairs)

    @property
    def log_finite(self) -> float:
        """The log of the probability that the loss is finite."""
        return sum(count * law.log_finite for law, count in self.parts)

    @property
    def rounds(self) -> float:
        """How many grid laws are added up."""
        return sum(count * law.rounds for law, count in self.parts)

    def log_moment(self, theta: float) -> float:
        """Log of the mean of e^{theta loss} over the finite losses."""
        return sum(count * law.log_moment(theta) for law, count in self.parts)

    def transform(self, theta: float, size: int) -> Transform:
        """Transform the tilted law, wrapped to `size` points."""
        values = np.ones(size // 2 + 1, complex)
        gain = np.zeros(size // 2 + 1)
        for law, count in self.parts:
            one = law.transform(theta, size)
            modulus = np.minimum(np.abs(one.values), 1.0)
            # A power of many rounds is nothing at most frequencies: leave those out.
            alive = np.flatnonzero(modulus > math.exp(-NOTHING / count))
            power = np.zeros_like(values)
            power[alive] = one.values[alive] ** count
            values *= power
            gain[alive] += count * one.gain[alive] * modulus[alive] ** (count - 1)
        return Transform(values, gain)


@dataclass(frozen=True)
class Mixture:
    """With this probability the inner law, else a loss of exactly 0 (a public coin)."""

    probability: float
    inner: Law

    @property
    def bounds(self) -> tuple[int, int]:
        """Lowest and highest finite loss, in grid widths."""
        low, high = self.inner.bounds
        return min(low, 0), max(high, 0)

    @property
    def log_finite(self) -> float:
        """The log of the probability that the loss is finite."""
        return math.log1p(self.probability * math.expm1(self.inner.log_finite))

    @property
    def rounds(self) -> float:
        """How many grid laws are added up."""
        return self.inner.rounds

    def _weight(self, theta: float) -> tuple[float, float]:
        """The log-moment, and the share of the inner law in it."""
        inner = math.log(self.probability) + self.inner.log_moment(theta)
        total = float(np.logaddexp(math.log1p(-self.probability), inner))
        return total, math.exp(inner - total)

    def log_moment(self, theta: float) -> float:
        """Log of the mean of e^{theta loss} over the finite losses."""
        return self._weight(theta)[0]

    def transform(self, theta: float, size: int) -> Transform:
        """Transform the tilted law, wrapped to `size` points."""
        share = self._weight(theta)[1]
        if share == 0:  # the inner law has no finite loss at all
            return Transform(np.ones(size // 2 + 1, complex), np.ones(size // 2 + 1))
        inner = self.inner.transform(theta, size)
        return Transform(1 - share + share * inner.values, 1 + share * inner.gain)
