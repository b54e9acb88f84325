"""Several runs side by side: one table, and what must be said before the rows are compared."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from confide.report import digits
from confide.report.markup import Html, Inside, el, join, table
from confide.report.naming import Series
from confide.report.record import RunRecord
from confide.report.verdict import AGAINST, ENOUGH, UNITS, mark, worst

VIEWS = (("client", "world"), ("record", "world"), ("client", "server"), ("record", "server"))

DRAWN = 50.0
"""A larger epsilon promises nothing, and a chart that showed it would flatten all others."""


def headline(runs: Sequence[RunRecord]) -> tuple[str, str]:
    """The view in which most runs prove something; the client's to the world when in doubt."""

    def proved(view: tuple[str, str]) -> int:
        return sum(isfinite(epsilon(run, view)) and epsilon(run, view) <= DRAWN for run in runs)

    return max(VIEWS, key=proved)


def epsilon(run: RunRecord, view: tuple[str, str]) -> float:
    """The proved epsilon of a view; infinite where there is none."""
    cell = worst(run, *view)
    return float("inf") if cell is None else cell.epsilon


def view_words(view: tuple[str, str]) -> str:
    """A view as a phrase."""
    return f"{UNITS[view[0]]} against {AGAINST[view[1]]}"


def sentences(groups: Sequence[Series]) -> list[str]:
    """The verdict over several runs: who protects what, at which price, and who nothing."""
    open_ones = list(groups)
    lines: list[str] = []
    for view in VIEWS:
        able = [g for g in groups if most(g, view) <= ENOUGH]
        if view == ("record", "world"):
            able = [g for g in able if most(g, VIEWS[0]) > ENOUGH]
        if able:
            open_ones = [g for g in open_ones if g not in able]
            told = listed(
                [f"{g.name} ({digits.epsilon_is(most(g, view))}, {scores(g)})" for g in able]
            )
            lines.append(f"{told} protect{s_of(able)} {view_words(view)}.")
    if not any(most(g, view) <= ENOUGH for g in groups for view in VIEWS if view[1] == "server"):
        lines.append("Against the server, nothing is protected by any of them.")
    if open_ones:
        lines.append(f"{listed([g.name for g in open_ones])} protect{s_of(open_ones)} nobody.")
    return lines


def s_of(groups: Sequence[Series]) -> str:
    """The ending of a verb."""
    return "s" if len(groups) == 1 else ""


def scores(group: Series) -> str:
    """The accuracy of runs of one name, from the worst to the best."""
    known = sorted(run.accuracy for run in group.runs if run.accuracy is not None)
    if not known:
        return "not evaluated"
    low, high = (digits.metric(v, group.runs[0].metric) for v in (known[0], known[-1]))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def most(group: Series, view: tuple[str, str]) -> float:
    """The largest epsilon of the runs of one name."""
    return max(epsilon(run, view) for run in group.runs)


def listed(names: Sequence[str]) -> str:
    """a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def unequal(runs: Sequence[RunRecord]) -> list[str]:
    """Everything that makes the rows unfit to be compared."""
    lines: list[str] = []
    for name, what in (
        ("data", "different data"),
        ("metric", "different metrics"),
        ("clients", "different numbers of clients"),
        ("partition", "different partitions"),
        ("model", "different models"),
        ("rounds", "different numbers of rounds"),
    ):
        if len({getattr(run, name) for run in runs}) > 1:
            lines.append(what)
    view = headline(runs)
    cells = [c for run in runs if (c := worst(run, *view)) is not None and c.status == "proved"]
    for name in ("delta", "relation"):
        if len({getattr(cell, name) for cell in cells}) > 1:
            lines.append(f"different {name}s for {view_words(view)}")
    return lines


def comparison(runs: Sequence[RunRecord], groups: Sequence[Series]) -> Html:
    """The table of runs, and a warning where it compares unlike things."""
    head = ("Run", "Accuracy" if runs[0].metric == "accuracy" else "Error")
    columns = [f"ε {unit} → {view}" for unit, view in VIEWS]
    apart = unequal(runs)
    return join(
        table(
            [*head, *columns, "Rounds", *(["Time"] if runs[0].private else [])],
            [line(run, at, group) for at, group in enumerate(groups) for run in group.runs],
            name="All runs side by side",
            numbers=range(1, 8),
        ),
        el("p", f"These runs are not alike: {listed(apart)}.", class_="notice") if apart else None,
    )


def line(run: RunRecord, at: int, group: Series) -> list[Inside]:
    """One run."""
    more = f" · {group.runs.index(run) + 1} of {len(group.runs)}" if len(group.runs) > 1 else ""
    return [
        join(el("i", class_=f"dot c{at % 7}"), group.name, el("span", more, class_="quiet")),
        digits.metric(run.accuracy, run.metric),
        *(bound(run, view) for view in VIEWS),
        digits.plain(run.rounds),
        *(
            [el("span", digits.duration(run.private.seconds), class_="together")]
            if run.private
            else []
        ),
    ]


def bound(run: RunRecord, view: tuple[str, str]) -> Html:
    """One proved epsilon."""
    value = epsilon(run, view)
    return el("b", digits.epsilon(value), class_=mark(value))
