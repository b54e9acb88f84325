"""Exact laws of what a round releases about numbers on a grid, by convolution and by counting.

Nothing here knows of claims or events: a law is a vector of probabilities, a stage moves them. What
leaves the grid is put on its ends, and continuous noise is rounded to the grid: both are done to
the output, so no epsilon found here is above the true one (but for noise upon noise, where rounding
the first changes the variance by a part in a thousand).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from confide.accounting import staircase
from confide.cohorts import All, Fixed, Poisson
from confide.stages import (
    Assume,
    Clip,
    Gaussian,
    Laplace,
    Quantize,
    RandomizedResponse,
    Scale,
    Skellam,
    Stage,
    Staircase,
)

Law = NDArray[np.float64]
STEP, HALF = 1 / 8, 320
PLACES = STEP * np.arange(-HALF, HALF + 1)
WIDE = STEP * np.arange(-2 * HALF, 2 * HALF + 1)


def point(value: float) -> Law:
    """All at one place."""
    return placed(np.array([value]), np.ones(1))


def placed(values: Law, masses: Law) -> Law:
    """Masses at the nearest places."""
    index = np.clip(np.round(values / STEP), -HALF, HALF).astype(int) + HALF
    return np.bincount(index, masses, 2 * HALF + 1)


def plus(law: Law, other: Law) -> Law:
    """The law of a sum of independent numbers."""
    whole = np.convolve(law, other)
    beyond = (len(other) - 1) // 2
    found = whole[beyond : len(whole) - beyond].copy()
    found[0] += whole[:beyond].sum()
    found[-1] += whole[len(whole) - beyond :].sum()
    return found


def rounded(below: Callable[[Law], Law]) -> Law:
    """Symmetric noise with this distribution function, rounded; each half from its own tail."""
    middle = 2 * HALF
    edges = np.append(-np.inf, WIDE[:middle] + STEP / 2)
    left = np.diff(below(edges))
    return np.concatenate([left, [1 - 2 * left.sum()], left[::-1]])


def after(stage: Stage, law: Law) -> Law:
    """The law of the stage's result."""
    match stage:
        case Assume():
            return law
        case Clip(float(C)):
            return placed(np.clip(PLACES, -C, C), law)
        case Scale(float(by)):
            return placed(PLACES * by, law)
        case Gaussian(float(std)):
            return plus(law, rounded(lambda e: stats.norm.cdf(e / std)))
        case Laplace(float(scale)):
            return plus(law, rounded(lambda e: stats.laplace.cdf(e / scale)))
        case Staircase(epsilon, delta):
            fall = stage.fall
            return plus(
                law, rounded(lambda e: staircase.cdf(np.maximum(e, -1e6), epsilon, fall, delta))
            )
        case Quantize():
            most = (stage.k - 1) // 2
            position = np.clip(PLACES / stage.step, -most, most)
            up = position - np.floor(position)
            low = np.floor(position) * stage.step
            return placed(low, law * (1 - up)) + placed(low + stage.step, law * up)
        case Skellam(step, variance):
            noise = np.zeros(len(WIDE))
            apart = round(step / STEP)
            k = np.arange(-(2 * HALF // apart), 2 * HALF // apart + 1)
            noise[k * apart + 2 * HALF] = special.ive(np.abs(k), variance)
            return plus(law, noise)
        case RandomizedResponse(k, C, epsilon):
            level = np.round((np.clip(PLACES, -C, C) + C) * (k - 1) / (2 * C))
            stays = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
            goes = (1 - stays) / (k - 1)
            levels = np.arange(k)
            masses = np.array([law[level == j].sum() for j in levels])
            return placed(levels * 2 * C / (k - 1) - C, goes + (stays - goes) * masses)
        case _:
            raise TypeError(f"no exact law of {stage!r}")


def through(stages: Iterable[Stage], law: Law) -> Law:
    """One stage after the other."""
    for stage in stages:
        law = after(stage, law)
    return law


def draws(cohort: All | Fixed | Poisson, units: int) -> list[tuple[float, tuple[int, ...]]]:
    """Every cohort with its probability."""
    everyone = range(units)
    match cohort:
        case Poisson(q):
            return [
                (q ** len(who) * (1 - q) ** (units - len(who)), who)
                for size in range(units + 1)
                for who in itertools.combinations(everyone, size)
            ]
        case Fixed(m):
            sets = list(itertools.combinations(everyone, m))
            return [(1 / len(sets), who) for who in sets]
        case All():
            return [(1.0, tuple(everyone))]


def total(stages: Sequence[Stage], values: Iterable[float]) -> Law:
    """The law of the sum of what these values become."""
    law = point(0.0)
    for value in values:
        law = plus(law, through(stages, point(value)))
    return law


def delta(p: Law, q: Law, epsilon: float) -> float:
    """The least delta at which p and q are (epsilon, delta)-close, both ways."""
    factor = math.exp(min(epsilon, 700.0))
    return float(max(np.maximum(p - factor * q, 0).sum(), np.maximum(q - factor * p, 0).sum()))


def twice(p: Law) -> Law:
    """Two independent releases."""
    return np.outer(p, p).ravel()
