"""A finished run in a notebook: its verdict, its scores, and its statement with every reason."""

from __future__ import annotations

from confide.cells import Cell
from confide.report import digits, verdict
from confide.report.markup import Html, el, join, pairs, table
from confide.report.record import RunRecord
from confide.report.statement import least, thing

HEAD = ("what", "seen by", "ε", "δ", "why")


def card(run: RunRecord, seconds: float) -> Html:
    """What a person wants to know at once; the page has the rest."""
    told = [
        (run.metric, digits.metric(run.accuracy, run.metric)),
        ("rounds", digits.plain(run.rounds)),
        ("clients", digits.plain(run.clients)),
        ("time", digits.duration(seconds)),
    ]
    return join(
        el("p", el("strong", run.method), f" on {run.data}, {run.model}"),
        el("p", " ".join(verdict.lead(run))),
        pairs(told),
        table(HEAD, [row(cell) for cell in least(run.cells)], name="Statement", numbers=(2, 3)),
        el("p", run.stopped) if run.stopped else None,
    )


def row(cell: Cell) -> tuple[str, ...]:
    """A row of the statement; what is not proved says why."""
    epsilon, delta = digits.epsilon(cell.epsilon), digits.probability(cell.delta)
    return thing(cell), cell.observer, epsilon, delta, cell.reason or "proved"
