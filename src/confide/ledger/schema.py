"""The tables of a ledger file and the triggers that let them only grow."""

from __future__ import annotations

APPLICATION = 0x636F6E66
"""SQLite's application id of a ledger file: "conf" in ASCII."""

FORMAT = 1
"""The version of the tables below (SQLite's user version)."""

MARKS_OF_FORMAT = (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {FORMAT}")

TABLES: tuple[str, ...] = (
    """CREATE TABLE entries (
        seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, at TEXT NOT NULL, digest BLOB NOT NULL)""",
    "CREATE TABLE identity (entry INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    """CREATE TABLE caps (
        id INTEGER PRIMARY KEY, entry INTEGER NOT NULL, unit TEXT NOT NULL,
        observer TEXT NOT NULL, relation TEXT NOT NULL, parts TEXT NOT NULL,
        limits BLOB NOT NULL)""",
    """CREATE TABLE accounts (
        id INTEGER PRIMARY KEY, entry INTEGER NOT NULL,
        name TEXT NOT NULL UNIQUE, cap INTEGER NOT NULL REFERENCES caps)""",
    """CREATE TABLE releases (
        id INTEGER PRIMARY KEY, round INTEGER NOT NULL, purpose TEXT NOT NULL,
        key_index TEXT NOT NULL UNIQUE, inputs TEXT NOT NULL)""",
    """CREATE TABLE spends (
        id INTEGER PRIMARY KEY, release INTEGER NOT NULL REFERENCES releases, unit TEXT NOT NULL,
        observer TEXT NOT NULL, relation TEXT NOT NULL, parts TEXT NOT NULL,
        event TEXT NOT NULL, count INTEGER NOT NULL, spend BLOB NOT NULL)""",
    "CREATE INDEX spends_of_release ON spends (release)",
    # One row per account and charge, the newest with the account's total: what is left is one
    # look-up, and no row ever changes.
    """CREATE TABLE charges (
        account INTEGER NOT NULL REFERENCES accounts, n INTEGER NOT NULL,
        spend INTEGER NOT NULL REFERENCES spends, total BLOB NOT NULL,
        PRIMARY KEY (account, n)) WITHOUT ROWID""",
    "CREATE INDEX charges_of_spend ON charges (spend)",
    """CREATE TABLE marks (
        entry INTEGER PRIMARY KEY, release INTEGER NOT NULL REFERENCES releases,
        output TEXT)""",
    "CREATE INDEX marks_of_release ON marks (release)",
)

KEYS = {
    "entries": ("seq",),
    "identity": ("entry",),
    "caps": ("id",),
    "accounts": ("id", "name"),
    "releases": ("id", "key_index"),
    "spends": ("id",),
    "charges": ("(account, n)",),
    "marks": ("entry",),
}


def statements() -> list[str]:
    """Every statement that makes the tables, the indexes and the triggers, as SQLite keeps them."""
    made = list(TABLES)
    for table, keys in KEYS.items():
        for change in ("UPDATE", "DELETE"):
            made.append(_refusal(table, change, "", f"BEFORE {change} ON {table}"))
        # INSERT OR REPLACE deletes the old row without asking the DELETE trigger.
        for key in keys:
            new = key.replace("account, n", "NEW.account, NEW.n") if "(" in key else f"NEW.{key}"
            taken = f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {key} = {new})"
            name = f"replace_{keys.index(key)}"
            made.append(_refusal(table, name, taken, f"BEFORE INSERT ON {table}"))
    return made


def _refusal(table: str, name: str, condition: str, on: str) -> str:
    """A trigger that refuses a statement on a table."""
    message = f"the ledger is append-only: {table} cannot be changed"
    raising = f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
    return f"CREATE TRIGGER {table}_{name} {on} {condition} {raising}"
