"""Nothing can be changed, and what was changed by force is found."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from confide.ledger import Ledger, LedgerError
from ledger_crash_scenario import play


@pytest.fixture
def whole(tmp_path):
    """A finished ledger with some releases in it."""
    play(tmp_path)
    return tmp_path / "ledger.sqlite"


TABLES = ("entries", "identity", "caps", "accounts", "releases", "spends", "charges", "marks")


@pytest.mark.parametrize("table", TABLES)
def test_nothing_can_be_changed_or_removed(whole, table):
    with contextlib.closing(sqlite3.connect(whole, isolation_level=None)) as sql:
        columns = [row[1] for row in sql.execute(f"PRAGMA table_info({table})")]
        before = sql.execute(f"SELECT * FROM {table}").fetchall()
        assert before
        marks = ", ".join("?" * len(columns))
        for statement, values in [
            (f"UPDATE {table} SET {columns[-1]} = {columns[-1]}", ()),
            (f"DELETE FROM {table}", ()),
            (f"INSERT OR REPLACE INTO {table} VALUES ({marks})", before[0]),
        ]:
            with pytest.raises(sqlite3.Error, match="append-only"):
                sql.execute(statement, values)
        assert sql.execute(f"SELECT * FROM {table}").fetchall() == before


@pytest.mark.parametrize(("table", "key", "unique"), [("accounts", "id", "name"),
                                                      ("releases", "id", "key_index")])  # fmt: skip
def test_a_name_cannot_be_replaced(whole, table, key, unique):
    with contextlib.closing(sqlite3.connect(whole, isolation_level=None)) as sql:
        row = list(sql.execute(f"SELECT * FROM {table}").fetchone())
        columns = [one[1] for one in sql.execute(f"PRAGMA table_info({table})")]
        assert unique in columns
        row[columns.index(key)] = 999
        marks = ", ".join("?" * len(columns))
        with pytest.raises(sqlite3.Error, match="append-only"):
            sql.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)


def altered(whole: Path, *statements: str) -> None:
    """Change a ledger as somebody would who owns the file: without its triggers."""
    with contextlib.closing(sqlite3.connect(whole, isolation_level=None)) as sql:
        triggers = sql.execute(
            "SELECT name, sql FROM sqlite_master WHERE type='trigger'"
        ).fetchall()
        for name, _ in triggers:
            sql.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            assert sql.execute(statement).rowcount > 0
        for _, text in triggers:
            sql.execute(text)


LAST = "(SELECT MAX(seq) FROM entries)"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET at = '2000' WHERE seq = 3",
        "UPDATE entries SET kind = 'done' WHERE seq = 1",
        "UPDATE entries SET digest = zeroblob(32) WHERE seq = 3",
        "DELETE FROM entries WHERE seq = 3",
        "INSERT INTO entries VALUES (0, 'done', '2000', zeroblob(32))",
        "INSERT INTO entries SELECT seq + 100, kind, at, digest FROM entries",
        "UPDATE identity SET name = 'x'",
        "INSERT INTO identity VALUES (77, 'x')",
        "UPDATE caps SET limits = zeroblob(8) WHERE id = 1",
        "UPDATE caps SET relation = 'replace-one'",
        "UPDATE accounts SET name = 'other' WHERE id = 1",
        "INSERT INTO accounts VALUES (77, 77, 'extra', 1)",
        "UPDATE releases SET round = 7 WHERE round = 1",
        "UPDATE releases SET inputs = inputs || 'x' WHERE round = 1",
        "DELETE FROM releases WHERE round = 1",
        "UPDATE spends SET event = '{}' WHERE id = 1",
        "UPDATE spends SET count = 7 WHERE id = 1",
        "UPDATE spends SET spend = zeroblob(8) WHERE id = 1",
        "DELETE FROM charges WHERE account = 1 AND n = 1",
        "DELETE FROM charges WHERE account = 1 AND n = 3",
        "UPDATE charges SET total = zeroblob(16) WHERE account = 1 AND n = 3",
        "UPDATE charges SET account = 99 WHERE account = 1",
        "INSERT INTO charges VALUES (1, 4, 999, zeroblob(16))",
        "UPDATE marks SET output = 'x' WHERE output IS NOT NULL",
        "DELETE FROM marks",
        f"INSERT INTO marks VALUES ({LAST} + 1, 3, 'x')",
    ],
)
def test_alterations_are_found(whole, statement):
    altered(whole, statement)
    with Ledger.open(whole) as ledger, pytest.raises(LedgerError, match="altered"):
        ledger.verify()


def test_a_cut_end_is_found_by_who_kept_a_head(whole):
    with Ledger.open(whole) as ledger:
        kept = ledger.head()
    altered(
        whole, f"DELETE FROM marks WHERE entry = {LAST}", f"DELETE FROM entries WHERE seq = {LAST}"
    )
    with Ledger.open(whole) as ledger:
        assert ledger.verify().entry == kept.entry - 1  # the chain alone cannot know its end
        with pytest.raises(LedgerError, match=f"does not pass through .*{kept.digest}"):
            ledger.verify(through=kept)


def test_an_index_that_hides_rows_is_found(whole):
    """The index that a look-up follows must agree with the table that the chain covers."""
    with contextlib.closing(sqlite3.connect(whole, isolation_level=None)) as sql:
        (root,) = sql.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_accounts_1'"
        ).fetchone()
    content = bytearray(whole.read_bytes())
    at = content.index(b"client/0", (root - 1) * 4096, root * 4096)
    content[at : at + 8] = b"client/."  # still in order, but no account's name
    whole.write_bytes(content)
    with Ledger.open(whole) as ledger, pytest.raises(LedgerError, match=r"damaged .*index"):
        ledger.verify()


def test_a_ledger_without_its_triggers_is_refused(whole):
    with contextlib.closing(sqlite3.connect(whole)) as sql:
        sql.execute("DROP TRIGGER charges_DELETE")
    for readonly in (False, True):
        with pytest.raises(LedgerError, match="tables or triggers are not those of a ledger"):
            Ledger.open(whole, readonly=readonly)


def test_a_flipped_byte_never_changes_an_answer(whole):
    """Anywhere in the file: it is refused, found by verify, or it was in unused space."""
    content = bytearray(whole.read_bytes())
    with Ledger.open(whole) as ledger:
        head, spent = ledger.verify(), ledger.spent("world")
    found = 0
    for position in range(16, len(content), 307):
        content[position] ^= 0xFF
        whole.write_bytes(content)
        content[position] ^= 0xFF
        try:
            with Ledger.open(whole) as ledger:
                assert (ledger.verify(), ledger.spent("world")) == (head, spent)
        except LedgerError as refused:
            assert "\n" not in str(refused)
            found += 1
    assert found > 20
