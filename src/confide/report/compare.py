"""Several runs side by side: one table, and what must be said before the rows are compared."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from confide.report import digits
from confide.report.markup import Html, Inside, el, join, table
from confide.report.naming import VIEWS, Series, epsilon
from confide.report.record import RunRecord
from confide.report.seeds import spread
from confide.report.verdict import AGAINST, ENOUGH, UNITS, mark, worst

DRAWN = 50.0
"""A larger epsilon promises nothing, and a chart that showed it would flatten all others."""


def headline(runs: Sequence[RunRecord]) -> tuple[str, str]:
    """The view in which most runs are protected; the client's to the world when in doubt."""
    return max(VIEWS, key=lambda view: sum(epsilon(run, view) <= ENOUGH for run in runs))


def view_words(view: tuple[str, str]) -> str:
    """A view as a phrase."""
    return f"{UNITS[view[0]]} against {AGAINST[view[1]]}"


def sentences(groups: Sequence[Series]) -> list[str]:
    """The verdict over several runs: who protects what, at which price, and who nothing."""
    open_ones = list(groups)
    lines: list[str] = []
    joined: list[tuple[str, str]] = []
    for view in VIEWS:
        able = protecting(groups, view)
        if not able or view in joined:
            continue
        open_ones = [g for g in open_ones if g not in able]
        whom, twin = view_words(view), (view[0], "server")
        same = protecting(groups, twin) == able
        if view != twin and same and all(g.most(twin) == g.most(view) for g in able):
            joined.append(twin)
            whom += f", and also against {AGAINST['server']}"
        told = listed([f"{g.name} ({digits.epsilon_is(g.most(view))}, {scores(g)})" for g in able])
        lines.append(f"{told} protect{s_of(able)} {whom}.")
    if len(open_ones) < len(groups):
        lines += server(groups)
    paper = [g for g in open_ones if any(isfinite(g.most(view)) for view in VIEWS)]
    if paper:
        least = [f"{g.name} (ε at least {digits.epsilon(min(map(g.most, VIEWS)))})" for g in paper]
        lines.append(f"{listed(least)} give{s_of(paper)} no meaningful protection.")
    bare = [g for g in open_ones if g not in paper]
    if bare:
        lines.append(f"{listed([g.name for g in bare])} protect{s_of(bare)} nobody.")
    return lines


def protecting(groups: Sequence[Series], view: tuple[str, str]) -> list[Series]:
    """Those that promise something in a view; who protects clients from the world is named once."""
    able = [g for g in groups if g.most(view) <= ENOUGH]
    return [g for g in able if view != VIEWS[1] or g.most(VIEWS[0]) > ENOUGH]


def server(groups: Sequence[Series]) -> list[str]:
    """What none of them has against the server."""
    known = [g.most(view) for g in groups for view in VIEWS if view[1] == "server"]
    if min(known) <= ENOUGH:
        return []
    if any(map(isfinite, known)):
        return ["Against the server, none of them gives meaningful protection."]
    return [f"Against the server, nothing is protected{' by any of them' * (len(groups) > 1)}."]


def s_of(groups: Sequence[Series]) -> str:
    """The ending of a verb."""
    return "s" if len(groups) == 1 else ""


def scores(group: Series) -> str:
    """The accuracy, of several runs as their mean with its interval."""
    if group.scores:
        return spread(group.scores).words(group.runs[0].metric)
    return "not evaluated" if group.ended else "failed"


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


SCORES = {"accuracy": "Accuracy", "mean absolute error": "Mean absolute error"}


def comparison(groups: Sequence[Series]) -> Html:
    """The table of runs, a row for each name, and a warning where it compares unlike things."""
    runs = [run for group in groups for run in group.runs]
    metrics = {run.metric for run in runs}
    head = ("Run", SCORES[metrics.pop()] if len(metrics) == 1 else "Accuracy or error")
    columns = [f"ε {unit} → {view}" for unit, view in VIEWS]
    apart = unequal(runs)
    several = any(len(group.scores) > 1 for group in groups)
    note = (
        "± is half the width of the 95 % interval of the mean over runs that differ by their seed "
        "alone (Student's t); an epsilon is the largest of these runs."
    )
    return join(
        table(
            [*head, *columns, "Rounds", *(["Time"] if runs[0].private else [])],
            [line(at, group) for at, group in enumerate(groups)],
            name="All runs side by side",
            numbers=range(1, 8),
        ),
        el("p", note, class_="quiet under") if several else None,
        el("p", f"These runs are not alike: {listed(apart)}.", class_="notice") if apart else None,
    )


def line(at: int, group: Series) -> list[Inside]:
    """The runs of one name."""
    notes = [
        f"{len(group.runs)} runs" if len(group.runs) > 1 else "",
        how_many(group, [r for r in group.runs if r.failed is not None], "failed"),
        how_many(group, [r for r in group.ended if r.stopped is not None], "ended early"),
    ]
    told = ", ".join(note for note in notes if note)
    rounds = sorted({run.rounds for run in group.runs})
    times = [run.private.seconds for run in group.runs if run.private]
    return [
        join(
            el("i", class_=f"dot c{at % 7}"),
            group.name,
            el("span", f" · {told}", class_="quiet") if told else None,
        ),
        el("span", scores(group), class_="together"),
        *(bound(group, view) for view in VIEWS),
        " to ".join(digits.plain(n) for n in dict.fromkeys((rounds[0], rounds[-1]))),
        *([el("span", digits.duration(sum(times)), class_="together")] if times else []),
    ]


def how_many(group: Series, some: Sequence[RunRecord], what: str) -> str:
    """2 failed; the number is left out for a single run."""
    if not some:
        return ""
    return f"{len(some)} {what}" if len(group.runs) > 1 else what


def bound(group: Series, view: tuple[str, str]) -> Html:
    """One proved epsilon."""
    value = group.most(view)
    return el("b", digits.epsilon(value), class_=mark(value))
