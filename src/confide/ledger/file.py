"""Making and opening a ledger file: whole or not at all, and never over anything else.

A file is judged by its first bytes before SQLite sees it, so a foreign, newer or truncated file
is refused untouched. A new ledger is built under another name, synced, and linked to its own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import stat
import struct
from collections.abc import Callable, Generator
from pathlib import Path

from confide.disk import sync_directory
from confide.ledger import schema
from confide.ledger.records import LedgerError, LedgerFailed

MAGIC = b"SQLite format 3\0"
SIDES = ("-wal", "-shm", "-journal")

PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # macOS: fsync alone does not reach the disk there
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA recursive_triggers = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)


@contextlib.contextmanager
def sentences(path: Path) -> Generator[None, None, None]:
    """Turn what SQLite and the operating system say into one sentence that names the file."""
    try:
        yield
    except sqlite3.Error as wrong:
        said = " ".join(str(wrong).split())
        if "full" in said:
            raise LedgerFailed(f"{path}: the disk is full; nothing was recorded, so no release "
                               "may happen: free some space and run again") from wrong  # fmt: skip
        if "locked" in said or "busy" in said:
            raise LedgerFailed(f"{path}: another process has held the ledger for too long; nothing "
                               "was recorded, so no release may happen") from wrong  # fmt: skip
        if any(sign in said for sign in ("malformed", "not a database", "decode")):
            raise LedgerError(f"{path}: the file is damaged ({said}); restore a copy") from wrong
        if "readonly" in said:
            raise LedgerError(f"{path}: the file is read-only; allowed is a writable file in a "
                              "writable directory, or readonly=True") from wrong  # fmt: skip
        raise LedgerFailed(f"{path}: nothing was recorded ({said}), so no release may "
                           "happen") from wrong  # fmt: skip
    except (UnicodeError, struct.error) as wrong:  # texts and numbers that were never written
        raise LedgerError(f"{path}: the file is damaged; restore a copy") from wrong
    except OSError as wrong:
        raise LedgerFailed(f"{path}: {wrong.strerror or wrong}; nothing was recorded") from wrong


def make(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Make a new ledger file at `path`, filled inside one transaction by `fill`."""
    for taken in (path, *(path.with_name(path.name + side) for side in SIDES)):
        if os.path.lexists(taken):
            raise LedgerError(f"{taken} exists already; a new ledger needs a path that is free")
    if not path.parent.is_dir():
        raise LedgerError(f"{path.parent} is not a directory; a new ledger needs one that exists")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    with sentences(path):
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            _build(draft, fill)
            os.link(draft, path)
            sync_directory(path.parent)
        except FileExistsError:
            raise LedgerError(f"{path} was just made by another process; open it") from None
        finally:
            for side in ("", *SIDES):
                draft.with_name(draft.name + side).unlink(missing_ok=True)


def connect(path: Path, wait: float) -> sqlite3.Connection:
    """Open a ledger file for writing, after judging its bytes."""
    _judge(path)
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise LedgerError(f"{path}: the file or its directory is read-only; allowed is a writable "
                          "file in a writable directory, or readonly=True")  # fmt: skip
    with sentences(path):
        sql = _connection(path, "mode=rw", wait)
        _expect_ledger(sql, path)
        return sql


def connect_readonly(path: Path, wait: float) -> sqlite3.Connection:
    """Open a ledger file for reading only, after judging its bytes."""
    _judge(path)
    # SQLite reads a write-ahead file through an index file that it must be able to make; where
    # the directory forbids that and there is no write-ahead file, the file stands still.
    still = not _write_ahead(path) and not os.access(path.parent, os.W_OK)
    with sentences(path):
        sql = _connection(path, "mode=ro&immutable=1" if still else "mode=ro", wait)
        _expect_ledger(sql, path)
        return sql


def _connection(path: Path, mode: str, wait: float) -> sqlite3.Connection:
    """A connection without implicit transactions; closed again when a setting fails."""
    address = f"{path.absolute().as_uri()}?{mode}"
    sql = sqlite3.connect(
        address, uri=True, timeout=wait, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in PRAGMAS:
            sql.execute(pragma)
    except BaseException:
        sql.close()
        raise
    return sql


def _expect_ledger(sql: sqlite3.Connection, path: Path) -> None:
    """Refuse a database without exactly the tables and the triggers of a ledger."""
    try:
        found = sql.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        if {text for (text,) in found} != set(schema.statements()):
            raise LedgerError(f"{path}: its tables or triggers are not those of a ledger of format "
                              f"{schema.FORMAT}: it was altered")  # fmt: skip
    except BaseException:
        sql.close()
        raise


def _build(draft: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Fill the draft, turn it into a write-ahead database, and sync it."""
    with contextlib.closing(_connection(draft, "mode=rw", 0.0)) as sql:
        sql.execute("BEGIN IMMEDIATE")
        for statement in (*schema.MARKS_OF_FORMAT, *schema.statements()):
            sql.execute(statement)
        fill(sql)
        sql.execute("COMMIT")
        (mode,) = sql.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise LedgerError(f"{draft.parent}: this file system cannot hold a ledger (SQLite "
                              f"offers the journal {mode!r}, needed is 'wal')")  # fmt: skip
    handle = os.open(draft, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _judge(path: Path) -> None:
    """Refuse a file that is not a whole ledger of this format, by its bytes alone."""
    with sentences(path):
        if not path.exists():
            raise LedgerError(f"{path} does not exist; Ledger.create makes a new ledger")
        if not stat.S_ISREG(path.stat().st_mode):
            raise LedgerError(f"{path} is not a regular file; allowed is a ledger file")
        with path.open("rb") as file:
            head = file.read(100)
        size = path.stat().st_size
    journal = path.with_name(path.name + "-journal")
    if journal.exists():  # a ledger never has one, and SQLite would copy it into the ledger
        raise LedgerError(f"{journal} does not belong to the ledger beside it; move it away")
    if not head:
        raise LedgerError(f"{path} is empty; allowed is a ledger made by Ledger.create")
    if head[:16] != MAGIC[: len(head[:16])]:
        raise LedgerError(f"{path} is not an SQLite file; allowed is a ledger file")
    if len(head) < 100:
        raise LedgerError(f"{path} is truncated to {size} bytes; restore a whole copy")
    version, application = struct.unpack(">60xI4xI28x", head)
    if application != schema.APPLICATION:
        raise LedgerError(f"{path} is an SQLite file of another program; allowed is a ledger file")
    if version != schema.FORMAT:
        raise LedgerError(f"{path} has ledger format {version}; this version of confide reads "
                          f"format {schema.FORMAT}")  # fmt: skip
    page, pages = struct.unpack(">16xH10xI68x", head)
    page = 65536 if page == 1 else page
    missing = set(range(size // page + 1, pages + 1))
    if not missing or missing <= _pages_ahead(path, page):
        return
    # A writer that was just copying pages on has finished before it reuses its write-ahead file.
    if path.stat().st_size < page * pages:
        raise LedgerError(f"{path} is truncated: {size} of {page * pages} bytes; restore a copy")


def _write_ahead(path: Path) -> int:
    """The size of the write-ahead file beside a ledger."""
    ahead = path.with_name(path.name + "-wal")
    return ahead.stat().st_size if ahead.exists() else 0


def _pages_ahead(path: Path, page: int) -> set[int]:
    """The pages in the write-ahead file: a process killed while copying them on leaves a gap."""
    if not _write_ahead(path):
        return set()
    data = path.with_name(path.name + "-wal").read_bytes()
    frames = range(32, len(data) - page - 23, page + 24)
    return {int.from_bytes(data[start : start + 4]) for start in frames}
