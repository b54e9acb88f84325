"""`confide methods`: every method, where it comes from, and its corrected sibling."""

from __future__ import annotations

import argparse
from typing import Any


def options(parser: argparse.ArgumentParser) -> None:
    """None of its own."""


def example() -> str:
    """One call that works."""
    return "confide methods"


def run(given: argparse.Namespace) -> dict[str, Any]:
    """The list."""
    from confide.methods import rows

    return {"methods": rows()}


def show(answer: dict[str, Any]) -> None:
    """One row for each method."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from confide.cli.tables import console

    table = Table("name", "paper", "protects", "as printed", "corrected", "", box=box.SIMPLE_HEAD)
    for row in answer["methods"]:
        protects = "nobody" if row["unit"] == "none" else f"a {row['unit']}"
        printed = "yes" if row["as_printed"] else "no"
        told = (row["name"], row["paper"], protects, printed, row["corrected"] or "")
        table.add_row(*map(Text, told), Text(row["summary"]))
    console().print(table)
