"""The programs that `benchmarks/engine.py` times, where they are installed, and how they start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workloads import Workload

HERE = Path(__file__).parent
TORCH = "torch==2.13.0"  # first, so that a machine without a GPU stays with the build it has
ENVIRONMENTS = {
    "pfl": "pfl[pytorch]==0.6.0",
    "flower": "flwr[simulation]==1.41.0",
    "opacus": "opacus==1.6.0",
}
TORCHRUN = ("torchrun", "--standalone", "--nproc_per_node", "2")
SECONDS = 1800  # no single process takes longer


@dataclass(frozen=True)
class Side:
    """A program to time: where it is installed, and the ways of running it, by name."""

    name: str
    script: str
    ways: Mapping[str, tuple[str, ...]]  # what comes after the workload; or before, with torchrun
    environment: str = ""  # this one
    unit: str = "client"
    comparable: bool = True  # its mathematics is the plain loop's
    agrees: float = 1e-6  # with the plain loop in float64; some others take norms in float32
    margin: bool = False  # it clips to C (1 - 2^-21), as the plain loop then does, too
    most: int = 99  # this often at the most, because it is slow
    but: tuple[str, ...] = ()  # not on these workloads

    def verified(self) -> list[str]:
        """The ways that add up differently: the number of threads is no such thing."""
        processes = [way for way, options in self.ways.items() if options == TORCHRUN]
        return [next(iter(self.ways)), *processes]

    def fits(self, work: Workload) -> bool:
        return self.unit == work.unit and work.name not in self.but


ONE_THREAD = ("--threads", "1")
THREADS = {"one thread": ONE_THREAD, "all threads": ()}
OURS = {"as it is": ()}
SLOW = ("W1-CNN", "ResNet-18", "empty")
SIDES = (
    Side("confide", "run_confide.py", OURS, agrees=1e-10, margin=True),
    Side("pfl", "run_pfl.py", {"one process": (), "two processes": TORCHRUN}, "pfl"),
    Side(
        "Flower",
        "run_flower.py",
        {"one processor to a client": ()},
        "flower",
        most=1,
        but=("ResNet-18", "empty"),
    ),
    Side("plain loop", "plain.py", THREADS, most=1, but=SLOW),
    Side("confide", "run_confide.py", OURS, unit="example", agrees=1e-10, margin=True),
    *(
        Side(
            f"Opacus, {how}",
            "run_opacus.py",
            {name: ("--variant", how, *options) for name, options in THREADS.items()},
            "opacus",
            "example",
            most=most,
        )
        for how, most in (("ghost", 99), ("hooks", 1))
    ),
    Side(
        "the step without privacy",
        "plain.py",
        {name: ("--variant", "without-privacy", *options) for name, options in THREADS.items()},
        unit="example",
        comparable=False,
    ),
    Side("plain loop", "plain.py", {"one thread": ONE_THREAD}, unit="example", most=1),
)

ON_CUDA = ("--device", "cuda")
CUDA_SIDES = (
    Side("confide", "run_confide.py", {"compiled, float32": ON_CUDA}, agrees=1e-10, margin=True),
    *(
        Side(
            f"confide, strategy = {name}",
            "run_confide.py",
            {name: (*ON_CUDA, "--variant", name)},
            comparable=name == "cohort",  # products of fewer bits differ by as much
            agrees=1e-10,
            margin=True,
        )
        for name in ("cohort", "tf32", "bf16")
    ),
    Side("pfl", "run_pfl.py", {"one process": ON_CUDA}),
    Side("plain loop", "plain.py", {"one process": ON_CUDA}),
)


class Missing(Exception):
    """A side is not installed or does not do this; the message goes into the table."""


@dataclass(frozen=True)
class Runner:
    """Starts the sides' processes."""

    environments: Path | None
    scratch: Path
    quick: bool

    def program(self, environment: str, name: str) -> str:
        if not environment:
            return sys.executable
        if self.environments is None:
            raise Missing("not measured: no --environments")
        found = self.environments / environment / "bin" / name
        if not found.exists():
            raise Missing(f"not installed: {ENVIRONMENTS[environment]} (--install)")
        return str(found)

    def run(self, side: Side, way: str, work: Workload, *more: str) -> dict[str, Any]:
        """What one process says about itself; `Missing` if it cannot be run."""
        options = side.ways[way]
        launched = options == TORCHRUN
        program = self.program(side.environment, "torchrun" if launched else "python")
        command = [program, *(TORCHRUN[1:] if launched else ()), str(HERE / side.script)]
        command += [work.name, "--initial", str(self.initial(work)), *more]
        command += () if launched else options
        if self.quick:
            command += ["--rounds", "1", "--cohort", "4"]
        return self._said(command)

    def script(self, name: str, *options: str) -> dict[str, Any]:
        """What one of the scripts here says about itself."""
        return self._said([sys.executable, str(HERE / name), *options])

    def _said(self, command: list[str]) -> dict[str, Any]:
        # Each side with the threads it takes by itself, and nobody is called home to.
        threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {k: v for k, v in os.environ.items() if k not in threads}
        environment["FLWR_TELEMETRY_ENABLED"] = "0"
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                env=environment,
                cwd=self.scratch,
            )
        except subprocess.TimeoutExpired:
            raise Missing(f"failed: not done after {SECONDS} s") from None
        lines = [line for line in done.stdout.splitlines() if line.startswith('{"workload"')]
        if done.returncode or not lines:
            said = [line for line in done.stderr.splitlines() if line.strip()]
            raise Missing(f"failed: {said[-1].strip() if said else 'it said nothing'}")
        return json.loads(lines[-1])

    def initial(self, work: Workload) -> Path:
        path = self.scratch / f"{work.name}.npz"
        if not path.exists():
            script = [sys.executable, str(HERE / "networks.py"), work.name, str(path)]
            subprocess.run(script, check=True)
        return path


def install(folder: Path) -> None:
    """Make the environments that are not there."""
    for name, package in ENVIRONMENTS.items():
        place = folder / name
        if not place.exists():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
            for wanted in (TORCH, package):
                subprocess.run([str(place / "bin" / "pip"), "install", wanted], check=True)
