"""Programs that train the same thing, each in a process of its own: checked, then timed in turn.

Before anything is timed, each side trains one round without noise from the same parameters, and
what comes out is compared with the plain loop in float64; a side that computes something else is
not timed. The first round of a process is not timed either. Where a side can be run in several
ways, all are run once, and the fastest is run again with the others.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from sides import Missing, Runner, Side
from workloads import SEED, Workload

VERIFIED_CLIENTS = 4
QUICK = " of 4 clients"

Goals = Mapping[tuple[str, str], tuple[float, float]]
"""By workload and other side: the ratio that is aimed at, and the one that is enough."""


def difference(runner: Runner, side: Side, way: str, work: Workload, plain: Side) -> float:
    """How far one round without noise ends from the plain loop's, over its length, in float64.

    In float32 one flipped ReLU moves a client's update by percents, so nothing would be learned.
    """
    start = np.load(runner.initial(work))
    margin = ("--margin",) if side.margin else ()
    reference = runner.scratch / f"{work.name} reference{''.join(margin)}.npz"
    asked = ("--double",) if runner.quick else ("--double", "--cohort", str(VERIFIED_CLIENTS))
    if not reference.exists():
        runner.run(plain, next(iter(plain.ways)), work, "--verify", str(reference), *margin, *asked)
    path = runner.scratch / "verified.npz"
    runner.run(side, way, work, "--verify", str(path), *asked)
    right, theirs = np.load(reference), np.load(path)
    far = sum(np.square(theirs[k] - right[k]).sum() for k in start)
    length = sum(np.square(start[k] - right[k]).sum() for k in start)
    return float(np.sqrt(far / length))


def agreement(runner: Runner, side: Side, work: Workload, plain: Side) -> str:
    """In words; `Missing` where it does not agree."""
    if not side.comparable or not any(work.sizes):
        return ""
    if side.script == plain.script:
        return "the reference"
    worst = max(difference(runner, side, way, work, plain) for way in side.verified())
    words = f"off by {worst:.1g} in float64"
    if worst > side.agrees:
        raise Missing(f"not timed: its result is {words}")
    return words


@dataclass
class Timed:
    """What was measured of one side on one workload."""

    side: Side
    agreement: str
    runs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])  # the fastest way's

    def seconds(self) -> list[float]:
        """Every timed round of every process."""
        return [second for one in self.runs for second in one["seconds"]]

    def words(self) -> str:
        ways = sorted({one["way"] for one in self.runs})
        rate = statistics.median(sum(one["examples"]) / sum(one["seconds"]) for one in self.runs)
        first = statistics.median(one["first"] for one in self.runs)
        parts = [" or ".join(ways), f"{rate:,.0f} examples/s" if rate else ""]
        parts.append(f"first round {first:.2g} s after the imports")
        if all(one["peak_mib"] for one in self.runs):
            parts.append(f"{max(one['peak_mib'] for one in self.runs):,.0f} MiB")
        return ", ".join(part for part in (*parts, self.agreement) if part)


Found = Timed | tuple[Side, str]  # or why not
Checked = dict[str, str]  # by workload and side: the agreement in words, or why it is not timed


def plain_of(sides: Sequence[Side], work: Workload) -> Side:
    """The side that the others' results are compared with."""
    fitting = (side for side in sides if side.script == "plain.py" and side.unit == work.unit)
    return next(side for side in fitting if side.comparable)


def say(work: Workload, side: Side, what: str) -> None:
    print(f"{work.name}: {side.name}: {what}", file=sys.stderr, flush=True)


def checked(
    runner: Runner, work: Workload, sides: Sequence[Side], plain: Side, known: Checked
) -> list[Found]:
    """Every side with its agreement; what is known already is not computed again."""
    found: list[Found] = []
    for side in sides:
        key = f"{work.name}, {side.name}"
        if key not in known:
            say(work, side, "verifying")
            try:
                known[key] = agreement(runner, side, work, plain)
            except Missing as reason:
                known[key] = f"! {reason}"
        words = known[key]
        found.append((side, words[2:]) if words.startswith("!") else Timed(side, words))
    return found


def measured(runner: Runner, work: Workload, found: list[Found], repeats: int) -> None:
    """All sides in turn, several times."""
    for repeat in range(repeats):
        for at, timed in enumerate(found):
            if not isinstance(timed, Timed) or repeat >= timed.side.most:
                continue
            say(work, timed.side, f"{repeat + 1} of {repeats}")
            try:
                timed.runs.append(fastest(runner, timed, work))
            except Missing as reason:
                found[at] = (timed.side, str(reason))


def fastest(runner: Runner, timed: Timed, work: Workload) -> dict[str, Any]:
    ways = [timed.runs[0]["way"]] if timed.runs else list(timed.side.ways)
    samples = [runner.run(timed.side, way, work) | {"way": way} for way in ways]
    return min(samples, key=lambda one: sum(one["seconds"]))


def rows(task: str, work: Workload, found: Sequence[Found], goals: Goals) -> Iterator[Row]:
    """The first side against each other one."""
    ours = found[0]
    if not isinstance(ours, Timed):
        raise SystemExit(f"{task}: {ours[0].name}: {ours[1]}")
    examples = round(statistics.fmean(ours.runs[0]["examples"]))
    for other in found[1:]:
        side, words = other if isinstance(other, tuple) else (other.side, other.words())
        theirs = [] if isinstance(other, tuple) else other.seconds()
        # The same round has the same cohort on both sides.
        ratios = sorted(b / a for a, b in zip(ours.seconds(), theirs, strict=False))
        ratio = statistics.median(ratios) if ratios else None
        yield Row(
            task=task,
            ours=statistics.median(ours.seconds()),
            peer=side.name,
            theirs=statistics.median(theirs) if theirs else None,
            ratio=ratio,
            ratio_low=ratios[0] if ratios else None,
            ratio_high=ratios[-1] if ratios else None,
            note=f"{verdict(ratio, goals.get((work.name, side.name)))}{side.name}: {words}; "
            f"{ours.side.name}: {ours.words()}",
            values=examples or None,
            bar=False,
        )


def verdict(ratio: float | None, goal: tuple[float, float] | None) -> str:
    """Whether the ratio is what was wanted."""
    if ratio is None or goal is None:
        return ""
    aim, enough = goal
    judged = "reached" if ratio >= aim else "enough" if ratio >= enough else "MISSED"
    return f"{judged} (aim {aim:g}, enough {enough:g}). "


@dataclass(frozen=True)
class Record:
    """The other benchmarks' file, with each process's own numbers beside the rows."""

    heading: str
    path: Path | None
    before: list[Any]  # runs that stay

    @classmethod
    def opened(cls, heading: str, path: Path | None, *, add: bool) -> Record:
        """The file as it will be, with the runs that are in it if they are to stay."""
        old = path is not None and add and path.exists()
        return cls(heading, path, json.loads(path.read_text())["runs"] if path and old else [])

    def store(
        self, about: Mapping[str, Any], rows: Sequence[Row], samples: Sequence[dict[str, Any]]
    ) -> None:
        """Write what there is: it stays, whatever happens to the next workload."""
        if self.path is None:
            return
        run = {
            **about,
            "seeds": [SEED],
            "rows": [asdict(row) for row in rows],
            "samples": list(samples),
        }
        body = {"heading": self.heading, "runs": [*self.before, run]}
        self.path.write_text(json.dumps(body, indent=2) + "\n")


def samples_of(found: Sequence[Found]) -> list[dict[str, Any]]:
    """Each process's own numbers."""
    timed = [one for one in found if isinstance(one, Timed)]
    return [{"side": one.side.name, **run} for one in timed for run in one.runs]


def environments_of(found: Sequence[Found]) -> dict[str, str]:
    """The packages that the sides said they used."""
    out: dict[str, str] = {}
    for timed in found:
        if isinstance(timed, Timed) and timed.runs and timed.side.environment:
            versions = timed.runs[0]["versions"].items()
            out[f"environment {timed.side.environment}"] = " ".join(f"{k} {v}" for k, v in versions)
    return out
