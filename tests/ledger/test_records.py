"""What could not be recorded honestly cannot be made."""

import math

import pytest

from confide.ledger import UNPROVED, Cap, Charge, LedgerError, Release, Scope
from ledger_cases import GAUSS, RENYI, WORLD, digest, release, world


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: world(math.nan), "spend holds nan"),
        (lambda: world(math.inf), "spend holds inf"),
        (lambda: world(1e301), "spend holds 1e[+]301"),
        (lambda: world(-0.1), "spend holds -0.1"),
        (lambda: world(0.0), "each part of a spend must be above 0"),
        (lambda: world(-0.0), "each part of a spend must be above 0"),
        (lambda: Charge(("record",), RENYI, GAUSS, (1.0, 0.0, 1.0)), "above 0"),
        (lambda: world(1), "spend holds 1; allowed are floats"),
        (lambda: world(True), "spend holds True"),
        (lambda: Charge(("world",), WORLD, GAUSS, ()), "spend has 0 numbers"),
        (lambda: Charge(("world",), WORLD, GAUSS, (0.1, 0.1)), "spend has 2 numbers"),
        (lambda: Charge(("world",), WORLD, GAUSS, [0.1]), "allowed is a tuple"),  # type: ignore[arg-type]
        (lambda: world(count=0), "count is 0; allowed are whole numbers from 1"),
        (lambda: world(count=True), "count is True"),
        (lambda: world(count=1.0), "count is 1.0"),
        (lambda: world(accounts=()), "accounts is empty"),
        (lambda: world(accounts=("world", "world")), "'world' twice"),
        (lambda: world(accounts="world"), "allowed is a tuple"),
        (lambda: release(-1), "round is -1"),
        (lambda: release(True), "round is True"),
        (lambda: release(0, purpose=""), "purpose is ''"),
        (lambda: release(0, purpose="a\nb"), "printable"),
        (lambda: release(0, key="\ud800"), "printable"),
        (lambda: Release(0, "update", "key", "abc", (world(),)), "inputs is 'abc'"),
        (lambda: Release(0, "update", "key", digest(""), ()), "charges is empty"),
        (lambda: Release(0, "update", "key", digest(""), (GAUSS,)), "allowed are Charge"),  # type: ignore[arg-type]
        (lambda: Scope("person", "world", "add-remove"), "unit is 'person'; allowed are record"),
        (lambda: Scope("client", "god", "add-remove"), "observer is 'god'; allowed are device"),
        (lambda: Scope("client", "world", "swap"), "relation is 'swap'; allowed are add-remove"),
        (lambda: Scope("client", "world", "add-remove", ("a", "a")), "'a' twice"),
        (lambda: Cap(WORLD, (math.nan,)), "limits holds nan"),
        (lambda: Cap(WORLD, (math.inf,)), "limits holds inf"),
        (lambda: Cap(WORLD, (UNPROVED,)), "limits holds 1e[+]300"),
        (lambda: Cap(WORLD, (-1.0,)), "limits holds -1.0"),
        (lambda: Cap(WORLD, (0.0,)), "at least one must be above 0"),
        (lambda: Cap(WORLD, ()), "limits has 0 numbers"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_made(made, said):
    with pytest.raises(LedgerError, match=said):
        made()
