"""How fast the accountant is, beside the accountants that people use.

Every comparison runs both sides in turn, several times, in one process, and is reported as a ratio
with its spread, so that a slow or busy machine changes little. What is not installed is named as
such. `python benchmarks/accounting.py [--json PATH] [--repeats N]`
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import dp_accounting as dp
from rich.console import Console
from rich.table import Table

from confide.accounting import account, calibration, filters
from confide.accounting.events import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.mechanisms import Given, read
from confide.accounting.relations import Relation

UDP_FL_SECONDS = 50.0  # what UDP-FL reports for its own calibration at T = 10,000
DELTA = 1e-5


@dataclass(frozen=True)
class Row:
    """One comparison; times are medians in seconds, the ratio is theirs / ours."""

    task: str
    ours: float
    peer: str
    theirs: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    note: str


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(
    task: str,
    ours: Callable[[], object],
    peer: str,
    theirs: Callable[[], object] | str | float,
    repeats: int,
    note: str = "",
) -> Row:
    """Time both in turn; a text says why the peer is not timed, a number is a reported time."""
    ours()  # imports and caches of both sides are paid before the clock starts
    if callable(theirs):
        theirs()
        pairs = [(seconds(ours), seconds(theirs)) for _ in range(repeats)]
        ratios = sorted(b / a for a, b in pairs)
        return Row(
            task,
            statistics.median(a for a, _ in pairs),
            peer,
            statistics.median(b for _, b in pairs),
            statistics.median(ratios),
            ratios[0],
            ratios[-1],
            note,
        )
    mine = statistics.median(seconds(ours) for _ in range(repeats))
    if isinstance(theirs, str):
        return Row(task, mine, peer, None, None, None, None, theirs)
    return Row(task, mine, peer, theirs, theirs / mine, None, None, note)


def sampled(multiplier: float, rate: float, steps: int) -> SelfComposedDpEvent:
    return SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(multiplier)), steps)


def calibrations(repeats: int) -> list[Row]:
    words = read(Given("gaussian", rate=0.01, steps=10_000))

    def ours() -> float:
        return calibration.calibrate(words, 2.0, DELTA).scale

    def dp_accounting() -> float:
        return dp.calibrate_dp_mechanism(
            lambda: dp.pld.PLDAccountant(value_discretization_interval=1e-3),
            lambda z: sampled(z, 0.01, 10_000),
            2.0,
            DELTA,
            tol=1e-3,
        )

    task = "calibrate: Poisson Gaussian, q = .01, T = 10,000"
    rows = [
        compare(task, ours, "dp-accounting (PLD, grid 1e-3)", dp_accounting, repeats),
        compare(task, ours, "Opacus (PRV)", opacus_calibration(), repeats),
        compare(
            task,
            ours,
            "UDP-FL, as reported",
            UDP_FL_SECONDS,
            repeats,
            "a citation, another machine",
        ),
    ]
    for noise in ("gaussian", "laplace", "staircase"):
        for rate in (None, 0.01):
            given = read(Given(noise, rate=rate, steps=10_000))
            name = f"calibrate: {noise}, T = 10,000, {'not sampled' if rate is None else 'q = .01'}"
            bar = 0.3 if rate is None else 1.0
            rows.append(
                compare(
                    name,
                    lambda given=given: calibration.calibrate(given, 2.0, DELTA),
                    "our bar",
                    bar,
                    repeats,
                )
            )
    return rows


def opacus_calibration() -> Callable[[], object] | str:
    try:
        from opacus.accountants.utils import get_noise_multiplier
    except ImportError:
        return "not installed"

    def run() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return get_noise_multiplier(
                target_epsilon=2.0,
                target_delta=DELTA,
                sample_rate=0.01,
                steps=10_000,
                accountant="prv",
            )

    return run


def epsilons(repeats: int) -> list[Row]:
    rows: list[Row] = []
    for multiplier, rate in ((4.0, 0.01), (1.0, 0.001)):
        event = sampled(multiplier, rate, 1_000_000)

        def theirs(event: SelfComposedDpEvent = event) -> float:
            return dp.pld.PLDAccountant().compose(event).get_epsilon(DELTA)

        rows.append(
            compare(
                f"epsilon: Poisson Gaussian, z = {multiplier:g}, q = {rate:g}, T = 1,000,000",
                lambda event=event: account.epsilon(event, DELTA),
                "dp-accounting (PLD, its grid 1e-4)",
                theirs,
                repeats,
                f"ours {account.epsilon(event, DELTA).epsilon:.5f}, theirs {theirs():.5f}",
            )
        )
    event = sampled(4.0, 0.01, 10_000)
    rows.append(
        compare(
            "epsilon: Poisson Gaussian, z = 4, q = .01, T = 10,000",
            lambda: account.epsilon(event, DELTA),
            "Opacus (PRV)",
            opacus_epsilon(),
            repeats,
        )
    )
    return rows


def opacus_epsilon() -> Callable[[], object] | str:
    try:
        from opacus.accountants import PRVAccountant
    except ImportError:
        return "not installed"

    def run() -> float:
        accountant = PRVAccountant()
        accountant.history = [(4.0, 0.01, 10_000)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return accountant.get_epsilon(delta=DELTA)

    return run


def budget_checks(repeats: int) -> list[Row]:
    gaussian = GaussianDpEvent(4.0)
    samplings = {
        "not sampled": gaussian,
        "Poisson": PoissonSampledDpEvent(0.01, gaussian),
        "fixed size": SampledWithoutReplacementDpEvent(1000, 10, gaussian),
    }
    rows: list[Row] = []
    for name, event in samplings.items():
        fixed = isinstance(event, SampledWithoutReplacementDpEvent)
        relation = Relation.REPLACE_ONE if fixed else Relation.ADD_REMOVE
        spent = filters.RenyiFilter(1e6, DELTA, relation)
        for _ in range(10_000):
            spent.spend(event)
        rows.append(
            compare(
                f"budget check at round 10,000, {name}",
                lambda spent=spent, event=event: spent.fits(event),
                "Flower RdpAccountant.would_exceed",
                flower_check(10_000)
                if name == "not sampled"
                else "its strategies take no sampling",
                repeats,
            )
        )
    return rows


def flower_check(rounds: int) -> Callable[[], object] | str:
    try:
        from flwr.serverapp import GaussianPrivacyEvent, PrivacyConfig, RdpAccountant
    except ImportError:
        return "not installed"
    accountant = RdpAccountant(PrivacyConfig(max_epsilon=1e6, delta=DELTA))
    event = GaussianPrivacyEvent(noise_multiplier=4.0)
    for _ in range(rounds):
        accountant.record(event)
    return lambda: accountant.would_exceed(event)


def machine() -> dict[str, str]:
    model = platform.processor() or "unknown"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if "model name" in line), model)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    facts = {
        "cpu": model,
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "commit": commit.stdout.strip() or "not a checkout",
    }
    for name in ("numpy", "scipy", "dp-accounting", "opacus", "flwr"):
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            facts[name] = "not installed"
    return facts


def show(rows: list[Row], facts: dict[str, str]) -> None:
    table = Table(title="Accounting: seconds, and how many times longer the other takes")
    for column in ("task", "ours", "other", "its time", "ratio", "spread", ""):
        table.add_column(column)
    for row in rows:
        spread = "" if row.ratio_low is None else f"{row.ratio_low:.2g} .. {row.ratio_high:.2g}"
        table.add_row(
            row.task,
            f"{row.ours:.3g}",
            row.peer,
            "" if row.theirs is None else f"{row.theirs:.3g}",
            "" if row.ratio is None or not math.isfinite(row.ratio) else f"{row.ratio:.3g}",
            spread,
            row.note,
        )
    console = Console()
    console.print(table)
    console.print("  ".join(f"{name} {value}" for name, value in facts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the rows here")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rows = [
        *calibrations(options.repeats),
        *epsilons(options.repeats),
        *budget_checks(options.repeats),
    ]
    facts = machine()
    show(rows, facts)
    if options.json:
        body = {"machine": facts, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(body, indent=2) + "\n")


if __name__ == "__main__":
    main()
