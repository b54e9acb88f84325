"""SIGKILL to a real `confide run`, and what its resume makes of it."""

import json
from itertools import islice
from pathlib import Path

import pytest
from kills import kills

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_five_kills_of_the_command_leave_no_trace(tmp_path: Path) -> None:
    # A run that ends before its moment comes is killed at one of the last three instead.
    moments = (0.05, 0.3, 0.5, 0.7, 0.85, 0.4, 0.6, 0.2)
    found = list(islice(kills(tmp_path, moments), 5))
    assert len(found) == 5
    for kill in found:
        assert not kill.differences and not kill.survivors
    assert any(kill.ahead for kill in found)  # the ledger knew of more than the checkpoint


def test_the_page_says_what_was_recorded() -> None:
    told = json.loads((ROOT / "benchmarks" / "results" / "kills.json").read_text())
    assert told["kills"] >= 100
    assert told["with differences"] == told["with survivors"] == 0
    page = " ".join((ROOT / "docs" / "engine.md").read_text().split())
    assert (
        f"at {told['kills']} random moments: {told['with a release open']} of them while a release "
        f"was charged and not finished, {told['with releases after the last checkpoint']} after "
        f"rounds that no checkpoint had, {told['before the first release']} before anything was "
        "released."
    ) in page
