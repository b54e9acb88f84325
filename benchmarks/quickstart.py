"""The settings of the quick start: searched on held-back digits, then run on the test digits.

`search` tries every candidate below under a budget that sets its noise, with the last 10,000
training digits held back as the digits that it is scored on, and with a seed that is not reported.
The test digits are not looked at. The best settings stand in src/confide/presets/quickstart.toml.

`check` runs that preset as it is, with seeds that the search has not used.

The search looked at real digits: what it chose is outside of every statement, as the report says.

`table` prints what `check` found as the table of the README.

`python benchmarks/quickstart.py search|check|table [--seeds 0,1,2] [--json PATH]`
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from math import inf
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any

from measure import RESULTS, facts
from trials import HELD_BACK, SEARCH_SEED, candidates, held_back

from confide.data import load
from confide.engine.running import Run, run
from confide.engine.spending import Budget
from confide.methods import CATALOGUE
from confide.report.seeds import spread
from confide.report.verdict import ENOUGH
from confide.rounding import bound
from confide.runfiles.reading import QUICK_START, read
from confide.runfiles.runfile import parse

CLIENT = Budget(1.5, 1e-4, "client", "world")
RECORD = Budget(4.0, 1.6e-6, "record", "server")

# Every combination of the values of a method is a candidate.
CANDIDATES: dict[str, tuple[Budget | None, dict[str, tuple[Any, ...]]]] = {
    "fedavg": (None, {"T": (30,), "m": (100,), "E": (1,), "eta": (0.1, 0.2)}),
    "dp-fedavg-c": (
        CLIENT,
        {"T": (40,), "q": (0.1,), "C": (0.3, 0.5), "E": (5,), "B": (10,), "decay": (0.0,),
         "beta": (0.5, 0.8)},
    ),
    "fed-cdp-c": (
        RECORD,
        {"T": (20,), "B": (60.0,), "C": (0.3, 1.0), "eta": (1.0, 2.0), "beta": (0.5,)},
    ),
    "dp-fedsam-c": (
        CLIENT,
        {"T": (40,), "q": (0.1,), "C": (0.3,), "rho": (0.02, 0.1), "E": (3,), "B": (10,),
         "decay": (0.0,), "beta": (0.5, 0.8)},
    ),
}  # fmt: skip


def search(only: list[str]) -> dict[str, Any]:
    """Every candidate of every method, the best first."""
    data = held_back(load("mnist"))
    found: dict[str, Any] = {}
    for name, (budget, values) in CANDIDATES.items():
        if only and name not in only:
            continue
        rows: list[dict[str, Any]] = []
        for fields in candidates(values):
            method = CATALOGUE[name].load()(**fields)
            began = processor()
            done = run(
                method, data, clients=1000, model="mlp", seed=SEARCH_SEED, budget=budget,
                evaluate_every=fields["T"],
            )  # fmt: skip
            took = {"processor_seconds": processor() - began}
            rows.append({**asdict(done.method), **scored(done), **took})  # type: ignore[call-overload]
            print(name, rows[-1], flush=True)
        found[name] = {
            "budget": None if budget is None else asdict(budget),
            "rows": sorted(rows, key=lambda row: -row["accuracy"]),
        }
    return {"scored on": f"{HELD_BACK} held-back training digits", "methods": found}


def scored(done: Run) -> dict[str, Any]:
    """What a candidate reached, and what it gave away."""
    proved = {
        f"{c.unit}/{c.observer}": c.epsilon
        for c in done.statement.cells
        if c.of == "update" and c.status == "proved"
    }
    return {"accuracy": done.accuracy, "epsilon": proved}


def processor() -> float:
    """Seconds that this process and its workers have computed, which other work does not change."""
    return sum(os.times()[:4])


def check(seeds: list[int]) -> dict[str, Any]:
    """The preset on the test digits."""
    file = parse(read(QUICK_START))
    rows: list[dict[str, Any]] = []
    for seed in seeds:
        data = load("mnist")
        for name in file.methods:
            single = file.single(name, seed)
            began = processor()
            done = run(
                single.built(), data, clients=file.data.clients, model=file.model.name, seed=seed,
                evaluate_every=file.run.evaluate_every,
            )  # fmt: skip
            took = {"seconds": done.seconds, "processor_seconds": processor() - began}
            rows.append({"method": name, "seed": seed, **scored(done), **took})
            print(rows[-1], flush=True)
    return {"scored on": "the 10,000 test digits", "rows": rows}


def table(found: dict[str, Any]) -> str:
    """One row for each method: the mean accuracy with its interval, and what is proved."""
    views = ("client/world", "record/world", "record/server")
    lines = [
        f"| method | accuracy | {' | '.join(f'ε {view}' for view in views)} | processor seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["method"] for row in found["rows"]):
        rows = [row for row in found["rows"] if row["method"] == name]
        proved = [max(row["epsilon"].get(view, inf) for row in rows) for view in views]
        cells = [
            f"`{name}`",
            spread([row["accuracy"] for row in rows]).words("accuracy"),
            *(bound(epsilon, 3) if epsilon <= ENOUGH else "–" for epsilon in proved),
            f"{mean(row['processor_seconds'] for row in rows):.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Search or check and keep the answer, or show the one that is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("search", "check", "table"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--method", action="append", default=[], choices=list(CANDIDATES))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.what == "table":
        print(table(json.loads((given.json or RESULTS / "quickstart_check.json").read_text())))
        return
    began = perf_counter()
    seeds = [int(word) for word in given.seeds.split(",")]
    answer = search(given.method) if given.what == "search" else check(seeds)
    seed = [SEARCH_SEED] if given.what == "search" else seeds
    whole = {**facts(), "seeds": seed, "seconds": perf_counter() - began, **answer}
    path = given.json or RESULTS / f"quickstart_{given.what}.json"
    path.write_text(json.dumps(whole, indent=1) + "\n")
    print(path)


if __name__ == "__main__":
    main()
