"""The verdict: who is protected against whom, how strongly, and at which accuracy, in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from confide.cells import Cell
from confide.report import digits
from confide.report.markup import Html, el, join
from confide.report.record import RunRecord

STRENGTHS = (
    (1.0, "is protected strongly"),
    (3.0, "is protected moderately"),
    (10.0, "is protected weakly"),
    (inf, "has no meaningful protection"),
)
ENOUGH = 10.0
"""Above this nothing is said to be protected."""

SCALE = (
    "“Strongly” is said of an epsilon of at most 1, “moderately” of at most 3, “weakly” of at most "
    "10; above that there is “no meaningful protection”."
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
JUDGED = ("world", "server")
"""The observers of whom the first sentences speak."""

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
    return next(words for most, words in STRENGTHS if epsilon <= most)


def mark(epsilon: float) -> str:
    """The style of an epsilon: does it protect?"""
    return "proved" if epsilon <= ENOUGH else "open"


def worst(run: RunRecord, unit: str, observer: str, of: str = "update") -> Cell | None:
    """The row, and of several groups of clients the one that is protected least."""
    found = [c for c in run.cells if (c.unit, c.observer, c.of) == (unit, observer, of)]
    return max(found, key=lambda c: c.epsilon) if found else None


def seen_by(run: RunRecord, view: str) -> list[Cell]:
    """The rows about one observer and the update, a client's first."""
    return [cell for unit in UNITS if (cell := worst(run, unit, view)) is not None]


def protects(cell: Cell | None) -> bool:
    """Whether the row promises something."""
    return cell is not None and cell.status == "proved" and cell.epsilon <= ENOUGH


def lead(run: RunRecord) -> list[str]:
    """The sentences at the top of a page."""
    cells = [cell for view in JUDGED for cell in seen_by(run, view)]
    if cells and all(cell.status != "proved" for cell in cells):
        told = [
            f"Nothing is protected, neither against {AGAINST['world']} nor against "
            f"{AGAINST['server']}: {reasons(cells)}."
        ]
    else:
        told = [against(run, view) for view in JUDGED]
    return [line for line in [*told, side_releases(run), score(run)] if line]


def reasons(cells: Sequence[Cell]) -> str:
    """Why there is no proof, each reason once."""
    return "; ".join(dict.fromkeys(cell.reason for cell in cells))


def against(run: RunRecord, view: str) -> str:
    """What is protected against one observer."""
    cells = seen_by(run, view)
    proved = [cell for cell in cells if cell.status == "proved"]
    if not proved:
        told = reasons(cells) or "the statement has no row about it"
        return f"Against {AGAINST[view]}, nothing is protected: {told}."
    if not any(map(protects, proved)):
        told = " and ".join(f"{digits.epsilon_is(c.epsilon)} for {named(c)}" for c in proved)
        return (
            f"Against {AGAINST[view]}, there is no meaningful protection: {told}, where a guess "
            "may be as good as certain."
        )
    strong_first = sorted(proved, key=lambda cell: not protects(cell))
    told = " and ".join(
        f"{named(c)} {strength(c.epsilon)} ({digits.epsilon_is(c.epsilon)})" for c in strong_first
    )
    bare = [f"{named(c)} is not protected" for c in cells if c not in proved]
    return f"Against {AGAINST[view]}, {'; '.join([told, *bare])}."


def named(cell: Cell) -> str:
    """The unit of a row."""
    least = " of the least protected group" if cell.group else ""
    return f"{UNITS.get(cell.unit, f'one {cell.unit}')}{least}"


def side_releases(run: RunRecord) -> str:
    """What leaves beside the update, which the sentences before do not count."""
    told: list[str] = []
    for name in dict.fromkeys(c.of for c in run.cells if c.of != "update"):
        rows = [worst(run, unit, view, name) for view in JUDGED for unit in UNITS]
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
    last = run.last
    if last is None or last.accuracy is None:
        return f"The {run.metric} of the model is not known: it was not evaluated."
    value = digits.metric(last.accuracy, run.metric)
    held = (
        f"{value} of held-out examples right"
        if run.metric == "accuracy"
        else f"a mean absolute error of {value} on held-out examples"
    )
    has = "gets" if run.metric == "accuracy" else "has"
    if run.failed is not None:
        return f"After {digits.counted(last.round, 'round')} it had {held}."
    late = (
        f" after round {last.round}, when it was last evaluated" if last.round < run.rounds else ""
    )
    return f"The model {has} {held}{late}."


def ending(run: RunRecord) -> str | None:
    """Why the run did not make all of its rounds."""
    if run.failed is not None:
        return (
            f"The run failed and left no model: {run.failed.rstrip('.')}. The statement covers all "
            "that was spent."
        )
    return None if run.stopped is None else f"The run ended early: {run.stopped.rstrip('.')}."


def verdict(run: RunRecord) -> Html:
    """The sentences, then a card for each observer."""
    first, *others = lead(run)
    stop = ending(run)
    return join(
        el("p", stop, class_="notice") if stop and run.failed is not None else None,
        el("p", first, class_="lead"),
        el("p", " ".join(others), class_="lead second"),
        el("p", stop, class_="notice") if stop and run.failed is None else None,
        el("div", (card(run, view) for view in OBSERVERS), class_="cards"),
    )


def card(run: RunRecord, view: str) -> Html:
    """What one observer can learn about a client and about a record."""
    title, what = OBSERVERS[view]
    return el(
        "article",
        el("h3", title),
        el("p", what, class_="quiet"),
        [finding(cell) for cell in seen_by(run, view)]
        or el("p", "The statement has no row for this observer."),
        class_="card",
    )


def finding(cell: Cell) -> Html:
    """One unit on the card."""
    name = UNITS[cell.unit].capitalize()
    number = el("b", digits.epsilon_is(cell.epsilon), class_=mark(cell.epsilon))
    head = el("h4", el("span", name), number)
    if cell.status != "proved":
        return el("section", head, el("p", f"Not protected: {cell.reason}."), class_="finding")
    return el("section", head, meter(cell), el("p", guess(cell)), class_="finding")


def guess(cell: Cell) -> str:
    """Epsilon as the success of the best guess."""
    share = digits.best_guess(cell.epsilon, cell.delta)
    what = GUESSED.get((cell.relation, cell.unit), f"which of two neighbouring {cell.unit}s it was")
    if not protects(cell):
        return f"No meaningful protection: a guess {what} may be as good as certain."
    return (
        f"A guess {what} is right at most {digits.percent_up(share)} of the time; "
        f"a coin is right 50 %. ({digits.delta_is(cell.delta)})"
    )


def meter(cell: Cell) -> Html:
    """From a coin, empty, to certainty, full."""
    share = 200 * (digits.best_guess(cell.epsilon, cell.delta) - 0.5)
    bar = el("i", style=f"width:{share:.1f}%", class_=mark(cell.epsilon))
    return el("span", bar, class_="meter", aria_hidden="true")


def outside(runs: Sequence[RunRecord]) -> list[str]:
    """What no row of any statement covers."""
    lines = [
        "Whoever knows the seed: this was a simulation, whose seed repeats all of its noise and so "
        "undoes it. The seed is in the run's private directory and not in this file; a small one "
        "can be guessed.",
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
    return lines
