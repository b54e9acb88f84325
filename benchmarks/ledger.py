"""How long a ledger takes to record a release and to say what is left.

The peer is SQLite alone: one row, committed and synced, which is what the disk takes in any case.

`python benchmarks/ledger.py [--json PATH [--add]] [--only TEXT] [--repeats N] [--docs]`
"""

from __future__ import annotations

import itertools
import sqlite3
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import dp_accounting as dp
import numpy as np
from measure import Benchmark, Comparison, Work, main

from confide.accounting.filters import PersonalBudgets
from confide.accounting.relations import Relation
from confide.budgets import caps_of, charge_of
from confide.ledger import Charge, Ledger, Release, Scope

SEED = 1
CLIENTS = 100_000
EVENT = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(4.0))
NAMES = [f"client/{k}" for k in range(CLIENTS)]
NUMBERS = itertools.count()


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@cache
def ledger(rounds: int) -> Ledger:
    """A ledger of all clients with different budgets, the first of which took part in `rounds`."""
    epsilons = np.random.default_rng(SEED).uniform(4.0, 8.0, CLIENTS)
    budgets = PersonalBudgets(epsilons, np.full(CLIENTS, 1e-6), Relation.ADD_REMOVE)
    caps = caps_of(budgets, NAMES, Scope("client", "world", Relation.ADD_REMOVE))
    made = Ledger.create(Path(folder().name) / f"{rounds}.sqlite", caps)
    for _ in range(rounds):
        made.intend(release(charge(made, 1)))
    return made


def charge(made: Ledger, clients: int) -> Charge:
    return charge_of(EVENT, NAMES[:clients], made.cap(NAMES[0]).scope)


def release(*charges: Charge) -> Release:
    number = next(NUMBERS)
    return Release(number, "update", f"key/{number}", "0" * 64, charges)


def intend(clients: int) -> Work:
    made = ledger(0)
    one = charge(made, clients)
    return lambda: made.intend(release(one))


def left(rounds: int) -> Work:
    made, numbers = ledger(rounds), np.random.default_rng(SEED)
    first = rounds > 0

    def ask() -> object:
        return made.left(NAMES[0] if first else NAMES[int(numbers.integers(CLIENTS))])

    return ask


def sqlite_alone() -> Work:
    path = Path(folder().name) / f"alone{next(NUMBERS)}.sqlite"
    sql = sqlite3.connect(path, isolation_level=None)
    sql.execute("PRAGMA journal_mode = WAL")
    sql.execute("PRAGMA synchronous = FULL")
    sql.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, spend REAL)")
    return lambda: sql.execute("INSERT INTO rows (spend) VALUES (0.25)")


def comparisons() -> Iterator[Comparison]:
    peer = "SQLite alone, one synced row"
    for clients in (1, 1000):
        name = "one client" if clients == 1 else f"{clients:,} clients"
        task = f"record a release that is charged to {name} of {CLIENTS:,}"
        yield Comparison(task, lambda clients=clients: intend(clients), peer, sqlite_alone)
    task = f"what is left for one of {CLIENTS:,} clients"
    yield Comparison(task, lambda: left(0), "our bar", 0.001, bar=True)
    yield Comparison(f"{task}, after 2,000 rounds", lambda: left(2000), "our bar", 0.001, bar=True)


if __name__ == "__main__":
    main(Benchmark("ledger", "Ledger", comparisons, (SEED,)), __doc__)
