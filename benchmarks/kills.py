"""Kill real runs at random moments, resume each, and compare it with the run that nobody killed.

A run is `confide run` of three methods with two worker processes. Its whole process group gets
SIGKILL at a moment drawn evenly between its directory's first sign and its end, and `--resume`
takes it to the end. Model, metrics, statement and ledger must then be those of the other run.

`python benchmarks/kills.py [--kills N] [--seed N] [--forked] [--json PATH [--add]]`
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from measure import facts

from confide.engine.checkpoint import DIGEST, MAGIC

METHODS = ("dp-fedavg-c", "scaffold", "fed-cdp-c")
WORDS = (
    *("--method", ",".join(METHODS), "--data", "digits", "--clients", "100", "--workers", "2"),
    *("--set", "model.name=mlp", "--set", "run.evaluate_every=4"),
    *("--set", "run.checkpoint_every=3", "--set", "dp-fedavg-c.E=2"),
    *("--set", "dp-fedavg-c.T=40", "--set", "scaffold.T=20", "--set", "fed-cdp-c.T=10"),
)
COMPARED = ("model.safetensors", "metrics.jsonl", "statement.json")
PATIENCE = 600.0


@dataclass(frozen=True)
class Kill:
    """One kill: when it came, how far the run was, and what is different after the resume."""

    after: float  # seconds since the directory appeared
    releases: int  # in the ledgers when it was killed
    open: int  # of them, charged and not yet recorded as done
    ahead: int  # of them, made after the last checkpoint of their run
    survivors: int  # processes of its group that were there a moment later
    differences: tuple[str, ...]


class Running:
    """The command in a process group of its own; `forked` saves the imports."""

    def __init__(self, out: Path, *, resume: bool, forked: bool) -> None:
        """Start it."""
        self.said = out.with_suffix(".txt")
        words = ["run", *(("--resume", str(out)) if resume else (*WORDS, "--out", str(out)))]
        self.process: Any = mp.get_context("fork").Process(target=self.begin, args=(words, forked))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*multi-threaded.*", DeprecationWarning)
            self.process.start()

    def begin(self, words: list[str], forked: bool) -> None:
        """The life of the process."""
        os.setsid()
        to = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(to, 1)
        os.dup2(to, 2)
        if not forked:
            os.execv(sys.executable, [sys.executable, "-m", "confide", *words])
        from confide.cli import main

        sys.exit(main(words))

    def status(self) -> int:
        """How it ended by itself."""
        self.process.join(PATIENCE)
        return self.process.exitcode

    def kill(self) -> bool:
        """SIGKILL to everyone in the group; False: it had ended before."""
        if self.process.exitcode is not None:
            return False
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join()
        return True

    def appeared(self, out: Path) -> float:
        """The moment at which the run's directory is there."""
        limit = time.monotonic() + PATIENCE
        while not out.exists():
            if self.process.exitcode is not None or time.monotonic() > limit:
                raise SystemExit(f"the run did not begin: {self.said.read_text()[-500:]}")
            time.sleep(0.002)
        return time.monotonic()


def uninterrupted(out: Path, forked: bool) -> float:
    """The run that nobody kills; the seconds from its directory's first sign to its end."""
    run = Running(out, resume=False, forked=forked)
    began = run.appeared(out)
    if run.status():
        raise SystemExit(f"the run failed: {run.said.read_text()[-500:]}")
    return time.monotonic() - began


def killed(out: Path, whole: Path, after: float, forked: bool) -> Kill | None:
    """Kill a new run this long after its directory appeared; None: it had ended by itself."""
    run = Running(out, resume=False, forked=forked)
    began = run.appeared(out)
    time.sleep(max(0.0, began + after - time.monotonic()))
    if not run.kill():
        return None
    survivors = group_after(run.process.pid)
    releases = {name: ledger(out, name)[0] for name in METHODS}
    ahead = sum(len(rows) - reached(out, name) for name, rows in releases.items())
    # Before its run file is written there is nothing to resume, and the same command begins anew.
    again = Running(out, resume=(out / "private/run.toml").is_file(), forked=forked)
    status = again.status()
    found = list(differences(out, whole))
    if status:
        found.append(f"status {status}: {again.said.read_text()[-300:]}")
    rows = [row for part in releases.values() for row in part]
    unfinished = sum(row[-1] is None for row in rows)
    return Kill(round(after, 3), len(rows), unfinished, ahead, survivors, tuple(found))


def group_after(group: int) -> int:
    """How many processes of a killed group are still there after a second at the most."""
    members: list[Path] = []
    for _ in range(100):
        members = [p for p in Path("/proc").glob("[0-9]*/stat") if in_group(p, group)]
        if not members:
            return 0
        time.sleep(0.01)
    return len(members)


def in_group(stat: Path, group: int) -> bool:
    """Whether a process belongs to the group and is no zombie, which nobody may have collected."""
    try:
        state, _, found = stat.read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return False
    return int(found) == group and state != "Z"


def place(out: Path, method: str) -> Path:
    """The directory of one method's run."""
    return out / f"{method}-s0"


def reached(out: Path, method: str) -> int:
    """How many rounds the checkpoint of one method's run has."""
    path = place(out, method) / "private" / "checkpoint.pt"
    if not path.is_file():
        return 0
    body = BytesIO(path.read_bytes()[len(MAGIC) + DIGEST :])
    return torch.load(body, weights_only=False)["progress"].t


def ledger(out: Path, method: str) -> tuple[list[Any], list[Any]]:
    """Every release with its output, and every account's charges in order."""
    path = place(out, method) / "private" / "ledger.sqlite"
    if not path.exists():
        return [], []
    releases = (
        "SELECT round, purpose, key_index, inputs, (SELECT output FROM marks WHERE "
        "marks.release = releases.id AND output IS NOT NULL) FROM releases ORDER BY id"
    )
    charges = (
        "SELECT accounts.name, charges.n, spends.event, spends.count, charges.total FROM charges "
        "JOIN accounts ON accounts.id = charges.account JOIN spends ON spends.id = charges.spend "
        "ORDER BY accounts.name, charges.n"
    )
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as sql:
        if not sql.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            return [], []  # killed while it was made
        return sql.execute(releases).fetchall(), sql.execute(charges).fetchall()


def differences(out: Path, whole: Path) -> Iterator[str]:
    """What is not the same, method by method."""
    for method in METHODS:
        here, there = place(out, method), place(whole, method)
        for name in COMPARED:
            mine, other = (p / "public" / name for p in (here, there))
            if not mine.is_file() or mine.read_bytes() != other.read_bytes():
                yield f"{method}: {name}"
        if ledger(out, method) != ledger(whole, method):
            yield f"{method}: ledger"


def kills(folder: Path, moments: Sequence[float], forked: bool = False) -> Iterator[Kill]:
    """Kill a run at each of these shares of the uninterrupted run's time."""
    whole = folder / "whole"
    length = uninterrupted(whole, forked)
    for number, moment in enumerate(moments):
        found = killed(folder / str(number), whole, moment * length, forked)
        if found is not None:
            yield found


def store(options: argparse.Namespace, done: Sequence[Kill]) -> None:
    """What happened, with what is in the file already, if that is to be kept."""
    old = options.add and options.json.exists()
    made: list[Any] = json.loads(options.json.read_text())["made"] if old else []
    made.append({"seed": options.seed, "machine": facts(), "kills": [asdict(one) for one in done]})
    each = [Kill(**kill) for run in made for kill in run["kills"]]
    body = {
        "heading": "Kills",
        "command": ["confide", "run", *WORDS],
        "forked": options.forked,
        "kills": len(each),
        "with differences": sum(bool(one.differences) for one in each),
        "with survivors": sum(one.survivors > 0 for one in each),
        "with a release open": sum(one.open > 0 for one in each),
        "with releases after the last checkpoint": sum(one.ahead > 0 for one in each),
        "before the first release": sum(one.releases == 0 for one in each),
        "made": made,
    }
    options.json.write_text(json.dumps(body, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--forked", action="store_true", help="fork the runs, to import once")
    parser.add_argument("--json", type=Path, help="write what happened here")
    parser.add_argument("--add", action="store_true", help="keep the kills that are in that file")
    options = parser.parse_args()
    if options.forked:
        import confide.engine.running
        import confide.report  # noqa: F401
    draws = random.Random(options.seed)
    done: list[Kill] = []
    with tempfile.TemporaryDirectory() as folder:
        # Some runs end before their moment comes; further moments stand in for them.
        moments = [draws.random() for _ in range(2 * options.kills)]
        for one in kills(Path(folder), moments, options.forked):
            done.append(one)
            print(f"{len(done)}: {one}", flush=True)
            if len(done) == options.kills:
                break
    bad = [one for one in done if one.differences or one.survivors]
    print(f"{len(done)} kills, {len(bad)} of them with differences or survivors")
    if options.json:
        store(options, done)
    return 1 if bad or len(done) < options.kills else 0


if __name__ == "__main__":
    sys.exit(main())
