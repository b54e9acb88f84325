"""Rounds that a unit joins at random, by a schedule that no data influences.

Let K ~ Bin(rounds, q) be the number of rounds joined. Reveal the schedule: that can only help the
observer, and it is the same in both worlds, so delta(eps) = E delta_K(eps), where delta_k belongs
to k inner releases. For Gaussian releases delta_k is known and the finite sum is exact. Otherwise
delta_k rises with k (a release more can be ignored), hence for any threshold k*

    delta(eps) <= delta_{k*}(eps) + P(K > k*).

Nothing is said about a schedule that depends on data, nor about noise chosen from past outputs.
docs/proofs/participation.md spells the argument out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special, stats

from confide.accounting import gdp, roots
from confide.accounting.events import DpEvent, RandomParticipationDpEvent
from confide.accounting.gdp import Array
from confide.accounting.relations import Refused

LEFT_OUT = 1e-18  # probability of the counts in neither sum; counted as delta 1
SHARES = (0.5, 0.1, 0.01, 0.001)


def delta(event: RandomParticipationDpEvent, epsilon: float) -> float:
    """Return the exact delta at epsilon >= 0 when the inner release is Gaussian."""
    mu = _gaussian(event)
    if not epsilon >= 0:
        raise Refused(f"epsilon is {epsilon}; it must be at least 0")
    counts, weights = _counts(event)
    return _delta(mu, counts, weights, epsilon)


def epsilon(event: RandomParticipationDpEvent, delta: float) -> float:
    """Return the least epsilon >= 0 with at most this delta when the inner release is Gaussian."""
    mu = _gaussian(event)
    if not LEFT_OUT < delta < 1:
        raise Refused(f"delta is {delta}; it must lie between {LEFT_OUT} and 1")
    counts, weights = _counts(event)
    if not counts.size or _delta(mu, counts, weights, 0.0) <= delta:
        return 0.0

    def excess(value: float) -> float:
        return math.log(_delta(mu, counts, weights, value) / delta)

    high = gdp.epsilon(mu * math.sqrt(float(counts[-1])), (delta - LEFT_OUT) / 2)
    return roots.root(excess, 0.0, high, 1e-10 * high) + 2e-10 * high


def epsilon_by_threshold(
    event: RandomParticipationDpEvent,
    delta: float,
    epsilon_of: Callable[[DpEvent, int, float], float],
) -> float:
    """Return a proved epsilon for any inner release, from `epsilon_of(release, count, delta)`."""
    _check(event)
    best = math.inf
    law = stats.binom(event.rounds, event.probability)
    for share in SHARES:
        threshold = int(law.isf(share * delta))
        missed = float(law.sf(threshold)) * (1 + 1e-9)
        if missed < delta:
            left = delta - missed
            found = epsilon_of(event.event, threshold, left) if threshold else 0.0
            best = min(best, found)
    return best


def _delta(mu: float, counts: Array, weights: Array, epsilon: float) -> float:
    found = float(np.dot(weights, gdp.deltas(mu * np.sqrt(counts), epsilon))) + LEFT_OUT
    return min(1.0, found * (1 + 1e-12 + 1e-15 * counts.size))


def _counts(event: RandomParticipationDpEvent) -> tuple[Array, Array]:
    """Positive numbers of rounds joined, and their probabilities, but for 1e-18."""
    q, rounds = event.probability, event.rounds
    reach = 9 * math.sqrt(rounds * q * (1 - q)) + 81
    low = max(1, math.floor(rounds * q - reach))
    counts = np.arange(low, min(rounds, math.ceil(rounds * q + reach)) + 1, dtype=float)
    if q == 1:
        return counts[-1:], np.ones(1)
    choose = -special.betaln(rounds - counts + 1, counts + 1) - math.log(rounds + 1)
    logs = choose + counts * math.log(q) + (rounds - counts) * math.log1p(-q)
    # What rounding can take from terms of this size that cancel.
    sizes = special.gammaln(rounds + 2.0) - counts * math.log(q) - rounds * math.log1p(-q)
    return counts, np.exp(logs + 1e-15 * sizes)


def _gaussian(event: RandomParticipationDpEvent) -> float:
    _check(event)
    mu = gdp.ratio(event.event)
    if not mu:
        raise Refused("the exact sum over participations needs a Gaussian release inside")
    return mu


def _check(event: RandomParticipationDpEvent) -> None:
    if not 0 < event.probability <= 1:
        raise Refused(f"participation probability = {event.probability}: must lie in (0, 1]")
    if event.rounds < 1:
        raise Refused(f"participation rounds = {event.rounds}: must be at least 1")
