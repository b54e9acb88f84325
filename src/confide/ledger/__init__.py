"""A durable, append-only ledger of what releases have cost (docs/ledger.md)."""

from confide.ledger.chain import Head
from confide.ledger.ledger import Intent, Issue, Ledger
from confide.ledger.records import (
    UNPROVED,
    BudgetSpent,
    Cap,
    Charge,
    LedgerError,
    LedgerFailed,
    Release,
    Scope,
)

__all__ = [
    "UNPROVED",
    "BudgetSpent",
    "Cap",
    "Charge",
    "Head",
    "Intent",
    "Issue",
    "Ledger",
    "LedgerError",
    "LedgerFailed",
    "Release",
    "Scope",
]
