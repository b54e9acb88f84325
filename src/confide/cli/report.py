"""`confide report`: one self-contained HTML file about one or several runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from confide.cli import Wrong


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="+",
        type=Path,
        help="a run directory, or a directory of runs; several are compared side by side",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help="where to write; by default report.html in the run's public directory, for several "
        "runs in the current one",
    )
    parser.add_argument(
        "--private",
        action="store_true",
        help="the owner's copy, with what the clients hold, times and participations; by default "
        "it goes to the run's private directory",
    )


def example() -> str:
    """One call that works."""
    return "confide report runs/quickstart --out report.html"


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Read the runs, write the page."""
    from confide.report import NotARun, write_report
    from confide.report.finding import find_runs

    places = find_runs(given.runs)
    out: Path = given.out or default(places, given.private)
    if out.is_dir():
        raise Wrong(f"confide report: --out {out} is a directory, allowed is a file.")
    try:
        write_report(places, out, private=given.private)
    except NotARun as why:
        raise Wrong(f"confide report: {why}") from why
    except OSError as why:
        raise Wrong(f"confide report: {out} cannot be written: {why.strerror}.") from why
    return {"report": str(out), "runs": [str(place) for place in places]}


def default(places: list[Path], private: bool) -> Path:
    """Beside what it reports on."""
    folder = "private" if private else "public"
    return places[0] / folder / "report.html" if len(places) == 1 else Path("report.html")


def show(answer: dict[str, Any]) -> None:
    """Say where the page is."""
    from confide.report.digits import counted

    print(f"report of {counted(len(answer['runs']), 'run')}: {answer['report']}")
