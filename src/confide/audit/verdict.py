"""What the findings about one method come to, and what they would have caught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from scipy.special import ndtr

from confide.accounting import gdp
from confide.audit.bounds import Counts, gaussian, refutes
from confide.audit.mechanism import LIKELY, SURE, Finding


@dataclass(frozen=True)
class Release:
    """One release of the round: the strongest thing that was found about it."""

    name: str
    unit: str
    observer: str
    claimed: float
    reason: str  # why nothing is claimed, if so
    strongest: Finding | None
    draws: int
    tests: int

    @property
    def verdict(self) -> str:
        """`fail` at level 0.001, `warn` at 0.05, for all tests of the audit together."""
        refuted = 1.0 if self.strongest is None else self.strongest.refuted
        return "fail" if refuted <= SURE else "warn" if refuted <= LIKELY else "pass"

    def words(self) -> str:
        """One sentence."""
        found = self.strongest
        bound = 0.0 if found is None else found.lower_bound
        by = "" if found is None else f" by {found.via} on the canary `{found.canary}`"
        if self.claimed == inf:
            if bound > 0:
                return f"nothing is claimed, and it leaks: epsilon is at least {bound:.3g}{by}"
            return f"nothing is claimed ({self.reason}); no leak was found"
        said = f"claimed {self.claimed:.4g}, at least {bound:.3g}"
        if self.verdict == "pass":
            return f"{said}; {self.power()}"
        level = "0.1 %" if self.verdict == "fail" else "5 %"
        return f"{said}: the claim is refuted at level {level}{by}"

    def power(self) -> str:
        """How much less noise would have been caught, had the release been Gaussian."""
        share = caught(self.claimed, 1e-5, self.draws // 2, self.tests)
        if share is None:
            return "too few draws to catch half of the noise missing"
        return f"would have caught {share:.0%} of the noise missing"

    def row(self) -> dict[str, Any]:
        """For JSON."""
        found = self.strongest
        return {
            "release": self.name,
            "unit": self.unit,
            "observer": self.observer,
            "claimed": "inf" if self.claimed == inf else self.claimed,
            "lower_bound": 0.0 if found is None else found.lower_bound,
            "if_gaussian": 0.0 if found is None else min(found.if_gaussian, 1e6),
            "via": "" if found is None else f"{found.canary}: {found.via}",
            "draws": self.draws,
            "verdict": self.verdict,
            "words": self.words(),
        }


def strongest(findings: Sequence[Finding]) -> Finding | None:
    """The one that refutes most, then the one with the largest valid bound."""
    return min(findings, key=lambda f: (f.refuted, -f.lower_bound, -f.if_gaussian), default=None)


def caught(epsilon: float, delta: float, draws: int, tests: int) -> float | None:
    """The least share of the noise whose absence is refuted at level 0.001, by expected counts."""
    if not 0 < epsilon < inf:
        return None
    mu = gdp.mu(epsilon, delta)
    curve = gaussian(mu)
    for percent in (5, 10, 15, 20, 25, 30, 40, 50):
        real = mu / (1 - percent / 100)
        for threshold in (real / 2, real / 2 + 1, real / 2 - 1):
            counts = Counts(
                round(draws * float(ndtr(-threshold))), draws,
                round(draws * float(ndtr(threshold - real))), draws,
            )  # fmt: skip
            if refutes(counts, curve, SURE / tests):
                return percent / 100
    return None
