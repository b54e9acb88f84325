"""Exact moments of the likelihood ratio of the pairs that are known completely, sampled or not.

Sums and quadratures whose error is bounded and added, so that no value is below the truth. The
bounds are in docs/proofs/sampling.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy import special

from confide.accounting import moments
from confide.accounting.moments import Array, Integers, Law

LARGEST_EVEN = 256
_MOST_POINTS = 20_000


class Moments(Protocol):
    """Two distributions that dominate a release, known well enough for exact moments."""

    def log_sampled(self, orders: Array, rate: float) -> Array:
        """log E_Q (1 + rate (P/Q - 1))^order, never below the truth; infinite where not known."""
        ...

    def log_even(self, powers: Integers) -> Array:
        """log E_Q (P/Q - 1)^power for even powers, never below; infinite where not known."""
        ...


def _by_block(
    orders: Array, rate: float, law: Callable[[float], tuple[Law, Callable[[Array, Array], Array]]]
) -> Array:
    """log of 1 + excess + what the law leaves out, block by block of orders."""
    logs = np.full(orders.shape, np.inf)
    for low, high in pairwise(moments.BLOCKS):
        chosen = (orders > low) & (orders <= high)
        if not bool(chosen.any()):
            continue
        points, left_out = law(float(orders[chosen].max()))
        sums, log_sums = moments.excess(orders[chosen], rate, points)
        with np.errstate(over="ignore", invalid="ignore"):
            whole = np.log1p(sums + left_out(orders[chosen], sums))
        # Beyond e^30 what is left out is below e^-50 of the moment, far below ROUNDING.
        logs[chosen] = np.where(log_sums > 30, log_sums, whole)
    return logs


@dataclass(frozen=True)
class GaussianMoments:
    """N(1, sigma^2) against N(0, sigma^2)."""

    sigma: float

    def log_sampled(self, orders: Array, rate: float) -> Array:
        """Integers by the binomial sum, fractions by a trapezoidal rule with a proved error."""
        logs = np.full(orders.shape, np.inf)
        whole = orders == np.floor(orders)
        summed = whole | (orders > self._quadrature_limit(rate))
        if bool(summed.any()):
            logs[summed] = moments.log_poisson(orders[summed], rate, self._growth)
        if not bool(summed.all()):
            logs[~summed] = _by_block(orders[~summed], rate, lambda top: self._law(top, rate))
        return logs

    def _growth(self, ks: Array) -> Array:
        return ks * (ks - 1) / (2 * self.sigma**2)

    def _step(self, rate: float) -> tuple[float, float]:
        """The step of the rule and the exponent of its relative error."""
        exponent = 55 + 2 * math.log(max(self.sigma, 1.0) / rate)
        width = min(math.pi * self.sigma, math.sqrt(2 * exponent))
        return 2 * math.pi * width / (exponent + width**2 / 2), exponent

    def _quadrature_limit(self, rate: float) -> float:
        """Orders up to which the rule has few enough points; for the others chords are used."""
        step, exponent = self._step(rate)
        most = self.sigma * (step * _MOST_POINTS - 2 * math.sqrt(2 * exponent))
        return max([top for top in moments.BLOCKS[:4] if top <= max(most, 1.0)])

    def _law(self, top: float, rate: float) -> tuple[Law, Callable[[Array, Array], Array]]:
        step, exponent = self._step(rate)
        reach = math.sqrt(2 * exponent)
        count = math.ceil((top / self.sigma + 2 * reach) / step) + 1
        places = step * np.arange(float(count)) - reach
        log_weights = -(places**2) / 2 + math.log(step / math.sqrt(2 * math.pi))
        law = Law(places / self.sigma - 1 / (2 * self.sigma**2), log_weights)
        last = float(moments.log_steps(rate, law.log_ratios[-1:])[0])
        log_last = float(log_weights[-1]) - math.log(step * reach)

        def left_out(orders: Array, sums: Array) -> Array:
            right = np.exp(orders * last + log_last)
            left = orders * rate * float(special.ndtr(-reach))
            alias = 2.01 * math.exp(-exponent) * (2 + sums + 2 * orders * rate)
            return right + left + alias

        return law, left_out

    def log_even(self, powers: Integers) -> Array:
        """A trapezoidal rule: the integrand is entire and positive."""
        step = 0.2
        count = math.ceil((float(powers.max()) / self.sigma + 80) / step)
        if count > _MOST_POINTS:
            return np.full(powers.shape, np.inf)
        places = step * np.arange(float(count)) - 40
        log_ratios = places / self.sigma - 1 / (2 * self.sigma**2)
        weights = -(places**2) / 2 + math.log(step / math.sqrt(2 * math.pi))
        # What the rule and its two ends leave out, from E (r + 1)^power <= 2^power E r^power.
        left_out = self._growth(powers.astype(np.float64)) + powers * math.log(2) - 490
        return np.logaddexp(moments.log_even(powers, Law(log_ratios, weights)), left_out)


@dataclass(frozen=True)
class LaplaceMoments:
    """Laplace noise of scale 1 against the same noise moved by `distance`."""

    distance: float

    def log_sampled(self, orders: Array, rate: float) -> Array:
        """Low orders by Gauss-Legendre panels with a proved error, others by binomial sums."""
        low = orders <= (16.0 if self.distance <= 50 else 1.0)
        logs = np.full(orders.shape, np.inf)
        if bool(low.any()):
            logs[low] = _by_block(orders[low], rate, lambda top: self._law(rate))
        if not bool(low.all()):
            logs[~low] = moments.log_poisson(orders[~low], rate, self._growth)
        return logs

    def _growth(self, ks: Array) -> Array:
        return (ks - 1) * moments.laplace_renyi(ks, self.distance)

    def _law(self, rate: float) -> tuple[Law, Callable[[Array, Array], Array]]:
        panels, half, centres = self._panels()
        nodes, weights = np.polynomial.legendre.leggauss(28)
        inner = (centres[:, None] + half * nodes).ravel()
        log_inner = np.tile(np.log(weights * half / 4), panels) - (self.distance + inner) / 2
        ends = np.array([self.distance, -self.distance])
        log_ends = np.array([-self.distance - math.log(2), -math.log(2)])
        law = Law(np.concatenate([inner, ends]), np.concatenate([log_inner, log_ends]))

        def left_out(orders: Array, sums: Array) -> Array:
            reach = centres + 1.65
            steps = np.maximum(moments.log_steps(rate, reach), 0.0)
            most = np.exp(orders[:, None] * steps) * (2 + 2 * orders[:, None])
            scale = np.exp(-(self.distance + centres - 1.65) / 2) / 4
            # 64/15 rho^-54 / (1 - rho^-2) with rho = pi + sqrt(pi^2 + 1), halves at most 1/2.
            return 9.5e-44 * (most @ scale)

        return law, left_out

    def _panels(self) -> tuple[int, float, Array]:
        panels = max(1, math.ceil(2 * self.distance))
        half = self.distance / panels
        return panels, half, -self.distance + half * (2 * np.arange(float(panels)) + 1)

    def log_even(self, powers: Integers) -> Array:
        """The middle is convex in log r, so that a chord on each cell lies above it."""
        cells = 16 * int(powers.max()) + 64
        places = self.distance * np.linspace(-1, 1, cells + 1)
        log_weights = np.full(cells + 1, math.log(2 * self.distance / cells / 4))
        log_weights[[0, -1]] -= math.log(2)
        log_weights -= (self.distance + places) / 2
        ends = np.array([self.distance, -self.distance])
        log_ends = np.array([-self.distance - math.log(2), -math.log(2)])
        law = Law(np.concatenate([places, ends]), np.concatenate([log_weights, log_ends]))
        return moments.log_even(powers, law)


@dataclass(frozen=True)
class StepMoments:
    """The log ratio is +epsilon, 0 or -epsilon; `plus` is the chance of +epsilon under P."""

    epsilon: float
    plus: float

    def log_sampled(self, orders: Array, rate: float) -> Array:
        """Two terms, exact for every order."""
        return _by_block(orders, rate, lambda top: (self._law(), lambda a, sums: 0 * a))

    def _law(self) -> Law:
        ratios = np.array([self.epsilon, -self.epsilon])
        return Law(ratios, math.log(self.plus) + np.array([-self.epsilon, 0.0]))

    def log_even(self, powers: Integers) -> Array:
        """Two terms."""
        return moments.log_even(powers, self._law())
