"""How fast rounds are on one GPU: pfl's CIFAR-10 workload (W3) beside pfl and the plain loop.

As `benchmarks/engine.py`, but every side runs with this Python, and its data lie on the device. The
records are synthetic, of CIFAR-10's shape.

`python benchmarks/engine_cuda.py [--json PATH] [--repeats N] [--rounds N] [--only TEXT]
[--commit TEXT] [--docs]`
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from contest import Record, checked, measured, plain_of, rows, samples_of
from measure import document, facts, show
from sides import CUDA_SIDES, Runner
from workloads import WORKLOADS

HEADING = "Engine on a GPU"
GOALS = {("W3", "pfl"): (10.0, 10.0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the rows here")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=10, help="timed ones in each process")
    parser.add_argument("--only", default="", help="only others with this text in their name")
    parser.add_argument("--commit", help="where the files are from, on a machine without git")
    parser.add_argument("--docs", action="store_true", help="only write docs/benchmarks.md anew")
    options = parser.parse_args()
    if options.docs:
        return document()
    machine = facts() | {"gpu": torch.cuda.get_device_name()}
    machine |= {"commit": options.commit} if options.commit else {}
    work = WORKLOADS["W3"]
    timed = ("--rounds", str(options.rounds))
    sides = [
        replace(side, ways={name: (*way, *timed) for name, way in side.ways.items()})
        for side in CUDA_SIDES
        if side is CUDA_SIDES[0] or options.only.lower() in side.name.lower()
    ]
    record = Record.opened(HEADING, options.json, add=False)
    with tempfile.TemporaryDirectory() as scratch:
        runner = Runner(None, Path(scratch), quick=False)
        found = checked(runner, work, sides, plain_of(CUDA_SIDES, work), {})
        measured(runner, work, found, options.repeats)
    about = {"machine": machine, "repeats": options.repeats, "only": options.only, "quick": False}
    record.store(about, [], samples_of(found))
    table = list(rows("W3: a round on the GPU", work, found, GOALS))
    record.store(about, table, samples_of(found))
    show(HEADING, table, machine)
    return None


if __name__ == "__main__":
    main()
