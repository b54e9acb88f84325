"""Standard normal values where they are wanted: a GPU makes them of the same stream's words."""

from __future__ import annotations

from math import tau

import numpy as np
import torch
from torch import Tensor

from confide.randomness import Stream
from confide.randomness.streams import GROUP, PAIRS

LOW = (1 << 32) - 1


def normal(own: Stream, like: Tensor) -> Tensor:
    """In double precision, in the shape and at the place of `like`.

    What a GPU makes differs from `Stream.normal` by the rounding of a logarithm, sine and cosine:
    only the words, an eighth of the work, are made on the CPU.
    """
    if like.device.type == "cpu":
        return torch.from_numpy(own.normal(tuple(like.shape)))
    words = own.uint64(words_of(like.numel())).view(np.int64)
    return polar(torch.from_numpy(words).to(like.device))[: like.numel()].view(like.shape)


def pieces(x: Tensor) -> tuple[Tensor, ...]:
    """On a CPU, pieces whose noise stays in the cache until it is added; together their draws are
    those of the whole.
    """
    flat = x.view(-1)
    return flat.split(GROUP) if x.device.type == "cpu" else (flat,)


def words_of(count: int) -> int:
    """How many words of the stream so many values take: they are made in pairs."""
    return count + count % 2


def polar(words: Tensor) -> Tensor:
    """A value for each word, in the blocks that `Stream.normal` lays them out in."""
    whole = len(words) // (2 * PAIRS) * (2 * PAIRS)
    blocks = words[:whole].view(-1, 2, PAIRS), words[whole:].view(1, 2, -1)
    return torch.cat([pairs(block[:, 0], block[:, 1]).flatten() for block in blocks])


def pairs(radii: Tensor, angles: Tensor) -> Tensor:
    """Two values of a word for the radius and one for the angle."""
    u = ((radii >> 32) & LOW).double().mul_(2.0**32).add_((radii & LOW).double())
    radius = u.add_(0.5).mul_(2.0**-64).log_().mul_(-2.0).sqrt_()
    angle = ((angles >> 11) & ((1 << 53) - 1)).double().mul_(tau * 2.0**-53)
    return torch.stack([angle.cos().mul_(radius), angle.sin().mul_(radius)], 1)
