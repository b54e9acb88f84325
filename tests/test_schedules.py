"""Learning rates that change: their values, and what is refused."""

from math import cos, pi
from typing import Any

import pytest

from confide.local import SAM, SGD, Scaffold
from confide.schedules import Cosine, Exponential, Linear, rate_of


def test_values() -> None:
    line, curve = Linear(0.5, 0.1, 4), Cosine(0.5, 0.1, 4)
    assert [line(t) for t in (0, 1, 4, 9)] == pytest.approx([0.5, 0.4, 0.1, 0.1])
    assert [curve(t) for t in (0, 2, 4, 9)] == pytest.approx([0.5, 0.3, 0.1, 0.1])
    assert curve(1) == pytest.approx(0.1 + 0.4 * (1 + cos(pi / 4)) / 2)
    assert [Exponential(0.8, 0.5, every=3)(t) for t in (0, 2, 3, 6)] == [0.8, 0.8, 0.4, 0.2]
    assert rate_of(0.3, 7) == 0.3 and rate_of(line, 1) == line(1)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Linear(0.0, 0.1, 4), "Linear: start = 0.0, allowed is a finite number above 0"),
        (lambda: Cosine(0.1, -1.0, 4), "Cosine: end = -1.0, allowed is a finite number at least 0"),
        (lambda: Cosine(0.1, 0.0, 0), "Cosine: over = 0, allowed is a whole number of at least 1"),
        (lambda: Exponential(0.1, 1.5), "Exponential: factor = 1.5, allowed .* at most 1"),
        (lambda: Exponential(0.1, 0.5, 0), "Exponential: every = 0, allowed is a whole number"),
        (lambda: SGD("fast"), "SGD: eta = 'fast', allowed is a finite number above 0"),  # type: ignore[arg-type]
        (lambda: SAM(float("nan")), "SAM: eta = nan"),
        # A control is the way that was gone over the sum of equal rates.
        (lambda: Scaffold(Linear(0.1, 0.0, 3)), "Scaffold: eta = Linear"),  # type: ignore[arg-type]
    ],
)
def test_what_is_refused(wrong: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        wrong()
