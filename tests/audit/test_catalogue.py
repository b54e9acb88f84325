"""Every method of the list, audited at a small size.

What is proved is not refuted; what leaves without noise is shown to leak, by a bound that holds
whatever the mechanism is; what lacks a proof says so.
"""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from confide.audit.whole import Audit, audit, small_sizes
from confide.methods import CATALOGUE
from confide.methods.making import make

DRAWS = 400
LAYERS = (8,) * 8
QUICK = ("dp-fedavg-c", "udp", "cofel-avg", "als-dpfl")

WITHOUT_NOISE = (
    "nothing has been done to hide it",
    "carry no noise",
    "leaves without noise",
    "made from raw data",
    "computes with its raw data",
)
WANT_OF_PROOF = (
    "no finite epsilon is proved",
    "change the weights of all the others",
    "tells how many records it has",
    "differs from one client's data to another's",
)
NOTHING_PROVED = {
    "fedavg", "fedsam", "fedsgd", "fedprox", "scaffold", "dssgd", "fed-pruned",
    "fed-smp-topk", "cofel-avg", "als-dpfl", "dp-fedsnlc", "dp-fedags",
}  # fmt: skip
"""To nobody and about no unit: each lets something leave without noise."""


def audited(name: str) -> Audit:
    method: Any = make(name, {})
    return audit(method, replace(small_sizes(method), layers=LAYERS), draws=DRAWS, seed=1)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in CATALOGUE]
)
def test_what_is_proved_is_not_refuted_and_what_is_bare_leaks(name: str) -> None:
    found = audited(name)
    assert found.verdict != "fail", found.row()["faults"]
    leaks: list[str] = []
    for release in found.releases:
        bound = 0.0 if release.strongest is None else release.strongest.lower_bound
        if release.claimed < inf:
            assert release.claimed > 0 and bound <= release.claimed
            continue
        assert any(words in release.reason for words in WITHOUT_NOISE), release.reason
        assert bound > 0, f"{release.name}: it leaves without noise, and no leak was found"
        assert "nothing is claimed, and it leaks" in release.words()
        leaks.append(release.name)
    open_to_somebody = [c for c in found.statement.cells if c.epsilon == inf]
    for cell in open_to_somebody:
        assert any(words in cell.reason for words in (*WITHOUT_NOISE, *WANT_OF_PROOF)), cell.reason
    updates = [c for c in found.statement.cells if c.of == "update"]
    assert all(c.epsilon == inf for c in updates) == (name in NOTHING_PROVED)
    if name in NOTHING_PROVED:
        assert leaks, "nothing is proved, and nothing was shown to leak"
