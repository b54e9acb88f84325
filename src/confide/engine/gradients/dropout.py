"""Dropout whose masks are a function of (seed, batch, place, example, element) and nothing else.

The masks come from the finaliser of SplitMix64 applied to a counter, in integer arithmetic, so
that every strategy, batching and device draws the same ones.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

WORD = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
WHOLE_CHANNELS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
PARTS = {8: torch.int8, 16: torch.int16, 32: torch.int32}


class Masks:
    """The state that the dropout layers of one model share."""

    def __init__(self) -> None:
        """Start with seed 0, at the batch's first row."""
        self.first = 0
        self.seed(0)

    def seed(self, seed: int) -> None:
        """Start anew, before the first batch."""
        self._key, self._batch = mixed(seed), 0
        self.restart()

    def follow(self, other: Masks, first: int) -> None:
        """Stand where another one does; the first row here is that row of the batch."""
        self._key, self._batch, self.first = other._key, other._batch, first

    def next_batch(self) -> None:
        """Draw new masks for the next batch."""
        self._batch += 1
        self.restart()

    def restart(self, rows: Tensor | None = None) -> None:
        """Begin at the first layer again, for these rows of the batch (all of it by default)."""
        self._place, self._rows = 0, rows

    def factor(self, x: Tensor, p: float, whole_channels: bool = False) -> Tensor:
        """What the next layer multiplies x by: 0 with probability p, else 1 / (1 - p)."""
        key = mixed(mixed(self._key + self._batch) + self._place)
        self._place += 1
        rows = self._rows
        if rows is None:
            rows = torch.arange(self.first, self.first + len(x), device=x.device)
        shape = x.shape[1:2] if whole_channels else x.shape[1:]
        channels_last = len(shape) == 3
        size = (shape[1], shape[2], shape[0]) if channels_last else tuple(shape)
        kept = keep(key, rows, shape.numel(), p).view(len(rows), *size)
        if channels_last:
            kept = kept.permute(0, 3, 1, 2)
        factor = kept.to(x.dtype) * (1 / (1 - p) if p < 1 else 0.0)
        return factor.view(len(rows), *shape, *(1,) * (x.dim() - 2)) if whole_channels else factor


class Dropout(nn.Module):
    """nn.Dropout, and with `whole_channels` nn.Dropout1d to 3d, with masks of our own."""

    def __init__(self, p: float, masks: Masks, whole_channels: bool = False) -> None:
        """Drop with probability p."""
        super().__init__()
        self.p, self.masks, self.whole_channels = p, masks, whole_channels

    def forward(self, x: Tensor) -> Tensor:
        """Drop in training, nothing otherwise."""
        if not self.training or self.p == 0:
            return x
        return x * self.masks.factor(x, self.p, self.whole_channels)


def install(module: nn.Module) -> Masks:
    """Replace the dropout layers inside a module; those replaced before keep their masks."""
    masks = next((m.masks for m in module.modules() if isinstance(m, Dropout)), Masks())
    for part in list(module.modules()):
        for name, child in part.named_children():
            if type(child) in (nn.Dropout, *WHOLE_CHANNELS):
                p = cast(nn.Dropout, child).p
                setattr(part, name, Dropout(p, masks, isinstance(child, WHOLE_CHANNELS)))
    return masks


def keep(key: int, rows: Tensor, size: int, p: float) -> Tensor:
    """Which of `size` elements of each row stay: each with probability 1 - p, to 2^-32 of it.

    A word serves 8 elements if p is a multiple of 2^-8 (0.25, 0.5), else 4 or 2. Its bytes are
    read in the order of every machine that torch is built for, the lowest first.
    """
    bits, part = next(
        (bits, part) for bits, part in PARTS.items() if bits == 32 or (p * 2**bits).is_integer()
    )
    words = -(-size * bits // 64)
    counter = torch.arange(words, device=rows.device) * signed(STEP) + signed(key)
    z = (rows * signed(words * STEP)).view(-1, 1) + counter
    z ^= (z >> 30) & (WORD >> 30)
    z *= signed(FIRST)
    z ^= (z >> 27) & (WORD >> 27)
    z *= signed(SECOND)
    z ^= (z >> 31) & (WORD >> 31)
    least = min(round(p * 2**bits), 2**bits - 1) - 2 ** (bits - 1)
    return (z.view(part) >= least)[:, :size]


def mixed(value: int) -> int:
    """SplitMix64's next word after the state `value`, in Python integers."""
    z = (value + STEP) & WORD
    z = ((z ^ (z >> 30)) * FIRST) & WORD
    z = ((z ^ (z >> 27)) * SECOND) & WORD
    return z ^ (z >> 31)


def signed(word: int) -> int:
    """The 64-bit word as torch's int64 holds it."""
    word &= WORD
    return word - (1 << 64) if word >> 63 else word
