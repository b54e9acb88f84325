"""A run's books: what it planned, what its rounds cost every row, and what it has spent so far.

A method that adapts is held by a filter for every row; any other must do what it has planned.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from confide.accounting.relations import Refused
from confide.derive import Key as CellKey
from confide.engine import adapting, spending
from confide.engine.adapting import Account
from confide.engine.ending import RunFailed
from confide.engine.rounds import Method, Round, Sizes
from confide.engine.spending import Budget, Plan
from confide.ledger import Cap, Charge, Ledger
from confide.published.value import Published
from confide.statements import Statement, state


@dataclass(frozen=True, eq=False)
class Books:
    """What a run may spend, and what the ledger is told of it."""

    method: Method
    sizes: Sizes
    plan: Plan
    budget: Budget | None
    delta: float | None
    caps: dict[str, Cap]
    held: list[Account] | None  # the filters' rows, if the method adapts
    affordable: int | None  # rounds, where a budget ends the run

    @property
    def planned(self) -> int:
        """How many rounds the method plans."""
        return sum(count for _, count in self.plan)

    @property
    def rounds(self) -> int:
        """How many rounds there will be, as far as that is known."""
        return self.planned if self.affordable is None else min(self.planned, self.affordable)

    def check_end(self, t: int) -> None:
        """A method that ends before its plan does has chosen its end from what it has seen."""
        if self.held is None and t < self.rounds:
            raise RunFailed(
                f"round {t}: {type(self.method).__name__} ends before the {self.rounds} rounds "
                "that it planned; a method that chooses its end from what it has seen says "
                "adapts = True."
            )

    def check_planned(self, r: Round, t: int) -> None:
        """A round that was not planned for this moment needs filters."""
        if self.held is not None:
            return
        planned = spending.planned_at(self.plan, t)
        if planned is None or not adapting.as_planned(r, planned, self.sizes):
            raise RunFailed(
                f"round {t}: {type(self.method).__name__} gives away something else than it "
                "planned before anything was released; a method that chooses its noise, its rates "
                "or its end from what it has seen says adapts = True."
            )

    def charges(self, r: Round, t: int) -> tuple[Charge, ...]:
        """What the round costs every row."""
        if self.held is None:
            return spending.charges(r, self.sizes, self.caps)
        try:
            return adapting.charges(r, self.sizes, self.held)
        except Refused as why:
            raise RunFailed(f"round {t}: {why}.") from why

    def spent(self, ledger: Ledger, t: int) -> dict[str, float | str]:
        """Epsilon so far for the rows that people watch: those that are cheap, and the budget's."""
        watched = [("client", "world"), ("client", "server"), ("record", "server")]
        if self.budget is not None and self.budget.key[:2] not in watched:
            watched.append(self.budget.key[:2])
        out: dict[str, float | str] = {}
        for unit, observer in watched:
            try:
                epsilon = self.spent_of((unit, observer, "update"), ledger, t)
            except Refused:
                continue
            out[f"{unit}/{observer}"] = epsilon if isfinite(epsilon) else "inf"
        return out

    def spent_of(self, key: CellKey, ledger: Ledger, t: int) -> float:
        """Epsilon so far for one row, for the worst group of clients."""
        if self.held is not None:
            return max(adapting.spent(ledger, one, t) for one in self.held if one.key == key)
        done = spending.first_rounds(self.plan, t)
        return spending.spent(done, self.sizes, key, self.delta).epsilon

    def statement(self, done: int, claim: Published | None) -> Statement:
        """What the rounds that were made give away, or what the filters allowed them to."""
        key = "public seed"
        if self.held is not None:
            return adapting.state(self.held, self.plan, done, self.sizes, claim, key)
        made = spending.first_rounds(self.plan, done)
        return state(made, self.sizes, delta=self.delta, published=claim, key=key)


def opened(
    method: Method,
    sizes: Sizes,
    rounds: int | None,
    budget: Budget | None,
    calibrate: bool,
    delta: float | None,
) -> Books:
    """The books of a run that is about to begin; refused where not even one round fits."""
    plan = spending.check_planned(method, sizes, rounds)
    at = delta if budget is None else budget.delta
    held: list[Account] | None = None
    afford: int | None = None
    if adapting.adapts(method):
        own = None if calibrate else budget
        held = adapting.accounts(plan, sizes, at, own)
        fits = adapting.starts(plan, sizes, held, own)
    else:
        afford = None if budget is None else spending.affordable(plan, sizes, budget)
        fits = afford != 0
    if not fits and budget is not None:
        raise ValueError(
            f"budget: epsilon = {budget.epsilon:g}, and not even one round fits; allowed is more, "
            "or more noise."
        )
    total = sum(count for _, count in plan)
    caps = (
        spending.accounts(plan, sizes, budget, afford or total)
        if held is None
        else {one.name: one.cap for one in held}
    )
    return Books(method, sizes, plan, budget, at, caps, held, afford)
