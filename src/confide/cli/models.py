"""`confide models`: the models by name, and where they come from."""

from __future__ import annotations

import argparse
from typing import Any


def options(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def example() -> str:
    """One call that works."""
    return "confide models --json"


def run(given: argparse.Namespace) -> dict[str, Any]:
    """List the models with their sizes for the records that they were made for."""
    from confide.models import MODELS, build

    rows: list[dict[str, Any]] = []
    for name, model in MODELS.items():
        shape, outputs = model.example
        module = build(name, shape, outputs, 0)
        rows.append(
            {
                "name": name,
                "what": model.what,
                "source": model.source,
                "takes": model.takes,
                "loss": model.loss or "cross-entropy, or squared for a regression",
                "parameters": sum(p.numel() for p in module.parameters()),
                "shape": list(shape),
                "outputs": outputs,
            }
        )
    return {"models": rows}


def show(answer: dict[str, Any]) -> None:
    """A table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from confide.cli.tables import console

    screen = console()
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("name", "what", "from", "takes", "parameters", "for"):
        table.add_column(name, no_wrap=name == "name")
    for row in answer["models"]:
        size = "x".join(map(str, row["shape"]))
        told = [row[key] for key in ("name", "what", "source", "takes")]
        told += [f"{row['parameters']:,}", f"{size} -> {row['outputs']}"]
        table.add_row(*map(Text, told))
    screen.print(table)
    screen.print("Your own: file.py:name of a torch module, a class, or a function that makes one.")
