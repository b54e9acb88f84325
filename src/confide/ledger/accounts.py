"""The rows of accounts, releases and charges: written inside a transaction, read by look-ups."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from confide.ledger import chain, totals
from confide.ledger.records import Cap, Charge, LedgerError, Release, Scope

Caps = dict[int, Cap]
"""The caps read so far, by row; a row never changes, so they never go stale."""

Row = tuple[Any, ...]


def admit(sql: sqlite3.Connection, seq: int, caps: Mapping[str, Cap]) -> None:
    """Insert new accounts, and each different cap among them once."""
    (cap_row,) = sql.execute("SELECT COALESCE(MAX(id), 0) FROM caps").fetchone()
    (account_row,) = sql.execute("SELECT COALESCE(MAX(id), 0) FROM accounts").fetchone()
    rows: dict[Cap, int] = {}
    for cap in caps.values():
        rows.setdefault(cap, cap_row + len(rows) + 1)
    sql.executemany(
        "INSERT INTO caps VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(row, seq, *scope_row(cap.scope), totals.pack(cap.limits)) for cap, row in rows.items()],
    )
    sql.executemany(
        "INSERT INTO accounts VALUES (?, ?, ?, ?)",
        [(account_row + i, seq, name, rows[caps[name]]) for i, name in enumerate(caps, 1)],
    )


def find(sql: sqlite3.Connection, name: str, known: Caps) -> tuple[int, Cap]:
    """An account's row number and its cap."""
    found = sql.execute("SELECT id, cap FROM accounts WHERE name = ?", (name,)).fetchone()
    if found is None:
        raise LedgerError(f"the ledger has no account {name!r}; Ledger.admit adds accounts")
    account, row = found
    if row not in known:
        unit, observer, relation, parts, limits = sql.execute(
            "SELECT unit, observer, relation, parts, limits FROM caps WHERE id = ?", (row,)
        ).fetchone()
        scope = Scope(unit, observer, relation, tuple(json.loads(parts)))
        known[row] = Cap(scope, totals.unpack(limits))
    return account, known[row]


def latest(sql: sqlite3.Connection, account: int, parts: int) -> tuple[int, totals.Vector]:
    """How often an account was charged so far, and its total: one look-up in the key."""
    newest = sql.execute(
        "SELECT n, total FROM charges WHERE account = ? ORDER BY n DESC LIMIT 1", (account,)
    ).fetchone()
    return (newest[0], totals.unpack(newest[1])) if newest else (0, totals.zero(parts))


def before(sql: sqlite3.Connection, account: int, parts: int, round: int) -> totals.Vector:
    """An account's total when this round had not been charged: the newest rows are the later."""
    newest = sql.execute(
        "SELECT total FROM charges JOIN spends ON spends.id = charges.spend JOIN releases ON "
        "releases.id = spends.release WHERE account = ? AND round < ? ORDER BY n DESC LIMIT 1",
        (account, round),
    ).fetchone()
    return totals.unpack(newest[0]) if newest else totals.zero(parts)


def addressed(sql: sqlite3.Connection, charge: Charge, known: Caps) -> dict[int, tuple[str, Cap]]:
    """The accounts of a charge by row number; refused when one measures something else."""
    found: dict[int, tuple[str, Cap]] = {}
    for name in charge.accounts:
        account, cap = find(sql, name, known)
        if cap.scope != charge.scope:
            raise LedgerError(
                f"the charge to {name!r} has {charge.scope}; the account allows {cap.scope}"
            )
        found[account] = (name, cap)
    return found


def scope_row(scope: Scope) -> Row:
    """A scope as columns."""
    return (str(scope.unit), str(scope.observer), str(scope.relation), json.dumps(scope.parts))


def spend_row(charge: Charge, event: str) -> Row:
    """A charge as the columns of a spend; `event` is its event's text."""
    return (*scope_row(charge.scope), event, charge.count, totals.pack(charge.spend))


def insert_release(
    sql: sqlite3.Connection, seq: int, named: Row, spends: Sequence[Row], charged: Sequence[Row]
) -> dict[int, totals.Vector]:
    """Insert a release and its charges; return the new total of each account charged."""
    sql.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?)", (seq, *named))
    (last,) = sql.execute("SELECT COALESCE(MAX(id), 0) FROM spends").fetchone()
    new: dict[int, totals.Vector] = {}
    for row, (spend, accounts) in enumerate(zip(spends, charged, strict=True), last + 1):
        sql.execute("INSERT INTO spends VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (row, seq, *spend))
        vector = totals.unpack(spend[-1])
        rows: list[Row] = []
        for account in accounts:
            n, total = latest(sql, account, len(vector))
            new[account] = totals.add(total, vector)
            rows.append((account, n + 1, row, totals.pack(new[account])))
        sql.executemany("INSERT INTO charges VALUES (?, ?, ?, ?)", rows)
    return new


def expect_same(
    sql: sqlite3.Connection, known: int, release: Release, spends: list[Row], charged: list[Row]
) -> None:
    """Refuse draws that an earlier release has used, unless this is that release again."""
    rows = chain.recorded(sql, known, "intent")
    (was,) = rows["releases"]
    now = (release.round, release.purpose, release.key_index, release.inputs)
    spends_then = [spend[1:] for spend in rows["spends"]]
    spends_now = [(*spend[:-1], spend[-1].hex().upper()) for spend in spends]
    charged_then = [tuple(account for account, _ in charges) for charges in rows["charges"]]
    charged_now = [tuple(sorted(accounts)) for accounts in charged]
    if (was, spends_then, charged_then) == (now, spends_now, charged_now):
        return
    differs = "inputs" if was[3] != now[3] else "round or purpose" if was != now else "charges"
    raise LedgerError(
        f"key_index {release.key_index!r} has drawn the noise of release {known} already, with "
        f"other {differs}; the same noise on two inputs cancels, so draw under a new key_index"
    )


def issued_again(sql: sqlite3.Connection, seq: int, known: int) -> None:
    """Charge a release once more, whatever its caps say: it has already happened twice."""
    rows = chain.recorded(sql, known, "intent")
    round_, purpose, key_index, inputs = rows["releases"][0]
    spends = [(*row[1:-1], bytes.fromhex(row[-1])) for row in rows["spends"]]
    charged = [tuple(account for account, _ in charges) for charges in rows["charges"]]
    named = (round_, purpose, f"{key_index} (issued again, entry {seq})", inputs)
    insert_release(sql, seq, named, spends, charged)


def mark(sql: sqlite3.Connection, seq: int, kind: str, release: int, output: str | None) -> None:
    """Append an entry that says something about an earlier release."""
    sql.execute("INSERT INTO marks VALUES (?, ?, ?)", (seq, release, output))
    chain.append(sql, seq, kind)


def output(sql: sqlite3.Connection, release: int) -> str | None:
    """The recorded digest of what a release put out, if its end was recorded."""
    query = "SELECT output FROM marks WHERE release = ? AND output IS NOT NULL"
    found = sql.execute(query, (release,)).fetchone()
    return found[0] if found else None
