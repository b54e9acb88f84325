"""Scores that tell a draw with the canary from one without, learned from draws of their own.

Half of the draws are looked at as closely as one likes: scores and thresholds are chosen on them.
The other half is only counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide.audit.bounds import Counts, Rows, epsilon_of_counts, mu_of_counts

Score = Callable[[Rows], NDArray[np.float64]]
BINS = 400
THRESHOLDS = 60


@dataclass(frozen=True, eq=False)
class Test:
    """A score with a threshold: "in" at or above it."""

    name: str
    score: Score
    threshold: float

    def counts(self, ins: Rows, outs: Rows) -> Counts:
        """Its errors on draws that did not choose it."""
        alarms = int((self.score(outs) >= self.threshold).sum())
        misses = int((self.score(ins) < self.threshold).sum())
        return Counts(alarms, len(outs), misses, len(ins))


def scores(ins: Rows, outs: Rows, canary: NDArray[np.float64]) -> Iterator[tuple[str, Score]]:
    """Every score that these draws suggest, each larger where the canary is in."""
    gap = ins.mean(0) - outs.mean(0)
    yield "projection on the canary", lambda y: y @ canary
    spread = (ins.var(0) + outs.var(0)) / 2
    if np.any(gap):
        weights = gap / (spread + (1e-9 * float(spread.max()) or 1.0))
        yield "trained direction", lambda y: y @ weights
        against = whitened(ins, outs, gap)
        yield "direction that the noise does not reach", lambda y: y @ against
    if (match := exact_match(ins, outs)) is not None:
        yield "exact match", match
    if (law := likelihood(ins, outs, canary, gap)) is not None:
        yield "likelihood ratio of the noise's own law", law
    for name, part in energies(ins.shape[1]):
        if ins[:, part].var() > 0 or gap[part].any():
            sign = np.sign((ins[:, part] ** 2).sum(1).mean() - (outs[:, part] ** 2).sum(1).mean())
            yield name, lambda y, part=part, sign=sign or 1.0: sign * (y[:, part] ** 2).sum(1)


def whitened(ins: Rows, outs: Rows, gap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the shift is largest beside the noise, which may be the same in several coordinates."""
    rest = np.concatenate([ins - ins.mean(0), outs - outs.mean(0)])
    shared = rest.T @ rest / len(rest)
    ridge = 1e-9 * float(np.trace(shared)) / len(gap) or 1.0
    return np.asarray(np.linalg.solve(shared + ridge * np.eye(len(gap)), gap), np.float64)


def exact_match(ins: Rows, outs: Rows) -> Score | None:
    """How many coordinates have a value that only comes with the canary, to the last bit."""
    first, other = ins[0], outs[0]
    repeats = (ins[1:] == first).mean(0) - (outs == first).mean(0)
    against = (outs[1:] == other).mean(0) - (ins == other).mean(0)
    told, denied = repeats > 0.01, against > 0.01
    if not told.any() and not denied.any():
        return None
    return lambda y: (
        (y[:, told] == first[told]).sum(1) - (y[:, denied] == other[denied]).sum(1)
    ).astype(np.float64)


def likelihood(
    ins: Rows, outs: Rows, canary: NDArray[np.float64], gap: NDArray[np.float64]
) -> Score | None:
    """The noise's density, measured on all coordinates at once, at both ends of the shift.

    The shift is along the canary, so one number is all that has to be estimated about it.
    """
    length = float(canary @ canary)
    if length == 0:
        return None
    shift = canary * float(gap @ canary) / length
    centre = outs.mean(0) * 0 + ((ins + outs).mean(0) @ canary) / length * canary / 2
    low, high = centre - shift / 2, centre + shift / 2
    moved = np.abs(shift) > 0
    rest = np.concatenate([(outs - low)[:, moved].ravel(), (ins - high)[:, moved].ravel()])
    if not len(rest) or np.ptp(rest) == 0:
        return None
    edges = np.linspace(np.quantile(rest, 0.0005), np.quantile(rest, 0.9995), BINS + 1)
    if not np.all(np.diff(edges) > 0):
        return None
    mass = np.histogram(rest, edges)[0] + 1.0
    logs = np.concatenate([[0.0], np.log(mass), [0.0]])  # beyond the edges both are unknown
    logs[[0, -1]] = np.log(mass.min())

    def score(y: Rows) -> NDArray[np.float64]:
        here = y[:, moved]
        up = logs[np.searchsorted(edges, here - high[moved])]
        down = logs[np.searchsorted(edges, here - low[moved])]
        return (up - down).sum(1)

    return score


def energies(d: int) -> Iterator[tuple[str, slice]]:
    """The squared length of all, and of each eighth."""
    yield "energy", slice(0, d)
    if d >= 16:
        for i in range(8):
            yield f"energy of part {i + 1} of 8", slice(i * d // 8, (i + 1) * d // 8)


def chosen(ins: Rows, outs: Rows, canary: NDArray[np.float64], delta: float) -> list[Test]:
    """The best test for a large epsilon, and the best for a large mu.

    Scores learn from one half of these draws; which one is best, and where its threshold lies, the
    other half says, so that a score is not taken for what it learned by heart.
    """
    best: dict[str, tuple[float, Test]] = {}
    half = len(ins) // 2
    for name, score in scores(ins[:half], outs[:half], canary):
        here, there = np.sort(score(ins[half:])), np.sort(score(outs[half:]))
        both = np.concatenate([here, there])
        for threshold in np.unique(np.quantile(both, np.linspace(0, 1, THRESHOLDS))):
            counts = Counts(
                len(there) - int(np.searchsorted(there, threshold)), len(there),
                int(np.searchsorted(here, threshold)), len(here),
            )  # fmt: skip
            test = Test(name, score, float(threshold))
            for aim, value in (
                ("epsilon", epsilon_of_counts(counts, delta, 0.05)),
                ("mu", mu_of_counts(counts, 0.05)),
            ):
                if value > best.get(aim, (0.0, test))[0]:
                    best[aim] = value, test
    return [test for _, test in best.values()]
