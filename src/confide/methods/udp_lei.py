"""UDP with noise that falls linearly from round to round, which the paper calls Lei's approach.

Wei, Li, Ding, Ma, Su, Zhang, Poor: User-Level Privacy-Preserving Federated Learning: Analysis and
Performance Optimization, 2022. docs/papers/udp-crd.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.engine.rounds import Past, Round, Sizes
from confide.local import between
from confide.methods.udp import UDP, check, eq_10, exact, noised_loss, one_round, raw_loss, share


@dataclass(frozen=True)
class UDPLei(UDP):
    """As compared with ("Lei's approach"): noise falls linearly until the budget is spent.

    first and last: the noise of round 0 and of round T - 1 and later, in units of that of T equal
    rounds.
    """

    first: float = 2.0
    last: float = 0.5
    name: ClassVar = "udp-lei"

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check_line(self)

    def round(self, past: Past) -> Round | None:
        """The next round, unless it would spend more than eq. (10) does in T."""
        q = share(self, past.public)
        if past.t >= len(falling(self.first, self.last, self.T)):
            return None

        def sigma(epsilon: float, delta: float) -> float:
            factor = falling(self.first, self.last, self.T)[past.t]
            return factor * eq_10(q, self.T, epsilon, delta)

        return one_round(self, past, sigma, raw_loss())


@dataclass(frozen=True)
class UDPLeiC(UDP):
    """Corrected: the same falling noise against the exact budget, and noised, cut test losses."""

    first: float = 2.0
    last: float = 0.5
    V_max: float = 4.0
    n_test: int = 200
    name: ClassVar = "udp-lei-c"

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check_line(self)

    def round(self, past: Past) -> Round | None:
        """The next round, unless it would spend more than T equal ones."""
        factors = falling(self.first, self.last, self.T)
        if past.t >= len(factors):
            return None

        def sigma(epsilon: float, delta: float) -> float:
            return factors[past.t] * exact(self.T, epsilon, delta)

        return one_round(
            self, past, sigma, noised_loss(self, self.V_max, self.n_test, len(factors))
        )

    def published(self, sizes: Sizes) -> None:
        """The paper says nothing about this noise."""


def falling(first: float, last: float, T: int) -> list[float]:
    """The factors on the noise of T equal rounds, as long as they spend no more than those do."""
    factors: list[float] = []
    left = float(T)
    while True:
        factor = first + (last - first) * min(1.0, len(factors) / max(1, T - 1))
        left -= 1 / factor**2
        if left < 0:
            return factors
        factors.append(factor)


def check_line(m: UDPLei | UDPLeiC) -> None:
    """A line that falls, and ends where the budget does."""
    check(m)
    between(m, "first", 0, above=True)
    between(m, "last", 0, min(1.0, m.first), above=True)
