"""Layer 0: the very stages of a round applied to canaries, thousands of times, without training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from time import perf_counter

import numpy as np
import torch
from scipy.special import ndtr

from confide.accounting import account, gdp
from confide.accounting.events import DpEvent
from confide.accounting.relations import Relation
from confide.audit.bounds import (
    Counts,
    Curve,
    epsilon_if_gaussian,
    epsilon_of_counts,
    fitted_mu,
    gaussian,
    of_pairs,
    refutes,
)
from confide.audit.canaries import Canary, canaries
from confide.audit.scores import Rows, chosen
from confide.audit.targets import Target, Vectors
from confide.randomness import Key

SURE, LIKELY = 0.001, 0.05
"""Levels of FAIL and WARN, each for all tests of an audit together."""
LEAST_DRAWS, MOST_DRAWS = 400, 20_000
DRAWS_APART = 10_000_000
GRID = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)


@dataclass(frozen=True)
class Effort:
    """How long to look, or how many draws to make of each world, whatever the time."""

    seconds: float
    draws: int | None = None

    def shared(self, parts: int) -> Effort:
        """One of so many equal parts of the time."""
        return replace(self, seconds=self.seconds / parts)


@dataclass(frozen=True)
class Finding:
    """What one canary shows about one release."""

    target: str
    unit: str
    observer: str
    canary: str
    via: str
    draws: int
    claimed: float
    delta: float
    lower_bound: float  # valid whatever the mechanism is, at level 0.05
    if_gaussian: float  # an estimate, unless the claimed curve is Gaussian
    estimate: float  # from a Gaussian fitted to the scores, its lower 99.9 % limit
    refuted: float  # the smaller level at which the claim is refuted; 1 if it is not
    doubted: bool  # whether the estimate's limit contradicts the claim

    @property
    def order(self) -> tuple[float, ...]:
        """What says most about the claim comes first; then the largest valid bound."""
        return self.refuted, not self.doubted, -self.lower_bound, -self.if_gaussian


def findings(
    target: Target, key: Key, effort: Effort, delta: float, tests: int, number: int
) -> list[Finding]:
    """Every canary against one release.

    `tests` is how many tests the whole audit makes; `number` keeps the draws of targets apart.
    """
    known = families(target)
    claim = claimed(target, delta)
    out: list[Finding] = []
    for place, canary in enumerate(known):
        first = (number * len(known) + place) * DRAWS_APART
        out += examined(target, canary, key, first, effort.shared(len(known)), claim, delta, tests)
    return out


def families(target: Target) -> list[Canary]:
    """The canaries of the longest vector; the others follow it.

    Two vectors are neighbours only where one may replace the other; else the other is nothing.
    """
    longest = max(target.lengths.values(), key=sum)
    replaced = target.relation is Relation.REPLACE_ONE
    return [c for c in canaries(longest, target.bound) if replaced or c.other is None]


def worlds(target: Target, canary: Canary) -> tuple[Vectors, Vectors | None]:
    """The two worlds that the claim compares; the opposite of no number is nothing."""
    here = vectors(target, canary.vector)
    if target.relation is Relation.ADD_REMOVE:
        return here, None
    if canary.other is not None:
        return here, vectors(target, canary.other)
    if target.relation is Relation.REPLACE_ONE:
        return here, {name: -vector.nan_to_num() for name, vector in here.items()}
    return here, {name: torch.zeros_like(vector) for name, vector in here.items()}


def vectors(target: Target, canary: torch.Tensor) -> dict[str, torch.Tensor]:
    """The canary as every vector of the release, every second one turned round.

    So noise that two of them share does not hide that they differ.
    """
    return {
        name: (-1) ** place * fitted(canary, sum(layers))
        for place, (name, layers) in enumerate(target.lengths.items())
    }


def fitted(canary: torch.Tensor, length: int) -> torch.Tensor:
    """The same canary for a vector of another length."""
    if len(canary) == length:
        return canary
    return torch.full((length,), float(torch.linalg.vector_norm(canary)) / length**0.5).double()


def examined(
    target: Target,
    canary: Canary,
    key: Key,
    first: int,
    effort: Effort,
    claim: tuple[float, Curve | None],
    delta: float,
    tests: int,
) -> Iterator[Finding]:
    """Draw from `first` on, choose on one half, count on the other."""
    here, there = worlds(target, canary)
    n = effort.draws or affordable(target, here, there, key, effort.seconds)
    ins = np.array([target.draw(here, key, first + 2 * i) for i in range(n)])
    outs = np.array([target.draw(there, key, first + 2 * i + 1) for i in range(n)])
    half = n // 2
    aim = direction(target, canary, ins.shape[1])
    epsilon, curve = claim
    for test in chosen(ins[:half], outs[:half], aim, delta):
        counts = test.counts(ins[half:], outs[half:])
        mu = fitted_mu(test.score(ins[half:]), test.score(outs[half:]), SURE / tests)
        yield Finding(
            target=target.name,
            unit=target.unit,
            observer=target.observer,
            canary=canary.name,
            via=test.name,
            draws=n,
            claimed=epsilon,
            delta=delta,
            lower_bound=epsilon_of_counts(counts, delta, LIKELY / tests),
            if_gaussian=epsilon_if_gaussian(counts, delta, LIKELY / tests),
            estimate=gdp.epsilon(mu, delta) if mu > 0 else 0.0,
            refuted=level(counts, curve, tests),
            doubted=doubts(mu, curve, n - half),
        )


def level(counts: Counts, curve: Curve | None, tests: int) -> float:
    """The level at which the claim is refuted; 1 where it is not, or where there is none."""
    if curve is None:
        return 1.0
    for alpha in (SURE, LIKELY):
        if refutes(counts, curve, alpha / tests):
            return alpha
    return 1.0


def doubts(mu: float, curve: Curve | None, draws: int) -> bool:
    """Whether a release of this mu has smaller errors than the claim allows, where they are equal.

    There scores were seen, or at least one in so many draws; of rarer ones a fit knows nothing,
    and a claim that allows only rarer ones is not doubted.
    """
    if curve is None or mu <= 0:
        return False
    fpr = max(float(ndtr(-mu / 2)), 1 / draws)
    allowed = curve(fpr)
    return allowed >= 1 / draws and gaussian(mu)(fpr) < allowed * (1 - 1e-9)


def affordable(
    target: Target, here: Vectors, there: Vectors | None, key: Key, seconds: float
) -> int:
    """How many draws of each world fit into this time, measured on a few."""
    began, few = perf_counter(), 10
    for i in range(few):
        target.draw(here, key, i)
        target.draw(there, key, i)
    each = (perf_counter() - began) / few
    return int(min(MOST_DRAWS, max(LEAST_DRAWS, 0.8 * seconds / each)))


def direction(target: Target, canary: Canary, length: int) -> Rows:
    """The canary as the observer would see it without noise, as far as it can be known."""
    here, there = worlds(target, canary)
    parts = [v if there is None else v - there[name] for name, v in here.items()]
    whole = torch.cat(parts).nan_to_num().numpy()
    if len(whole) == length:
        return whole
    return np.ones(length) / length**0.5  # a rotation, say: only learned scores can work


def claimed(target: Target, delta: float) -> tuple[float, Curve | None]:
    """The claim about one release: epsilon at this delta, and its trade-off curve."""
    return claim_of(target.event, target.relation, delta) if target.claimed else (inf, None)


@cache
def claim_of(event: DpEvent, relation: Relation, delta: float) -> tuple[float, Curve | None]:
    """The same of an event, which several releases may share."""
    answer = account.epsilon(event, delta, relation)
    if (mu := gdp.ratio(event)) is not None and mu > 0:
        return answer.epsilon, gaussian(mu)
    pairs = [(e, account.delta(event, e, relation).delta) for e in GRID]
    if answer.epsilon < inf:
        pairs.append((answer.epsilon, delta))
    return answer.epsilon, of_pairs(pairs)
