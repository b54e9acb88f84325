"""Tests of what stages added: scale, law, and whether any of it was used twice.

Every test has an exact level for any number of draws: under what the stages say, their scores are
independent standard normal numbers. The sum of n squares is then chi-square, the largest distance
of distribution functions is Kolmogorov's, and the correlation of two vectors is Student's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2, kstwo
from scipy.stats import t as student

from confide.audit.laws import Coins, Values, scores
from confide.audit.twins import Call
from confide.stages import Correlated, RadialStaircase

Seat = tuple[str, str, int]
LEAST = 16
"""Fewer numbers are not correlated with others."""
MOST_OF_A_LAW = 20_000
HIGHEST = 1e6
"""A score that no law has; larger ones would overflow."""


@dataclass(frozen=True, eq=False)
class Draw:
    """What one stage added once, as scores."""

    seat: Seat
    name: str  # of the stage
    run: int
    t: int
    client: int | None
    times: int
    scores: Values


@dataclass(frozen=True)
class Test:
    """One test: how probable so much is if the stages do what they say."""

    kind: str
    seats: tuple[Seat, ...]
    words: str
    p: float
    size: float  # of what was found; 0 where there is nothing


def draws(calls: Sequence[Call], coins: Coins) -> list[Draw]:
    """The scores of all calls whose law is known."""
    out: list[Draw] = []
    for call in calls:
        found = scores(call.stage, call.given, call.came, coins)
        if found is not None:
            z = np.clip(np.nan_to_num(found, nan=HIGHEST), -HIGHEST, HIGHEST)
            name = type(call.stage).__name__
            out.append(Draw(call.seat, name, call.run, call.t, call.client, call.times, z))
    bands = {call.seat: call.stage.c for call in calls if isinstance(call.stage, Correlated)}
    return [one for one in out if one.seat not in bands] + list(whitened(out, bands))


def whitened(found: list[Draw], bands: dict[Seat, tuple[float, ...]]) -> Iterator[Draw]:
    """Noise that says how it is correlated over rounds, with that taken out of it.

    c_0 n_t + c_1 n_{t-1} + ... is fresh in every round; those whose past was not seen are left out.
    """
    known = {(one.seat, one.run, one.t): one for one in found if one.seat in bands}
    for (seat, run, t), one in known.items():
        c = bands[seat]
        past = [known.get((seat, run, t - back)) for back in range(min(len(c), t + 1))]
        if all(past):
            z = sum(w * before.scores for w, before in zip(c, past, strict=False) if before)
            yield Draw(seat, one.name, run, t, one.client, one.times, np.asarray(z))


def told(seat: Seat, name: str = "") -> str:
    """Where a stage stands, in words."""
    place, vector, _ = seat
    return f"{name or 'a stage'} on `{vector}` at {place}"


def by_seat(found: Sequence[Draw]) -> dict[Seat, list[Draw]]:
    """The draws of each stage."""
    out: dict[Seat, list[Draw]] = {}
    for one in found:
        out.setdefault(one.seat, []).append(one)
    return out


def every_test(found: Sequence[Draw], layers: tuple[int, ...], rehearsed: int) -> Iterator[Test]:
    """Every test; runs from `rehearsed` on are replays, of which only the law is tested."""
    seats = by_seat(found)
    played = [one for one in found if one.run < rehearsed]
    for seat, mine in seats.items():
        yield law(seat, mine)
        yield from scales(seat, mine, layers)
    for seat, mine in by_seat(played).items():
        yield from reuse(seat, mine)
        yield from across_layers(seat, mine, layers)
    for one, other in combinations(by_seat(played).items(), 2):
        yield across_stages(*one, *other)


# Scale and law ----------------------------------------------------------------------------------


def law(seat: Seat, mine: Sequence[Draw]) -> Test:
    """Kolmogorov and Smirnov's test of all scores together."""
    z = np.concatenate([one.scores for one in mine])
    u = np.sort(ndtr(z[:: max(1, len(z) // MOST_OF_A_LAW)]))
    n = len(u)
    ranks = np.arange(1, n + 1) / n
    distance = float(np.maximum(ranks - u, u - ranks + 1 / n).max())
    words = f"{told(seat, mine[0].name)} does not have the law it says: {distance:.2f} apart"
    return Test("law", (seat,), words, float(kstwo.sf(distance, n)), distance)


def scales(seat: Seat, mine: Sequence[Draw], layers: tuple[int, ...]) -> Iterator[Test]:
    """All together, each layer, each client and each round."""
    where = told(seat, mine[0].name)
    yield scale(seat, where, [one.scores for one in mine])
    for number, part in enumerate(parts(len(mine[0].scores), layers), 1):
        yield scale(seat, f"{where}, layer {number},", [one.scores[part] for one in mine])
    if mine[0].name == RadialStaircase.__name__:  # the last score alone speaks of the length
        yield scale(seat, f"{where}, by its norm,", [one.scores[-1:] for one in mine])
    told_apart: tuple[tuple[str, Callable[[Draw], int | None]], ...] = (
        ("client", lambda one: one.client),
        ("round", lambda one: one.t),
    )
    for axis, of in told_apart:
        for level in sorted({of(one) for one in mine} - {None}, key=str):
            values = [one.scores for one in mine if of(one) == level]
            yield scale(seat, f"{where}, {axis} {level},", values)


def scale(seat: Seat, where: str, values: Sequence[Values]) -> Test:
    """Whether the sum of squares is too small or too large for a chi-square number."""
    n = sum(len(part) for part in values)
    total = float(sum((part**2).sum() for part in values))
    ratio = sqrt(total / n)
    words = f"{where} has {ratio:.3g} of the standard deviation it says ({n} draws)"
    return Test("scale", (seat,), words, smaller_tail(total, n), abs(ratio - 1))


def smaller_tail(total: float, n: int) -> float:
    """Twice the smaller tail of the chi-square law."""
    return min(1.0, 2 * float(min(chi2.cdf(total, n), chi2.sf(total, n))))


def parts(length: int, layers: tuple[int, ...]) -> list[slice]:
    """The layers of a model's vector; eighths of another one that is long enough."""
    if length == sum(layers):
        ends = np.cumsum(layers).tolist()
        return [slice(end - n, end) for end, n in zip(ends, layers, strict=True)]
    if length >= 8 * LEAST:
        return [slice(i * length // 8, (i + 1) * length // 8) for i in range(8)]
    return []


# Noise that is used twice -----------------------------------------------------------------------

AXES: dict[str, Callable[[Draw], object]] = {
    "keys": lambda one: one.run,
    "rounds": lambda one: one.t,
    "clients": lambda one: one.client,
    "steps": lambda one: one.times,
}


def reuse(seat: Seat, mine: Sequence[Draw]) -> Iterator[Test]:
    """For two keys, rounds, clients or steps: all pairs that differ in nothing else."""
    where = told(seat, mine[0].name)
    for axis, of in AXES.items():
        rest = [other for name, other in AXES.items() if name != axis]
        table: dict[object, dict[object, Draw]] = {}
        for one in mine:
            table.setdefault(of(one), {})[tuple(other(one) for other in rest)] = one
        for a, b in combinations(sorted(table, key=str), 2):
            both = [key for key in table[a] if key in table[b]]
            left = [table[a][key].scores for key in both]
            right = [table[b][key].scores for key in both]
            words = f"{where} is the same for {axis} {a} and {b}"
            yield from correlated("reuse", (seat,), words, left, right)


def across_layers(seat: Seat, mine: Sequence[Draw], layers: tuple[int, ...]) -> Iterator[Test]:
    """For two layers: as many coordinates as the shorter one has."""
    pieces = parts(len(mine[0].scores), layers)
    for (i, a), (j, b) in combinations(enumerate(pieces, 1), 2):
        words = f"{told(seat, mine[0].name)} is the same in layers {i} and {j}"
        left = [one.scores[a] for one in mine]
        right = [one.scores[b] for one in mine]
        yield from correlated("reuse", (seat,), words, left, right)


def across_stages(seat: Seat, mine: list[Draw], other: Seat, theirs: list[Draw]) -> Test:
    """For two stages in the same round, where one of them is the server's in the whole round."""
    left: list[Values] = []
    right: list[Values] = []
    for a in mine:
        for b in theirs:
            same = (a.run, a.t, a.times) == (b.run, b.t, b.times)
            if same and (a.client == b.client or None in (a.client, b.client)):
                left.append(a.scores)
                right.append(b.scores)
                break
    words = f"{told(seat, mine[0].name)} has the noise of {told(other, theirs[0].name)}"
    found = list(correlated("reuse", (seat, other), words, left, right))
    return found[0] if found else Test("reuse", (seat, other), words, 1.0, 0.0)


def correlated(
    kind: str,
    seats: tuple[Seat, ...],
    words: str,
    left: Sequence[Values],
    right: Sequence[Values],
) -> Iterator[Test]:
    """Student's test of the correlation around 0, over as much as both sides have."""
    common = [min(len(a), len(b)) for a, b in zip(left, right, strict=True)]
    n = sum(common)
    if n < LEAST:
        return
    a = np.concatenate([one[:m] for one, m in zip(left, common, strict=True)])
    b = np.concatenate([one[:m] for one, m in zip(right, common, strict=True)])
    squares = float(a @ a) * float(b @ b)
    r = float(a @ b) / sqrt(squares) if squares > 0 else 0.0
    ratio = r * sqrt((n - 1) / max(1 - r * r, 1e-15))
    p = min(1.0, 2 * float(student.sf(abs(ratio), n - 1)))
    yield Test(kind, seats, f"{words} (correlation {r:.2f})", p, abs(r))
