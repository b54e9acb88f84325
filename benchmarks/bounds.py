"""What the engine promises about a workload beside its speed: bounds on time and memory."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from math import ceil

import torch
from contest import Found, Timed, verdict
from measure import Row, seconds
from networks import NETWORKS
from sides import Runner
from workloads import Workload

from confide.randomness import Key
from confide.stages import Gaussian

EMPTY, FIRST = 0.010, 1.5
MANY = 1000
CLIENTS = ("10000", "10")


def bounds(runner: Runner, work: Workload, found: Sequence[Found]) -> Iterator[Row]:
    """The rows that belong to this workload."""
    ours = found[0]
    assert isinstance(ours, Timed)
    if work.name == "empty":
        yield bar("a round of 10 empty clients", ours.seconds(), EMPTY)
        yield after_many(runner, ours, work)
        yield held_once(runner)
    if work.name == "W1-MLP":
        firsts = [run["first"] for run in ours.runs]
        yield bar("W1-MLP: the first round, from the imports on", firsts, FIRST)
    if work.unit == "example" or work.name == "W1-MLP":
        yield noise(ours, work)
    for other in found[1:]:
        if work.name == "W2-64" and isinstance(other, Timed) and other.side.name.endswith("ghost"):
            yield memory(ours, other)


def row(task: str, ours: float, peer: str, theirs: float, note: str, unit: str = "s") -> Row:
    ratio = theirs / ours
    return Row(task, ours, peer, theirs, ratio, ratio, ratio, note, None, False, unit)


def bar(task: str, found: Sequence[float], most: float) -> Row:
    ratios = sorted(most / one for one in found)
    ours, ratio = statistics.median(found), statistics.median(ratios)
    return Row(task, ours, "our bar", most, ratio, ratios[0], ratios[-1], "", None, True)


def memory(ours: Timed, other: Timed) -> Row:
    """At most what ghost clipping takes."""
    mine, theirs = (max(run["peak_mib"] for run in side.runs) for side in (ours, other))
    note = verdict(theirs / mine, (1, 1))
    return row("W2-64: memory at its peak", mine, other.side.name, theirs, note, "MiB")


def noise(ours: Timed, work: Workload) -> Row:
    """The share of a round that drawing and adding its noise would take by itself."""
    zeros = torch.zeros(sum(p.numel() for p in NETWORKS[work.network]().parameters()))
    own = Key.from_seed(1).stream(0, None, "noise")
    stage = Gaussian(work.clip * work.noise)

    def shared(purpose: str) -> None:
        raise AssertionError(purpose)

    torch.set_num_threads(1)
    once = statistics.median(seconds(lambda: stage(zeros, shared, own)) for _ in range(20))  # type: ignore[arg-type]
    times = ceil(max(work.sizes) / work.batch) if work.unit == "example" else 1
    whole = statistics.median(ours.seconds())
    note = f"{times * once / whole:.0%} of the round's time, on one core"
    if work.unit == "example":
        note += "; a thread draws it while another computes the gradients"
    return row(f"{work.name}: the noise of a round", times * once, "the whole round", whole, note)


def after_many(runner: Runner, ours: Timed, work: Workload) -> Row:
    """Rounds under a budget stay as quick as the first ones."""
    way = ours.runs[0]["way"]
    options = ("--variant", "budgeted", "--rounds", str(MANY))
    found = runner.run(ours.side, way, work, *options)["seconds"]
    first, last = (statistics.median(part) for part in (found[:100], found[-100:]))
    note = verdict(first / last, (0.9, 0.8))
    task = f"a round with a budget, after {MANY:,} rounds"
    return row(task, last, "the first hundred rounds", first, note)


def held_once(runner: Runner) -> Row:
    """Ten thousand clients share the records; nothing is held for each of them."""
    many, few = (runner.script("held_once.py", clients)["peak_mib"] for clients in CLIENTS)
    note = verdict(few / many, (0.8, 0.8))
    return row("memory of MNIST dealt to 10,000 clients", many, "to 10 clients", few, note, "MiB")
