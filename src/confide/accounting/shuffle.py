"""Shuffling of locally private messages: hiding among the clones, evaluated exactly.

With r = e^e0 / (1 + e^e0), every other user's message is, with probability e^-e0, drawn from the
same fifty-fifty mixture of what the unit could have sent in the two worlds: a clone. After
shuffling an observer can do no better than to see how many of the C ~ Bin(users - 1, e^-e0) clones
and of the unit's own (coin r) message fall on either side:

    P = (A + D, C - A + 1 - D),  Q = (A + 1 - D, C - A + D),  A ~ Bin(C, 1/2), D ~ Bernoulli(r).

Given C the two laws are r f(a - 1) + (1 - r) f(a) and the same with r and 1 - r exchanged, where
f is the pmf of A; f(a - 1) / f(a) = a / (C + 1 - a). The sum over (C, a) is finite and is taken as
it stands. With many users C is put in groups and each is counted as its smallest member: one clone
more is a coin that anyone can add, so fewer clones can only help the observer. docs/proofs/
shuffling.md has the argument; it needs a finite e0 (never a Gaussian) and one anonymous message
per user.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from confide.accounting import roots
from confide.accounting.pairs import Array, Atoms
from confide.accounting.relations import Refused

LARGEST_EXACT = 1 << 21  # terms; with more, the clone counts are put in groups
LARGEST_SUPPORT = 1 << 23
DEVIATIONS = 12.0
LEFT_OUT = 1e-30  # more than the binomial mass beyond so many deviations: given to the observer


def clones(epsilon: float, users: int) -> Atoms:
    """Return the dominating pair of one shuffled round of epsilon-DP randomisers."""
    _check(epsilon, users)
    counts, log_weights = _clone_counts(epsilon, users)
    middle, half = (counts + 1) / 2, DEVIATIONS * np.sqrt(counts + 1) / 2 + 2
    low = np.maximum(0, np.floor(middle - half)).astype(np.int64)
    high = np.minimum(counts + 1, np.ceil(middle + half)).astype(np.int64)
    sizes = high - low + 1
    if int(sizes.sum()) > LARGEST_SUPPORT:
        raise Refused(
            f"users = {users}: the clones bound is evaluated for at most about 10^7 users"
        )
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    a = (np.repeat(low, sizes) + np.arange(int(sizes.sum())) - start).astype(np.float64)
    total, log_weight = np.repeat(counts, sizes), np.repeat(log_weights, sizes)
    own = -np.log1p(np.exp(-epsilon))
    with np.errstate(divide="ignore", invalid="ignore"):
        ahead = np.where(a > 0, _log_binomial(total, a - 1), -math.inf)
        level = np.where(a <= total, _log_binomial(total, a), -math.inf)
    upper = log_weight + np.logaddexp(own + ahead, own - epsilon + level)
    lower = log_weight + np.logaddexp(own - epsilon + ahead, own + level)
    rest = math.log(LEFT_OUT)
    return Atoms(np.append(upper, [rest, -math.inf]), np.append(lower, [-math.inf, rest]))


def delta(epsilon0: float, users: int, epsilon: float) -> float:
    """Return delta at `epsilon` for one shuffled round of epsilon0-DP randomisers."""
    return 0.0 if epsilon >= epsilon0 else clones(epsilon0, users).hockey_stick(epsilon)


def epsilon(epsilon0: float, users: int, delta: float) -> float:
    """Return the least epsilon with this delta for one shuffled round of epsilon0-DP messages."""
    if not 0 < delta < 1:
        raise Refused(f"delta is {delta}; it must lie strictly between 0 and 1")
    pair = clones(epsilon0, users)

    def excess(value: float) -> float:
        return pair.hockey_stick(value) - delta

    if excess(epsilon0) >= 0:
        return epsilon0
    if excess(0.0) <= 0:
        return 0.0
    root = roots.root(excess, 0.0, epsilon0, 1e-12)
    return min(epsilon0, root * (1 + 1e-9) + 1e-12)  # log-gamma is good to about ten digits


def _clone_counts(epsilon: float, users: int) -> tuple[Array, Array]:
    """Clone counts and the logs of their probabilities, in groups when there are many."""
    others, chance = users - 1, math.exp(-epsilon)
    spread = DEVIATIONS * math.sqrt(others * chance * (1 - chance)) + DEVIATIONS**2
    low = max(0, math.floor(others * chance - spread))
    high = min(others, math.ceil(others * chance + spread))
    counts = np.arange(low, high + 1, dtype=float)
    log_chance = _log_binomial(np.array(float(others)), counts) + others * math.log(2)
    log_chance += -epsilon * counts + math.log(-math.expm1(-epsilon)) * (others - counts)
    groups = math.ceil(LARGEST_EXACT / (DEVIATIONS * math.sqrt(high + 1) + 4))
    if len(counts) > groups:
        edges = np.unique(np.linspace(0, len(counts), groups + 1).astype(int))[:-1]
        log_chance = np.logaddexp.reduceat(log_chance, edges)
        counts = counts[edges]
    return counts, log_chance


def _log_binomial(total: Array, chosen: Array) -> Array:
    """Log of the fair binomial probability."""
    return (
        special.gammaln(total + 1)
        - special.gammaln(chosen + 1)
        - special.gammaln(total - chosen + 1)
        - total * math.log(2)
    )


def _check(epsilon: float, users: int) -> None:
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise Refused(
            f"epsilon of a shuffled message is {epsilon}; it must be positive and finite "
            "(Gaussian noise has none: use secure aggregation)"
        )
    if users < 1:
        raise Refused(f"users is {users}; it must be at least 1")
