"""The hash chain over a ledger's entries, and the check that nothing in it was altered.

Each entry's digest is SHA-256 over the digest before it and everything that the entry recorded.
Whoever kept one digest (it is printed in a statement) can tell later that no entry up to it was
removed, inserted, reordered or edited. It does not show that later entries were cut off, nor does
it stop the owner of the file from writing a whole new chain before anyone kept a digest of it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from confide.ledger import totals
from confide.ledger.records import LedgerError

START = bytes(32)

CAPS = "SELECT id, unit, observer, relation, parts, hex(limits) FROM caps WHERE entry = ?"
ACCOUNTS = "SELECT id, name, cap FROM accounts WHERE entry = ? ORDER BY id"
RELEASE = "SELECT round, purpose, key_index, inputs FROM releases WHERE id = ?"
SPENDS = """SELECT id, unit, observer, relation, parts, event, count, hex(spend)
    FROM spends WHERE release = ? ORDER BY id"""
CHARGED = "SELECT account, n FROM charges WHERE spend = ? ORDER BY account"
MARK = "SELECT release, output FROM marks WHERE entry = ?"


@dataclass(frozen=True)
class Head:
    """The newest entry of a ledger: its number and its digest, which commits to all before it."""

    entry: int
    digest: str


@dataclass
class _Check:
    """What one walk along the chain has seen so far."""

    rows: Counter[str] = field(default_factory=Counter[str])
    totals: dict[int, tuple[int, bytes]] = field(default_factory=dict[int, tuple[int, bytes]])


def recorded(sql: sqlite3.Connection, seq: int, kind: str) -> dict[str, Any]:
    """Everything that one entry recorded: the rows of each table, in a fixed order."""
    if kind == "created":
        return {
            "identity": sql.execute("SELECT * FROM identity WHERE entry = ?", (seq,)).fetchall()
        }
    if kind == "accounts":
        caps = sql.execute(f"{CAPS} ORDER BY id", (seq,)).fetchall()
        return {"caps": caps, "accounts": sql.execute(ACCOUNTS, (seq,)).fetchall()}
    if kind == "intent":
        spends = sql.execute(SPENDS, (seq,)).fetchall()
        charges = [sql.execute(CHARGED, spend[:1]).fetchall() for spend in spends]
        released = sql.execute(RELEASE, (seq,)).fetchall()
        return {"releases": released, "spends": spends, "charges": charges}
    return {"marks": sql.execute(MARK, (seq,)).fetchall()}


def link(before: bytes, seq: int, kind: str, at: str, rows: dict[str, Any]) -> bytes:
    """The digest of an entry, given the digest of the one before."""
    # A value of a type that was never written can only come from outside: any text will differ.
    text = json.dumps([seq, kind, at, rows], separators=(",", ":"), default=repr)
    return hashlib.sha256(before + text.encode()).digest()


def append(sql: sqlite3.Connection, seq: int, kind: str) -> None:
    """Close entry `seq`, whose rows are already inserted, with its digest."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")  # for readers; nothing rests on it
    newest = sql.execute("SELECT seq, digest FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
    last, before = newest or (0, START)
    if seq != last + 1:
        raise LedgerError(f"entry {seq} would follow entry {last}; allowed is {last + 1}")
    digest = link(before, seq, kind, at, recorded(sql, seq, kind))
    sql.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (seq, kind, at, digest))


def verify(sql: sqlite3.Connection, through: Head | None) -> Head:
    """Walk the whole chain; refuse the first thing that does not follow, or a missing `through`."""
    (sound,) = sql.execute("PRAGMA integrity_check(1)").fetchone()  # also that indexes match tables
    if sound != "ok":
        raise LedgerError(f"the file is damaged ({' '.join(sound.split())}); restore a copy")
    check, before, last, passed = _Check(), START, 0, through is None
    for seq, kind, at, digest in sql.execute("SELECT * FROM entries ORDER BY seq"):
        rows = recorded(sql, seq, kind)
        if seq != last + 1 or digest != link(before, seq, kind, at, rows):
            raise LedgerError(f"entry {seq} does not follow entry {last}: the ledger was altered")
        _count(sql, check, kind, rows)
        before, last = digest, seq
        passed = passed or Head(seq, digest.hex()) == through
    for table in ("identity", "caps", "accounts", "releases", "spends", "charges", "marks"):
        (found,) = sql.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
        if found != check.rows[table]:
            raise LedgerError(
                f"{table} holds {found} rows, the entries {check.rows[table]}: it was altered"
            )
    if not passed:
        raise LedgerError(f"the chain of {last} entries does not pass through {through}")
    return Head(last, before.hex())


def _count(sql: sqlite3.Connection, check: _Check, kind: str, rows: dict[str, Any]) -> None:
    """Note the rows of one entry and recompute the totals that it led to."""
    for table, found in rows.items():
        check.rows[table] += sum(map(len, found)) if table == "charges" else len(found)
    if kind != "intent":
        return
    for spend in rows["spends"]:
        new = totals.unpack(bytes.fromhex(spend[-1]))
        stored = sql.execute("SELECT account, n, total FROM charges WHERE spend = ?", spend[:1])
        for account, n, total in stored:
            before, old = check.totals.get(account, (0, totals.pack(totals.zero(len(new)))))
            expected = totals.pack(totals.add(totals.unpack(old), new))
            if (n, total) != (before + 1, expected):
                raise LedgerError(f"charge {n} of account {account} has a wrong total: altered")
            check.totals[account] = (n, expected)
