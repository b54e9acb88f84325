"""The integer laws of the exact noises, each enclosed between integers as tightly as one asks.

Every weight comes from its neighbour by a ratio; each step is rounded once down and once up, so the
enclosures hold without an analysis of errors (docs/proofs/sampling-noise.md, section 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from confide.randomness.inversion import Weights, ceil_div, exp_negative

_GUARD = 64  # bits that rounding may consume before an enclosure grows wider than was asked


@dataclass(frozen=True)
class Decay:
    """Weights exp(-rate x**power), on x >= 0 or on all integers."""

    rate: Fraction
    power: int
    both_sides: bool

    def weights(self, bits: int) -> Weights:
        """Multiply by exp(-rate), or by its odd powers, until a weight is negligible."""
        precision = bits + _GUARD
        one = 1 << precision
        low_step, high_step = exp_negative(self.rate, precision)
        low_growth, high_growth = one, one
        if self.power == 2:
            low_growth = low_step * low_step >> precision
            high_growth = ceil_div(high_step * high_step, one)
        lower, upper = [one], [one]
        while upper[-1] >> _GUARD:
            lower.append(lower[-1] * low_step >> precision)
            upper.append(ceil_div(upper[-1] * high_step, one))
            low_step = low_step * low_growth >> precision
            high_step = ceil_div(high_step * high_growth, one)
        tail = ceil_div(upper[-1] * high_step, one - high_step)
        return _mirror(lower, upper, tail) if self.both_sides else Weights(0, lower, upper, 0, tail)


def _mirror(lower: list[int], upper: list[int], tail: int) -> Weights:
    """Extend weights on 0, 1, 2, ... to the symmetric law on all integers."""
    first = 1 - len(lower)
    return Weights(first, lower[:0:-1] + lower, upper[:0:-1] + upper, tail, tail)


@dataclass(frozen=True)
class SkellamLaw:
    """Bessel weights I_|x|(variance), from the ratios of neighbours."""

    variance: Fraction

    def weights(self, bits: int) -> Weights:
        """Run the ratios' recurrence down from far out, where 0 and 1 enclose them, and multiply.

        R(n) = I_n / I_(n-1) = 1 / (2n / variance + R(n + 1)) forgets where it began.
        """
        precision = bits + _GUARD
        one = 1 << precision
        reach = math.isqrt(math.ceil(2 * bits * self.variance)) + bits
        while True:
            low, high = self._ratios(2 * reach, precision)
            lower, upper = [one], [one]
            while upper[-1] >> _GUARD and len(lower) <= reach:
                lower.append(lower[-1] * low[len(lower)] >> precision)
                upper.append(ceil_div(upper[-1] * high[len(upper)], one))
            if not upper[-1] >> _GUARD:
                tail = ceil_div(upper[-1] * high[len(upper)], one - high[len(upper)])
                return _mirror(lower, upper, tail)
            reach *= 2

    def _ratios(self, last: int, precision: int) -> tuple[list[int], list[int]]:
        square = 1 << 2 * precision
        low_step = (2 * self.variance.denominator << precision) // self.variance.numerator
        high_step = low_step + 1
        low, high = [0] * (last + 1), [1 << precision] * (last + 1)
        for n in range(last - 1, 0, -1):
            low[n] = square // (n * high_step + high[n + 1])
            high[n] = ceil_div(square, n * low_step + low[n + 1])
        return low, high


@dataclass(frozen=True)
class CountLaw:
    """Binomial weights, outwards from the likeliest count."""

    trials: int
    p: Fraction

    def weights(self, bits: int) -> Weights:
        """Multiply by the ratio of neighbours, which falls as one goes outwards."""
        precision = bits + _GUARD
        odds = self.p / (1 - self.p)
        mode = math.floor((self.trials + 1) * self.p)
        up = self._side(mode, 1, odds, precision)
        down = self._side(mode, -1, 1 / odds, precision)
        first = mode + 1 - len(down[0])
        lower, upper = down[0][:0:-1] + up[0], down[1][:0:-1] + up[1]
        return Weights(first, lower, upper, down[2], up[2])

    def _side(
        self, mode: int, step: int, odds: Fraction, precision: int
    ) -> tuple[list[int], list[int], int]:
        """Enclose the weights from the mode to one side, and bound the rest of that side."""
        lower, upper = [1 << precision], [1 << precision]
        # `ahead` of the outcomes can still join the count (step 1) or leave it (step -1).
        ahead = self.trials - mode if step == 1 else mode
        behind = self.trials - ahead
        while upper[-1] >> _GUARD and ahead:
            top, bottom = ahead * odds.numerator, (behind + 1) * odds.denominator
            lower.append(lower[-1] * top // bottom)
            upper.append(ceil_div(upper[-1] * top, bottom))
            ahead, behind = ahead - 1, behind + 1
        top, bottom = ahead * odds.numerator, (behind + 1) * odds.denominator
        return lower, upper, ceil_div(upper[-1] * top, bottom - top)
