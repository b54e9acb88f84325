"""Dominating pairs of distributions, and how their privacy loss is put on a grid.

A pair (P, Q) dominates a release when no event tells two neighbouring outputs apart better than
one tells P from Q, at every epsilon, positive or negative. Every pair here can place its loss
log P/Q on the multiples of a width. Mass whose loss falls between two grid points is moved to
those two so that its probability under P *and* under Q is kept ("connect the dots"): the moved
pair is told apart at least as well, so all that follows from it is an upper bound. The proofs,
the Poisson coin included, are in docs/proofs/losses.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import special

Array = npt.NDArray[np.float64]

TAIL = (
    11.0  # standard deviations kept of a normal loss; what lies beyond, 2e-28, counts as infinite
)
LARGEST_MULTIPLE = 4096  # of one unit; wider lattices are put on a grid like any other loss


@dataclass(frozen=True)
class Grid:
    """Probabilities under P of the losses first x width, (first + 1) x width, ... and infinity."""

    width: float
    first: int
    mass: Array
    infinite: float


class Direction(Protocol):
    """One ordered pair (P, Q)."""

    @property
    def span(self) -> float:
        """The length of the interval that holds the finite losses."""
        ...

    def on_grid(self, width: float) -> Grid:
        """Place the loss on the multiples of `width`, never to the adversary's disadvantage."""
        ...


@dataclass(frozen=True)
class Pair:
    """The unit's removal (or first world against second) and the reverse."""

    remove: Direction
    add: Direction


@dataclass(frozen=True, eq=False)
class Atoms:
    """Two finitely supported laws, by log-probabilities outcome by outcome."""

    log_upper: Array
    log_lower: Array

    @property
    def reverse(self) -> Atoms:
        """The same two laws with their roles exchanged."""
        return Atoms(self.log_lower, self.log_upper)

    @property
    def span(self) -> float:
        """The length of the interval that holds the finite losses."""
        losses, _, _ = self._losses()
        return float(losses.max() - losses.min()) if losses.size else 0.0

    @property
    def unit(self) -> float | None:
        """A step of which every finite loss is a whole multiple, if there is one."""
        losses, _, _ = self._losses()
        sizes = np.abs(losses[losses != 0])
        if not sizes.size:
            return None
        step = float(sizes.min())
        times = sizes / step
        whole = bool(np.all(np.abs(times - np.round(times)) <= 1e-12 * times))
        return step if whole and times.max() <= LARGEST_MULTIPLE else None

    def _losses(self) -> tuple[Array, Array, float]:
        """Finite losses, their probabilities under P, and P's mass where Q has none."""
        seen = self.log_upper > -math.inf
        alone = seen & (self.log_lower == -math.inf)
        both = seen & ~alone
        upper = self.log_upper[both]
        infinite = float(np.exp(self.log_upper[alone]).sum())
        return upper - self.log_lower[both], np.exp(upper), infinite

    def on_grid(self, width: float) -> Grid:
        """Place the loss on the multiples of `width`, never to the adversary's disadvantage."""
        losses, masses, infinite = self._losses()
        below = np.floor(losses / width)
        share = np.expm1(below * width - losses) / math.expm1(-width)
        return _gather(below.astype(np.int64), masses, np.clip(share, 0.0, 1.0), width, infinite)

    def hockey_stick(self, epsilon: float) -> float:
        """Return the exact sum of (P - e^epsilon Q) where positive."""
        losses, masses, infinite = self._losses()
        over = losses > epsilon
        found = infinite - float(np.dot(masses[over], np.expm1(epsilon - losses[over])))
        return min(max(found, 0.0), 1.0)

    def sampled(self, rate: float) -> Pair:
        """Return the pair behind a Poisson coin: the unit's release is P with this probability."""
        if rate == 1:
            return Pair(self, self.reverse)
        mixed = np.logaddexp(math.log1p(-rate) + self.log_lower, math.log(rate) + self.log_upper)
        return Pair(Atoms(mixed, self.log_lower), Atoms(self.log_lower, mixed))


def atoms(upper: npt.ArrayLike, lower: npt.ArrayLike) -> Atoms:
    """Build a pair from plain probabilities; outcomes that neither law produces are allowed."""
    with np.errstate(divide="ignore"):
        return Atoms(np.log(np.asarray(upper, float)), np.log(np.asarray(lower, float)))


class Curve(Protocol):
    """A symmetric continuous pair, known by how much mass each law has between two losses."""

    @property
    def lowest(self) -> float:
        """Mass below it is moved up to it."""
        ...

    @property
    def highest(self) -> float:
        """Mass above it counts as infinite loss."""
        ...

    def masses(self, edges: Array) -> tuple[Array, Array]:
        """Probabilities under P and Q of the loss between consecutive edges."""
        ...


@dataclass(frozen=True)
class NormalLoss:
    """Gaussian noise with shift / deviation = mu: the loss is normal under both laws."""

    mu: float

    @property
    def lowest(self) -> float:
        """Mass below it is moved up to it."""
        return -self.highest

    @property
    def highest(self) -> float:
        """Mass above it counts as infinite loss."""
        return self.mu * (self.mu / 2 + TAIL)

    def masses(self, edges: Array) -> tuple[Array, Array]:
        """Probabilities under P and Q of the loss between consecutive edges."""
        scaled = edges / self.mu
        return _normal_masses(scaled - self.mu / 2), _normal_masses(scaled + self.mu / 2)


@dataclass(frozen=True)
class LaplaceLoss:
    """Laplace noise with shift / scale = t: atoms at both ends and a density between them."""

    t: float

    @property
    def lowest(self) -> float:
        """Mass below it is moved up to it."""
        return -self.t

    @property
    def highest(self) -> float:
        """Mass above it counts as infinite loss."""
        return self.t

    def masses(self, edges: Array) -> tuple[Array, Array]:
        """Probabilities under P and Q of the loss between consecutive edges."""
        # Under Q the loss is minus that under P; an atom on an edge must fall in one same cell.
        mirrored = np.diff(self._below(-edges[::-1], strictly=True))[::-1]
        return np.diff(self._below(edges, strictly=False)), mirrored

    def _below(self, edges: Array, strictly: bool) -> Array:
        """P's probability of a loss below, or (not strictly) at most, each edge."""
        ahead = edges <= -self.t if strictly else edges < -self.t
        behind = edges > self.t if strictly else edges >= self.t
        inside = np.exp((np.clip(edges, -self.t, self.t) - self.t) / 2) / 2
        return np.where(ahead, 0.0, np.where(behind, 1.0, inside))


@dataclass(frozen=True)
class Sampled:
    """One direction of a continuous pair behind a Poisson coin; rate 1 is the pair itself.

    Removal tells (1 - q) Q + q P from Q: its loss is log(1 - q + q e^l) when l is the loss of the
    pair. Addition tells Q from that mixture, so its loss is the negative.
    """

    curve: Curve
    rate: float
    removal: bool

    @property
    def span(self) -> float:
        """The length of the interval that holds the finite losses."""
        low, high = self._range()
        return high - low

    def _range(self) -> tuple[float, float]:
        ends = [self._outer(self.curve.lowest), self._outer(self.curve.highest)]
        return (ends[0], ends[1]) if self.removal else (-ends[1], -ends[0])

    def _outer(self, loss: float) -> float:
        if self.rate == 1:
            return loss
        return float(np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + loss))

    def _inner(self, loss: Array) -> Array:
        """Invert `_outer`; minus infinity where the mixture never gets."""
        if self.rate == 1:
            return loss
        rest = (1 - self.rate) / self.rate * -np.expm1(-np.maximum(loss, math.log1p(-self.rate)))
        with np.errstate(divide="ignore"):
            return loss + np.log1p(np.maximum(rest, -1.0))

    def on_grid(self, width: float) -> Grid:
        """Place the loss on the multiples of `width`, never to the adversary's disadvantage."""
        low, high = self._range()
        first = math.floor(low / width)
        last = math.ceil(high / width + 1e-6)  # an atom at the top must not round beyond it
        points = width * np.arange(first, last + 1)
        # The outermost cells reach to both infinities.
        edges = np.concatenate([[-math.inf], points, [math.inf]])
        if self.removal:
            with_unit, without = self.curve.masses(self._inner(edges))
            upper, lower = (1 - self.rate) * without + self.rate * with_unit, without
        else:
            with_unit, without = self.curve.masses(self._inner(-edges[::-1]))
            mixed = (1 - self.rate) * without + self.rate * with_unit
            upper, lower = without[::-1], mixed[::-1]
        inner, left = upper[1:-1], points[:-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.exp(np.minimum(np.log(lower[1:-1]) - np.log(inner) + left, 0.0))
        share = np.clip((1 - np.where(inner > 0, ratio, 1.0)) / -math.expm1(-width), 0.0, 1.0)
        grid = _gather(np.arange(first, last), inner, share, width, float(upper[-1]))
        grid.mass[0] += upper[0]
        return grid


def continuous(curve: Curve, rate: float = 1.0) -> Pair:
    """Build both directions of a continuous pair, behind a Poisson coin when rate < 1."""
    remove = Sampled(curve, rate, removal=True)
    return Pair(remove, remove if rate == 1 else Sampled(curve, rate, removal=False))


def _gather(
    below: npt.NDArray[np.int64], masses: Array, share: Array, width: float, infinite: float
) -> Grid:
    """Add up masses of which `share` goes to the point above `below` and the rest to it."""
    if not below.size:
        return Grid(width, 0, np.zeros(1), infinite)
    first, size = int(below.min()), int(below.max() - below.min()) + 2
    moved = masses * share
    totals = np.zeros(size)
    totals[:-1] += np.bincount(below - first, masses - moved, size - 1)
    totals[1:] += np.bincount(below - first, moved, size - 1)
    return Grid(width, first, totals, infinite)


def _normal_masses(edges: Array) -> Array:
    """Standard normal mass between consecutive edges, from the nearer tail."""
    low, high = edges[:-1], edges[1:]
    right = low > 0
    return np.where(
        right, special.ndtr(-low) - special.ndtr(-high), special.ndtr(high) - special.ndtr(low)
    )
