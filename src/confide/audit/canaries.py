"""Inputs at which a broken release shows itself: each family finds faults that others miss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

OVERSIZE, TINY = 20.0, 1e-3


@dataclass(frozen=True, eq=False)
class Canary:
    """A vector to be told from its opposite, or from `other` if it names one."""

    name: str
    vector: Tensor
    other: Tensor | None = None


def canaries(layers: tuple[int, ...], length: float) -> Iterator[Canary]:
    """Every family at this length (the clip's, where there is one).

    One coordinate in the first and in the last layer; all of them; the first quarter; every layer
    at full length by itself, which only a clip over all of them shortens; far too long, which a
    clip must shorten; far too short for any threshold; no number at all, which no clip measures.
    One against another shows what depends on where a vector is large, and not on its sign; one
    against nothing, what depends on its length.
    """
    d = sum(layers)
    dirac = torch.zeros(d, dtype=torch.float64)
    dirac[0] = 1
    last = torch.zeros(d, dtype=torch.float64)
    last[-1] = 1
    dense = torch.ones(d, dtype=torch.float64) / sqrt(d)
    few = torch.zeros(d, dtype=torch.float64)
    few[: max(1, d // 4)] = 1 / sqrt(max(1, d // 4))
    each = torch.cat([torch.ones(n, dtype=torch.float64) / sqrt(n) for n in layers])
    yield Canary("one coordinate", length * dirac)
    yield Canary("not a number", torch.full_like(dirac, torch.nan))
    if d == 1:
        yield Canary("oversize", OVERSIZE * length * dirac)
        return
    yield Canary("dense against nothing", length * dense, torch.zeros_like(dense))
    yield Canary("one coordinate against the last", length * dirac, length * last)
    yield Canary("the last coordinate", length * last)
    yield Canary("dense", length * dense)
    yield Canary("a quarter of the coordinates", length * few)
    if len(layers) > 1:
        yield Canary("every layer at full length", length * each)
    yield Canary("oversize", OVERSIZE * length * dense)
    yield Canary("tiny", TINY * length * dense)
