"""`confide datasets`: what is here, what is missing, and how to get it."""

from __future__ import annotations

import argparse
from typing import Any


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; by default all")


def example() -> str:
    """One call that works."""
    return "confide datasets mnist cifar10"


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Look for every data set."""
    from confide.cli import Wrong
    from confide.data.catalogue import CATALOGUE
    from confide.data.places import locate, roots
    from confide.data.settings import nearest

    for name in given.names:
        if name not in CATALOGUE:
            raise Wrong(
                f"confide datasets: name {name!r} is unknown, allowed are {', '.join(CATALOGUE)}."
                f"{nearest(name, CATALOGUE)}"
            )
    rows: list[dict[str, Any]] = []
    for entry in CATALOGUE.values():
        if given.names and entry.name not in given.names:
            continue
        found = locate(entry.ways)
        here = found is not None and found.here
        download = None if found is None else f"{found}, downloaded when it is first used"
        rows.append(
            {
                "name": entry.name,
                "what": entry.what,
                "records": entry.records,
                "classes": entry.classes,
                "licence": entry.licence,
                "source": entry.home,
                "here": here,
                "where": str(found) if here else None,
                "part": None if found is None else found.way.part or None,
                "get": None if here else download or entry.get,
                "downloads": found is not None and not here,
            }
        )
    return {"datasets": rows, "looked_in": [str(root) for root in roots()]}


def show(answer: dict[str, Any]) -> None:
    """A table, and where files are looked for."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from confide.cli.tables import console

    screen = console()
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("name", "what", "train / test", "classes", "licence", "here"):
        table.add_column(name, no_wrap=name == "name", overflow="fold")
    for row in answer["datasets"]:
        told = [row[key] for key in ("name", "what", "records", "classes", "licence")]
        if row["here"]:
            here = Text(row["part"] or "yes", style="yellow" if row["part"] else "green")
        else:
            start, style = ("not yet", "yellow") if row["downloads"] else ("no", "red")
            place = "" if row["downloads"] else f" ({row['source']})"
            here = Text(f"{start}: {row['get']}{place}", style=style)
        table.add_row(*map(Text, told), here)
    screen.print(table)
    screen.print(Text(f"Files are looked for in {' and '.join(answer['looked_in'])}."))
    screen.print(
        "Your own: a .npz, .csv or .parquet file, a folder of images, a Hugging Face OWNER/NAME.",
        highlight=False,
    )
