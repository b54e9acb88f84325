"""Numbers and sentences: bounds are never understated, labels never collide."""

from itertools import pairwise
from math import exp, inf

import pytest
from hypothesis import given
from hypothesis import strategies as some

from confide.report import digits
from confide.report.drawing import apart, short
from confide.report.markup import Html, el, join
from confide.report.verdict import strength


@given(some.floats(1e-9, 9e4))
def test_epsilon_is_rounded_up(value: float) -> None:
    shown = float(digits.epsilon(value))
    assert value <= shown * (1 + 1e-15)
    assert shown <= value * 1.0011


@pytest.mark.parametrize(
    ("value", "shown"),
    [(inf, "∞"), (1.1735543, "1.174"), (2.0, "2"), (8.0, "8"), (450_490.0, "4.505·10⁵")],
)
def test_epsilon_as_it_is_read(value: float, shown: str) -> None:
    assert digits.epsilon(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(1e-4, "0.0001"), (1 / 600_000, "1.7·10⁻⁶"), (1e-5, "10⁻⁵"), (0.0, "0")]
)
def test_delta_as_it_is_read(value: float, shown: str) -> None:
    assert digits.probability(value) == shown


@given(some.floats(0, 30), some.floats(0, 0.1))
def test_the_best_guess_is_that_of_randomised_response(epsilon: float, delta: float) -> None:
    # The mechanism that tells the truth with delta and else answers by e^epsilon to 1 reaches it.
    truth = exp(epsilon) / (1 + exp(epsilon))
    reached = delta + (1 - delta) * truth
    assert digits.best_guess(epsilon, delta) >= reached - delta * truth - 1e-12
    assert 0.5 <= digits.best_guess(epsilon, delta) <= 1


def test_the_best_guess_at_the_edges() -> None:
    assert digits.best_guess(0, 0) == 0.5
    assert digits.best_guess(1e9, 1e-5) == 1
    assert digits.percent_up(digits.best_guess(1.1736, 1e-4)) == "76.4 %"
    assert digits.percent_up(0.50001) == "50.1 %"
    assert digits.percent_up(1) == "100 %"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.9, "is protected strongly"),
        (1, "is protected strongly"),
        (2.9, "is protected moderately"),
        (8, "is protected weakly"),
        (10, "is protected weakly"),
        (10.001, "has no meaningful protection"),
        (inf, "has no meaningful protection"),
    ],
)
def test_strength(value: float, said: str) -> None:
    assert strength(value) == said


def test_times_and_counts() -> None:
    assert [digits.duration(s) for s in (6.84, 61.2, 600, 9000)] == [
        "6.8 s",
        "61 s",
        "10 min",
        "2 h 30 min",
    ]
    assert digits.counted(1, "round") == "1 round"
    assert digits.plain(None) == "not a number"
    assert digits.metric(inf, "accuracy") == "not a number"


@given(some.lists(some.floats(0, 100), min_size=1, max_size=9))
def test_labels_keep_apart(wanted: list[float]) -> None:
    placed = apart(wanted, 10, 0, 100)
    assert min(placed) >= -1e-6
    assert max(placed) <= 100 + 1e-6
    assert all(b - a >= 10 - 1e-6 for a, b in pairwise(sorted(placed)))


def test_labels_that_have_room_stay() -> None:
    assert apart([20, 50, 80], 10, 0, 100) == [20, 50, 80]


def test_text_is_escaped_once() -> None:
    assert el("p", "a < b", title='"&"') == '<p title="&quot;&amp;&quot;">a &lt; b</p>'
    assert el("p", el("b", "<"), None, ["&", Html("<i></i>")]) == "<p><b>&lt;</b>&amp;<i></i></p>"
    assert join(f"{el('b')}") == "&lt;b&gt;&lt;/b&gt;"
    assert short("x" * 40) == "x" * 21 + "…"
    assert short("a\x00\nb") == "a  b"
