"""Chains of common layers, forward and backward by hand: the fastest way on the CPU.

What autograd cannot do: images stay channels last throughout, ReLU moves behind max pooling (which
it commutes with, gradient and all), and a step is added to the weights by the very product that
computes the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from confide.engine.flat import Flat
from confide.engine.gradients import chain
from confide.engine.gradients.autograd import Autograd, arranged
from confide.engine.gradients.dropout import Dropout
from confide.engine.gradients.layers import Call, understood
from confide.losses import Loss, cross_entropy

FRESH = (nn.Linear, nn.Conv2d, nn.MaxPool2d, nn.GroupNorm)
"""Layers whose output nobody but the next layer looks at, so that ReLU may overwrite it."""


class ByHand(Autograd):
    """Forward and backward by hand; looking at losses and outputs is the module's own work."""

    words = "by hand, channels last"

    def __init__(self, flat: Flat, loss: Loss) -> None:
        """For this chain of layers (see `links`) and this loss."""
        super().__init__(flat, loss)
        self._layers = build(flat)
        self._trained = [layer for layer in self._layers if isinstance(layer, chain.Trained)]
        first = self._layers.index(self._trained[0])
        self._back = [(layer, i > first) for i, layer in enumerate(self._layers) if i >= first]
        self._back.reverse()

    @torch.no_grad()
    def total(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """The sum of the examples' gradients, in a buffer that the next call reuses."""
        if not len(x):
            return self._sum.zero_()
        self._run(w, x, y, self._sums, 0, 1)
        return self._sum

    @torch.no_grad()
    def descend(self, w: Tensor, x: Tensor, y: Tensor, rate: float) -> bool:
        """Step along the mean gradient, fused into the products that compute it."""
        if len(x):
            self._run(w, x, y, self._views_of(w), 1, -rate / len(x))
        return True

    def _run(
        self, w: Tensor, x: Tensor, y: Tensor, to: list[Tensor], beta: float, alpha: float
    ) -> None:
        views = self._views_of(w)
        for layer in self._trained:
            layer.aim(views, to, beta, alpha)
        g = self._forward(w, x, y)
        for layer, deeper in self._back:
            g = layer.backward(g, deeper)

    @torch.no_grad()
    def calls(self, w: Tensor, x: Tensor, y: Tensor) -> list[Call]:
        """Every trained layer with its input and the gradient of its output."""
        views = self._views_of(w)
        for layer in self._trained:
            layer.aim(views, [], 0, 0)
        g, calls = self._forward(w, x, y), list[Call]()
        for layer, deeper in self._back:
            if isinstance(layer, chain.Trained):
                calls.append((layer.module, layer.x, g))
                g = layer.through(g) if deeper else g
            else:
                g = layer.backward(g, deeper)
        return calls

    def _forward(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Through all layers, to the gradient of the outputs."""
        self._masks.next_batch()
        x = arranged(w, x)
        for layer in self._layers:
            x = layer.forward(x)
        return slope(self.loss, x, y)


def slope(loss: Loss, outputs: Tensor, y: Tensor) -> Tensor:
    """The gradient of the summed loss with respect to the outputs."""
    if loss is cross_entropy and outputs.dim() == 2 and not y.is_floating_point():
        g = torch.softmax(outputs, 1)
        return g.scatter_add_(1, y.unsqueeze(1), g.new_full((1, 1), -1).expand(len(y), 1))
    with torch.enable_grad():
        leaf = outputs.detach().requires_grad_()
        return torch.autograd.grad(loss(leaf, y).sum(), leaf)[0]


def links(module: nn.Module) -> list[nn.Module] | None:
    """The layers of a chain in order; None if it is no chain of layers we know."""
    if type(module).forward is nn.Sequential.forward:
        inside = [links(child) for child in module.children()]
        return None if None in inside else [link for part in inside for link in part or []]
    return [module] if known(module) else None


def known(layer: nn.Module) -> bool:
    """Whether there is a layer by hand that does exactly this."""
    if isinstance(layer, nn.Flatten):
        return (layer.start_dim, layer.end_dim) == (1, -1)
    if isinstance(layer, nn.Unflatten):
        return layer.dim == 1 and all(isinstance(n, int) and n > 0 for n in layer.unflattened_size)
    if isinstance(layer, nn.MaxPool2d):
        return not layer.return_indices
    if type(layer) in (nn.Linear, nn.Conv2d, nn.GroupNorm):
        return understood(layer)
    return type(layer) in (nn.ReLU, nn.Identity, Dropout)


def chained(flat: Flat) -> bool:
    """Whether a model is a chain of known layers, each used once and trained as a whole."""
    layers = links(flat.module)
    hooks = [m._forward_hooks for m in flat.module.modules()]  # pyright: ignore[reportPrivateUsage]
    if layers is None or any(hooks):
        return False
    parameters = [id(p) for layer in layers for p in layer.parameters()]
    return parameters == [id(p) for p in flat.parameters]


def build(flat: Flat) -> list[chain.Layer]:
    """The chain by hand, ReLU behind max pooling."""
    layers = [layer for layer in links(flat.module) or [] if type(layer) is not nn.Identity]
    for i, (one, two) in enumerate(pairwise(list(layers))):
        if isinstance(one, nn.ReLU) and isinstance(two, nn.MaxPool2d):
            layers[i : i + 2] = [two, one]
    places = {id(p): i for i, p in enumerate(flat.parameters)}
    before: Sequence[nn.Module | None] = [None, *layers]
    return [by_hand(layer, last, places) for layer, last in zip(layers, before, strict=False)]


def by_hand(layer: nn.Module, last: nn.Module | None, places: dict[int, int]) -> chain.Layer:
    """One layer by hand; `last` is the one before it."""
    mine = [places.get(id(getattr(layer, name, None))) for name in ("weight", "bias")]
    match layer:
        case nn.Linear():
            return chain.Linear(layer, mine)
        case nn.Conv2d():
            return chain.Conv2d(layer, mine)
        case nn.GroupNorm():
            return chain.GroupNorm(layer, mine)
        case nn.MaxPool2d():
            return chain.MaxPool2d(layer)
        case nn.Unflatten():
            return chain.Reshape([int(n) for n in layer.unflattened_size])
        case nn.Flatten():
            return chain.Reshape([-1])
        case Dropout():
            return chain.Drop(layer)
        case _:
            return chain.ReLU(in_place=isinstance(last, FRESH))
