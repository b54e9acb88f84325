"""Where the time of one local step goes, on one thread: the profile beside `benchmarks/engine.py`.

A few clients of each workload train in this process, without a second thread. The whole is
processor time; the parts are torch's own operators by kind, and the noise, profiled in a run of
their own and scaled down where they exceed the whole; what is left is Python and the calls between.
The table is Markdown.

`python benchmarks/profile_engine.py [WORKLOAD ...] [--operators N]`
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "peers"))

import torch
from networks import build
from protocol import Task
from run_confide import Benchmark, federation
from torch.profiler import ProfilerActivity, profile, record_function
from workloads import WORKLOADS, Workload

from confide.engine.allocation import keep_pages
from confide.engine.client import Job, Workshop, work
from confide.engine.flat import Flat
from confide.engine.rounds import Past
from confide.engine.trainers import Recipe
from confide.randomness import Key, Stream

CLIENTS = {"W1-MLP": 10, "W1-CNN": 2, "W3": 10, "W2-5": 1, "W2-64": 1, "ResNet-18": 1}
REPEATS = 3
NOISE = "drawing noise"
KINDS = {
    "convolutions": ("convolution",),
    "dense products": ("linear", "mm", "mv"),
    "normalising": ("group_norm",),
    "pooling": ("max_pool", "avg_pool"),
    "noise": (NOISE,),
    "copies": ("copy_",),
}
OTHER, PYTHON = "other operators", "Python and calls"
COLUMNS = (*KINDS, OTHER, PYTHON)


@dataclass(frozen=True)
class Profile:
    """Milliseconds of a step: in all, by kind and by operator."""

    work: Workload
    whole: float
    kinds: Mapping[str, float]
    operators: Sequence[tuple[str, float]]

    def row(self) -> str:
        parts = [self.kinds[kind] for kind in COLUMNS]
        cells = [f"{part:.2g} ({part / self.whole:.0%})" if part > 1e-9 else "" for part in parts]
        speed = self.work.batch / self.whole * 1e3
        return f"| {self.work.name} | {self.whole:.3g} | {speed:,.0f} | {' | '.join(cells)} |"


def kind_of(operator: str) -> str:
    return next((k for k, names in KINDS.items() if any(n in operator for n in names)), OTHER)


def workshop_of(what: Task) -> tuple[Workshop, Job]:
    """What a worker process has, and the first round."""
    model = build(what.work.network, what.initial, double=False, dropout=True)
    made = Recipe(model, "cross-entropy", federation(what), Key.from_seed(1)).workshop()
    start = Flat(model).vector
    first = Benchmark(what).round(Past())
    assert first is not None
    return made, Job(0, first, start, {})


def profiled(work_: Workload, initial: Path) -> Profile:
    """Time a few clients, then profile them."""
    what = Task(work_, initial, "private", 1, None, False, "cpu", False)
    shop, job = workshop_of(what)
    clients = work_.members(0)[: CLIENTS[work_.name]]
    steps = sum(ceil(work_.sizes[client] / work_.batch) for client in clients)

    def train() -> float:
        start = time.thread_time()
        for client in clients:
            work(shop, job, client)
        return (time.thread_time() - start) * 1e3 / steps

    whole = min(train() for _ in range(1 + REPEATS))
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        train()
    events: list[Any] = list(seen.key_averages())
    found = sorted(((e.key, e.self_cpu_time_total / 1e3 / steps) for e in events), key=by_time)
    # The profiler tells the clock's time: what others took of it is nobody's part.
    scale = min(1.0, whole / sum(spent for _, spent in found))
    kinds = dict.fromkeys(COLUMNS, 0.0)
    for name, spent in found:
        kinds[kind_of(name)] += spent * scale
    kinds[PYTHON] = whole - sum(kinds.values())
    return Profile(work_, whole, kinds, found)


def by_time(entry: tuple[str, float]) -> float:
    return -entry[1]


def name_the_noise() -> None:
    """numpy draws it, which torch's profiler does not see."""
    draw = Stream.fill_normal

    def named(self: Stream, out: Any) -> None:
        with record_function(NOISE):
            draw(self, out)

    Stream.fill_normal = named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", help=f"of {', '.join(CLIENTS)}; all by default")
    parser.add_argument("--operators", type=int, default=0, help="also the slowest so many")
    options = parser.parse_args()
    if unknown := set(options.workloads) - set(CLIENTS):
        parser.error(f"{unknown.pop()}: allowed are {', '.join(CLIENTS)}")
    torch.set_num_threads(1)
    keep_pages()
    name_the_noise()
    print(f"| workload | ms of a step | examples/s | {' | '.join(COLUMNS)} |")
    print("|---" * (3 + len(COLUMNS)) + "|")
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.workloads or CLIENTS:
            path = Path(scratch, f"{name}.npz")
            script = Path(__file__).parent / "peers" / "networks.py"
            subprocess.run([sys.executable, str(script), name, str(path)], check=True)
            found = profiled(WORKLOADS[name], path)
            print(found.row(), flush=True)
            for operator, spent in found.operators[: options.operators]:
                print(f"  {operator}: {spent:.3f} ms")


if __name__ == "__main__":
    main()
