"""What one run with many canaries says: their coins guessed from what an observer saw of them.

Every canary was in with probability 1/2, by a coin of its own that nothing else depends on. A score
is any function of what the observer saw; the guesser says "in" of the canaries with the largest
scores and "out" of those with the smallest. How many of each it guesses is a share of the canaries
that was fixed beforehand, and every share of every score counts as a test of its own (Bonferroni).
A claim is refuted when its trade-off curve makes so many right guesses too improbable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from confide.accounting import gdp
from confide.accounting.roots import root
from confide.audit.bounds import (
    Curve,
    Guesses,
    chance_of,
    gaussian,
    least,
    possible,
)

SURE, LIKELY = 0.001, 0.05
"""Levels of FAIL and WARN, each for all tests together."""
SHARES = (
    (0.01, 0.01),
    (0.05, 0.05),
    (0.2, 0.2),
    (0.5, 0.5),
    (0.02, 0.0),
    (0.05, 0.0),
    (0.1, 0.0),
    (0.3, 0.0),
)
"""Of the canaries: how many are guessed to be in, and how many to be out."""
MOST = 60.0
MISSING = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

Scores = NDArray[np.float64]
Coins = NDArray[np.bool_]


@dataclass(frozen=True)
class Fit:
    """How far apart the scores lie, if both kinds were normal: an estimate, never a proof."""

    mu: float
    low: float  # right with probability 99.9 %, if they are


@dataclass(frozen=True)
class Found:
    """What the scores of one observer say against one claim."""

    via: str  # the strongest guess in words
    made: int
    right: int
    lower_bound: float  # valid whatever the mechanism is, at 95 % for all tests together
    if_gaussian: float  # the same if the release is Gaussian
    refuted: float  # the smaller level at which the claim is refuted; 1 if it is not
    estimate: float
    estimate_low: float  # its lower 99.9 % limit
    canaries: int
    tests: int


def guessed(scores: Scores, coins: Coins, shares: tuple[float, float]) -> Guesses:
    """Say "in" of the largest and "out" of the smallest; ties go by the canary's number."""
    m = len(scores)
    ins, outs = (int(share * m) for share in shares)
    order = np.argsort(scores, kind="stable")
    right = int(coins[order[m - ins :]].sum()) + int((~coins[order[:outs]]).sum())
    return Guesses(m, ins + outs, right)


def examined(
    scores: Mapping[str, Scores], coins: Coins, curve: Curve, delta: float, tests: int
) -> Found:
    """Every guess against the claimed curve; `tests` is how many the whole audit makes."""
    guesses = {
        (name, shares): guessed(one, coins, shares)
        for name, one in scores.items()
        for shares in SHARES
    }
    made = [one for one in guesses.values() if one.made]
    levels = {alpha: refutes(made, curve, alpha / tests) for alpha in (SURE, LIKELY)}
    bounds = {
        key: epsilon_at(one, delta, LIKELY / tests) for key, one in guesses.items() if one.made
    }
    fits = [fitted(one, coins) for one in scores.values()]
    best = max(bounds, key=lambda key: (bounds[key], guesses[key].right / guesses[key].made))
    return Found(
        via=words(*best, guesses[best]),
        made=guesses[best].made,
        right=guesses[best].right,
        lower_bound=bounds[best],
        if_gaussian=least(
            lambda e: not refutes(made, gaussian(gdp.mu(e, delta)), LIKELY / tests), MOST
        ),
        refuted=next((alpha for alpha in (SURE, LIKELY) if levels[alpha]), 1.0),
        estimate=max(epsilon_of(one.mu, delta) for one in fits),
        estimate_low=max(epsilon_of(one.low, delta) for one in fits),
        canaries=len(coins),
        tests=tests,
    )


def counted(scores: Mapping[str, Scores]) -> int:
    """How many tests these scores make."""
    return len(scores) * len(SHARES)


def refutes(guesses: list[Guesses], curve: Curve, alpha: float) -> bool:
    """Whether one of the guesses is impossible under the curve, but for probability alpha each."""
    return any(not possible(one, curve, alpha) for one in guesses)


def epsilon_at(one: Guesses, delta: float, alpha: float) -> float:
    """The least epsilon that so many right guesses do not refute."""
    if chance_of(one, 0.0, delta) > alpha:
        return 0.0
    return least(lambda e: chance_of(one, e, delta) > alpha, MOST)


def fitted(scores: Scores, coins: Coins) -> Fit:
    """The distance of the means in deviations of the canaries that were out, and its lower limit.

    The limit is the usual one of an effect size: the variance of the difference of two means, and
    that of the deviation by which it is divided.
    """
    ins, outs = scores[coins], scores[~coins]
    if min(len(ins), len(outs)) < 2:
        return Fit(0.0, 0.0)
    gap, deviation = float(ins.mean() - outs.mean()), float(outs.std(ddof=1))
    if deviation == 0:
        return Fit(inf, inf) if gap > 0 else Fit(0.0, 0.0)
    mu = gap / deviation
    spread = float(ins.var(ddof=1)) / deviation**2
    error = sqrt(spread / len(ins) + 1 / len(outs) + mu**2 / (2 * len(outs)))
    return Fit(max(mu, 0.0), max(mu - float(ndtri(1 - SURE)) * error, 0.0))


def epsilon_of(mu: float, delta: float) -> float:
    """Of a Gaussian release with this ratio."""
    return 0.0 if mu <= 0 else inf if mu == inf else gdp.epsilon(mu, delta)


def words(name: str, shares: tuple[float, float], one: Guesses) -> str:
    """A guess in words."""
    ins, outs = (int(share * one.canaries) for share in shares)
    what = f"{ins} guessed in" + (f" and {outs} out" if outs else "")
    return f"{name}: {what}, {one.right} of {one.made} right"


def caught(curve: Curve, mu: float, canaries: int, tests: int) -> float | None:
    """The least share of the noise whose absence these canaries would have shown, as expected.

    With so much less noise the scores, which lie `mu` apart now, would lie farther apart by that
    factor. Level 0.001; none if even a tenth of the noise would have passed.
    """
    for share in MISSING if mu > 0 else ():
        made = [expected(mu / (1 - share), canaries, shares) for shares in SHARES]
        if refutes([one for one in made if one.made], curve, SURE / tests):
            return share
    return None


def crossing(curve: Curve) -> float:
    """How far apart two normal laws lie that have the curve's error where both errors are equal."""
    if curve(0.5) >= 0.5:
        return 0.0
    equal = root(lambda x: curve(x) - x, 0.0, 0.5, 1e-12)
    return -2 * float(ndtri(max(equal, 1e-12)))


def expected(mu: float, canaries: int, shares: tuple[float, float]) -> Guesses:
    """How many guesses would be right, if the scores were N(0, 1) and N(mu, 1)."""
    right, made = 0.0, 0
    for share in shares:  # what holds of the largest scores holds of the smallest too
        taken = int(share * canaries)
        if not taken:
            continue
        above = root(lambda x, share=share: beyond(x, mu) - share, -10.0, 10.0 + mu, 1e-9)
        right += taken * float(ndtr(mu - above)) / (2 * beyond(above, mu))
        made += taken
    return Guesses(canaries, made, int(right))


def beyond(x: float, mu: float) -> float:
    """How many of both kinds lie above x."""
    return (float(ndtr(-x)) + float(ndtr(mu - x))) / 2
