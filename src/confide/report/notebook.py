"""A finished run in a notebook: its scores, and its statement with every reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide.report import digits
from confide.report.markup import Html, el, join, pairs, table
from confide.statements import Cell

if TYPE_CHECKING:
    from confide.engine.running import Run


def card(run: Run) -> Html:
    """What a person wants to know at once."""
    score = "accuracy" if run.accuracy is not None else "loss"
    told = digits.metric(run.loss if run.accuracy is None else run.accuracy, score)
    head = ("what", "seen by", "ε", "δ", "")
    rows = [row(cell) for cell in run.statement.cells]
    return join(
        el("p", el("strong", type(run.method).__name__), f" on {run.data}, {run.model}"),
        pairs([
            (score, told),
            ("rounds", digits.plain(run.rounds)),
            ("clients", digits.plain(run.clients)),
            ("time", digits.duration(run.seconds)),
        ]),
        table(head, rows, name="Statement", numbers=(2, 3)),
        el("p", run.stopped) if run.stopped else None,
    )  # fmt: skip


def row(cell: Cell) -> tuple[str, ...]:
    """A row of the statement; what is not proved says why."""
    what = cell.unit if cell.of == "update" else f"{cell.unit}, {cell.of}"
    epsilon, delta = digits.epsilon(cell.epsilon), digits.probability(cell.delta)
    return what, cell.observer, epsilon, delta, cell.reason or "proved"
