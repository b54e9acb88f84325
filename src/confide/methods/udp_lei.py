"""UDP with noise that falls linearly from round to round, which the paper calls Lei's approach.

Wei, Li, Ding, Ma, Su, Zhang, Poor: User-Level Privacy-Preserving Federated Learning: Analysis and
Performance Optimization, 2022. docs/papers/udp-crd.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from confide.engine.rounds import Past, Round, Upload
from confide.methods.udp import UDP, column, eq_10, exact, noised_loss, one_round, share


@dataclass(frozen=True)
class UDPLei(UDP):
    """As compared with ("Lei's approach"): noise falls linearly until the budget is spent."""

    name: ClassVar = "udp-lei"
    first: float = 2.0
    last: float = 0.5

    def round(self, past: Past) -> Round | None:
        """The next round, unless it would spend more than eq. (10) does in T."""
        q = share(self, past)
        if not lei_fits(self, past.t):
            return None

        def sigma(e: float) -> float:
            return falling(self, past.t) * eq_10(q, self.T, self.delta, e)

        return one_round(self, past, column(self.epsilon, sigma), Upload((), length=1, data="test"))


@dataclass(frozen=True)
class UDPLeiC(UDP):
    """Corrected: the same falling noise against the exact budget."""

    first: float = 2.0
    last: float = 0.5
    V_max: float = 4.0
    n_test: int = 200
    name: ClassVar = "udp-lei-c"

    def round(self, past: Past) -> Round | None:
        """The next round, unless it would spend more than T equal ones."""
        if not lei_fits(self, past.t):
            return None

        def sigma(e: float) -> float:
            return falling(self, past.t) * sqrt(self.T) / exact(e, self.delta)

        loss = noised_loss(self, self.V_max, self.n_test, most_rounds(self))
        return one_round(self, past, column(self.epsilon, sigma), loss)


def falling(m: UDPLei | UDPLeiC, t: int) -> float:
    """The factor on the noise of T equal rounds: from `first` to `last` in T rounds."""
    return m.first + (m.last - m.first) * min(1.0, t / max(1, m.T - 1))


def lei_fits(m: UDPLei | UDPLeiC, t: int) -> bool:
    """Whether round t still fits what T rounds of equal noise spend."""
    return sum(1 / falling(m, i) ** 2 for i in range(t + 1)) <= m.T


def most_rounds(m: UDPLei | UDPLeiC) -> int:
    """How many rounds there are."""
    t = 0
    while lei_fits(m, t):
        t += 1
    return max(1, t)
