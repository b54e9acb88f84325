"""Clip factors from squared norms, and the plain route that applies the stage itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import isfinite
from typing import NoReturn

import torch
from torch import Tensor

from confide.randomness import Stream
from confide.stages import Clip, ClipLayers
from confide.stages.bounds import MARGIN, number

Bound = Clip | ClipLayers


def clip_row(row: Tensor, stage: Bound) -> Tensor:
    """The stage itself on one gradient; clipping draws nothing."""
    return stage(row, undrawn, NOTHING)


def groups_of(stage: Bound, lengths: Sequence[int]) -> list[int] | None:
    """Which norm of the stage each parameter counts for; None if one is cut in two."""
    if isinstance(stage, Clip):
        return [0] * len(lengths)
    ends = list(accumulate(stage.sizes))
    if ends[-1] != sum(lengths):
        raise ValueError(
            f"ClipLayers: sizes add up to {ends[-1]}, but the model has {sum(lengths)} parameters; "
            "give the lengths of the model's layers in order."
        )
    stops = list(accumulate(lengths))
    if not set(ends) <= set(stops):
        return None
    return [next(g for g, end in enumerate(ends) if stop <= end) for stop in stops]


def factors(squares: Tensor, stage: Bound, groups: Sequence[int]) -> Tensor | None:
    """What each example's gradient is multiplied by, in double: (examples, parameters).

    `squares` are the parameters' squared norms in double. None if an entry is not finite, or may
    not be once it is written down: the stage itself has to look at such a gradient.
    """
    radii = squares.new_tensor(norms_of(stage)) * MARGIN
    place = torch.tensor(groups, device=squares.device)
    together = squares.new_zeros(len(squares), len(radii)).index_add_(1, place, squares)
    lengths = together.sqrt_()
    if not isfinite(most := float(lengths.max())) or most > 1e30:
        return None
    return torch.where(lengths > radii, radii / lengths, 1.0)[:, place]


def norms_of(stage: Bound) -> tuple[float, ...]:
    """The norms of the stage, one for each group."""
    return stage.norms if isinstance(stage, ClipLayers) else (number(stage.C),)


def undrawn(purpose: str) -> NoReturn:
    """Public randomness that clipping never asks for."""
    raise RuntimeError(f"clipping asked for the draw {purpose!r}")


NOTHING = Stream(bytes(32))
