"""A budget in place of a noise: the least noise at which a method's whole plan stays within it."""

from __future__ import annotations

import dataclasses
from math import inf
from typing import Any

from confide.accounting.account import Answer
from confide.accounting.calibration import Search
from confide.accounting.relations import Refused, Relation
from confide.cells import Cell
from confide.derive import Key as CellKey
from confide.engine.adapting import accounts, adapts
from confide.engine.rounds import Method, Sizes
from confide.engine.spending import Budget, Plan, spent, unrolled


def noise_field(method: Method) -> str | None:
    """The field that a method names as its noise multiplier."""
    return getattr(type(method), "noise_field", None)


def calibrated(method: Method, sizes: Sizes, budget: Budget, rounds: int | None) -> Method:
    """The method with the least noise that keeps all of its rounds within the budget."""
    field = noise_field(method)
    if field is None:
        raise Refused(
            f"budget: {type(method).__name__} names no noise to calibrate (noise_field), allowed "
            "is a method that does, or a noise of your own with a budget that ends the run."
        )

    def ask(scale: float) -> Answer:
        plan = unrolled(replaced(method, field, scale), sizes, rounds)
        cell = (filtered if adapts(method) else spent)(plan, sizes, budget.key, budget.delta)
        if cell.epsilon == inf and scale >= 1e6:
            raise Refused(
                f"budget: no noise gives a {budget.unit} a finite epsilon to the {budget.view}: "
                f"{cell.reason}."
            )
        return Answer(cell.epsilon, cell.delta, cell.accountant, None, Relation(cell.relation), ())

    search = Search(ask, budget.epsilon)
    search.bracket(float(getattr(method, field)) or 1.0)
    return replaced(method, field, search.refine().scale)


def filtered(plan: Plan, sizes: Sizes, key: CellKey, delta: float | None) -> Cell:
    """The row as the filters of a method that adapts will state it."""
    rows = [one.cell for one in accounts(plan, sizes, delta) if one.key == key]
    return max(rows, key=lambda cell: cell.epsilon)


def replaced(method: Method, field: str, value: Any) -> Method:
    """The same method with another value."""
    assert dataclasses.is_dataclass(method) and not isinstance(method, type)
    out = dataclasses.replace(method, **{field: value})
    assert isinstance(out, Method)
    return out
