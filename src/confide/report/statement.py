"""The statement as a table: reasons, assumptions, and the published claim beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confide.cells import Cell
from confide.report import digits
from confide.report.markup import Html, Inside, el, join, table
from confide.report.record import RunRecord
from confide.report.verdict import OBSERVERS, SCALE, mark

MOST_GROUPS = 100
ACCOUNTANTS = {
    "gdp": "gdp (exact)",
    "pld": "pld (numerical, rounded up)",
    "rdp": "rdp (a bound)",
    "none": "",
}
HEAD = ("What", "Seen by", "ε", "δ", "Relation", "Sampling", "Accountant", "Rounds", "Rests on")


def statement(run: RunRecord) -> Html:
    """The whole section for one run."""
    notes = numbered(run.cells)
    return join(
        table(
            HEAD,
            [row(cell, notes) for cell in least(run.cells)],
            name=f"Statement of {run.method}",
            numbers=(2, 3, 7),
        ),
        groups(run.cells),
        assumptions(notes),
        el("p", SCALE, class_="quiet"),
        sentences(run),
        published(run.published),
    )


def order(cell: Cell) -> tuple[int, int, str]:
    """World first, clients first, the update before what leaves beside it."""
    views = list(OBSERVERS)
    return (
        views.index(cell.observer),
        cell.unit != "client",
        "" if cell.of == "update" else cell.of,
    )


def least(cells: Sequence[Cell]) -> list[Cell]:
    """The rows in order; of several groups of clients the one that is protected least."""
    kept: dict[tuple[str, str, str], Cell] = {}
    for cell in cells:
        key = (cell.unit, cell.observer, cell.of)
        if key not in kept or cell.epsilon > kept[key].epsilon:
            kept[key] = cell
    return sorted(kept.values(), key=order)


def groups(cells: Sequence[Cell]) -> Html | None:
    """What each group of clients has, when clients differ: a row for each, a column for a view."""
    names = list(dict.fromkeys(cell.group for cell in cells if cell.group))
    if not names:
        return None
    views = least([cell for cell in cells if cell.observer != "device"])
    found = {(c.group, c.unit, c.observer, c.of): c.epsilon for c in cells}

    def number(name: str, view: Cell) -> Inside:
        value = found.get((name, view.unit, view.observer, view.of))
        return None if value is None else el("b", digits.epsilon(value), class_=mark(value))

    more = len(names) - MOST_GROUPS
    note = "Clients differ: each row above speaks of the group that is protected least."
    every = el(
        "details",
        el("summary", f"Each of {digits.counted(len(names), 'group')} of clients"),
        table(
            ["Clients", *(f"ε {thing(view)} → {view.observer}" for view in views)],
            [[name, *(number(name, view) for view in views)] for name in names[:MOST_GROUPS]],
            name="Groups of clients",
            numbers=range(1, len(views) + 1),
        ),
        el("p", f"statement.json has {more} more.", class_="quiet") if more > 0 else None,
    )
    return join(el("p", note, class_="quiet under"), every)


def thing(cell: Cell) -> str:
    """The unit, and what it is looked at through when that is not the update."""
    return cell.unit if cell.of == "update" else f"{cell.unit} (“{cell.of}”)"


def row(cell: Cell, notes: dict[str, int]) -> list[Inside]:
    """One row of the table."""
    proved = cell.status == "proved"
    what = f"one {thing(cell)}"
    number = el("b", digits.epsilon(cell.epsilon), class_=mark(cell.epsilon))
    if not proved:
        why = el("td", f"Not protected: {cell.reason}.", colspan="6", class_="why")
        return [what, cell.observer, number, why]
    return [
        what,
        cell.observer,
        number,
        el("span", digits.probability(cell.delta), class_="together"),
        el("span", cell.relation, class_="together"),
        cell.sampler or "none",
        ACCOUNTANTS.get(cell.accountant, cell.accountant),
        digits.plain(cell.participations),
        ", ".join(letter(notes[a]) for a in cell.assumptions) or "nothing",
    ]


def numbered(cells: Sequence[Cell]) -> dict[str, int]:
    """Each assumption once, with its number."""
    used = dict.fromkeys(a for c in sorted(cells, key=order) for a in c.assumptions)
    return {text: at for at, text in enumerate(used)}


def letter(at: int) -> str:
    """a, b, … z, aa, ab, …"""
    first = "" if at < 26 else letter(at // 26 - 1)
    return first + chr(ord("a") + at % 26)


def assumptions(notes: dict[str, int]) -> Html | None:
    """What must be true for the rows that name it."""
    if not notes:
        return None
    lines = (
        el("li", el("b", f"{letter(at)}  ", class_="tag"), f"{text}.") for text, at in notes.items()
    )
    heading = el("h4", "What the proofs rest on")
    lost = el("p", "A row is void where one of its assumptions is not true.", class_="quiet")
    return el("div", heading, lost, el("ul", lines, class_="tags"), class_="notes")


def sentences(run: RunRecord) -> Html | None:
    """The statement in full sentences."""
    if not run.words:
        return None
    inside = (el("p", line) for line in run.words)
    return el("details", el("summary", "The statement in full sentences"), inside)


def published(claim: Any) -> Html:
    """The paper's own number, kept apart."""
    if claim is None:
        said = "No number is published for this method with these settings."
        return el("aside", el("h4", "What the paper prints"), el("p", said), class_="published")
    value = claim.get("epsilon", "")
    number = (
        digits.epsilon_is(float(value))
        if isinstance(value, int | float)
        else digits.is_("ε", str(value))
    )
    delta = claim.get("delta")
    at = f" at {digits.delta_is(delta)}" if isinstance(delta, float) else ""
    return el(
        "aside",
        el("h4", "What the paper prints"),
        el("p", el("b", number), f"{at} for one {claim.get('unit', '')}"),
        el("p", f"{claim.get('source', '')}. Computed as printed there, not proved here."),
        el("p", str(claim["note"])) if claim.get("note") else None,
        class_="published",
    )
