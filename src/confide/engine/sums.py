"""The gradient sums of many clients in one vmapped call: every client is a row of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from confide.engine import convolutions
from confide.engine.flat import Flat
from confide.engine.gradients import dropout
from confide.engine.gradients.plain import like
from confide.engine.rows import install
from confide.engine.ways import Way
from confide.losses import Loss
from confide.stages.bounds import finite, shortened


@dataclass(frozen=True, eq=False)
class Picked:
    """One batch for each row: `places` of its records, of which the first `counts` are meant.

    `keys` and `batch` are the numbers that dropout masks are made of, `radii` the norms to which
    each example's gradient is clipped, one for each layer.
    """

    places: Tensor
    counts: Tensor
    keys: Tensor
    batch: Tensor
    radii: Tensor

    def tensors(self) -> tuple[Tensor, ...]:
        """All of it."""
        return self.places, self.counts, self.keys, self.batch, self.radii

    def padded(self, rows: int, columns: int) -> Picked:
        """More rows, without examples, and more columns, of records that do not count."""
        more, wider = rows - len(self.counts), columns - self.places.shape[1]
        if not more and not wider:
            return self
        # A row's own first record fills it up: where that is sound, nothing here is infinite.
        filled = torch.cat([self.places, self.places[:, :1].expand(-1, wider)], 1)
        parts = (filled, *self.tensors()[1:])
        return Picked(*(with_rows(part, rows) for part in parts))


def with_rows(part: Tensor, rows: int) -> Tensor:
    """The tensor with rows of zeros after its own."""
    more = rows - len(part)
    return torch.cat([part, part.new_zeros(more, *part.shape[1:])]) if more else part


class Sums:
    """The sum of each row's gradients at its own w, each clipped before where `lengths` are given.

    `lengths` are those of the pieces of a gradient that are clipped by themselves.
    """

    def __init__(self, flat: Flat, loss: Loss, x: Tensor, y: Tensor, way: Way) -> None:
        """For this model (whose dropout is replaced) and these records."""
        self._flat, self._loss, self._way = flat, loss, way
        self.x, self.y = x, y
        dropout.install(flat.module)
        self._masks = install(flat.module)
        if x.is_cuda:
            convolutions.install(flat.module)

    def __call__(
        self, w: Tensor, picked: Picked, lengths: Sequence[int] = (), columns: int | None = None
    ) -> Tensor:
        """One row for each client, from at most so many columns of examples at a time."""
        self._flat.module.train()
        row: Callable[..., Tensor] = self._clipped(lengths) if lengths else self._summed
        rows = vmap(row, in_dims=(0, 0, 0, 0, 0, 0, 0, None))
        most = picked.places.shape[1]
        step = columns or max(most, 1)
        total: Tensor | None = None
        for start in range(0, max(most, 1), step):
            places = picked.places[:, start : start + step]
            here = torch.arange(start, start + places.shape[1], device=w.device)
            x, y = like(w, self.x[places]), self.y[places]
            part = rows(w, x, y, *picked.tensors()[1:], here)
            total = part if total is None else total + part
        assert total is not None
        # A row without examples was computed on some that are not its own.
        return torch.where((picked.counts > 0).unsqueeze(1), total, 0.0)

    def _summed(
        self, w: Tensor, x: Tensor, y: Tensor, count: Tensor, key: Tensor, batch: Tensor,
        radii: Tensor, here: Tensor,
    ) -> Tensor:  # fmt: skip
        def loss(views: dict[str, Tensor]) -> Tensor:
            losses = self._losses(views, x, y, key, batch, here)
            return torch.where(here < count, losses, 0.0).sum()

        views = self._flat.unique(self._flat.views(w))
        return self._flat.join(list(grad(loss)(views).values()))

    def _clipped(self, lengths: Sequence[int]) -> Callable[..., Tensor]:
        def one(
            views: dict[str, Tensor], x: Tensor, y: Tensor, key: Tensor, batch: Tensor, at: Tensor
        ) -> Tensor:
            x, y, at = x.unsqueeze(0), y.unsqueeze(0), at.unsqueeze(0)
            return self._losses(views, x, y, key, batch, at).sum()

        each = vmap(grad(one), in_dims=(None, 0, 0, None, None, 0))

        def clip(row: Tensor, radii: Tensor) -> Tensor:
            parts = torch.split(finite(row), list(lengths))
            return torch.cat([shortened(part, radii[i], 2) for i, part in enumerate(parts)])

        def clipped(
            w: Tensor, x: Tensor, y: Tensor, count: Tensor, key: Tensor, batch: Tensor,
            radii: Tensor, here: Tensor,
        ) -> Tensor:  # fmt: skip
            views = self._flat.unique(self._flat.views(w))
            grads = each(views, x, y, key, batch, here)
            rows = vmap(clip, in_dims=(0, None))(self._flat.join_rows(list(grads.values())), radii)
            return torch.where((here < count).unsqueeze(1), rows, 0.0).sum(0)

        return clipped

    def _losses(
        self, views: dict[str, Tensor], x: Tensor, y: Tensor, key: Tensor, batch: Tensor,
        here: Tensor,
    ) -> Tensor:  # fmt: skip
        if self._masks is not None:
            self._masks.begin(key, batch, here)
        if self._way.products != "bf16":
            return self._loss(functional_call(self._flat.module, views, (x,)), y)
        with torch.autocast(x.device.type, torch.bfloat16, cache_enabled=False):
            outputs = functional_call(self._flat.module, views, (x,))
        return self._loss(outputs.to(x.dtype), y)

    @property
    def draws(self) -> bool:
        """Whether the model has dropout."""
        return self._masks is not None
