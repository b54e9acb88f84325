"""Any module: torch's autograd on the whole batch, straight into or out of one flat vector."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from confide.engine.flat import Flat
from confide.engine.gradients.dropout import install
from confide.engine.gradients.plain import like
from confide.losses import Loss

Slopes = tuple[Tensor | None, ...]


class Autograd:
    """torch.autograd.grad, with images and convolutions channels last."""

    words = "autograd, channels last"

    def __init__(self, flat: Flat, loss: Loss) -> None:
        """For this model and this loss."""
        self.flat, self.loss = flat, loss
        self._masks = install(flat.module)
        self._at: Tensor | None = None
        self._views: list[Tensor] = []
        self._checked = False

    @cached_property
    def _sum(self) -> Tensor:
        """Made when it is first asked for: book-keeping has a sum of its own."""
        return torch.zeros_like(self.flat.vector)

    @cached_property
    def _sums(self) -> list[Tensor]:
        return self.flat.split(self._sum)

    def seed_dropout(self, seed: int) -> None:
        """Start the dropout masks anew."""
        self._masks.seed(seed)

    def total(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """The sum of the examples' gradients, in a buffer that the next call reuses."""
        if not len(x):
            return self._sum.zero_()
        grads = self._grads(w, x, y)
        used = [(s, g) for s, g in zip(self._sums, grads, strict=True) if g is not None]
        if len(used) < len(grads):
            self._sum.zero_()
        for s, g in used:
            s.copy_(g)
        return self._sum

    def descend(self, w: Tensor, x: Tensor, y: Tensor, rate: float) -> bool:
        """Step along the mean gradient, one fused addition for each parameter."""
        if len(x):
            grads = self._grads(w, x, y)
            used = [(v, g) for v, g in zip(self._views_of(w), grads, strict=True) if g is not None]
            for view, g in used:
                view.add_(g, alpha=-rate / len(x))
        return True

    def _views_of(self, w: Tensor) -> list[Tensor]:
        if self._at is not w:
            self._at, self._views = w, self.flat.split(w)
        return self._views

    def _grads(self, w: Tensor, x: Tensor, y: Tensor) -> Slopes:
        module = self.flat.at(w)
        self._masks.next_batch()
        before = None if self._checked else generators(w)
        loss = self.loss(module(arranged(w, x)), y).sum()
        if before is not None:
            check_draws(before, generators(w))
            self._checked = True
        return slopes(loss, self.flat.parameters)

    @torch.no_grad()
    def losses(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Each example's loss, without dropout."""
        return self.loss(self.outputs(w, x), y) if len(x) else w.new_zeros(0)

    @torch.no_grad()
    def outputs(self, w: Tensor, x: Tensor) -> Tensor:
        """The model's outputs, without dropout."""
        return self.flat.at(w, train=False)(arranged(w, x))


def arranged(w: Tensor, x: Tensor) -> Tensor:
    """The inputs in the parameters' type, images channels last."""
    x = like(w, x)
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


def slopes(of: Tensor | Sequence[Tensor], to: Sequence[Tensor | GradientEdge]) -> Slopes:
    """torch.autograd.grad, which says None where nothing depends on `to`."""
    return cast(Slopes, torch.autograd.grad(of, cast(Any, to), allow_unused=True))


def generators(w: Tensor) -> list[Tensor]:
    """The states of torch's own generators."""
    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(w.device)] if w.is_cuda else states


def check_draws(before: list[Tensor], after: list[Tensor]) -> None:
    """Refuse a model that draws from torch's generators: its runs could not be repeated."""
    if not all(torch.equal(a, b) for a, b in zip(before, after, strict=True)):
        raise ValueError(
            "Gradient: the model draws random numbers of its own in training, so that a run could "
            "not be repeated; use nn.Dropout layers, whose masks come from the run's key."
        )
