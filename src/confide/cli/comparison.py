"""The table at the end of `confide run`: what each method reached, and what it gave away."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from confide.cli.tables import console
from confide.report.seeds import spread
from confide.report.verdict import ENOUGH
from confide.rounding import bound

Row = dict[str, Any]
WIDE = 100
"""Columns of a terminal that has room for times too."""
VIEWS = (("client", "world"), ("client", "server"), ("record", "world"), ("record", "server"))


def print_comparison(runs: Sequence[Row]) -> None:
    """The table, and what its epsilons mean."""
    screen = console()
    if runs:
        screen.print(table_of(runs, wide=screen.width >= WIDE))
        for line in notes(runs):
            screen.print(Text(line, style="dim"))


def table_of(runs: Sequence[Row], *, wide: bool = True) -> Table:
    """One row for each method, all of its seeds together."""
    first = runs[0]
    title = f"{first['data']}, {first['clients']:,} clients, {first['model']}"
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        collapse_padding=not wide,
        pad_edge=wide,
    )
    regression = first["accuracy"] is None
    speeds = ("seconds", "examples/s") if wide else ()
    table.add_column("method", no_wrap=True, overflow="fold")
    table.add_column("loss" if regression else "accuracy", justify="right", no_wrap=True)
    for unit, observer in VIEWS:
        table.add_column(f"ε {unit}\nto {observer}", justify="right", no_wrap=True)
    for name in ("rounds", *speeds):
        table.add_column(name, justify="right", no_wrap=True)
    for method in dict.fromkeys(run["method"] for run in runs):
        own = [run for run in runs if run["method"] == method]
        scores = [run["loss" if regression else "accuracy"] for run in own]
        speed = mean(run["examples_per_second"] for run in own)
        table.add_row(
            Text(method),
            told(scores, "loss" if regression else "accuracy"),
            *(worst(own, unit, observer) for unit, observer in VIEWS),
            ", ".join(str(rounds) for rounds in dict.fromkeys(run["rounds"] for run in own)),
            *(f"{mean(run['seconds'] for run in own):.1f}", f"{speed:,.0f}")[: len(speeds)],
        )
    return table


def told(scores: Sequence[float | None], metric: str) -> str:
    """The mean, and half of its 95 % interval over the seeds."""
    known = [score for score in scores if score is not None]
    return spread(known).words(metric) if known else "–"


def cells(runs: Sequence[Row], unit: str, observer: str) -> list[Row]:
    """The rows of the statements about the update, for one unit and observer."""
    return [
        cell
        for run in runs
        for cell in run["statement"]
        if (cell["unit"], cell["observer"], cell["of"]) == (unit, observer, "update")
    ]


def worst(runs: Sequence[Row], unit: str, observer: str) -> Text:
    """The worst over seeds and groups of clients; green where it can mean something."""
    found = cells(runs, unit, observer)
    if not found:
        return Text("–")
    if any(cell["epsilon"] == "inf" for cell in found):
        return Text("∞", style="red")
    value = max(cell["epsilon"] for cell in found)
    return Text(bound(value, 3), style="bold green" if value <= ENOUGH else "dim")


def notes(runs: Sequence[Row]) -> list[str]:
    """What a reader needs to know about the columns."""
    lines: list[str] = []
    for unit in ("client", "record"):
        deltas = {c["delta"] for r in VIEWS if r[0] == unit for c in cells(runs, *r)}
        told = " and ".join(bound(delta, 2) for delta in sorted(deltas))
        if told:
            lines.append(f"ε for one {unit} at δ = {told}")
    out = [
        "; ".join(lines),
        "world: who sees only the published models; server: who also sees what the channel shows",
        "∞: nothing is proved",
    ]
    seeds = max(sum(r["method"] == run["method"] for r in runs) for run in runs)
    if seeds > 1:
        out.append(f"±: half of the 95 % interval of the mean over {seeds} seeds (Student's t)")
    return ["; ".join(out[:1]), "; ".join(out[1:])]
