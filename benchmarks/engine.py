"""How fast rounds of training are, beside pfl, Flower, Opacus and the plain loop.

Each side runs each workload of `peers/workloads.py` in a process of its own, one side after the
other and all of that several times. The first round is not timed. Before, each side trains one
round without noise from the same parameters, and what comes out is compared with the plain loop in
float64; a side that computes something else is not timed. Where a side can be run in several ways,
the fastest counts, in each repeat anew.

`python benchmarks/engine.py --environments DIR --install` makes the peers' environments once;
`python benchmarks/engine.py --environments DIR [--json PATH [--add]] [--only TEXT] [--repeats N]
[--quick] [--docs]` measures. A peer without an environment is named as such.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row, document, facts, show

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from sides import SIDES, Missing, Runner, Side, install
from workloads import SEED, WORKLOADS, Workload

HEADING = "Engine"
VERIFIED_CLIENTS = 10
QUICK = " of 4 clients"
# In float32 one flipped ReLU moves a client's update by percents.
AGREES = {"float64": 1e-6, "float32": 2e-2}


def differences(runner: Runner, side: Side, way: str, work: Workload) -> dict[str, float]:
    """How far one round without noise ends from the plain loop's in float64, over its length."""
    start = np.load(runner.initial(work))
    reference = runner.scratch / f"{work.name} reference.npz"
    few = () if runner.quick else ("--cohort", str(VERIFIED_CLIENTS))
    if not reference.exists():
        plain = next(s for s in SIDES if s.script == "plain.py" and s.unit == work.unit)
        saved = ("--verify", str(reference), "--double", *few)
        runner.run(plain, next(iter(plain.ways)), work, *saved)
    right, found = np.load(reference), {}
    for precision in AGREES:
        path = runner.scratch / "verified.npz"
        double = ("--double",) if precision == "float64" else ()
        runner.run(side, way, work, "--verify", str(path), *double, *few)
        theirs = np.load(path)
        far = sum(np.square(theirs[k].astype(float) - right[k]).sum() for k in start)
        length = sum(np.square(start[k].astype(float) - right[k]).sum() for k in start)
        found[precision] = float(np.sqrt(far / length))
    return found


def agreement(runner: Runner, side: Side, work: Workload) -> str:
    """In words; `Missing` where it does not agree."""
    if not side.comparable or not any(work.sizes):
        return ""
    every = [differences(runner, side, way, work) for way in side.ways]
    worst = {name: max(one[name] for one in every) for name in AGREES}
    words = ", ".join(f"{far:.1g} in {name}" for name, far in worst.items())
    if any(worst[name] > bound for name, bound in AGREES.items()):
        raise Missing(f"not timed: its result is off by {words} of the update")
    return f"off by {words}"


@dataclass
class Timed:
    """What was measured of one side on one workload."""

    side: Side
    agreement: str
    best: list[dict[str, Any]]  # one for each repeat, the fastest way's

    def seconds(self) -> list[float]:
        return [statistics.fmean(one["seconds"]) for one in self.best]

    def words(self) -> str:
        ways = sorted({one["way"] for one in self.best})
        rate = statistics.median(sum(one["examples"]) / sum(one["seconds"]) for one in self.best)
        first = statistics.median(one["first"] for one in self.best)
        parts = [" or ".join(ways), f"{rate:,.0f} examples/s" if rate else ""]
        parts.append(f"first round {first:.2g} s after the imports")
        if all(one["peak_mib"] for one in self.best):
            parts.append(f"{max(one['peak_mib'] for one in self.best):,.0f} MiB")
        return ", ".join(part for part in (*parts, self.agreement) if part)


Found = Timed | tuple[Side, str]  # or why not


def measured(runner: Runner, work: Workload, sides: Sequence[Side], repeats: int) -> list[Found]:
    """All sides in turn, several times."""
    found: list[Found] = []

    def say(side: Side, what: str) -> None:
        print(f"{work.name}: {side.name}: {what}", file=sys.stderr, flush=True)

    for side in sides:
        say(side, "verifying")
        try:
            found.append(Timed(side, agreement(runner, side, work), []))
        except Missing as reason:
            found.append((side, str(reason)))
    for repeat in range(repeats):
        for at, timed in enumerate(found):
            if isinstance(timed, Timed):
                say(timed.side, f"{repeat + 1} of {repeats}")
                try:
                    timed.best.append(fastest(runner, timed.side, work))
                except Missing as reason:
                    found[at] = (timed.side, str(reason))
    return found


def fastest(runner: Runner, side: Side, work: Workload) -> dict[str, Any]:
    samples = [runner.run(side, way, work) | {"way": way} for way in side.ways]
    return min(samples, key=lambda one: sum(one["seconds"]))


def rows(task: str, found: Sequence[Found]) -> Iterator[Row]:
    """The first side against each other one."""
    ours = found[0]
    if not isinstance(ours, Timed):
        raise SystemExit(f"{task}: {ours[0].name}: {ours[1]}")
    mine = ours.seconds()
    examples = round(statistics.fmean(ours.best[0]["examples"]))
    for other in found[1:]:
        side, words = other if isinstance(other, tuple) else (other.side, other.words())
        theirs = [] if isinstance(other, tuple) else other.seconds()
        ratios = sorted(b / a for a, b in zip(mine, theirs, strict=False))
        yield Row(
            task=task,
            ours=statistics.median(mine),
            peer=side.name,
            theirs=statistics.median(theirs) if theirs else None,
            ratio=statistics.median(ratios) if ratios else None,
            ratio_low=ratios[0] if ratios else None,
            ratio_high=ratios[-1] if ratios else None,
            note=f"{side.name}: {words}; {ours.side.name}: {ours.words()}",
            values=examples or None,
            bar=False,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path, help="the folder of the peers' environments")
    parser.add_argument("--install", action="store_true", help="only make those environments")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    parser.add_argument("--add", action="store_true", help="keep the runs that are in that file")
    parser.add_argument("--only", default="", help="only rows with this text in workload or other")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a look: one round, cohorts of 4")
    parser.add_argument("--docs", action="store_true", help="only write docs/benchmarks.md anew")
    options = parser.parse_args()
    if options.docs:
        return document()
    if options.install:
        if options.environments is None:
            parser.error("--install needs --environments DIR, where to make them")
        return install(options.environments)
    machine = facts() | {"load before": f"{os.getloadavg()[0]:.2f}"}
    table: list[Row] = []
    samples: list[dict[str, Any]] = []
    folder = options.environments.resolve() if options.environments else None
    with tempfile.TemporaryDirectory() as scratch:
        runner = Runner(folder, Path(scratch), options.quick)
        for work in WORKLOADS.values():
            fitting = [side for side in SIDES if side.unit == work.unit]
            wanted = [
                s for s in fitting[1:] if options.only.lower() in f"{work.name} {s.name}".lower()
            ]
            if not wanted:
                continue
            found = measured(runner, work, [fitting[0], *wanted], options.repeats)
            table += rows(f"{work.name}: a round{QUICK if options.quick else ''}", found)
            for timed in found:
                if isinstance(timed, Timed):
                    samples += [{"side": timed.side.name, **one} for one in timed.best]
                    versions = timed.best[0]["versions"]
                    if timed.side.environment:
                        packages = " ".join(f"{k} {v}" for k, v in versions.items())
                        machine[f"environment {timed.side.environment}"] = packages
    if not table:
        parser.error(
            f"--only {options.only}: in no workload ({', '.join(WORKLOADS)}) or other's name"
        )
    show(HEADING, table, machine)
    if options.json:
        store(options, machine, table, samples)
    return None


def store(
    options: argparse.Namespace,
    machine: dict[str, str],
    table: Sequence[Row],
    samples: Sequence[dict[str, Any]],
) -> None:
    """The other benchmarks' file, with each process's own numbers beside the rows."""
    old = options.add and options.json.exists()
    body: dict[str, Any] = json.loads(options.json.read_text()) if old else {"runs": []}
    body["heading"] = HEADING
    body["runs"].append(
        {
            "machine": machine,
            "seeds": [SEED],
            "repeats": options.repeats,
            "only": options.only,
            "quick": options.quick,
            "rows": [asdict(row) for row in table],
            "samples": list(samples),
        }
    )
    options.json.write_text(json.dumps(body, indent=2) + "\n")


if __name__ == "__main__":
    main()
