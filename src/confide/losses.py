"""Losses, one number per record; the mean over a batch is the engine's business."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Loss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
    """Minus the log probability of the true class, from logits (b, k) and labels (b,)."""
    return functional.cross_entropy(outputs, y, reduction="none")


def hinge(outputs: Tensor, y: Tensor) -> Tensor:
    """How far the true class falls short of leading every other one by 1 (Crammer and Singer).

    For two classes this is the usual hinge max(0, 1 - ±s) of the difference s of the two scores.
    """
    classes = torch.arange(outputs.shape[-1], device=outputs.device)
    true = classes == y.unsqueeze(-1)
    score = (outputs * true).sum(-1)
    rival = outputs.masked_fill(true, -torch.inf).amax(-1)
    return functional.relu(1 + rival - score)


def squared(outputs: Tensor, y: Tensor) -> Tensor:
    """The squared difference, averaged over the targets of a record."""
    return (outputs - y).square().mean(-1)


LOSSES: dict[str, Loss] = {"cross-entropy": cross_entropy, "hinge": hinge, "squared": squared}
