"""A finished run as a notebook shows it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from confide.report.markup import Html, el, table

if TYPE_CHECKING:
    from confide.engine.running import Run


def card(run: Run) -> Html:
    """One sentence, and the rows of the statement."""
    rows = (
        (
            cell.unit,
            cell.observer,
            cell.of,
            "none is proved" if cell.epsilon == inf else f"{cell.epsilon:.4g}",
            f"{cell.delta:.2g}",
            cell.reason or "; ".join(cell.assumptions),
        )
        for cell in run.statement.cells
    )
    head = ("unit", "observer", "of", "ε", "δ", "reason or assumptions")
    return el("div", el("p", str(run)), table(head, rows, name="what is proved", numbers=(3, 4)))
