"""How fast rounds of training are, beside pfl, Flower, Opacus and the plain loop.

Each side runs each workload of `peers/workloads.py` in a process of its own, one side after the
other and all of that several times; `contest.py` says how, and checks that all compute the same.

`python benchmarks/engine.py --environments DIR --install` makes the peers' environments once;
`python benchmarks/engine.py --environments DIR [--json PATH [--add]] [--only TEXT] [--repeats N]
[--checks PATH] [--quick] [--docs]` measures. A peer without an environment is named as such. What
was verified is kept in the file of `--checks`, so that with `--repeats 0` it can be verified first,
and timed later, when the machine is quiet.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from contest import (
    QUICK,
    Checked,
    Record,
    checked,
    environments_of,
    measured,
    plain_of,
    rows,
    samples_of,
)
from measure import Row, commit, document, facts, show
from sides import SIDES, Runner, install
from workloads import WORKLOADS

from bounds import bounds

HEADING = "Engine"
GOALS = {
    ("W1-MLP", "pfl"): (2.0, 1.7),
    ("W1-CNN", "pfl"): (1.6, 1.4),
    ("W3", "pfl"): (1.4, 1.25),
    ("ResNet-18", "pfl"): (1.0, 1.0),
    ("W1-MLP", "Flower"): (7.0, 6.0),
    ("W1-CNN", "Flower"): (3.0, 2.0),
    ("W3", "Flower"): (4.0, 3.5),
    ("W2-5", "Opacus, ghost"): (2.0, 1.8),
    ("W2-64", "Opacus, ghost"): (2.4, 2.0),
    ("W2-5", "Opacus, hooks"): (3.0, 3.0),
    ("W2-64", "Opacus, hooks"): (8.0, 8.0),
    ("W2-64", "the step without privacy"): (1 / 1.3, 1 / 1.3),
}


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path, help="the folder of the peers' environments")
    parser.add_argument("--install", action="store_true", help="only make those environments")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    parser.add_argument("--add", action="store_true", help="keep the runs that are in that file")
    parser.add_argument("--only", default="", help="only rows with this text in workload or other")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--checks", type=Path, help="keep here what was verified of this commit")
    parser.add_argument("--quick", action="store_true", help="a look: one round, cohorts of 4")
    parser.add_argument("--docs", action="store_true", help="only write docs/benchmarks.md anew")
    options = parser.parse_args()
    if options.install and options.environments is None:
        parser.error("--install needs --environments DIR, where to make them")
    texts = [f"{work.name} {side.name}" for work in WORKLOADS.values() for side in SIDES]
    if not any(options.only.lower() in text.lower() for text in texts):
        parser.error(f"--only {options.only}: in no workload's ({', '.join(WORKLOADS)}) or side's")
    return options


def known_of(path: Path | None) -> Checked:
    """What was verified of this very commit."""
    if path is None or not path.exists():
        return {}
    body: dict[str, Any] = json.loads(path.read_text())
    return body["found"] if body["commit"] == commit() else {}


def compare(runner: Runner, options: argparse.Namespace) -> None:
    """Workload after workload."""
    machine = facts() | {"load before": f"{os.getloadavg()[0]:.2f}"}
    known, text = known_of(options.checks), options.only.lower()
    record = Record.opened(HEADING, options.json, add=options.add)
    table: list[Row] = []
    samples: list[dict[str, Any]] = []
    for work in WORKLOADS.values():
        ours, *others = (side for side in SIDES if side.fits(work))
        wanted = [side for side in others if text in f"{work.name} {side.name}".lower()]
        if not wanted:
            continue
        found = checked(runner, work, [ours, *wanted], plain_of(SIDES, work), known)
        if options.checks:
            body = {"commit": commit(), "found": known}
            options.checks.write_text(json.dumps(body, indent=2) + "\n")
        if not options.repeats:
            continue
        measured(runner, work, found, options.repeats)
        table += rows(f"{work.name}: a round{QUICK if options.quick else ''}", work, found, GOALS)
        table += bounds(runner, work, found)
        samples += samples_of(found)
        machine |= environments_of(found)
        about = {"machine": machine, "repeats": options.repeats, "only": options.only}
        record.store(about | {"quick": options.quick}, table, samples)
    if table:
        show(HEADING, table, machine)


def main() -> None:
    options = options_of()
    if options.docs:
        return document()
    if options.install:
        return install(options.environments)
    folder = options.environments.resolve() if options.environments else None
    with tempfile.TemporaryDirectory() as scratch:
        compare(Runner(folder, Path(scratch), options.quick), options)
    return None


if __name__ == "__main__":
    main()
