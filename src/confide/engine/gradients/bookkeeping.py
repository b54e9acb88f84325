"""Clipping every example's gradient without writing most of them down.

One backward pass gives the gradients of the layers' outputs; with the layers' inputs they give
every example's norm, and one weighted product for each layer gives the sum of the clipped ones.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from confide.engine.flat import Flat
from confide.engine.gradients.autograd import arranged, slopes
from confide.engine.gradients.byhand import ByHand, chained
from confide.engine.gradients.clipping import Bound, clip_row, factors, groups_of
from confide.engine.gradients.dropout import install
from confide.engine.gradients.layers import KINDS, Call, Part, Rows, understood
from confide.engine.gradients.vmapped import Vmapped
from confide.losses import Loss

Recorded = tuple[nn.Module, Tensor, GradientEdge]


class NotSeparable(Exception):
    """The model does something with its parameters or its batch that layers do not show."""


class Bookkeeping:
    """Per-example norms from the layers' inputs and output gradients, then one weighted sum.

    The first batch is looked at closely: a model that uses parameters outside of its layers, or
    lets one example's outputs depend on another's inputs, is handed to vmap.
    """

    def __init__(self, flat: Flat, loss: Loss) -> None:
        """For this model and this loss."""
        self.flat, self.loss = flat, loss
        self._masks = install(flat.module)
        self._layers = owners(flat)
        self._places = {id(p): i for i, p in enumerate(flat.parameters)}
        self._sum = torch.zeros_like(flat.vector)
        self._pieces = torch.split(self._sum, list(flat.lengths))
        self._groups: tuple[Bound, list[int] | None] | None = None
        self._chain = ByHand(flat, loss) if chained(flat) else None
        self._checked = False
        self._other: Vmapped | None = None

    @property
    def words(self) -> str:
        """The strategy in words."""
        return self._other.words if self._other else "per-example norms by book-keeping"

    def seed_dropout(self, seed: int) -> None:
        """Start the dropout masks anew."""
        self._masks.seed(seed)

    def follow(self, other: Bookkeeping, first: int) -> None:
        """Take the masks of another one's next batch, from this row on."""
        self._masks.follow(other._masks, first)

    def clipped(self, w: Tensor, x: Tensor, y: Tensor, stage: Bound) -> Tensor:
        """The sum of the clipped gradients, in a buffer that the next call reuses."""
        groups = self._groups_of(stage)
        if not len(x):
            return self._sum.zero_()
        if (parts := self._parts(w, x, y)) is None:
            assert self._other is not None
            return self._other.clipped(w, x, y, stage)
        scales = None
        if groups is not None and stage.p == 2:
            nothing = torch.zeros(len(x), dtype=torch.float64, device=w.device)
            squares = [part.squares() if part else nothing for part in parts]
            scales = factors(torch.stack(squares, 1), stage, groups)
        if scales is None:
            self._sum.zero_()
            for i in range(len(x)):
                self._sum += clip_row(self._rows(parts, i, i + 1)[0], stage)
            return self._sum
        for piece, part, scale in zip(
            self._pieces, parts, scales.to(w.dtype).unbind(1), strict=True
        ):
            if part:
                part.write(piece, scale)
            else:
                piece.zero_()
        return self._sum

    def each(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """One row for each example's gradient."""
        if not len(x):
            return w.new_zeros(0, len(w))
        if (parts := self._parts(w, x, y)) is None:
            assert self._other is not None
            return self._other.each(w, x, y)
        return self._rows(parts, 0, len(x))

    def _rows(self, parts: list[Part | None], start: int, stop: int) -> Tensor:
        rows = self._sum.new_zeros(stop - start, self.flat.dim)
        for piece, part in zip(
            torch.split(rows, list(self.flat.lengths), dim=1), parts, strict=True
        ):
            if part:
                piece.copy_(part.rows(start, stop))
        return rows

    def _groups_of(self, stage: Bound) -> list[int] | None:
        if self._groups is None or self._groups[0] != stage:
            self._groups = stage, groups_of(stage, self.flat.lengths)
        return self._groups[1]

    def _parts(self, w: Tensor, x: Tensor, y: Tensor) -> list[Part | None] | None:
        """Each parameter's part of the per-example gradients; None: vmap has to do it."""
        if self._other:
            return None
        try:
            calls = self._chain.calls(w, x, y) if self._chain else self._calls(w, x, y)
        except NotSeparable:
            self._other = Vmapped(self.flat, self.loss)
            return None
        found: list[list[Part]] = [[] for _ in self._pieces]
        for layer, inputs, g in calls:
            for name, part in KINDS[type(layer)](layer, inputs, g).items():
                place = self._places.get(id(getattr(layer, name)))
                if place is not None:
                    found[place].append(part)
        return [added(parts, len(x)) for parts in found]

    def _calls(self, w: Tensor, x: Tensor, y: Tensor) -> list[Call]:
        module = self.flat.at(w)
        if not self._checked:
            self._check(module, arranged(w, x[[0, -1]]), y[[0, -1]])
            self._checked = True
        self._masks.next_batch()
        with self._recorded() as calls:
            losses = self.loss(module(arranged(w, x)), y)
        grads = slopes(losses.sum(), [edge for _, _, edge in calls])
        used = [
            (c[0], c[1].detach(), g) for c, g in zip(calls, grads, strict=True) if g is not None
        ]
        if any(len(inputs) != len(x) or len(g) != len(x) for _, inputs, g in used):
            raise NotSeparable
        return used

    @contextmanager
    def _recorded(self, *, cut: bool = False) -> Generator[list[Recorded]]:
        """Note every layer's inputs and outputs; `cut` the graph after each layer."""
        calls: list[Recorded] = []

        def note(layer: nn.Module, args: Any, kwargs: Any, output: Tensor) -> Tensor:
            x = args[0] if args else next(iter(kwargs.values()))
            if cut:
                output = output.detach().requires_grad_().clone()
            calls.append((layer, x, get_gradient_edge(output)))
            return output

        hooks = [m.register_forward_hook(note, with_kwargs=True) for m in self._layers]
        try:
            yield calls
        finally:
            for hook in hooks:
                hook.remove()

    def _check(self, module: nn.Module, x: Tensor, y: Tensor) -> None:
        """Two examples show whether the layers tell all there is."""
        self._masks.restart()
        with self._recorded(cut=True) as calls:
            losses = self.loss(module(x), y)
        seen = [losses.sum(), *(c[1].sum() for c in calls if c[1].requires_grad)]
        if any(s.requires_grad for s in seen):
            direct = slopes(seen, self.flat.parameters)
            if any(g is not None for g in direct):
                raise NotSeparable
        self._masks.restart()
        with self._recorded() as calls:
            losses = self.loss(module(x), y)
        grads = slopes(losses[0], [c[2] for c in calls])
        if any(g is not None and (len(g) != 2 or bool(g[1].any())) for g in grads):
            raise NotSeparable


def added(parts: list[Part], examples: int) -> Part | None:
    """One part for a parameter that several calls share."""
    if len(parts) < 2:
        return parts[0] if parts else None
    return Rows(torch.stack([part.rows(0, examples) for part in parts]).sum(0))


def owners(flat: Flat) -> list[nn.Module]:
    """The layers that hold the trainable parameters."""
    trained = {id(p) for p in flat.parameters}
    return [
        m
        for m in flat.module.modules()
        if any(id(p) in trained for p in m.parameters(recurse=False))
    ]


def separable(flat: Flat) -> bool:
    """Whether every trainable parameter lives in a layer that book-keeping knows."""
    return all(understood(layer) for layer in owners(flat))
