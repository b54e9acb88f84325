"""The verdict: who is protected against whom, how strongly, and at which accuracy, in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from confide.report import digits
from confide.report.markup import Html, el, join
from confide.report.record import RunRecord
from confide.statements import Cell

STRENGTHS = ((1.0, "strongly"), (3.0, "moderately"), (10.0, "weakly"), (inf, "only on paper"))
ENOUGH = 10.0
"""Above this nothing is said to be protected."""

SCALE = (
    "“Strongly” is said of an epsilon of at most 1, “moderately” of at most 3, “weakly” of at most "
    "10, “only on paper” of anything above."
)
OBSERVERS = {
    "world": (
        "Everyone who sees the model",
        "and whatever else is published, but not who took part",
    ),
    "server": ("The server", "which knows who takes part and sees what the clients send it"),
    "device": ("Someone inside a client", "who sees the gradient of every example"),
}
AGAINST = {
    "world": "everyone who sees the released model",
    "server": "the server",
    "device": "someone inside a client",
}
UNITS = {"client": "one whole client", "record": "one single record"}
GUESSED = {
    ("add-remove", "client"): "whether a given client took part at all",
    ("add-remove", "record"): "whether a given record was there at all",
    ("zero-out", "client"): "whether a given client took part with data or with nothing",
    ("zero-out", "record"): "whether a given record was used or blanked",
    ("replace-one", "client"): "which of two data sets a client had",
    ("replace-one", "record"): "which of two records was used",
}


def strength(epsilon: float) -> str:
    """How strongly an epsilon protects."""
    return next(word for most, word in STRENGTHS if epsilon <= most)


def mark(epsilon: float) -> str:
    """The style of an epsilon: does it protect?"""
    return "proved" if epsilon <= ENOUGH else "open"


def worst(run: RunRecord, unit: str, observer: str, of: str = "update") -> Cell | None:
    """The row, and of several groups of clients the one that is protected least."""
    found = [c for c in run.cells if (c.unit, c.observer, c.of) == (unit, observer, of)]
    return max(found, key=lambda c: c.epsilon) if found else None


def protects(cell: Cell | None) -> bool:
    """Whether the row promises something."""
    return cell is not None and cell.status == "proved" and cell.epsilon <= ENOUGH


def lead(run: RunRecord) -> list[str]:
    """The sentences at the top of a page."""
    return [*(against(run, view) for view in ("world", "server")), side_releases(run), score(run)]


def against(run: RunRecord, view: str) -> str:
    """What is protected against one observer."""
    cells = [cell for unit in UNITS if (cell := worst(run, unit, view)) is not None]
    good = [cell for cell in cells if protects(cell)]
    if good:
        told = " and ".join(
            f"{UNITS[c.unit]} is protected {strength(c.epsilon)} ({digits.epsilon_is(c.epsilon)})"
            for c in good
        )
        bad = [f"one {c.unit} is not" for c in cells if c not in good]
        return f"Against {AGAINST[view]}, {'; '.join([told, *bad])}."
    proved = [c for c in cells if c.status == "proved"]
    if proved:
        least = min(proved, key=lambda c: c.epsilon)
        return (
            f"Against {AGAINST[view]}, nothing is protected in practice: the smallest epsilon "
            f"proved, for one {least.unit}{' of the least protected group' if least.group else ''}"
            f", is {digits.epsilon(least.epsilon)}."
        )
    reasons = "; ".join(dict.fromkeys(c.reason for c in cells))
    return f"Against {AGAINST[view]}, nothing is protected{': ' + reasons if reasons else ''}."


def side_releases(run: RunRecord) -> str:
    """What leaves beside the update, which the sentences before do not count."""
    told: list[str] = []
    for name in dict.fromkeys(c.of for c in run.cells if c.of != "update"):
        rows = [worst(run, unit, view, name) for view in ("world", "server") for unit in UNITS]
        bad = [
            f"one {c.unit} is not protected against {AGAINST[c.observer]}"
            for c in rows
            if c is not None and not protects(c)
        ]
        what = "; ".join(bad) or "see its rows in the table"
        told.append(f"Not counted here is “{name}”, released beside the model: {what}.")
    return " ".join(told)


def score(run: RunRecord) -> str:
    """What the model is worth."""
    if run.accuracy is None:
        return f"The model has no {run.metric}: the run diverged or was not evaluated."
    value = digits.metric(run.accuracy, run.metric)
    held = "of held-out examples right" if run.metric == "accuracy" else "mean absolute error"
    return (
        f"The model gets {value} {held}."
        if run.metric == "accuracy"
        else (f"The model has a {held} of {value} on held-out examples.")
    )


def verdict(run: RunRecord) -> Html:
    """The sentences, then a card for each observer."""
    first, *others = [line for line in lead(run) if line]
    stop = None if run.stopped is None else f"The run ended early: {run.stopped.rstrip('.')}."
    return join(
        el("p", first, class_="lead"),
        el("p", " ".join(others), class_="lead second"),
        el("p", stop, class_="notice") if stop else None,
        el("div", (card(run, view) for view in OBSERVERS), class_="cards"),
    )


def card(run: RunRecord, view: str) -> Html:
    """What one observer can learn about a client and about a record."""
    title, what = OBSERVERS[view]
    cells = [c for unit in UNITS if (c := worst(run, unit, view)) is not None]
    return el(
        "article",
        el("h3", title),
        el("p", what, class_="quiet"),
        [finding(cell) for cell in cells] or el("p", "The statement has no row for this observer."),
        class_="card",
    )


def finding(cell: Cell) -> Html:
    """One unit on the card."""
    name = UNITS[cell.unit].capitalize() if cell.unit in UNITS else f"One {cell.unit}"
    if cell.status != "proved":
        return el(
            "section",
            el("h4", el("span", name), el("b", digits.epsilon_is(inf), class_="open")),
            el("p", f"Not protected: {cell.reason}."),
            class_="finding",
        )
    return el(
        "section",
        el(
            "h4",
            el("span", name),
            el("b", digits.epsilon_is(cell.epsilon), class_=mark(cell.epsilon)),
        ),
        meter(cell),
        el("p", guess(cell)),
        class_="finding",
    )


def guess(cell: Cell) -> str:
    """Epsilon as the success of the best guess."""
    share = digits.best_guess(cell.epsilon, cell.delta)
    what = GUESSED.get((cell.relation, cell.unit), f"which of two neighbouring {cell.unit}s it was")
    if share > 0.9999:
        return f"A guess {what} may be as good as certain: this bound promises nothing in practice."
    return (
        f"A guess {what} is right at most {digits.percent_up(share)} of the time; "
        f"a coin is right 50 %. ({digits.delta_is(cell.delta)})"
    )


def meter(cell: Cell) -> Html:
    """From a coin, empty, to certainty, full."""
    share = 200 * (digits.best_guess(cell.epsilon, cell.delta) - 0.5)
    bar = el("i", style=f"width:{share:.1f}%")
    return el("span", bar, class_="meter", aria_hidden="true")


def outside(runs: Sequence[RunRecord]) -> list[str]:
    """What no row of any statement covers."""
    lines = [
        "Settings chosen by looking at several runs, or at held-out accuracy: a search over them "
        "is a release of its own.",
        "Held-out accuracy and loss, here and in the charts, when the held-out examples are "
        "somebody's data.",
    ]
    if any(run.private for run in runs):
        lines += [
            "Running times and how many rounds a client took part in, which follow the secret "
            "draws of the clients.",
            "The picture of what the clients hold: it is counted from their own data, without "
            "noise.",
        ]
    if any(run.seeded for run in runs):
        lines.insert(
            0,
            "Whoever knows the seed: this was a simulation, whose seed repeats all of its noise "
            "and so undoes it. The seed is in the run's private directory and not in this file.",
        )
    return lines
