"""The ledger: what has been spent, recorded on disk before the noise is drawn."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from confide.ledger import accounts, chain, file, totals
from confide.ledger.records import (
    BudgetSpent,
    Cap,
    Charge,
    LedgerError,
    Release,
    check_caps,
    check_digest,
)

if TYPE_CHECKING:
    from confide.accounting.events import DpEvent


@dataclass(frozen=True)
class Intent:
    """A release that the ledger allows: it is recorded, synced and counts as spent."""

    id: int
    replayed: bool  # recorded earlier, so nothing was charged now
    output: str | None  # the digest of its earlier issue, if that was recorded


@dataclass
class Issue:
    """A release being issued: draw, set `output` to the SHA-256 of its bytes, let it leave."""

    intent: Intent
    output: str | None = None


class Ledger:
    """An append-only account of what releases have cost, safe for many threads and processes."""

    def __init__(self, path: Path, sql: sqlite3.Connection, readonly: bool) -> None:
        """Wrap an open connection; `Ledger.create` and `Ledger.open` make one."""
        self.path = path
        self.readonly = readonly
        self._sql: sqlite3.Connection | None = sql
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._caps: accounts.Caps = {}

    @classmethod
    def create(cls, path: str | Path, caps: Mapping[str, Cap], *, wait: float = 30.0) -> Self:
        """Make a new ledger file with these accounts and open it; the path must be free."""
        check_caps(caps)

        def fill(sql: sqlite3.Connection) -> None:
            # 128 random bits keep a published digest from confirming a guess of private rows.
            sql.execute("INSERT INTO identity VALUES (1, ?)", (secrets.token_hex(16),))
            chain.append(sql, 1, "created")
            accounts.admit(sql, 2, caps)
            chain.append(sql, 2, "accounts")

        file.make(Path(path), fill)
        return cls.open(path, wait=wait)

    @classmethod
    def open(cls, path: str | Path, *, readonly: bool = False, wait: float = 30.0) -> Self:
        """Open a ledger file; `wait` is how many seconds to wait for another writer."""
        connect = file.connect_readonly if readonly else file.connect
        real = Path(os.path.realpath(path))  # SQLite keeps its side files beside the real file
        return cls(real, connect(real, wait), readonly)

    def admit(self, caps: Mapping[str, Cap]) -> None:
        """Add accounts, for example of clients that join; those that exist are refused."""
        check_caps(caps)
        with self._writing() as (sql, seq):
            for name in caps:
                if sql.execute("SELECT 1 FROM accounts WHERE name = ?", (name,)).fetchone():
                    raise LedgerError(f"the ledger already has the account {name!r}")
            accounts.admit(sql, seq, caps)
            chain.append(sql, seq, "accounts")

    def intend(self, release: Release) -> Intent:
        """Charge a release, or refuse it; when this returns, the charge is on the disk.

        Draw the noise only afterwards. The same release again (key index, inputs, charges: all
        equal) is allowed without a new charge, because the same draws on the same inputs are the
        same bits. The same draws on anything else are refused.
        """
        spends = [accounts.spend_row(charge, _text(charge)) for charge in release.charges]
        with self._writing() as (sql, seq):
            caps = [accounts.addressed(sql, charge, self._caps) for charge in release.charges]
            charged = [tuple(found) for found in caps]
            used = "SELECT id FROM releases WHERE key_index = ?"
            earlier = sql.execute(used, (release.key_index,)).fetchone()
            if earlier:
                accounts.expect_same(sql, earlier[0], release, spends, charged)
                accounts.mark(sql, seq, "replay", earlier[0], None)
                return Intent(earlier[0], True, accounts.output(sql, earlier[0]))
            named = (release.round, release.purpose, release.key_index, release.inputs)
            new = accounts.insert_release(sql, seq, named, spends, charged)
            for account, (name, cap) in {k: v for found in caps for k, v in found.items()}.items():
                if not totals.fits(new[account], cap.limits):
                    raise BudgetSpent(_refusal(release, name, cap, new[account]))
            chain.append(sql, seq, "intent")
            return Intent(seq, False, None)

    def done(self, intent: int, output: str) -> None:
        """Record that a release has left; `output` is the SHA-256 of its bytes.

        A release that left before with other bytes has left twice: it is charged once more, also
        beyond its caps, and refused.
        """
        check_digest("output", output)
        with self._writing() as (sql, seq):
            if not sql.execute("SELECT 1 FROM releases WHERE id = ?", (intent,)).fetchone():
                raise LedgerError(f"intent is {intent!r}; no release has this number")
            earlier = accounts.output(sql, intent)
            if earlier is None:
                accounts.mark(sql, seq, "done", intent, output)
            elif earlier != output:
                accounts.issued_again(sql, seq, intent)
                chain.append(sql, seq, "intent")
                accounts.mark(sql, seq + 1, "done", seq, output)
        if earlier not in (None, output):
            raise LedgerError(f"release {intent} has left with other bytes before ({earlier}, now "
                              f"{output}), so it was charged again as release {seq}")  # fmt: skip

    @contextlib.contextmanager
    def release(self, release: Release) -> Generator[Issue, None, None]:
        """Charge a release, let the body draw and issue it, and record its end.

        The body must set `output`. If it fails, the release stays open and counts as spent.
        """
        issue = Issue(self.intend(release))
        yield issue
        if issue.output is None:
            raise LedgerError(f"release {issue.intent.id} has no output; it stays open and counts "
                              "as spent: set `output` to the SHA-256 of its bytes")  # fmt: skip
        self.done(issue.intent.id, issue.output)

    def spent(self, account: str, before: int | None = None) -> totals.Vector:
        """What an account has spent, per part of its scope; `before` this round, if one is named.

        A run that goes on after a kill may stand at a round that is charged already.
        """
        if before is None:
            return totals.spent(self._total(account)[1])
        with self._reading() as sql:
            number, cap = accounts.find(sql, account, self._caps)
            return totals.spent(accounts.before(sql, number, len(cap.limits), before))

    def left(self, account: str) -> totals.Vector:
        """What is left of each limit of an account, at least 0; one part above 0 is enough."""
        cap, total = self._total(account)
        return totals.left(total, cap.limits)

    def fits(self, account: str, spend: totals.Vector) -> bool:
        """Whether a spend would fit now; only `intend` decides, another writer may be first."""
        cap, total = self._total(account)
        if len(spend) != len(cap.limits):
            raise LedgerError(f"spend has {len(spend)} numbers; {account!r} has {cap.scope.parts}")
        return totals.fits(totals.add(total, spend), cap.limits)

    def cap(self, account: str) -> Cap:
        """The scope and the limits of an account."""
        return self._total(account)[0]

    def events(self, account: str) -> DpEvent:
        """Everything an account was charged for, as one event for an accountant.

        An account without releases is refused: silence is not a proof of epsilon 0.
        """
        from confide.accounting import events, serial

        with self._reading() as sql:
            number, _ = accounts.find(sql, account, self._caps)
            rows = sql.execute(
                "SELECT event, SUM(count) FROM charges JOIN spends ON spends.id = charges.spend "
                "WHERE account = ? GROUP BY event ORDER BY MIN(n)",
                (number,),
            ).fetchall()
        if not rows:
            raise LedgerError(f"account {account!r} has no release; an empty ledger proves nothing")
        each = [
            event if count == 1 else events.SelfComposedDpEvent(event, count)
            for event, count in ((serial.load(text), count) for text, count in rows)
        ]
        return each[0] if len(each) == 1 else events.ComposedDpEvent(each)

    def outputs(self) -> dict[int, str | None]:
        """The digest that the last release of each round put out; None where its end is missing."""
        with self._reading() as sql:
            rows = sql.execute("SELECT round, id FROM releases ORDER BY id").fetchall()
            return {round_: accounts.output(sql, release) for round_, release in rows}

    def pending(self) -> list[int]:
        """The releases that were charged and have no recorded end, oldest first."""
        with self._reading() as sql:
            rows = sql.execute(
                "SELECT id FROM releases WHERE NOT EXISTS (SELECT 1 FROM marks WHERE "
                "marks.release = releases.id AND output IS NOT NULL) ORDER BY id"
            )
            return [number for (number,) in rows]

    def verify(self, through: chain.Head | None = None) -> chain.Head:
        """Recompute every digest and total; with `through`, also that this head is on the chain."""
        with self._reading() as sql:
            sql.execute("BEGIN")
            try:
                return chain.verify(sql, through)
            finally:
                sql.execute("ROLLBACK")

    def head(self) -> chain.Head:
        """The newest entry: print its digest where others can keep it."""
        with self._reading() as sql:
            newest = "SELECT seq, digest FROM entries ORDER BY seq DESC LIMIT 1"
            seq, digest = sql.execute(newest).fetchone()
            return chain.Head(seq, digest.hex())

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        with self._lock:
            if self._sql is not None and self._process == os.getpid():
                self._sql.close()
            self._sql = None

    def __enter__(self) -> Self:
        """Give the ledger itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def _total(self, account: str) -> tuple[Cap, totals.Vector]:
        """The cap and the running total of an account: two look-ups, whatever it was charged."""
        with self._reading() as sql:
            number, cap = accounts.find(sql, account, self._caps)
            return cap, accounts.latest(sql, number, len(cap.limits))[1]

    @contextlib.contextmanager
    def _reading(self) -> Generator[sqlite3.Connection, None, None]:
        """The connection, for this thread alone, with errors as sentences."""
        with self._lock, file.sentences(self.path):
            if self._process != os.getpid():
                raise LedgerError(f"{self.path} was opened by another process; open it again")
            if self._sql is None:
                raise LedgerError(f"{self.path} is closed; open it again")
            yield self._sql

    @contextlib.contextmanager
    def _writing(self) -> Generator[tuple[sqlite3.Connection, int], None, None]:
        """One transaction that no other writer can overlap, and the number of its first entry."""
        if self.readonly:
            raise LedgerError(f"{self.path} is open for reading only; open it without readonly")
        with self._reading() as sql:
            sql.execute("BEGIN IMMEDIATE")
            try:
                (last,) = sql.execute("SELECT MAX(seq) FROM entries").fetchone()
                yield sql, last + 1
                sql.execute("COMMIT")
            except BaseException:
                if sql.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        sql.execute("ROLLBACK")
                raise
            # The commit is already safe in the write-ahead file. Copying it on keeps the ledger
            # whole for somebody who copies, or after a crash tidies up, the main file alone.
            with contextlib.suppress(sqlite3.Error):
                sql.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _text(charge: Charge) -> str:
    """The text of a charge's event; refused where an account with a limit could not bound it."""
    from confide.accounting import serial

    try:
        text = serial.dump(charge.event)
    except ValueError as wrong:
        raise LedgerError(str(wrong)) from None
    if charge.scope.parts and serial.is_unprotected(charge.event):
        raise LedgerError(f"event {charge.event} has no bound; allowed on accounts without parts, "
                          "which have no limit")  # fmt: skip
    return text


def _refusal(release: Release, name: str, cap: Cap, total: totals.Vector) -> str:
    """The sentence that refuses a release, for the part that comes nearest to fitting."""
    parts = zip(totals.spent(total), cap.limits, cap.scope.parts, strict=True)
    _, would, limit, part = min((t / c if c else float("inf"), t, c, p) for t, c, p in parts)
    return (
        f"round {release.round}, {release.purpose}: the budget of {name!r} is spent; with this "
        f"release {part} would be {would!r}, allowed is {limit!r}"
    )
