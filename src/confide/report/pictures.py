"""Which charts a page has: one run in detail, or several runs against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite

from confide.report import digits
from confide.report.compare import DRAWN, SCORES, headline, view_words
from confide.report.curves import Line, render_lines
from confide.report.holdings import render_labels
from confide.report.markup import Html, el, join
from confide.report.naming import VIEWS, Series, epsilon
from confide.report.record import Point, RunRecord
from confide.report.seeds import spread
from confide.report.tradeoff import Mark, render_tradeoff

WITHHELD = (
    "Not in this file, which may be given away: which classes the clients hold is counted from "
    "their own data, and no row of the statement covers it. The owner's copy of this report, in "
    "the run's private directory, has the picture."
)


def figure(title: str, quiet: str, drawing: Html) -> Html:
    """A chart with its heading; the note says what is not in it."""
    note = el("span", quiet, class_="quiet") if quiet else None
    head = el("figcaption", el("b", title), note)
    return el("figure", head, drawing)


def progress(groups: Sequence[Series], of: str) -> Html | None:
    """Accuracy or loss over the evaluated rounds."""
    metrics = {run.metric for group in groups for run in group.runs}
    if of == "accuracy" and len(metrics) > 1:
        return None
    metric = metrics.pop() if of == "accuracy" else of
    lines = curves(groups, lambda point: getattr(point, of))
    if not lines:
        return None
    title = SCORES.get(metric, "Loss")
    told = [line for line in lines if not line.faint]
    says = "; ".join(f"{x.label}: {x.y[0]:.3g} at first, {x.y[-1]:.3g} at the end" for x in told)
    if len(groups) == 1 and len(told) == 1:
        last = told[0].y[-1]
        value = digits.metric(last, metric) if of == "accuracy" else f"{last:.3g}"
        lines[lines.index(told[0])] = Line(value, told[0].x, told[0].y)
    drawn = render_lines(
        lines,
        name=of,
        says=f"{title} over rounds. {says}",
        share=metric == "accuracy",
        zero=metric != "accuracy",
    )
    mean = "; bold: the mean of several runs" if len(told) < len(lines) else ""
    return figure(f"{title} over rounds", f"on held-out examples{mean}", drawn)


def curves(groups: Sequence[Series], value: Callable[[Point], float | None]) -> list[Line]:
    """A line for each run; several of one name faintly, and their mean above them."""
    lines: list[Line] = []
    for at, group in enumerate(groups):
        known = [
            found
            for run in group.runs
            if (found := {p.round: v for p in run.points if (v := value(p)) is not None})
        ]
        for found in known:
            faint = len(known) > 1
            lines.append(Line(group.name, list(found), list(found.values()), at, faint))
        shared = sorted(set.intersection(*map(set, known))) if len(known) > 1 else []
        if shared:
            means = [spread([found[t] for found in known]).mean for t in shared]
            lines.append(Line(group.name, shared, means, at))
    return lines


def spent(run: RunRecord) -> Html | None:
    """What each view has cost after each evaluated round, against the budget."""
    views = list(dict.fromkeys(view for p in run.points for view in p.spent))
    lines: list[Line] = []
    endless: list[str] = []
    for view in views:
        known = [(p.round, p.spent[view]) for p in run.points if view in p.spent]
        finite = [(t, e) for t, e in known if isfinite(e)]
        if not finite or finite[-1][1] > DRAWN:
            endless.append(words_of(view))
        else:
            x, y = zip(*finite, strict=True)
            lines.append(Line(f"{words_of(view)} {digits.epsilon(y[-1])}", x, y, len(lines)))
    if not lines:
        return None
    limit = None
    if run.budget is not None:
        limit = (run.budget.epsilon, f"budget {run.budget.epsilon:g}")
    says = "Epsilon spent over rounds. " + "; ".join(line.label for line in lines)
    drawn = render_lines(lines, name="spent", says=says, zero=True, limit=limit)
    note = (
        f"infinite or above {DRAWN:g}, not drawn: {', '.join(endless)}"
        if endless
        else "each view by itself"
    )
    return figure("Epsilon spent over rounds", note, drawn)


def words_of(view: str) -> str:
    """`client/world` for a chart."""
    return view.replace("/", " → ")


def spent_by_all(groups: Sequence[Series]) -> Html | None:
    """What several runs have spent in the view that they share; the runs as they are, no means."""
    runs = [run for group in groups for run in group.runs]
    known = {tuple(key.split("/")) for run in runs for p in run.points for key in p.spent}
    first = headline(runs)
    view = next((v for v in (first, *VIEWS) if v in known), first)
    key = "/".join(view)
    lines: list[Line] = []
    for at, group in enumerate(groups):
        for run in group.runs:
            found = [(p.round, p.spent[key]) for p in run.points if p.spent.get(key, inf) <= DRAWN]
            if found:
                x, y = zip(*found, strict=True)
                lines.append(Line(group.name, x, y, at))
    if not lines:
        return None
    budgets = {b.epsilon for r in runs if (b := r.budget) and (b.unit, b.view) == view}
    limit = (level := budgets.pop(), f"budget {level:g}") if len(budgets) == 1 else None
    says = f"Epsilon spent over rounds by each run, for {view_words(view)}."
    drawn = render_lines(lines, name="spent", says=says, zero=True, limit=limit)
    return figure("Epsilon spent over rounds", f"for {view_words(view)}", drawn)


def tradeoff(groups: Sequence[Series]) -> Html | None:
    """Accuracy against proved epsilon, one point for each run."""
    runs = [run for group in groups for run in group.runs]
    if len({run.metric for run in runs}) > 1:
        return None
    view = headline(runs)
    marks = [
        Mark(group.name, e if (e := epsilon(run, view)) <= DRAWN else inf, run.accuracy, at)
        for at, group in enumerate(groups)
        for run in group.runs
        if run.accuracy is not None
    ]
    if not any(isfinite(mark.epsilon) for mark in marks):
        return None
    share = runs[0].metric == "accuracy"
    title = "Accuracy against proved epsilon" if share else "Error against proved epsilon"
    says = "; ".join(f"{m.label}: {m.score:.3g} at epsilon {m.epsilon:.3g}" for m in marks)
    drawn = render_tradeoff(
        marks,
        name="tradeoff",
        says=says,
        share=share,
        across="proved ε",
        beyond=f"above {DRAWN:g} or ∞",
    )
    return figure(title, f"for {view_words(view)}; further left is better", drawn)


def holdings(runs: Sequence[RunRecord]) -> Html | None:
    """Which classes the clients hold; once where all runs deal the data in the same way."""
    if not any(run.private for run in runs):
        return figure("What the clients hold", "", el("p", WITHHELD, class_="quiet"))
    drawn: list[Html] = []
    known: set[object] = set()
    for run in runs:
        labels = None if run.private is None else run.private.labels
        if run.private is None or labels is None or dealing(run) in known:
            continue
        known.add(dealing(run))
        part = f"{len(labels)} of" if len(labels) < run.clients else "all"
        some = f"{part} {digits.counted(run.clients, 'client')}"
        says = f"Label distribution of {some} of {run.data}: {run.partition}"
        named = f"labels{len(drawn)}"
        picture = render_labels(labels, run.private.class_names, name=named, says=says)
        pictured = {r.private.labels for r in runs if r.private and dealing(r) == dealing(run)}
        first = " Each seed deals anew; this is the first run." if len(pictured) > 1 else ""
        note = (
            f"{some} of {run.data}, {run.partition}. Above: records of each client. Below: its "
            f"classes, the fuller the larger their share.{first}"
        )
        drawn.append(figure("What the clients hold", note, picture))
    return join(drawn) if drawn else None


def dealing(run: RunRecord) -> tuple[str, str, int]:
    """How the data were dealt, but for the seed."""
    return run.data, run.partition, run.clients
