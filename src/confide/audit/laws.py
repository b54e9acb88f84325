"""The law that a stage says its noise has: what it did, as numbers that must be standard normal.

If a stage does what it says, the scores of all its draws are independent N(0, 1), whatever it was
given; laws with atoms are spread within each atom by coins of the audit's own. A test of the scores
therefore has the level it says, for any number of draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import exp, inf, sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import betainc, ive, ndtri
from scipy.stats import binom

from confide.accounting.relations import Relation
from confide.claims import Claim
from confide.stages import (
    BallRandomizer,
    Binomial,
    Correlated,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Ordinal,
    RadialStaircase,
    RandomizedResponse,
    Skellam,
    Stage,
    Staircase,
    TwoPoint,
)
from confide.stages.bounds import number
from confide.stages.noises import fall

Values = NDArray[np.float64]
Coins = np.random.Generator
CONTINUOUS = (Gaussian, Laplace, Staircase, RadialStaircase, Correlated)
"""Two draws of these are never alike."""
OFF = 1e-3
"""What is further from a level, in distances of two, is none."""
FAR = 12.0
"""Beyond so many standard deviations an integer law has less than a float can see."""


def is_noise(stage: Stage, length: int) -> bool:
    """Whether a stage says that it protects a vector of this length."""
    if isinstance(stage, Gaussian):
        return number(stage.std) > 0
    if isinstance(stage, Laplace):
        return number(stage.scale) > 0
    if isinstance(stage, Correlated):
        return stage.std > 0
    return type(stage).claim is not Stage.claim and claimed(stage, length).protects


@dataclass(frozen=True)
class Claimed:
    """What the claim of a stage by itself says."""

    protects: bool
    std: float  # of Gaussian noise; 0 where it speaks of none


def claimed(stage: Stage, length: int) -> Claimed:
    """What one stage makes of a vector that is as bounded as it may wish."""
    step = getattr(stage, "step", None)
    least = Claim(Relation.ZERO_OUT, length=length, l1=1e-12, grid=step)
    c = stage.claim(least)
    gaussian = c.noise is not None and c.noise.law == "gaussian"
    return Claimed(not c.open or c.noisy, sqrt(c.noise.amount) if gaussian and c.noise else 0.0)


def is_continuous(stage: Stage, length: int) -> bool:
    """Whether no value can come twice."""
    return isinstance(stage, CONTINUOUS) or claimed(stage, length).std > 0


def scores(stage: Stage, x: torch.Tensor, y: torch.Tensor, coins: Coins) -> Values | None:
    """One score for each coordinate (a single one for a ball); None: its law is not known here."""
    given, came = x.detach().double().numpy().ravel(), y.detach().double().numpy().ravel()
    match stage:
        case Gaussian():
            return (came - given) / number(stage.std)
        case Correlated():
            return (came - given) / stage.std
        case Laplace():
            return normal(
                signed(came - given, 1 - np.exp(-np.abs(came - given) / number(stage.scale)))
            )
        case Staircase():
            away = np.abs(came - given) / stage.delta
            within = below_step(away, number(stage.epsilon), stage.fall)
            return normal(signed(came - given, within))
        case RadialStaircase():
            epsilon = number(stage.epsilon)
            return radial((came - given) / stage.delta, epsilon, fall(epsilon, stage.gamma))
        case DiscreteGaussian():
            law = discrete_gaussian(stage.sigma)
            return normal(law.uniforms(steps(given, came, stage.step), coins))
        case Skellam():
            return normal(skellam(stage.variance).uniforms(steps(given, came, stage.step), coins))
        case Binomial():
            law = binomial(stage.trials)
            return normal(law.uniforms(steps(given, came, stage.step), coins))
        case RandomizedResponse() | TwoPoint() | Ordinal():
            return normal(levels(stage, given, came, coins))
        case BallRandomizer():
            return ball(stage, given, came, coins)
        case _:
            std = claimed(stage, len(given)).std
            return (came - given) / std if std > 0 else None


def normal(uniforms: Values) -> Values:
    """Uniform numbers as standard normal ones; what a double cannot tell from 0 or 1 is at 8."""
    return ndtri(np.clip(uniforms, 1e-16, 1 - 1e-16))


def signed(residual: Values, within: Values) -> Values:
    """The distribution function of a symmetric law, from that of its absolute value."""
    return 0.5 + 0.5 * np.sign(residual) * within


def below_step(away: Values, epsilon: float, gamma: float) -> Values:
    """P(|noise| <= away), in steps: geometric periods, of which the first part is the heavier."""
    b = exp(-epsilon)
    heavy = gamma / (gamma + (1 - gamma) * b)
    period = np.floor(away)
    place = away - period
    early = heavy * np.minimum(place / gamma, 1)
    late = (1 - heavy) * np.maximum((place - gamma) / (1 - gamma), 0)
    return 1 - b**period + b**period * (1 - b) * (early + late)


def radial(noise: Values, epsilon: float, gamma: float) -> Values:
    """A vector whose density depends on its l1 norm alone: shares of the norm, signs, the norm.

    Of n coordinates' absolute values, the i-th over the rest of the norm is Beta(1, n - i), all of
    them independent of each other, of the norm and of the signs.
    """
    size, n = np.abs(noise), len(noise)
    rest = np.cumsum(size[::-1])[::-1]
    share = np.divide(size, rest, out=np.zeros(n), where=rest > 0)
    within = 1 - (1 - share) ** np.maximum(n - 1 - np.arange(n), 1)
    within[-1] = norm_below(float(size.sum()), n, epsilon, gamma)
    return normal(signed(noise, within))


def norm_below(norm: float, n: int, epsilon: float, gamma: float) -> float:
    """P(l1 norm <= norm), in steps: shells of falling density and growing volume."""
    last = int(max(2 * n / epsilon + 50 / epsilon + 50, norm + 2))
    outer = np.arange(last) + gamma
    inner = np.concatenate([[0.0], outer[:-1]])
    level = -epsilon * np.arange(last)
    with np.errstate(divide="ignore"):
        volume = n * np.log(outer) + np.log1p(-((inner / outer) ** n))
        cut = np.clip(norm, inner, outer)
        part = n * np.log(cut) + np.log1p(-((inner / cut) ** n))
    peak = float((level + volume).max())
    return float(np.exp(level + part - peak).sum() / np.exp(level + volume - peak).sum())


@dataclass(frozen=True, eq=False)
class Atoms:
    """A law on the integers from `first` on: the sums of their probabilities."""

    first: int
    sums: Values  # P(X <= first + i)

    def uniforms(self, drawn: Values, coins: Coins) -> Values:
        """A uniform place within each atom's share of [0, 1]."""
        padded = np.concatenate([[0.0, 0.0], self.sums, [1.0, 1.0]])
        place = np.clip(drawn - self.first + 2, 1, len(padded) - 1).astype(np.int64)
        low, high = padded[place - 1], padded[place]
        return low + (high - low) * coins.uniform(size=len(drawn))


def steps(given: Values, came: Values, step: float) -> Values:
    """By how many steps of the grid each coordinate moved."""
    return np.round(came / step) - np.round(given / step)


def atoms(weights: Values) -> Atoms:
    """A symmetric law around 0 from its weights."""
    return Atoms(-(len(weights) // 2), np.cumsum(weights) / weights.sum())


@cache
def discrete_gaussian(sigma: float) -> Atoms:
    """exp(-x^2 / (2 sigma^2))."""
    reach = np.arange(int(FAR * sigma) + 13)
    side = np.exp(-(reach**2) / (2 * sigma**2))
    return atoms(np.concatenate([side[:0:-1], side]))


@cache
def skellam(variance: float) -> Atoms:
    """Bessel weights, scaled so that they do not overflow."""
    side = ive(np.arange(int(FAR * sqrt(variance)) + 60), variance)
    return atoms(np.concatenate([side[:0:-1], side]))


@cache
def binomial(trials: int) -> Atoms:
    """Successes less half of the trials."""
    middle = trials // 2
    reach = min(middle, int(FAR * sqrt(trials) / 2) + 13)
    return Atoms(-reach, binom.cdf(np.arange(middle - reach, middle + reach + 1), trials, 0.5))


def levels(
    stage: RandomizedResponse | TwoPoint | Ordinal, given: Values, came: Values, coins: Coins
) -> Values:
    """A randomiser with few outputs: each has its probability, given the input."""
    held = np.clip(np.nan_to_num(given, posinf=0, neginf=0), -stage.C, stage.C)
    if isinstance(stage, TwoPoint):
        size, k = stage.A, 2
        up = 0.5 + held / (2 * stage.A)
        sums = np.stack([1 - up, np.ones_like(up)], 1)
    else:
        size, k = stage.C, stage.k
        nearest = np.round((held + size) * ((k - 1) / (2 * size))).astype(np.int64)
        sums = np.cumsum(chances(stage)[nearest], 1)
    level = (came + size) * ((k - 1) / (2 * size))
    place = np.clip(np.round(level), 0, k - 1).astype(np.int64)
    rows = np.arange(len(came))
    low = np.where(place > 0, sums[rows, np.maximum(place - 1, 0)], 0.0)
    uniform = low + (sums[rows, place] - low) * coins.uniform(size=len(came))
    return np.where(np.abs(level - place) < OFF, uniform, 0.0)


def chances(stage: RandomizedResponse | Ordinal) -> Values:
    """The probability of each level, a row for each level that is nearest."""
    index = np.arange(stage.k)
    if isinstance(stage, RandomizedResponse):
        return stage.lies / stage.k + (1 - stage.lies) * np.eye(stage.k)
    weights = np.exp(-stage.epsilon / (stage.k - 1) * np.abs(index[:, None] - index))
    return weights / weights.sum(1, keepdims=True)


def ball(stage: BallRandomizer, given: Values, came: Values, coins: Coins) -> Values:
    """The cosine of what was sent: a uniform direction's, in one half more often than the other."""
    n, length = len(given), float(np.linalg.norm(given))
    size = float(np.linalg.norm(came))
    if length == 0 or abs(size / stage.radius(n) - 1) > 1e-4:
        return np.array([0.0 if length == 0 else inf])
    along = float(came @ given) / (size * length)
    faces = 0.5 + min(length, stage.C) / (2 * stage.C)
    keep = 1 / (1 + exp(-stage.epsilon))
    ahead = faces * keep + (1 - faces) * (1 - keep)
    # The square of one coordinate of a uniform direction is Beta(1/2, (n - 1) / 2).
    within = float(betainc(0.5, (n - 1) / 2, min(1.0, along**2))) if n > 1 else coins.uniform()
    below = (1 - ahead) * (1 - within) if along < 0 else 1 - ahead + ahead * within
    return normal(np.array([below]))
