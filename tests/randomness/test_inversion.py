from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.randomness.inversion import (
    Table,
    Weights,
    below,
    ceil_div,
    cumulative,
    exp_negative,
    table,
)
from confide.randomness.laws import Decay
from scripted import ScriptedWords

ALL_ONES = 2**64 - 1


@dataclass(frozen=True)
class Dice:
    """A law with these exact probabilities on first, first + 1, ..."""

    first: int
    parts: tuple[int, ...]
    blur: int = (
        0  # how much too wide each enclosure is; each bit that is asked for halves its share
    )

    def weights(self, bits: int) -> Weights:
        exact = [part << bits for part in self.parts]
        return Weights(self.first, exact, [part + self.blur for part in exact], 0, 0)

    def quantile(self, u: Fraction) -> int:
        """The least x with u < F(x)."""
        total, at = Fraction(0), -1
        while u >= total:
            at += 1
            total += Fraction(self.parts[at], sum(self.parts))
        return self.first + at


@given(
    st.fractions(0, 200, max_denominator=10**9) | st.integers(0, 10**7).map(Fraction),
    st.sampled_from([1, 20, 64, 128, 400]),
)
def test_exp_negative_encloses_the_exponential(x: Fraction, bits: int) -> None:
    low, high = exp_negative(x, bits)
    with mpmath.workprec(bits + 400):
        true = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits
        assert low <= true <= high
    assert high - low <= (0 if x == 0 else 1 if x > bits else 2)


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**15))
def test_ceil_div(top: int, bottom: int) -> None:
    assert ceil_div(top, bottom) == -((-Fraction(top, bottom)).__floor__())


WORDS = st.sampled_from([0, 1, 2, 2**63 - 1, 2**63, 2**63 + 1, ALL_ONES - 1, ALL_ONES]) | (
    st.integers(0, ALL_ONES)
)


@given(st.lists(WORDS, min_size=1, max_size=4), st.lists(WORDS, min_size=1, max_size=4))
def test_below_compares_as_many_words_as_it_needs(number: list[int], drawn: list[int]) -> None:
    def real(words: list[int]) -> Fraction:
        return sum((Fraction(w, 2 ** (64 * (i + 1))) for i, w in enumerate(words)), Fraction(0))

    target = real(number)

    def enclose(bits: int) -> tuple[int, int]:
        scaled = target * 2**bits
        return scaled.__floor__() - 1, scaled.__ceil__() + 1

    # A tail that no target shares decides every tie at last.
    tail = [2**62] * 4
    source = ScriptedWords(*drawn[1:], *tail)
    assert below(drawn[0], enclose, source) == (real(drawn + tail) < target)


def test_below_never_decides_too_early() -> None:
    def enclose(bits: int) -> tuple[int, int]:
        return 1 << (bits - 1), 1 << (bits - 1)  # one half, exactly

    assert below(2**63 - 1, enclose, ScriptedWords())
    assert not below(2**63, enclose, ScriptedWords())
    wide = ScriptedWords(0, 0, 7)

    def blurred(bits: int) -> tuple[int, int]:
        return (1 << (bits - 1)) - 5, (1 << (bits - 1)) + 5

    assert not below(2**63, blurred, wide)
    assert wide.taken == 3


LAWS = [
    Dice(0, (1, 1)),
    Dice(0, (1, 1, 1)),
    Dice(-3, (1, 2, 3, 4, 5, 6, 7)),
    Dice(10, (1, 2**70, 1)),
    Dice(-1, (3, 0, 5)),
    Dice(0, tuple(range(1, 80))),
    Dice(0, (1, 1, 1), blur=2**31),
    Dice(0, (5, 3, 9), blur=2**60),
]


@pytest.mark.parametrize("law", LAWS)
def test_thresholds_and_their_neighbours(law: Dice) -> None:
    inverse = Table(law)
    bounds = [0]
    for part in law.parts:
        bounds.append(bounds[-1] + part)
    edges = {b * 2**64 // bounds[-1] + d for b in bounds for d in (-2, -1, 0, 1, 2)}
    words = sorted(w for w in edges if 0 <= w <= ALL_ONES)
    for word in words:
        # A tail away from both ends decides whatever is left open in one more word.
        for tail in (2**62 + 12345, 2**63 + 2**62 + 12345):
            drawn = inverse.draw(ScriptedWords(word, tail, 1), 1)[0]
            u = Fraction(word, 2**64) + Fraction(tail, 2**128) + Fraction(1, 2**192)
            assert drawn == law.quantile(u), (word, tail)


@given(st.sampled_from(LAWS), st.lists(WORDS, min_size=1, max_size=40))
def test_a_vector_of_words_is_inverted_one_by_one(law: Dice, words: list[int]) -> None:
    drawn = table(law).draw(ScriptedWords(*words), len(words))
    for x, word in zip(drawn.tolist(), words, strict=True):
        # The words that the rest of an ambiguous real would change are tested above.
        ends = (
            law.quantile(Fraction(word, 2**64)),
            law.quantile(Fraction(word, 2**64) + Fraction(ALL_ONES, 2**128)),
        )
        assert ends[0] <= x <= ends[1]


def test_the_tails_have_no_end() -> None:
    """Words at both ends go on until they decide, out to values of probability 2**-190."""
    sigma = 3
    law = Decay(Fraction(1, 2 * sigma**2), 2, both_sides=True)
    with mpmath.workprec(600):
        weights = [mpmath.exp(-mpmath.mpf(x * x) / (2 * sigma**2)) for x in range(80)]
        total = weights[0] + 2 * mpmath.fsum(weights[1:])
        for words in ([0, 0, 1], [0, 0, 2**60], [0, 1, 0], [0, 2**63, 5], [1, 0, 3]):
            u = sum(mpmath.mpf(w) / mpmath.mpf(2) ** (64 * (i + 1)) for i, w in enumerate(words))
            x = 79
            while mpmath.fsum(weights[x:]) / total <= u:
                x -= 1
            expected = -x
            assert Table(law).draw(ScriptedWords(*words, 2**40), 1)[0] == expected
            mirrored = [ALL_ONES - w for w in words]
            assert Table(law).draw(ScriptedWords(*mirrored, 2**40), 1)[0] == -expected


def test_a_refined_draw_takes_words_after_the_vector() -> None:
    inverse = Table(Dice(0, (1, 1), blur=1))
    source = ScriptedWords(5, 2**63, 7, 2**62)
    assert inverse.draw(source, 3).tolist() == [0, 1, 0]
    assert source.taken == 4


def test_cumulative_encloses_and_narrows() -> None:
    law = Dice(0, (1, 1, 1), blur=2**40)
    for bits, width in ((96, 2**41), (200, 2**41)):
        values = cumulative(law, bits)
        assert values.start == -1
        assert values.lower[0] == 0
        assert values.width <= width
        for i, low in enumerate(values.lower):
            assert low <= Fraction(i, 3) * 2**bits <= low + values.width


def test_draws_do_not_depend_on_how_they_are_split() -> None:
    inverse = Table(Dice(0, tuple(range(1, 400))))
    whole = inverse.draw(ScriptedWords(), 100_000)
    source = ScriptedWords()
    parts = [inverse.draw(source, n) for n in (1, 0, 40_000, 59_999)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
