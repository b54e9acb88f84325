"""Layer 0: the very stages of a round applied to canaries, thousands of times, without training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter

import numpy as np
import torch

from confide.accounting import account, gdp
from confide.accounting.relations import Relation
from confide.audit.bounds import (
    Counts,
    Curve,
    epsilon_if_gaussian,
    epsilon_of_counts,
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
    lower_bound: float  # valid whatever the mechanism is
    if_gaussian: float  # an estimate, unless the claimed curve is Gaussian
    refuted: float  # the smaller level at which the claim is refuted; 1 if it is not


def findings(
    target: Target, key: Key, effort: Effort, delta: float, tests: int, number: int
) -> list[Finding]:
    """Every canary against one release.

    `tests` is how many tests the whole audit makes; `number` keeps the draws of targets apart.
    """
    known = families(target)
    out: list[Finding] = []
    for place, canary in enumerate(known):
        first = (number * len(known) + place) * DRAWS_APART
        out += examined(target, canary, key, first, effort.shared(len(known)), delta, tests)
    return out


def families(target: Target) -> list[Canary]:
    """The canaries of the longest vector; the others follow it."""
    longest = max(target.lengths.values(), key=sum)
    return list(canaries(longest, target.bound))


def worlds(target: Target, canary: Canary) -> tuple[Vectors, Vectors | None]:
    """The two worlds that the claim compares."""
    vectors = {name: fitted(canary, sum(layers)) for name, layers in target.lengths.items()}
    match target.relation:
        case Relation.REPLACE_ONE:
            return vectors, {name: -vector for name, vector in vectors.items()}
        case Relation.ADD_REMOVE:
            return vectors, None
        case _:
            return vectors, {name: torch.zeros_like(v) for name, v in vectors.items()}


def fitted(canary: Canary, length: int) -> torch.Tensor:
    """The same canary for a vector of another length."""
    if len(canary.vector) == length:
        return canary.vector
    return torch.full((length,), float(torch.linalg.vector_norm(canary.vector)) / length**0.5)


def examined(
    target: Target,
    canary: Canary,
    key: Key,
    first: int,
    effort: Effort,
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
    claim, curve = claimed(target, delta)
    for test in chosen(ins[:half], outs[:half], aim, delta):
        counts = test.counts(ins[half:], outs[half:])
        yield Finding(
            target=target.name,
            unit=target.unit,
            observer=target.observer,
            canary=canary.name,
            via=test.name,
            draws=n,
            claimed=claim,
            delta=delta,
            lower_bound=epsilon_of_counts(counts, delta, LIKELY / tests),
            if_gaussian=epsilon_if_gaussian(counts, delta, LIKELY / tests),
            refuted=level(counts, curve, tests),
        )


def level(counts: Counts, curve: Curve | None, tests: int) -> float:
    """The level at which the claim is refuted; 1 where it is not, or where there is none."""
    if curve is None:
        return 1.0
    for alpha in (SURE, LIKELY):
        if refutes(counts, curve, alpha / tests):
            return alpha
    return 1.0


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
    parts = [fitted(canary, sum(layers)).numpy() for layers in target.lengths.values()]
    whole = np.concatenate(parts)
    if len(whole) == length:
        return whole
    return np.ones(length) / length**0.5  # a rotation, say: only learned scores can work


def claimed(target: Target, delta: float) -> tuple[float, Curve | None]:
    """The claim about one release: epsilon at this delta, and its trade-off curve."""
    if not target.claimed:
        return inf, None
    answer = account.epsilon(target.event, delta, target.relation)
    if (mu := gdp.ratio(target.event)) is not None and mu > 0:
        return answer.epsilon, gaussian(mu)
    pairs = [(e, account.delta(target.event, e, target.relation).delta) for e in GRID]
    if answer.epsilon < inf:
        pairs.append((answer.epsilon, delta))
    return answer.epsilon, of_pairs(pairs)
