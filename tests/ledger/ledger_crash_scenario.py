"""A small run with a ledger, killed with SIGKILL at any chosen point; run as a program.

    python ledger_crash_scenario.py KIND DIRECTORY STRIDE [LIBRARY]
    python ledger_crash_scenario.py race DIRECTORY WRITERS
    python ledger_crash_scenario.py unsynced DIRECTORY FULL-or-OFF LIBRARY

It plays the run once to count its points and then once per STRIDE points, each time in a forked
process that kills itself there, in DIRECTORY/<point>. The KINDs of points: before each SQL
statement and each file operation of Python ("statement"), before each instruction of SQLite's
virtual machine ("instruction"), before each system call that changes a file ("syscall", counted by
LIBRARY, which must be preloaded). Before the next is after the one before; the last point of all
is the end of the run.

"race" lets processes compete for one budget and prints how many releases each was allowed.
"unsynced" prints, for each moment at which a release leaves, the files that were written but not
synced yet, with SQLite's own syncs on or off.
"""

import contextlib
import ctypes
import functools
import gc
import hashlib
import json
import os
import signal
import sqlite3
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confide.ledger import BudgetSpent, Cap, Charge, Ledger, Release, Scope, file

WORLD = Scope("client", "world", "add-remove", ("mu^2",))
SERVER = Scope("client", "server", "zero-out", ("renyi@2", "renyi@8"))
EVENT = '{"type":"GaussianDpEvent","noise_multiplier":2.0}'
COST = 0.25
ALLOWED = 3  # releases that fit
CLIENTS = tuple(f"client/{k}" for k in range(3))


def release(number: int) -> Release:
    """The release of one round, charged to the world and to each client."""
    event = the_event()
    return Release(
        round=number,
        purpose="update",
        key_index=f"run/{number}/update",
        inputs=digest(f"inputs {number}"),
        charges=(
            Charge(("world",), WORLD, event, (COST,)),
            Charge(CLIENTS, SERVER, event, (COST, 4 * COST)),
        ),
    )


def the_event() -> Any:
    """The event of every release."""
    from confide.accounting import serial

    return serial.load(EVENT)


def spare_the_accountants() -> None:
    """Let events be their own texts, so that no forked process carries the accountants along.

    They take no part in what is tested here, and would make each of the many forks 20 times slower.
    """
    stand_in = types.ModuleType("confide.accounting.serial")
    vars(stand_in).update(load=str, dump=str, is_unprotected=lambda event: False)
    sys.modules[stand_in.__name__] = stand_in


def digest(text: str) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def play(directory: Path) -> None:
    """Start or resume the run: every release leaves (into a synced file) once it is allowed."""
    path = directory / "ledger.sqlite"
    caps = {"world": Cap(WORLD, (ALLOWED * COST,))}
    ledger = Ledger.open(path) if path.exists() else Ledger.create(path, caps)
    with ledger, contextlib.suppress(BudgetSpent):
        with contextlib.suppress(Exception):
            ledger.admit({client: Cap(SERVER, (1.0, 100.0)) for client in CLIENTS})
        for number in (0, 1, 1, 2, 3):  # the second 1 is a replay, 3 does not fit
            with ledger.release(release(number)) as issue:
                output = digest(f"output {number}")
                leave(directory / "released", f"{release(number).key_index} {output}\n")
                issue.output = output


def leave(file: Path, line: str) -> None:
    """Let a release leave: once this has returned, everybody may have seen it."""
    handle = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(handle, line.encode())
    os.fsync(handle)
    os.close(handle)


class Points:
    """Counts the points that a process passes, and kills the process at one of them."""

    def __init__(self, last: int) -> None:
        self.passed, self.last = 0, last

    def __call__(self) -> None:
        self.passed += 1
        if self.passed == self.last:
            os.kill(os.getpid(), signal.SIGKILL)

    def before(self, call: Callable) -> Callable:
        @functools.wraps(call)
        def watched(*arguments, **named):
            self()
            return call(*arguments, **named)

        return watched


def watch_statements(point: Points) -> Callable[[], int]:
    class Watched(sqlite3.Connection):
        execute = point.before(sqlite3.Connection.execute)
        executemany = point.before(sqlite3.Connection.executemany)
        close = point.before(sqlite3.Connection.close)

    sqlite3.connect = functools.partial(sqlite3.connect, factory=Watched)
    for name in ("open", "write", "fsync", "close", "link", "unlink"):
        setattr(os, name, point.before(getattr(os, name)))
    return lambda: point.passed


def watch_instructions(point: Points) -> Callable[[], int]:
    class Watched(sqlite3.Connection):
        def __init__(self, *arguments, **named) -> None:
            super().__init__(*arguments, **named)
            self.set_progress_handler(point, 1)

    sqlite3.connect = functools.partial(sqlite3.connect, factory=Watched)
    return lambda: point.passed


def watch_syscalls(library: str, last: int) -> Callable[[], int]:
    shim = ctypes.CDLL(library)
    shim.kill_at(ctypes.c_long(last))
    return shim.passed


def one(kind: str, directory: Path, last: int, library: str) -> int | None:
    """Play the run in a forked process; how many points it passed, or None if it was killed."""
    directory.mkdir()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            if kind == "statement":
                count = watch_statements(Points(last))
            elif kind == "instruction":
                count = watch_instructions(Points(last))
            else:
                count = watch_syscalls(library, last)
            play(directory)
            passed = count()
            if last == passed + 1:
                os.kill(os.getpid(), signal.SIGKILL)
            (directory / "passed").write_text(str(passed))
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(process, 0)
    if os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGKILL:
        return None
    if ended != 0:
        raise RuntimeError(f"{directory}: the run failed with status {ended}")
    return int((directory / "passed").read_text())


def race(directory: Path, writers: int) -> list[int]:
    """How many releases each of several processes was allowed, all under one budget for 40."""
    path = directory / "ledger.sqlite"
    Ledger.create(path, {"world": Cap(WORLD, (40 * COST,))}).close()
    start, go = os.pipe()
    answers: list[int] = []
    for writer in range(writers):
        answer, say = os.pipe()
        if os.fork() == 0:
            os.read(start, 1)
            os.write(say, bytes([spend_all(path, writer)]))
            os._exit(0)
        os.close(say)
        answers.append(answer)
    os.write(go, b"go" * writers)
    return [os.read(answer, 1)[0] for answer in answers]


def spend_all(path: Path, writer: int) -> int:
    """Release until the budget is spent; how many releases were allowed."""
    with Ledger.open(path) as ledger:
        for number in range(100):
            charge = Charge(("world",), WORLD, the_event(), (COST,))
            mine = Release(number, "race", f"{writer}/{number}", digest(""), (charge,))
            try:
                ledger.intend(mine)
            except BudgetSpent:
                return number
    return 100


def unsynced(directory: Path, library: str) -> list[list[str]]:
    """The files that were written but not synced yet, whenever a release left."""
    shim, moments, write = ctypes.CDLL(library), [], os.write

    def listing(handle: int, data: bytes) -> int:
        files = [os.readlink(f"/proc/self/fd/{f}") for f in range(3, 99) if shim.unsynced(f)]
        # The index of the write-ahead file is rebuilt after a crash: SQLite never syncs it.
        moments.append(sorted({Path(f).name for f in files if not f.endswith("-shm")}))
        return write(handle, data)

    os.write = listing
    play(directory)
    return moments


def main(kind: str, into: str, stride: str, library: str = "") -> None:
    spare_the_accountants()
    if kind == "race":
        print(json.dumps(race(Path(into), int(stride))))
        return
    if kind == "unsynced":
        file.PRAGMAS = tuple(one.replace("FULL", stride) for one in file.PRAGMAS)
        print(json.dumps(unsynced(Path(into), library)))
        return
    gc.freeze()  # a forked process then shares the imported modules instead of copying them
    gc.disable()
    total = one(kind, Path(into, "whole"), 0, library)
    if total is None:
        raise RuntimeError("the run was killed although no point was chosen")
    points = range(1, total + 2, int(stride))
    survived = [at for at in points if one(kind, Path(into, str(at)), at, library) is not None]
    print(
        json.dumps({"points": total + 1, "killed": len(points) - len(survived), "alive": survived})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
