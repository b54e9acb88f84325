"""Epsilon and delta of a composition of privacy losses, at a grid width chosen for the question.

Discretisation moves a loss to the two grid points around it and keeps its mass under P and Q.
That multiplies the moment of order theta of one release by at most 1 + theta (1 + theta) w^2 / 8,
so it raises the Renyi bound on epsilon by at most rounds (1 + theta) w^2 / 8 at the best theta:
the width w is taken such that this is four parts in 10^5 (docs/proofs/losses.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from confide.accounting import roots
from confide.accounting.laws import Law
from confide.accounting.tilting import Tilted, tilt, window

FINENESS = 4e-5  # what discretisation may add to epsilon, relative
MANY = 1000  # so many releases smooth every kink of the curve away
LARGEST_GRID = 1 << 21
"""Points of the largest window or single loss; beyond it the width grows and so does epsilon."""


@dataclass(frozen=True)
class Composition:
    """A way to build one law at any grid width, and the questions it answers."""

    build: Callable[[float], Law]
    span: float  # of the widest single loss
    unit: float | None = None  # a step of which every loss is a multiple: that grid is exact
    lumpy: bool = False  # the curve may have kinks, near which the rule above is no guide

    def epsilon(self, delta: float) -> float:
        """Return an epsilon >= 0 at which delta is proved, or infinity."""

        def ceiling(law: Law, theta: float) -> float:
            finite = delta + math.expm1(law.log_finite)
            if finite <= 0:
                return math.inf
            return (law.log_moment(theta) + _peak(theta) - math.log(finite)) / theta

        def tolerance(law: Law, theta: float) -> float:
            return FINENESS * max(ceiling(law, theta), 1e-9)

        width, theta = self._refine(ceiling, tolerance)

        def solve(width: float) -> tuple[float, bool]:
            law = self.build(width)
            start = ceiling(law, theta)
            if not start < math.inf:
                return start, False
            found = self._tilted(law, width, theta).epsilon(delta, start)
            # Where the Renyi bound is far off, it does not say how fine is fine.
            kinked = self.lumpy and law.rounds < MANY
            return found, kinked or found < 0.6 * start

        return self._settle(solve, width)

    def delta(self, epsilon: float) -> float:
        """Return a proved upper bound of delta at this epsilon."""

        def ceiling(law: Law, theta: float) -> float:
            return law.log_moment(theta) + _peak(theta) - theta * epsilon

        def tolerance(law: Law, theta: float) -> float:
            return FINENESS * max(1 / theta, abs(epsilon))

        width, theta = self._refine(ceiling, tolerance)

        def solve(width: float) -> tuple[float, bool]:
            law = self.build(width)
            if law.log_moment(theta) == -math.inf:  # no loss is finite
                return 1.0, False
            return self._tilted(law, width, theta).delta(epsilon), self.lumpy and law.rounds < MANY

        return self._settle(solve, width)

    def _settle(self, solve: Callable[[float], tuple[float, bool]], width: float) -> float:
        """Halve the width until the answer stays, where the answer says that this is needed."""
        found, doubtful = solve(width)
        finest = 4 * self.span / LARGEST_GRID
        while doubtful and self.unit is None and found > 0 and width > finest:
            width /= 2
            coarse, (found, doubtful) = found, solve(width)
            if coarse - found <= 5 * FINENESS * found:
                break
        return found

    def _tilted(self, law: Law, width: float, theta: float) -> Tilted:
        low, high = window(law, theta, width, self.span)
        if high - low > LARGEST_GRID:
            width *= (high - low) / LARGEST_GRID
            law = self.build(width)
            low, high = window(law, theta, width, self.span)
        return tilt(law, theta, width, low, high)

    def _refine(
        self,
        ceiling: Callable[[Law, float], float],
        tolerance: Callable[[Law, float], float],
    ) -> tuple[float, float]:
        """Find a grid width fine enough for the question, and the tilt to answer it with."""
        if self.unit is not None:
            return self.unit, self._best(self.build(self.unit), ceiling)
        width, theta = self.span / 1000, 1.0
        for _ in range(12):
            law = self.build(width)
            theta = self._best(law, ceiling)
            wanted = math.sqrt(8 * tolerance(law, theta) / (law.rounds * (1 + theta)))
            wanted = min(max(wanted, self.span / LARGEST_GRID), self.span / 20)
            settled = wanted > 0.3 * width
            width = wanted
            if settled:
                break
        return width, theta

    def _best(self, law: Law, ceiling: Callable[[Law, float], float]) -> float:
        def objective(log_theta: float) -> float:
            return ceiling(law, math.exp(log_theta))

        top = math.log(1e4 / self.span)
        return math.exp(roots.least(objective, top - 25, top, 0.05)[0])


def _peak(theta: float) -> float:
    """Log of the largest value of e^{-theta x} (1 - e^{-x}): what a loss adds beyond epsilon."""
    return -theta * math.log1p(1 / theta) - math.log1p(theta)
