"""Scopes, caps, charges and releases that the tests of the ledger share."""

import hashlib
import os
import subprocess
import sys
from typing import Any

from confide.accounting import events
from confide.accounting.relations import Relation
from confide.ledger import Cap, Charge, Release, Scope

GAUSS = events.GaussianDpEvent(2.0)
WORLD = Scope("client", "world", Relation.ADD_REMOVE, ("mu^2",))
RENYI = Scope("record", "world", Relation.ADD_REMOVE, ("renyi@2", "renyi@8", "renyi@32"))
FREE = Scope("client", "device", Relation.REPLACE_ONE)
CAPS = {"world": Cap(WORLD, (1.0,)), "record": Cap(RENYI, (0.0, 1.0, 8.0)), "free": Cap(FREE)}


def digest(text: str) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def world(
    spend: Any = 0.25, event: Any = GAUSS, accounts: Any = ("world",), count: Any = 1
) -> Charge:
    """A charge to the account of the client, seen by the world."""
    return Charge(accounts, WORLD, event, (spend,), count)


def release(
    number: Any = 0, *charges: Charge, key: Any = None, inputs: str = "x", purpose: str = "update"
) -> Release:
    """The release of one round."""
    return Release(number, purpose, key or f"run/{number}", digest(inputs), charges or (world(),))


def python(script: str, *arguments: str) -> str:
    """What a new Python process with the same import path prints; it must not fail."""
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        text=True, capture_output=True, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
