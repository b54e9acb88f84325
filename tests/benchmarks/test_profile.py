"""The profile of the engine, on the one workload that is small enough to run here."""

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "profile_engine.py"


def printed(*options: str) -> list[str]:
    command = [sys.executable, str(SCRIPT), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.splitlines()


def test_a_profile_is_a_table_whose_parts_make_up_the_whole() -> None:
    heading, _, row = printed("W1-MLP")[:3]
    names = [cell.strip() for cell in heading.strip("|").split("|")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert len(cells) == len(names)
    assert cells[0] == "W1-MLP"
    shares = [int(found) for cell in cells for found in re.findall(r"\((\d+)%\)", cell)]
    assert cells[names.index("dense products")]
    assert abs(sum(shares) - 100) <= len(shares)  # each is rounded
