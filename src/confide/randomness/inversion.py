"""Exact sampling of an integer law by comparing random bits with its distribution function.

No floating-point number takes part in a decision. A law encloses its weights between integers; a
uniform real U, of which 64 bits are drawn at first, is compared with the enclosed distribution
function; where 64 bits do not decide, more bits of U are drawn and the law is enclosed more
tightly. The result has exactly the law's probabilities (docs/proofs/sampling-noise.md, 1 and 2).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_PIECE = 1 << 15  # draws made at a time, so that temporaries stay in the cache
_LAST_WORD = (1 << 64) - 1


class Words(Protocol):
    """A source of independent uniform 64-bit words: `confide.randomness.Stream` is one."""

    def uint64(self, shape: int, /) -> NDArray[np.uint64]:
        """Return uniform 64-bit words."""
        ...


@dataclass(frozen=True)
class Weights:
    """Numbers proportional to probabilities, each enclosed: lower[i] <= c P(first + i) <= upper[i].

    `left` and `right` bound c times the probability outside the range, on either side.
    """

    first: int
    lower: list[int]
    upper: list[int]
    left: int
    right: int


class Law(Protocol):
    """A probability law on the integers that can be enclosed as tightly as one asks."""

    def weights(self, bits: int) -> Weights:
        """Enclose the law so that widths and tails together are some 2**-bits of the total."""
        ...

    def __hash__(self) -> int:
        """Equal laws share a table."""
        ...


@dataclass(frozen=True)
class Cumulative:
    """The distribution function F: lower[i] <= 2**bits F(start + i) <= lower[i] + width."""

    start: int
    lower: list[int]
    width: int


def cumulative(law: Law, bits: int) -> Cumulative:
    """Enclose the distribution function of a law, from just below its first enclosed weight."""
    weights = law.weights(bits)
    least = sum(weights.lower)
    most = sum(weights.upper) + weights.left + weights.right
    below, above = 0, weights.left
    lower = [0]
    width = ceil_div(above << bits, least)
    for low, high in zip(weights.lower, weights.upper, strict=True):
        below += low
        above += high
        value = (below << bits) // most
        lower.append(value)
        width = max(width, ceil_div(above << bits, least) - value)
    return Cumulative(weights.first - 1, lower, width)


class Table:
    """Inversion of one law: the value is the least x with U < F(x)."""

    def __init__(self, law: Law) -> None:
        """Enclose the law tightly enough that each threshold is known to within one word."""
        self._law = law
        guard = 32
        values = cumulative(law, 64 + guard)
        while values.width >> guard or values.lower[-1] >> guard < _LAST_WORD - 1:
            guard *= 2
            values = cumulative(law, 64 + guard)
        words = [value >> guard for value in values.lower]
        # Words 0, 1 and the last two are never decided here: all values beyond them, without end
        # for a law without bounds, then need no entry.
        begin = bisect_left(words, 1) - 1
        end = bisect_left(words, _LAST_WORD - 1)
        self._start = values.start + begin
        self._words = np.array([*words[begin:end], _LAST_WORD - 1], np.uint64)
        self._next = self._words + np.uint64(1)
        self._make_guide()

    def _make_guide(self) -> None:
        """List, for every beginning of a word, the one answer it allows, or -1."""
        bits = min(max(len(self._words).bit_length() + 4, 8), 20)
        self._shift = np.uint64(64 - bits)
        starts = np.arange(1 << bits, dtype=np.uint64) << self._shift
        guide = np.searchsorted(self._next, starts, "left").astype(np.int32)
        guide[self._words >> self._shift] = -1
        guide[self._next >> self._shift] = -1
        self._guide = guide

    def draw(self, stream: Words, count: int) -> NDArray[np.int64]:
        """Return independent values of the law."""
        words = stream.uint64(count)
        out = np.empty(count, np.int64)
        for begin in range(0, count, _PIECE):
            piece = words[begin : begin + _PIECE]
            index = self._guide[piece >> self._shift]
            unsure = np.flatnonzero(index < 0)
            word = piece[unsure]
            found = np.searchsorted(self._next, word, "left")
            index[unsure] = found
            out[begin : begin + _PIECE] = index
            for at in np.flatnonzero(word >= self._words[found]):
                place = begin + int(unsure[at])
                out[place] = self._resolve(int(word[at]), stream) - self._start
        out += self._start
        return out

    def _resolve(self, word: int, stream: Words) -> int:
        """Find the value for a uniform real that begins with this word, however many it takes."""
        bits = 64
        while True:
            values = cumulative(self._law, bits + 64)
            at = bisect_left(values.lower, (word + 1) << 64)
            if at < len(values.lower) and word << 64 >= values.lower[at - 1] + values.width:
                return values.start + at
            word = word << 64 | int(stream.uint64(1)[0])
            bits += 64


@lru_cache(maxsize=8)
def table(law: Law) -> Table:
    """Return the table of a law; a few are kept, since rounds draw from the same laws."""
    return Table(law)


def below(word: int, enclose: Callable[[int], tuple[int, int]], stream: Words) -> bool:
    """Decide whether a uniform real that begins with this word is less than an enclosed number.

    `enclose(bits)` returns integers around 2**bits times the number.
    """
    bits = 64
    while True:
        lower, upper = enclose(bits + 64)
        if (word + 1) << 64 <= lower:
            return True
        if word << 64 >= upper:
            return False
        word = word << 64 | int(stream.uint64(1)[0])
        bits += 64


def exp_negative(x: Fraction, bits: int) -> tuple[int, int]:
    """Return integers around 2**bits exp(-x), for x >= 0.

    With y = x / 2**halvings <= 1/2, the series of exp(y) has positive terms, summed once rounding
    every step down and once up; what follows a term of at most one unit is less than one unit.
    """
    top, bottom = x.numerator, x.denominator
    if top == 0:
        return 1 << bits, 1 << bits
    if top > bits * bottom:
        return 0, 1  # exp(-x) < 2**-x
    halvings = max(0, (2 * top // bottom).bit_length())
    precision = bits + 2 * halvings + 16
    one = 1 << precision
    low_y = (top << precision) // (bottom << halvings)
    high_y = low_y + 1
    low_term, high_term = one, one
    low_sum, high_sum = one, one
    index = 0
    while high_term > 1:
        index += 1
        low_term = (low_term * low_y >> precision) // index
        high_term = ceil_div(high_term * high_y, index << precision)
        low_sum += low_term
        high_sum += high_term
    high_sum += 1
    low, high = (one << precision) // high_sum, ceil_div(one << precision, low_sum)
    for _ in range(halvings):
        low = low * low >> precision
        high = ceil_div(high * high, one)
    spare = precision - bits
    return low >> spare, ceil_div(high, 1 << spare)


def ceil_div(top: int, bottom: int) -> int:
    """Return the least integer that is at least top / bottom, for bottom > 0."""
    return -(-top // bottom)
