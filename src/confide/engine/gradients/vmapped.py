"""Every example's gradient by torch.func.vmap, for modules whose layers we do not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from confide.engine.flat import Flat
from confide.engine.gradients.clipping import Bound, clip_row
from confide.engine.gradients.dropout import install
from confide.engine.gradients.plain import like
from confide.losses import Loss

ROWS = 1 << 28
"""Bytes of per-example gradients that are made at a time."""


class Vmapped:
    """vmap over the examples of the gradient of one, in pieces that fit the memory."""

    words = "per-example gradients by vmap"

    def __init__(self, flat: Flat, loss: Loss) -> None:
        """For this model and this loss."""
        self.flat = flat
        self._masks = install(flat.module)
        self._row = torch.func.vmap(torch.func.grad(self._of_one(loss)), in_dims=(None, 0, 0, 0))

    def _of_one(self, loss: Loss) -> Callable[..., Tensor]:
        module, masks = self.flat.module, self._masks

        def of_one(views: dict[str, Tensor], x: Tensor, y: Tensor, row: Tensor) -> Tensor:
            masks.restart(row.unsqueeze(0))
            outputs = torch.func.functional_call(module, views, (x.unsqueeze(0),))
            return loss(outputs, y.unsqueeze(0)).sum()

        return of_one

    def seed_dropout(self, seed: int) -> None:
        """Start the dropout masks anew."""
        self._masks.seed(seed)

    def clipped(self, w: Tensor, x: Tensor, y: Tensor, stage: Bound) -> Tensor:
        """The sum of the clipped gradients."""
        total = torch.zeros_like(w)
        for rows in self._pieces(w, x, y):
            for row in rows:
                total += clip_row(row, stage)
        return total

    def each(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """One row for each example's gradient."""
        return torch.cat([w.new_zeros(0, len(w)), *self._pieces(w, x, y)])

    def _pieces(self, w: Tensor, x: Tensor, y: Tensor) -> Iterator[Tensor]:
        if not len(x):
            return
        self.flat.module.train()
        self._masks.next_batch()
        step = max(1, ROWS // (len(w) * w.itemsize))
        parts = self.flat.unique(self.flat.views(w))
        for i in range(0, len(x), step):
            rows = self._masks.first + torch.arange(i, min(i + step, len(x)), device=x.device)
            grads = self._row(parts, like(w, x[i : i + step]), y[i : i + step], rows)
            yield self.flat.join_rows(list(grads.values()))
