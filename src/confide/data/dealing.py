"""Dealing records to clients like cards: what every partition is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from confide.randomness import Stream

Positions = NDArray[np.int64]


def even_sizes(total: int, parts: int) -> list[int]:
    """Sizes that differ by at most one and sum to the total, the larger ones first."""
    size, more = divmod(total, parts)
    return [size + (part < more) for part in range(parts)]


def cut(items: Positions, sizes: Sequence[int]) -> list[Positions]:
    """Consecutive pieces of these sizes; what is left over belongs to nobody."""
    ends = np.cumsum(sizes)
    return [items[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def deal(stream: Stream, items: Positions, sizes: Sequence[int]) -> list[Positions]:
    """Hands of distinct items from shuffled decks, a new deck whenever one runs out.

    No item is in two hands while the first deck lasts, and afterwards no item is in more hands than
    there were decks: as few copies as possible. A hand is never larger than a deck.
    """
    deck = items[stream.permutation(len(items))]
    hands: list[Positions] = []
    for size in sizes:
        hand, deck = deck[:size], deck[size:]
        if len(hand) < size:
            fresh = items[stream.permutation(len(items))]
            new = fresh[~np.isin(fresh, hand)][: size - len(hand)]
            hand, deck = np.concatenate([hand, new]), fresh[~np.isin(fresh, new)]
        hands.append(hand)
    return hands


def shares(stream: Stream, alpha: float, parts: int) -> NDArray[np.float64]:
    """One draw from the symmetric Dirichlet law.

    Gamma variables in logarithms, since for a small alpha they are far below the smallest float:
    log Gamma(alpha) is log Gamma(alpha + 1) + log(U) / alpha, and Gamma(alpha + 1) comes from
    Marsaglia and Tsang's rejection of a cubed normal.
    """
    d = alpha + 1 - 1 / 3
    values = np.empty(parts)
    missing = np.arange(parts)
    while len(missing):
        normal = stream.normal(len(missing)).astype(np.float64)
        cube = (1 + normal / np.sqrt(9 * d)) ** 3
        inside = cube > 0
        log_cube = np.log(np.where(inside, cube, 1.0))
        bound = normal**2 / 2 + d * (1 - cube + log_cube)
        good = inside & (np.log(stream.uniform(len(missing))) < bound)
        values[missing[good]] = np.log(d) + log_cube[good]
        missing = missing[~good]
    values -= stream.exponential(parts) / alpha
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def lift(counts: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """Move single records from the largest clients until every client has `least` of them.

    `counts` is (clients, classes); row sums change, column sums do not.
    """
    counts = counts.copy()
    sizes = counts.sum(1)
    while sizes.min() < least:
        poor, rich = int(sizes.argmin()), int(sizes.argmax())
        held = int(counts[rich].argmax())
        counts[rich, held] -= 1
        counts[poor, held] += 1
        sizes[rich] -= 1
        sizes[poor] += 1
    return counts
