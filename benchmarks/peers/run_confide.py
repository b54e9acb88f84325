"""confide itself: the whole of `confide.run` with its ledger, as anybody calls it.

`python benchmarks/peers/run_confide.py WORKLOAD --initial PATH [--variant NAME]`: budgeted, with a
budget that is never spent; without-privacy; or the name of a strategy.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from networks import build, clock_of
from numpy.typing import NDArray
from protocol import Clock, Task, report, task
from workloads import Workload

from confide.aggregates import Mean
from confide.channels import Sum
from confide.cohorts import Epoch, Fixed
from confide.data.dataset import Dataset, Federation
from confide.engine.rounds import Local, Past, Round
from confide.engine.running import run as training
from confide.engine.spending import Budget
from confide.engine.ways import WAYS
from confide.local import SGD
from confide.randomness import Stream
from confide.stages import Clip, Gaussian

Units = NDArray[np.int64]


@dataclass(frozen=True)
class Listed(Fixed):
    """The workload's own cohorts."""

    work: Workload | None = field(default=None, compare=False)
    number: int = field(default=0, compare=False)

    def draw(self, stream: Stream, units: int) -> Units:
        assert self.work is not None
        return np.array(self.work.members(self.number))


@dataclass(frozen=True)
class InOrder(Epoch):
    """Every other side goes through the records as they lie, too."""

    def draw(self, stream: Stream, units: int) -> Units:
        return np.arange(units)


@dataclass(frozen=True)
class Benchmark:
    """The workload as a method."""

    what: Task

    def round(self, past: Past) -> Round | None:
        work, noise = self.what.work, self.what.noise
        if past.t == self.what.rounds:
            return None
        cohort = Listed(work.cohort, work=work, number=past.t)
        step, batches = SGD(work.rate), InOrder(work.batch, partial=True)
        if work.unit == "client":
            mean = Gaussian(noise * work.clip / work.cohort)
            return Round(
                cohort, Local(step, 1, batches), (Clip(work.clip),), Sum(), publish=(mean,)
            )
        if self.what.variant == "without-privacy":
            return Round(cohort, Local(step, 1, batches))
        example, batch = (Clip(work.clip),), (Gaussian(noise * work.clip),)
        local = Local(step, 1, InOrder(work.batch), example, batch, Mean(by=work.batch))
        return Round(cohort, local)


def federation(what: Task) -> Federation:
    """One array of all records, and the clients' places in it."""
    parts = what.data()
    clients = np.split(
        np.arange(sum(len(y) for _, y in parts)), np.cumsum([len(y) for _, y in parts])[:-1]
    )
    x, y = (np.concatenate([part[i] for part in parts]) for i in range(2))
    if not len(y):  # a federation without any record is refused: one more client holds one
        x, y = np.zeros((1, *what.work.shape), np.float32), np.zeros(1, np.int64)
        clients.append(np.zeros(1, np.int64))
    records = torch.from_numpy(x), torch.from_numpy(y)
    test = records[0][:1], records[1][:1]
    data = Dataset(what.work.name, *records, *test, classes=10)
    nobody = np.zeros(0, np.int64)
    return Federation(data, tuple(clients), nobody, nobody, "as the workload says", 1)


class Ticks:
    """Tells the clock about the end of each round."""

    stopping = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def round_done(self, t: int, rounds: int | None, examples: int, seconds: float) -> None:
        self._clock.round()

    def evaluated(self, row: Mapping[str, Any]) -> None:
        pass


def run(what: Task) -> None:
    held = federation(what)
    clock = clock_of(what.device)
    done = training(
        Benchmark(what),
        held,
        model=build(what.work.network, what.initial, double=what.double, dropout=what.dropout),
        dtype="float64" if what.double else "float32",
        workers=what.threads,
        device=what.device,
        strategy=what.variant if what.variant in WAYS else "auto",
        budget=Budget(1e9, 1e-5) if what.variant == "budgeted" else None,
        calibrate=False,
        evaluate_every=what.rounds,
        watch=Ticks(clock),
    )
    print(done.strategy, file=sys.stderr)
    found = {name: value.numpy() for name, value in done.parameters.items()}
    report(what, clock, found, ("torch",))


if __name__ == "__main__":
    run(task(__doc__, ("private", "without-privacy", "budgeted", *WAYS)))
