"""Test records set aside at random, by a seed of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.data.settings import share, whole
from confide.randomness import Key

Positions = NDArray[np.int64]


def split(
    thing: str, total: int, test: Any, seed: Any, groups: NDArray[Any] | None = None
) -> tuple[Positions, Positions]:
    """Positions of training and test records, in order; the same share of every group."""
    part = share(thing, "test", test)
    seed = whole(thing, "seed", seed, 0)
    groups = np.zeros(total, np.int64) if groups is None else groups
    order = Key.from_seed(seed).stream(0, None, "data: train and test").permutation(total)
    order = order[np.argsort(groups[order], kind="stable")]
    _, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    taken = [
        order[start : start + round(part * count)]
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True)
    ]
    chosen = np.zeros(total, np.bool_)
    chosen[np.concatenate(taken)] = True
    if not chosen.any() or chosen.all():
        raise ValueError(f"{thing}: test = {test!r} of {total} records leaves one side empty.")
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)
