"""What the server keeps of a round's uploads: their sums, and single ones only where it must."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.aggregates import ByLossAndSize, ModeConnectivity, WeightedMean
from confide.channels import Shuffle
from confide.cohorts import Poisson
from confide.engine.rounds import Round, Sizes
from confide.randomness import Stream
from confide.stages.bounds import blocks

HELD = 3
"""Copies of all models while they are joined: those that came, the next turn's, and a step's."""


@dataclass
class Received:
    """Sums in double precision; every model by itself; the model that is passed on."""

    totals: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    models: list[Tensor] = field(default_factory=list[Tensor])
    passed_on: Tensor | None = None


def received(
    r: Round, sent: Iterable[tuple[int, Mapping[str, Tensor]]], weights: NDArray[np.int64]
) -> Received:
    """The uploads of these clients, added in this order."""
    out = Received()
    for client, vectors in sent:
        weight = 1.0
        if isinstance(r.aggregate, WeightedMean):
            weight = min(float(weights[client]), r.aggregate.cap)
        if client == r.passes_on:
            out.passed_on = vectors["model"].clone()
        if isinstance(r.aggregate, ByLossAndSize):
            vectors = r.aggregate.terms(vectors)
        for name, vector in vectors.items():
            if name == "model" and isinstance(r.aggregate, ModeConnectivity):
                out.models.append(vector.clone())
                continue
            if name not in out.totals:
                out.totals[name] = torch.zeros(
                    vector.shape, dtype=torch.float64, device=vector.device
                )
            # In pieces: the doubles of a large vector would take new memory for each client.
            for total, part in zip(blocks(out.totals[name]), blocks(vector), strict=True):
                total.add_(part, alpha=weight)
    if isinstance(r.aggregate, ByLossAndSize) and out.totals:
        out.totals = r.aggregate.weighed(out.totals)
    return out


def in_the_servers_order(r: Round, models: list[Tensor], stream: Stream) -> list[Tensor]:
    """As the channel shows them: shuffled uploads must not be paired by who sent them."""
    if not isinstance(r.channel, Shuffle):
        return models
    return [models[i] for i in stream.permutation(len(models))]


def joined(
    models: list[Tensor],
    how: ModeConnectivity,
    gradient: Callable[[Tensor, Stream, int], Tensor],
    coins: Stream,
) -> Tensor:
    """One model of several: the bends of the curves between pairs, turn after turn."""
    while len(models) > 1:
        pairs = list(zip(models[::2], models[1::2], strict=False))
        alone = models[2 * len(pairs) :]
        models = [bend(w1, w2, how, gradient, coins) for w1, w2 in pairs] + alone
    return models[0]


def bend(
    w1: Tensor,
    w2: Tensor,
    how: ModeConnectivity,
    gradient: Callable[[Tensor, Stream, int], Tensor],
    coins: Stream,
) -> Tensor:
    """Where the curve between two models bends, after its steps."""
    theta = 0.5 * (w1 + w2)
    for _ in range(how.steps):
        p = float(coins.uniform((1,))[0])
        w, slope = how.point(p, w1, theta, w2)
        theta = theta - how.eta * slope * gradient(w, coins, how.B)
    return theta


def check_joining(
    r: Round, sizes: Sizes, public: int, dtype: torch.dtype, device: torch.device
) -> None:
    """Refuse to begin where models are to be joined without public records, or without room."""
    if not isinstance(r.aggregate, ModeConnectivity):
        return
    if not public:
        raise ValueError(
            "run: public = 0, but mode connectivity looks at the loss on public records; allowed "
            "is a share such as public = 0.02."
        )
    poisson = isinstance(r.cohort, Poisson)
    most = sizes.clients if poisson else ceil(r.cohort.expected(sizes.clients))
    needed = HELD * most * sizes.dim * dtype.itemsize
    free = free_bytes(device)
    if free is not None and needed > free:
        raise ValueError(
            f"run: mode connectivity holds the models of all {most} clients at once, which takes "
            f"{needed / 2**30:.3g} GiB; allowed is what is free, {free / 2**30:.3g} GiB: take a "
            "smaller cohort or a smaller model."
        )


def free_bytes(device: torch.device) -> int | None:
    """Free memory where uploads lie, as far as the system tells."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
