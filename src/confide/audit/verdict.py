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
        """`fail` if a valid bound refutes the claim at level 0.001, for all tests together.

        `warn` if one does at 0.05, or if an estimate's lower 99.9 % limit lies above the claim.
        """
        found = self.strongest
        if found is None or (found.refuted > LIKELY and not found.doubted):
            return "pass"
        return "fail" if found.refuted <= SURE else "warn"

    def words(self) -> str:
        """One sentence."""
        found = self.strongest
        bound = 0.0 if found is None else found.lower_bound
        by = "" if found is None else f" by {found.via} on the canary `{found.canary}`"
        if self.claimed == inf:
            if bound > 0:
                return f"nothing is claimed, and it leaks: epsilon is at least {bound:.3g}{by}"
            return f"nothing is claimed ({self.reason}); no leak was found"
        estimate = 0.0 if found is None else found.estimate
        said = (
            f"claimed {self.claimed:.4g}, at least {bound:.3g} (valid, 95 %), "
            f"estimated at least {estimate:.3g} (99.9 %)"
        )
        if found is None or self.verdict == "pass":
            return f"{said}; {self.power()}"
        if found.refuted > LIKELY:
            return f"{said}: the estimate is above the claim{by}, which no valid bound refutes"
        level = "0.1 %" if self.verdict == "fail" else "5 %"
        return f"{said}: the claim is refuted at level {level}{by}"

    def power(self) -> str:
        """How much less noise would have been caught, had the release been Gaussian."""
        share = caught(self.claimed, 1e-5, self.draws // 2, self.tests)
        if share is None:
            return "too few draws to catch sigma off by half"
        return f"would have caught sigma off by {share * 100:.0f} % or more"

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
            "estimate": 0.0 if found is None else min(found.estimate, 1e6),
            "via": "" if found is None else f"{found.canary}: {found.via}",
            "draws": self.draws,
            "verdict": self.verdict,
            "power": self.power() if self.claimed < inf else "",
            "words": self.words(),
        }


def strongest(findings: Sequence[Finding]) -> Finding | None:
    """The one that says most."""
    return min(findings, key=lambda f: f.order, default=None)


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
