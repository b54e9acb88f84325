"""Which charts a page has: one run in detail, or several runs against each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite

from confide.report import digits
from confide.report.compare import DRAWN, epsilon, headline, view_words
from confide.report.curves import Line, render_lines
from confide.report.holdings import render_labels
from confide.report.markup import Html, el, join
from confide.report.naming import Series
from confide.report.record import RunRecord
from confide.report.tradeoff import Mark, render_tradeoff


def figure(title: str, quiet: str, drawing: Html) -> Html:
    """A chart with its heading; the note says what is not in it."""
    head = el("figcaption", el("b", title), el("span", quiet, class_="quiet"))
    return el("figure", head, drawing)


def progress(groups: Sequence[Series], of: str) -> Html | None:
    """Accuracy or loss over the evaluated rounds."""
    one = len(groups) == 1 and len(groups[0].runs) == 1
    metric = groups[0].runs[0].metric if of == "accuracy" else of
    lines: list[Line] = []
    for at, group in enumerate(groups):
        for run in group.runs:
            known = [(p.round, v) for p in run.points if (v := getattr(p, of)) is not None]
            if known:
                x, y = zip(*known, strict=True)
                last = digits.metric(y[-1], metric) if of == "accuracy" else f"{y[-1]:.3g}"
                lines.append(Line(last if one else group.name, x, y, at))
    if not lines:
        return None
    title = {"accuracy": "Accuracy", "mean absolute error": "Mean absolute error"}.get(
        metric, "Loss"
    )
    says = "; ".join(f"{x.label}: {x.y[0]:.3g} at first, {x.y[-1]:.3g} at the end" for x in lines)
    drawn = render_lines(
        lines,
        name=of,
        says=f"{title} over rounds. {says}",
        share=metric == "accuracy",
        zero=of == "loss",
    )
    return figure(f"{title} over rounds", "on held-out examples", drawn)


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
    """What several runs have spent in the view that they share."""
    runs = [run for group in groups for run in group.runs]
    view = headline(runs)
    key = "/".join(view)
    lines: list[Line] = []
    for at, group in enumerate(groups):
        for run in group.runs:
            known = [(p.round, p.spent[key]) for p in run.points if p.spent.get(key, inf) <= DRAWN]
            if known:
                x, y = zip(*known, strict=True)
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
    """Which classes the clients hold; once where all runs share the partition."""
    drawn: list[Html] = []
    known: set[object] = set()
    for at, run in enumerate(runs):
        labels = None if run.private is None else run.private.labels
        if run.private is None or labels is None or (run.data, labels) in known:
            continue
        known.add((run.data, labels))
        part = f"{len(labels)} of" if len(labels) < run.clients else "all"
        some = f"{part} {run.clients} clients"
        says = f"Label distribution of {some} of {run.data}: {run.partition}"
        picture = render_labels(labels, run.private.class_names, name=f"labels{at}", says=says)
        note = (
            f"{some} of {run.data}, {run.partition}. Above: records of each client. Below: its "
            "classes, the fuller the larger their share."
        )
        drawn.append(figure("What the clients hold", note, picture))
    return join(drawn) if drawn else None
