"""The audit's section of a page: the verdict, every row, and two pictures."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any

from confide.report import digits
from confide.report.audited import Audited, Found, audited
from confide.report.bounded import render_bounds, render_curves
from confide.report.document import document, written
from confide.report.markup import Html, el, join, table

SAID = {
    "fail": "A claim is refuted.",
    "warn": "A claim is in doubt.",
    "pass": "No claim was refuted.",
}
MEANT = {
    "fail": (
        "A bound that holds whatever the mechanism is lies above the claim, but for a chance of "
        "0.1 % over all tests of the audit: the statement is wrong, or the code does not do what "
        "it speaks of."
    ),
    "warn": (
        "Either a valid bound refutes a claim at 5 % but not at 0.1 %, or an estimate's lower "
        "limit lies above it. Run it again with another seed and more time."
    ),
    "pass": (
        "This is no proof: each row says what it would have caught, and a row that could have "
        "caught little says little."
    ),
}
HEAD = (
    "What was attacked", "About one", "Seen by", "Claimed ε", "At least", "Estimated at least",
    "Verdict", "In words",
)  # fmt: skip


def write_audit(answer: Mapping[str, Any], out: Path) -> Path:
    """The page of one audit, about a method or about a run."""
    title = str(answer.get("method", "a method"))
    found = audited(answer, out)
    notes = join(el("p", note, class_="notice") for note in found.notes)
    body = el("section", audit_section(found), class_="part verdict")
    return written(document("Audit", title, notes, body), out)


def audit_section(found: Audited) -> Html:
    """All of it."""
    others = found.others
    faults = el("ul", (el("li", f"{fault}.") for fault in others)) if others else None
    style = mark(found.verdict)
    return join(
        el("p", el("b", SAID[found.verdict], class_=style), " ", MEANT[found.verdict]),
        el("div", el("h4", "What was found"), faults, class_="notes") if faults else None,
        table(HEAD, (cells(row) for row in found.rows), name="The audit", numbers=(3, 4, 5)),
        el(
            "p",
            "“At least” holds with 95 % for all tests together, whatever the mechanism is; the "
            "estimate's limit (99.9 %) holds only where scores are normal, and can only warn.",
            class_="quiet",
        ),
        gallery(found),
    )


def cells(row: Found) -> tuple[Html | str, ...]:
    """One row of the table."""
    what = join(row.release, el("span", row.layer, class_="quiet line"))
    told = row.words if row.verdict != "pass" else row.power or row.words
    return (
        what,
        row.unit,
        row.observer,
        digits.epsilon(row.claimed),
        at_least(row.lower_bound),
        "" if row.estimate is None else at_least(row.estimate),
        el("b", row.verdict, class_=mark(row.verdict)),
        el("td", told, class_="wide" if row.verdict == "pass" else "why", data_head=HEAD[-1]),
    )


def at_least(value: float) -> str:
    """Three digits; a lower bound needs no more."""
    return "∞" if value == inf else f"{value:.3g}"


def mark(verdict: str) -> str:
    """The style of a verdict."""
    return {"fail": "open", "warn": "doubt", "pass": "proved"}[verdict]


def gallery(found: Audited) -> Html | None:
    """The pictures that there is something to draw for."""
    drawn: list[Html] = []
    claimed = [row for row in found.rows if isfinite(row.claimed)]
    if claimed:
        drawn.append(
            figure(
                "What is known to leak, against what is claimed",
                "dot: a valid lower bound; ring: an estimate's lower limit; bar: the claim",
                render_bounds(claimed, name="audit-bounds"),
            )
        )
    for at, row in enumerate(found.curves):
        drawn.append(
            figure(
                f"Canaries told apart, as the {row.observer} sees them",
                "thin: as counted; bold: at the worse 95 % limits; dashed: what the claim allows",
                render_curves(row, name=f"audit-curve-{at}"),
            )
        )
    return el("div", drawn, class_="gallery under") if drawn else None


def figure(title: str, quiet: str, drawing: Html) -> Html:
    """A chart with its heading."""
    head = el("figcaption", el("b", title), el("span", quiet, class_="quiet"))
    return el("figure", head, drawing)
