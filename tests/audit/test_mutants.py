"""Bugs that people make, each beside what it was made of: all are found, and nothing else is.

The score is printed at the end of the tests: how many were killed, and by what.
"""

from collections.abc import Callable

import pytest

from audit.mutants import books, mechanisms, rounds, runs
from audit.mutants.kinds import Mutant

MUTANTS: list[Mutant] = [*rounds.MUTANTS, *mechanisms.MUTANTS, *books.MUTANTS, *runs.MUTANTS]


def test_they_are_distinct_and_many() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= 40


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_killed_and_what_it_was_made_of_is_not(
    mutant: Mutant, record_property: Callable[[str, object], None]
) -> None:
    assert mutant.right() is None, "a false alarm"
    found = mutant.wrong()
    record_property("mutant", [mutant.layer, mutant.name, found or ""])
    assert found, "the bug survives"
