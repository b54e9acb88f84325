"""The reference that every other strategy is compared with: one example after the other."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from confide.engine.flat import Flat
from confide.engine.gradients.clipping import Bound, clip_row
from confide.engine.gradients.dropout import install
from confide.losses import Loss


class Plain:
    """Ordinary autograd on batches of one; right before fast."""

    words = "one example after the other (the reference)"

    def __init__(self, flat: Flat, loss: Loss) -> None:
        """For this model and this loss."""
        self.flat, self.loss = flat, loss
        self._masks = install(flat.module)

    def seed_dropout(self, seed: int) -> None:
        """Start the dropout masks anew."""
        self._masks.seed(seed)

    def total(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """The sum of the examples' gradients."""
        total = torch.zeros_like(w)
        for row in self.rows(w, x, y):
            total += row
        return total

    def descend(self, w: Tensor, x: Tensor, y: Tensor, rate: float) -> bool:
        """Not by itself: the caller steps along `total`."""
        return False

    def clipped(self, w: Tensor, x: Tensor, y: Tensor, stage: Bound) -> Tensor:
        """The sum of the clipped gradients."""
        total = torch.zeros_like(w)
        for row in self.rows(w, x, y):
            total += clip_row(row, stage)
        return total

    def each(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """One row for each example's gradient."""
        return torch.stack([w.new_zeros(len(w)), *self.rows(w, x, y)])[1:]

    def rows(self, w: Tensor, x: Tensor, y: Tensor) -> Iterator[Tensor]:
        """Each example's gradient, in turn."""
        if len(x):  # an empty batch draws no masks, in any strategy
            self._masks.next_batch()
        for i in range(len(x)):
            module = self.flat.at(w)
            self._masks.restart(torch.tensor([i], device=x.device))
            loss = self.loss(module(like(w, x[i : i + 1])), y[i : i + 1]).sum()
            grads = torch.autograd.grad(
                loss, self.flat.parameters, allow_unused=True, materialize_grads=True
            )
            yield self.flat.join(grads)

    def losses(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Each example's loss, without dropout."""
        return self.loss(self.outputs(w, x), y) if len(x) else w.new_zeros(0)

    @torch.no_grad()
    def outputs(self, w: Tensor, x: Tensor) -> Tensor:
        """The model's outputs, without dropout."""
        module = self.flat.at(w, train=False)
        return torch.cat([module(like(w, x[i : i + 1])) for i in range(max(len(x), 1))])


def like(w: Tensor, x: Tensor) -> Tensor:
    """The inputs in the parameters' type; indices stay indices."""
    return x.to(w.dtype) if x.is_floating_point() else x
