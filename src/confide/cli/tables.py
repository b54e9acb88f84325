"""Tables on the terminal."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from confide.rounding import bound


def console() -> Console:
    """Wide enough for a statement when nobody looks, as wide as the window otherwise."""
    screen = Console()
    return screen if screen.is_terminal else Console(width=140)


def number(value: Any) -> str:
    """Six digits are enough to look at; JSON has them all."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def print_answer(answer: dict[str, Any]) -> None:
    """The guarantee, then everything it depends on."""
    screen = console()
    told, delta = bound(answer["epsilon"], 6), bound(answer["delta"], 6)
    screen.print(f"[bold]epsilon {told}[/bold] at delta {delta}", highlight=False)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in answer.items():
        if name in ("epsilon", "delta", "assumptions") or value is None:
            continue
        table.add_row(name, Text(number(value)))
    screen.print(table)
    for assumption in answer["assumptions"]:
        screen.print(Text(f"assumes {assumption}"))


def print_plan(answer: dict[str, Any]) -> None:
    """The stages with their claims, then the statement with its reasons."""
    screen = console()
    screen.print(Text(answer["method"], style="bold"))
    screen.print(rounds_table(answer["round"]))
    screen.print(statement_table(answer["statement"]))
    for text in notes(answer["statement"]):
        screen.print(Text(text))
    if answer["published"] is not None:
        claim = answer["published"]
        screen.print(
            Text(
                f"Published, not proved here: epsilon {number(claim['epsilon'])} "
                f"per {claim['unit']} ({claim['source']})."
            )
        )


def rounds_table(rows: list[dict[str, Any]]) -> Table:
    """One row for each stage."""
    table = Table("place", "vector", "stage", "what is proved after it", box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*(Text(str(row[name])) for name in ("place", "vector", "stage", "claim")))
    return table


def statement_table(cells: list[dict[str, Any]]) -> Table:
    """One row for each unit and observer."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("unit", "observer", "of", "epsilon", "delta", "relation", "sampling", "by"):
        table.add_column(name, justify="right" if name in ("epsilon", "delta") else "left")
    for cell in cells:
        proved = cell["status"] == "proved"
        shown = [cell[name] for name in ("unit", "observer", "of", "epsilon", "delta")]
        told = [cell["relation"], cell["sampler"], cell["accountant"]] if proved else ["", "", ""]
        if cell.get("group"):
            shown[0] = f"{shown[0]} ({cell['group']})"
        shown[3:] = [bound(value, 6) for value in shown[3:]]
        texts = [Text(number(value)) for value in (*shown, *told)]
        texts[3].stylize("bold green" if proved else "bold red")
        table.add_row(*texts)
    return table


def notes(cells: list[dict[str, Any]]) -> list[str]:
    """Why cells are infinite, and what the others assume; each text once."""
    lines: list[str] = []
    for cell in cells:
        if cell["status"] != "proved":
            lines.append(f"{cell['unit']} to {cell['observer']}: infinite, as {cell['reason']}.")
    assumed = dict.fromkeys(a for cell in cells for a in cell["assumptions"])
    return [*lines, *(f"Assumes {a}." for a in assumed)]
