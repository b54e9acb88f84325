"""SIGKILL to a real `confide run`, and what its resume makes of it."""

from pathlib import Path

import pytest
from kills import kills


@pytest.mark.slow
def test_five_kills_of_the_command_leave_no_trace(tmp_path: Path) -> None:
    found = list(kills(tmp_path, (0.05, 0.3, 0.5, 0.7, 0.85)))
    assert len(found) == 5
    for kill in found:
        assert not kill.differences and not kill.survivors
    assert any(kill.ahead for kill in found)  # the ledger knew of more than the checkpoint
