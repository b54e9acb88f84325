"""How often an audit accuses what is right, how much it sees, and how long it takes.

`python benchmarks/audit.py [--only TEXT] [--json PATH [--add]]`, or `--docs`
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row, document, facts, show

from confide.accounting import gdp
from confide.audit.bounds import epsilon_if_gaussian, epsilon_of_counts
from confide.audit.scores import chosen
from confide.audit.whole import audit
from confide.channels import Sum
from confide.cohorts import All, Poisson
from confide.engine.rounds import Past, Round, Sizes
from confide.methods.making import make
from confide.stages import (
    Clip,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Quantize,
    RandomizedResponse,
    Skellam,
    Stage,
    Staircase,
)

HEADING = "The audit"
AUDITS, DRAWS, DELTA = 200, 600, 1e-5
FAILS, WARNS = 2, 18
SCALAR = Sizes(clients=8, records=8, layers=(1,))
VECTOR = Sizes(clients=8, records=8, layers=(2, 2))
POWER_DRAWS, POWER_SEEDS = 10_000, range(20)
POWERS = ((4.0, "Gaussian", 3.3), (4.0, "Clopper-Pearson", 1.6), (1.0, "Gaussian", 0.5))
SLOWEST = ("nbafl", "cpsgd", "fed-cdp-decay", "dp-fedags-c", "dp-fedavg-c")
SECONDS = 60.0
SEEDS = {
    "calibration": f"0 to {AUDITS - 1} (calibration)",
    "powers": f"0 to {len(POWER_SEEDS) - 1} (powers)",
    "times": "0 (times)",
}


@dataclass(frozen=True)
class Once:
    """A method of one round."""

    what: Round

    def round(self, past: Past) -> Round | None:
        """The round, and the end."""
        return self.what if past.t == 0 else None


def right() -> Iterator[tuple[str, Round, Sizes]]:
    """Mechanisms that do what is claimed, and give away all of it at some canary."""

    def each(*stages: Stage) -> Round:
        return Round(cohort=All(), upload=stages)

    for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0):
        noise = Gaussian(2 / gdp.mu(epsilon, DELTA))
        yield f"Gaussian, epsilon {epsilon:g}", each(Clip(1.0), noise), VECTOR
        central = Round(
            cohort=Poisson(0.5),
            upload=(Clip(1.0),),
            channel=Sum(),
            publish=(Gaussian(1 / gdp.mu(epsilon, DELTA) / 4),),
        )
        yield f"Gaussian on the sum, epsilon {epsilon:g}", central, VECTOR
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        l1 = Clip(1.0, p=1)
        yield f"Laplace, epsilon {epsilon:g}", each(l1, Laplace(2 / epsilon)), SCALAR
        yield f"staircase, epsilon {epsilon:g}", each(l1, Staircase(epsilon, 2.0)), SCALAR
        coin = RandomizedResponse(2, 1.0, epsilon)
        yield f"randomised response, epsilon {epsilon:g}", each(coin), SCALAR
    levels = Quantize(9, 1.0, norm=1.0)
    for variance in (30.0, 120.0):
        yield (
            f"Skellam, variance {variance:g}",
            each(Clip(1.0), levels, Skellam(levels.step, variance)),
            SCALAR,
        )
        discrete = DiscreteGaussian(levels.step, variance)
        yield f"discrete Gaussian, {variance:g}", each(Clip(1.0), levels, discrete), SCALAR


def calibration() -> Iterator[Row]:
    """Whole audits of correct mechanisms, one seed after the other."""
    known = list(right())
    verdicts: list[str] = []
    accused: list[str] = []
    for seed in range(AUDITS):
        name, r, sizes = known[seed % len(known)]
        found = audit(Once(r), sizes, draws=DRAWS, seed=seed)
        verdicts.append(found.verdict)
        if found.verdict != "pass":
            accused.append(f"{name}, seed {seed}: {found.verdict}")
    told = "; ".join(accused) or "none is accused"
    for verdict, most in (("fail", FAILS), ("warn", WARNS)):
        count = verdicts.count(verdict)
        task = f"{verdict.upper()}s in {AUDITS} audits of {len(known)} mechanisms that are right"
        yield bar(task, count, "our bar, at most", most, (most + 1) / (count + 1), "audits", told)
        told = ""


def powers() -> Iterator[Row]:
    """What is seen of a Gaussian mechanism in so many draws of each world."""
    for epsilon, bound, least in POWERS:
        found = float(np.mean([seen(epsilon, bound, seed) for seed in POWER_SEEDS]))
        task = f"{bound} bound on a Gaussian mechanism of epsilon {epsilon:g}"
        note = f"{POWER_DRAWS} draws of each world, mean of {len(POWER_SEEDS)}"
        yield bar(task, found, "our bar, at least", least, found / least, "ε", note)


def seen(epsilon: float, bound: str, seed: int) -> float:
    """Half of the draws choose the test, half are counted: the best lower bound at 95 %."""
    random, mu, half = np.random.default_rng(seed), gdp.mu(epsilon, DELTA), POWER_DRAWS // 2
    ins, outs = random.normal(mu, size=(POWER_DRAWS, 1)), random.normal(size=(POWER_DRAWS, 1))
    way = epsilon_if_gaussian if bound == "Gaussian" else epsilon_of_counts
    tests = chosen(ins[:half], outs[:half], np.ones(1), DELTA)
    bounds = [way(one.counts(ins[half:], outs[half:]), DELTA, 0.05 / len(tests)) for one in tests]
    return max(bounds, default=0.0)


def times() -> Iterator[Row]:
    """A whole audit as the command makes it."""
    for name in SLOWEST:
        method: Any = make(name, {})
        began = time.perf_counter()
        found = audit(method)
        took = time.perf_counter() - began
        note = f"{found.verdict}; {found.worst.draws} draws of each world and canary, at the least"
        yield bar(f"one audit of {name}", took, "our bar", SECONDS, SECONDS / took, "s", note)


def bar(
    task: str, ours: float, peer: str, theirs: float, ratio: float, unit: str, note: str
) -> Row:
    """A number beside the one that we promise; the ratio is at least 1 where it is kept."""
    return Row(task, ours, peer, theirs, ratio, None, None, note, None, True, unit)


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "calibration": calibration,
    "powers": powers,
    "times": times,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", choices=("", *PARTS), help="one part")
    parser.add_argument(
        "--repeats", type=int, default=1, choices=(1,), help="seeds are the repeats"
    )
    parser.add_argument("--json", type=Path, help="also write the rows here")
    parser.add_argument("--add", action="store_true", help="keep the runs that are in that file")
    parser.add_argument("--docs", action="store_true", help="only write docs/benchmarks.md anew")
    options = parser.parse_args()
    if options.docs:
        return document()
    rows = [row for name, part in PARTS.items() if options.only in ("", name) for row in part()]
    found = facts()
    show(HEADING, rows, found)
    if options.json:
        old = options.add and options.json.exists()
        body: dict[str, Any] = json.loads(options.json.read_text()) if old else {"runs": []}
        seeds = [SEEDS[name] for name in PARTS if options.only in ("", name)]
        run = {"machine": found, "seeds": seeds, "repeats": 1, "only": options.only}
        body["heading"] = HEADING
        body["runs"].append({**run, "rows": [asdict(row) for row in rows]})
        options.json.write_text(json.dumps(body, indent=2) + "\n")
    return None


if __name__ == "__main__":
    main()
