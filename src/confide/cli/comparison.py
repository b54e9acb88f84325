"""The table at the end of `confide run`: what each method reached, and what it gave away."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from confide.cli.tables import console

Row = dict[str, Any]
VIEWS = (("client", "world"), ("client", "server"), ("record", "world"), ("record", "server"))


def print_comparison(runs: Sequence[Row], report: str | None) -> None:
    """The table, what its epsilons mean, and where the report is."""
    screen = console()
    if runs:
        screen.print(table_of(runs))
        for line in notes(runs):
            screen.print(Text(line, style="dim"))
    if report is not None:
        screen.print(f"report: {report}", soft_wrap=True, highlight=False)


def table_of(runs: Sequence[Row]) -> Table:
    """One row for each method, all of its seeds together."""
    first = runs[0]
    title = f"{first['data']}, {first['clients']:,} clients, {first['model']}"
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    regression = first["accuracy"] is None
    table.add_column("method")
    table.add_column("loss" if regression else "accuracy", justify="right")
    for unit, observer in VIEWS:
        table.add_column(f"ε {unit}/{observer}", justify="right")
    for name in ("rounds", "seconds", "examples/s"):
        table.add_column(name, justify="right")
    for method in dict.fromkeys(run["method"] for run in runs):
        own = [run for run in runs if run["method"] == method]
        scores = [run["loss" if regression else "accuracy"] for run in own]
        speed = mean(run["examples_per_second"] for run in own)
        table.add_row(
            Text(method),
            spread(scores, percent=not regression),
            *(epsilon(own, unit, observer) for unit, observer in VIEWS),
            ", ".join(str(rounds) for rounds in dict.fromkeys(run["rounds"] for run in own)),
            f"{mean(run['seconds'] for run in own):.1f}",
            f"{speed:,.0f}",
        )
    return table


def spread(scores: Sequence[float | None], *, percent: bool) -> str:
    """The mean, and the standard deviation over the seeds."""
    values = [score for score in scores if score is not None]
    if not values:
        return "–"
    style = "{:.1%}" if percent else "{:.4g}"
    told = style.format(mean(values))
    return told if len(values) == 1 else f"{told} ± {style.format(stdev(values))}"


def cells(runs: Sequence[Row], unit: str, observer: str) -> list[Row]:
    """The rows of the statements about the update, for one unit and observer."""
    return [
        cell
        for run in runs
        for cell in run["statement"]
        if (cell["unit"], cell["observer"], cell["of"]) == (unit, observer, "update")
    ]


def epsilon(runs: Sequence[Row], unit: str, observer: str) -> Text:
    """The worst over seeds and groups of clients."""
    found = cells(runs, unit, observer)
    if not found:
        return Text("–")
    if any(cell["epsilon"] == "inf" for cell in found):
        return Text("∞", style="red")
    return Text(f"{max(cell['epsilon'] for cell in found):.3g}", style="bold green")


def notes(runs: Sequence[Row]) -> list[str]:
    """What a reader needs to know about the columns."""
    lines: list[str] = []
    for unit in ("client", "record"):
        deltas = {c["delta"] for r in VIEWS if r[0] == unit for c in cells(runs, *r)}
        told = " and ".join(f"{delta:.2g}" for delta in sorted(deltas))
        if told:
            lines.append(f"ε for one {unit} at δ = {told}")
    counts = {sum(r["method"] == run["method"] for r in runs) for run in runs}
    several = f"; ± one standard deviation over {max(counts)} seeds" if max(counts) > 1 else ""
    world = "world: who sees only the published models; server: who also sees what the channel shows"
    return ["; ".join(lines), f"{world}; ∞: nothing is proved{several}"]
