"""How the benchmarks measure, print, store and document: two sides in turn, several times.

Every comparison runs both sides one after the other in one process, several times, and reports the
median of their ratios with the smallest and the largest, so that a slow or busy machine changes
little. What is not installed is named as such. A result file holds one run or several (`--add`),
each with its own machine, versions and seeds: packages that cannot share an environment are
measured one after the other on the same machine.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
RESULTS = HERE / "results"
DOCS = HERE.parent / "docs" / "benchmarks.md"
PACKAGES = (
    "numpy",
    "scipy",
    "dp-accounting",
    "cryptography",
    "torch",
    "opacus",
    "flwr",
)

Work = Callable[[], object]


class Missing(Exception):
    """A peer is not installed, or has no such thing; the message goes into the table."""


@dataclass(frozen=True)
class Comparison:
    """One row to measure.

    `make` prepares both sides, and raises `Missing` where the other has none: ours may also be made
    alone. A number instead of the other side is a time in seconds: a bar, or somebody's report.
    """

    task: str
    ours: Callable[[], Work]
    peer: str
    theirs: Callable[[], Work] | float
    note: str = ""
    values: int | None = None  # how many values one run makes, for rates
    bar: bool = False  # the number is one that we promise to stay below


@dataclass(frozen=True)
class Row:
    """One measured comparison; medians, in seconds or another unit, the ratio is theirs / ours."""

    task: str
    ours: float
    peer: str
    theirs: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    note: str
    values: int | None
    bar: bool
    unit: str = "s"


@dataclass(frozen=True)
class Benchmark:
    """A script: its name in files and headings, its comparisons and the seeds they use."""

    name: str
    heading: str
    comparisons: Callable[[], Iterable[Comparison]]
    seeds: Sequence[int] = ()


def seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(row: Comparison, repeats: int) -> Row:
    """Time both sides in turn; imports and caches are paid before the clock starts."""
    ours = row.ours()
    answer = ours()
    theirs: Work | None = None
    remark = ""
    if callable(row.theirs):
        try:
            theirs = row.theirs()
            other_answer = theirs()
            if isinstance(answer, float) and isinstance(other_answer, float):
                remark = f"found: ours {answer:.5f}, theirs {other_answer:.5f}"
        except Missing as reason:
            remark = str(reason)
    mine: list[float] = []
    other: list[float] = []
    for _ in range(repeats):
        mine.append(seconds(ours))
        if theirs is not None:
            other.append(seconds(theirs))
        elif not callable(row.theirs):
            other.append(row.theirs)
    ratios = sorted(b / a for a, b in zip(mine, other, strict=False))
    return Row(
        task=row.task,
        ours=statistics.median(mine),
        peer=row.peer,
        theirs=statistics.median(other) if other else None,
        ratio=statistics.median(ratios) if ratios else None,
        ratio_low=ratios[0] if ratios else None,
        ratio_high=ratios[-1] if ratios else None,
        note="; ".join(part for part in (row.note, remark) if part),
        values=row.values,
        bar=row.bar,
    )


def facts() -> dict[str, str]:
    """The machine, the commit and the versions."""
    model = platform.processor() or "unknown"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if "model name" in line), model)
    found = {
        "cpu": model,
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "commit": commit(),
    }
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def commit() -> str:
    """The commit that was measured, and whether the files differed from it."""

    def git(*words: str) -> str:
        command = ["git", "--no-optional-locks", *words]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE)
        return ran.stdout.strip()

    head = git("rev-parse", "--short", "HEAD")
    changed = git("status", "--porcelain", "--", "../src", "../benchmarks", ":!results")
    return (head or "not a checkout") + (" and uncommitted changes" if changed else "")


def cells(row: Row) -> tuple[str, ...]:
    """A row as text: the table on the screen and the one in the documentation agree."""
    spread = "" if row.ratio_low is None else f"{row.ratio_low:.2g} .. {row.ratio_high:.2g}"
    ratio = "" if row.ratio is None or not math.isfinite(row.ratio) else f"{row.ratio:.3g}"
    if row.bar and row.ratio is not None:
        ratio += " (kept)" if row.ratio >= 1 else " (MISSED)"
    rate = "" if row.values is None else f"{row.values / row.ours:.3g}"
    unit = "" if row.unit == "s" else f" {row.unit}"
    other = "" if row.theirs is None else f"{row.theirs:.3g}{unit}"
    return (row.task, f"{row.ours:.3g}{unit}", row.peer, other, ratio, spread, rate, row.note)


HEADINGS = ("task", "ours, s", "other", "its, s", "times as long", "spread", "ours, values/s", "")


def show(name: str, rows: Sequence[Row], found: dict[str, str]) -> None:
    shown, kept = _full_columns(rows)
    table = Table(title=name)
    for column in kept:
        table.add_column(HEADINGS[column])
    for row in shown:
        table.add_row(*row)
    console = Console(width=150)
    console.print(table)
    console.print("  ".join(f"{key} {value}" for key, value in found.items()))


def _full_columns(rows: Sequence[Row]) -> tuple[list[list[str]], list[int]]:
    """The rows without columns that are empty in all of them, and the columns kept."""
    every = [cells(row) for row in rows]
    kept = [at for at in range(len(HEADINGS)) if any(row[at] for row in every)]
    return [[row[at] for at in kept] for row in every], kept


def document() -> None:
    """Write docs/benchmarks.md anew."""
    DOCS.write_text(page())


def page() -> str:
    """The page, from the files in benchmarks/results: no number is typed."""
    text = [
        "# Benchmarks\n",
        "Written by `python benchmarks/NAME.py --docs` from `benchmarks/results/*.json`: no number "
        "here was typed. Figures are medians, in seconds where no unit is named; *times as long* "
        "is the median of the other's figure over ours, measured in turn, and *spread* its "
        "smallest and largest value, so it "
        "carries over to other machines better than the times do. Where the other is *our bar*, "
        "the number is what we promise to stay below. Each file has the runs it was measured in, "
        "with machine, versions, seeds and repeats.\n",
    ]
    for path in sorted(RESULTS.glob("*.json")):
        body = json.loads(path.read_text())
        if "runs" not in body:  # a search, or the results of methods.py
            continue
        text.append(f"## {body['heading']}\n")
        text.append(
            f"`python benchmarks/{path.stem}.py --json benchmarks/results/{path.stem}.json`\n"
        )
        known = {_key(row) for run in body["runs"] for row in run["rows"] if row["ratio"]}
        for number, run in enumerate(body["runs"], 1):
            # What is missing here and measured in another run is left out here.
            rows = [Row(**row) for row in run["rows"] if row["ratio"] or _key(row) not in known]
            shown, kept = _full_columns(rows)
            text.append("| " + " | ".join(HEADINGS[at] for at in kept) + " |")
            text.append("|" + "---|" * len(kept))
            text += ["| " + " | ".join(row) + " |" for row in shown]
            environment = ", ".join(f"{k} {v}" for k, v in run["machine"].items())
            seeds = ", ".join(map(str, run["seeds"])) or "none is used"
            options = f"--repeats {run['repeats']}"
            if run["only"]:
                options += f" --only {run['only']} --add"
            text.append(f"\nRun {number}, `{options}`: {environment}; seeds: {seeds}.\n")
            if run.get("remark"):
                text.append(f"{run['remark']}\n")
        if len(body["runs"]) > 1:
            text.append(
                "The runs were made in different environments, each named under its table, because "
                "the packages they need were not installed together.\n"
            )
    return "\n".join(text)


def _key(row: dict[str, Any]) -> tuple[str, str]:
    return row["task"], row["peer"]


def main(benchmark: Benchmark, description: str | None) -> None:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, help="also write the rows here")
    parser.add_argument("--add", action="store_true", help="keep the runs that are in that file")
    parser.add_argument("--only", default="", help="only rows with this text in task or other")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--docs", action="store_true", help="only write docs/benchmarks.md anew")
    options = parser.parse_args()
    if options.docs:
        return document()
    rows = [
        measure(row, options.repeats)
        for row in benchmark.comparisons()
        if options.only.lower() in f"{row.task} {row.peer}".lower()
    ]
    found = facts()
    show(benchmark.heading, rows, found)
    if options.json:
        old = options.add and options.json.exists()
        body: dict[str, Any] = json.loads(options.json.read_text()) if old else {"runs": []}
        body["heading"] = benchmark.heading
        body["runs"].append(
            {
                "machine": found,
                "seeds": list(benchmark.seeds),
                "repeats": options.repeats,
                "only": options.only,
                "rows": [asdict(row) for row in rows],
            }
        )
        options.json.write_text(json.dumps(body, indent=2) + "\n")
    return None
