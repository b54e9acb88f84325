"""What an audit of single releases cannot see: how they are added up, and who is drawn for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from confide.audit.mechanism import LIKELY, SURE
from confide.audit.recompute import Plan, Recomputed, recomputed
from confide.audit.sampling import Drawn, samplers
from confide.engine.rounds import Round, Sizes
from confide.randomness import Key
from confide.statements import Statement


@dataclass(frozen=True)
class Accounts:
    """The statement's rows computed once more, and the samplers that they rest on."""

    rows: tuple[Recomputed, ...]
    drawn: tuple[Drawn, ...]
    tests: int  # of the whole audit

    def of(self, one: Recomputed | Drawn) -> str:
        """The verdict on one of them."""
        if isinstance(one, Recomputed):
            return one.verdict
        if one.chance > LIKELY / self.tests:
            return "pass"
        return "fail" if one.chance <= SURE / self.tests else "warn"

    @property
    def verdict(self) -> str:
        """The worst of them."""
        told = {self.of(one) for one in (*self.rows, *self.drawn)}
        return next((word for word in ("fail", "warn") if word in told), "pass")

    @property
    def faults(self) -> tuple[str, ...]:
        """What is not as it says, in words."""
        return tuple(one.words() for one in (*self.rows, *self.drawn) if self.of(one) != "pass")

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "verdict": self.verdict,
            "rows": [
                {
                    "unit": one.cell.unit,
                    "observer": one.cell.observer,
                    "stated": one.cell.epsilon,
                    "at_least": one.least,
                    "verdict": one.verdict,
                    "words": one.words(),
                }
                for one in self.rows
            ],
            "drawn": [
                {"what": one.what, "chance": one.chance, "words": one.words()} for one in self.drawn
            ],
        }


def accounts(
    plan: Plan, sizes: Sizes, statement: Statement, rounds: Sequence[Round], key: Key, tests: int
) -> Accounts:
    """Every row of the statement, and every sampler of these rounds."""
    drawn = {one.what + one.says: one for r in rounds for one in samplers(r, sizes, key)}
    return Accounts(recomputed(plan, sizes, statement), tuple(drawn.values()), tests)
