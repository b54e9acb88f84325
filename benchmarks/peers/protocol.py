"""What every side is asked and answers: one workload in one process, then one line of JSON."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from workloads import WORKLOADS, Workload, workload

VERIFIED_STEPS = 4


@dataclass(frozen=True)
class Task:
    """One run: the workload, and whether it is to be timed or to be verified.

    Verifying is one round without noise and without dropout, whose parameters are saved: what is
    left is a function of the initial parameters that every side must agree on.
    """

    work: Workload
    initial: Path
    variant: str
    threads: int | None
    verify: Path | None
    double: bool
    device: str
    margin: bool

    @property
    def rounds(self) -> int:
        """All rounds, of which the first is not timed."""
        return 1 if self.verify else 1 + self.work.rounds

    @property
    def clip(self) -> float:
        """confide clips to a little less than C, so that no rounding exceeds it."""
        return self.work.clip * (1 - 2**-21) if self.margin else self.work.clip

    @property
    def noise(self) -> float:
        return 0.0 if self.verify else self.work.noise

    def data(self) -> list[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """Every client's records and labels; a few batches where each step is private.

        Hundreds of steps would let one flipped ReLU in float32 change everything that follows.
        """
        few = VERIFIED_STEPS * self.work.batch
        whole = self.verify is None or self.work.unit == "client"
        return [(x, y) if whole else (x[:few], y[:few]) for x, y in self.work.data()]

    @property
    def dropout(self) -> bool:
        return self.verify is None


def task(description: str | None, variants: tuple[str, ...] = ("",)) -> Task:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--initial", type=Path, required=True, help="made by networks.py")
    parser.add_argument("--variant", choices=variants, default=variants[0])
    parser.add_argument("--threads", type=int, help="torch's threads, where it is ours to say")
    parser.add_argument("--rounds", type=int, help="timed rounds, after the first")
    parser.add_argument("--cohort", type=int, help="a smaller cohort, for a quick look")
    parser.add_argument("--verify", type=Path, help="one round, no noise; save the parameters here")
    parser.add_argument("--double", action="store_true", help="train in float64")
    parser.add_argument("--margin", action="store_true", help="clip to C (1 - 2^-21)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    found = parser.parse_args()
    return Task(
        work=workload(found.workload, found.cohort, found.rounds),
        initial=found.initial.resolve(),
        variant=found.variant,
        threads=found.threads,
        verify=found.verify,
        double=found.double,
        device=found.device,
        margin=found.margin,
    )


@dataclass
class Clock:
    """Starts when imports and data are there; told at the end of each round.

    `settle` waits for what a device has been asked to do.
    """

    settle: Callable[[], None] = lambda: None
    start: float = field(default_factory=time.perf_counter)
    ends: list[float] = field(default_factory=list)

    def round(self) -> None:
        self.settle()
        self.ends.append(time.perf_counter())


def report(
    what: Task,
    clock: Clock,
    parameters: Mapping[str, NDArray[np.floating]],
    packages: tuple[str, ...],
    root: int | None = None,
) -> None:
    """Print the line, or save the parameters; `root` is the first process of this side's tree."""
    if not all(np.isfinite(value).all() for value in parameters.values()):
        raise SystemExit(f"{what.work.name}: the parameters are not finite after the last round")
    if what.verify:
        np.savez(what.verify, **parameters)
    line = {
        "workload": what.work.name,
        "seconds": np.diff(clock.ends).tolist(),
        "examples": [what.work.examples(number) for number in range(1, what.rounds)],
        "first": clock.ends[0] - clock.start,
        "peak_mib": peak(os.getpid() if root is None else root),
        "versions": {name: metadata.version(name) for name in packages},
    }
    print(json.dumps(line), flush=True)


def peak(root: int) -> float | None:
    """The peaks of a process and all below it, added: shared pages count in each that has them."""
    if not Path("/proc/self/status").exists():
        return None
    below: dict[int, list[int]] = {}
    peaks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            lines = (folder / "status").read_text().splitlines()
        except OSError:  # it ended meanwhile
            continue
        facts = dict(line.split(":", 1) for line in lines if ":" in line)
        number = int(folder.name)
        below.setdefault(int(facts["PPid"]), []).append(number)
        peaks[number] = int(facts.get("VmHWM", "0").split()[0])
    tree, found = [root], 0
    while tree:
        number = tree.pop()
        found += peaks.get(number, 0)
        tree += below.get(number, [])
    return found / 1024
