"""Common layers, forward and backward by hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from confide.engine.gradients.autograd import arranged
from confide.engine.gradients.dropout import Dropout
from confide.engine.gradients.layers import padding_of
from confide.engine.gradients.products import add_outer, linear

aten = torch.ops.aten


class Layer(Protocol):
    """One layer: what it remembers from `forward` it needs in `backward`."""

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output."""
        ...

    def backward(self, g: Tensor, deeper: bool) -> Tensor:
        """From the gradient of the output to that of the input, if a `deeper` layer needs it."""
        ...


class Trained(ABC):
    """A layer with parameters; `backward` makes each target `beta` target + `alpha` gradient."""

    x: Tensor

    def __init__(self, module: nn.Module, places: Sequence[int | None]) -> None:
        """The module, and where its weight and bias lie among the parameters (None: nowhere)."""
        self.module, self._places = module, places

    @abstractmethod
    def through(self, g: Tensor) -> Tensor:
        """From the gradient of the output to that of the input, and nothing else."""

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """The layer's output."""

    @abstractmethod
    def backward(self, g: Tensor, deeper: bool) -> Tensor:
        """As `Layer` says, and the targets change."""

    def aim(self, views: list[Tensor], to: list[Tensor], beta: float, alpha: float) -> None:
        """Compute at some parameters, and add the gradients somewhere."""
        self.weight, self.bias = (None if i is None else views[i] for i in self._places)
        self.weight_to, self.bias_to = (
            to[i] if to and i is not None else None for i in self._places
        )
        self.beta, self.alpha = beta, alpha

    def add(self, target: Tensor | None, g: Tensor) -> None:
        """Add a gradient to its target."""
        if target is None:
            return
        if self.beta == 0:
            torch.mul(g, self.alpha, out=target)
        else:
            target.add_(g, alpha=self.alpha)


class Linear(Trained):
    """A dense layer, on a batch of vectors or of sequences of them."""

    def forward(self, x: Tensor) -> Tensor:
        """W x + b."""
        self.x = x
        assert self.weight is not None
        return linear(x, self.weight, self.bias)

    def through(self, g: Tensor) -> Tensor:
        """W' g."""
        assert self.weight is not None
        return linear(g, self.weight.t())

    def backward(self, g: Tensor, deeper: bool) -> Tensor:
        """The weights change in the product that computes their gradient."""
        back = self.through(g) if deeper else g
        x = self.x
        if x.dim() > 2:
            g, x = g.reshape(-1, g.shape[-1]), x.reshape(-1, x.shape[-1])
        assert self.weight_to is not None
        add_outer(self.weight_to, g, x, self.beta, self.alpha)
        if self.bias_to is not None:
            self.add(self.bias_to, g.sum(0))
        return back


class Conv2d(Trained):
    """A convolution, channels last."""

    def __init__(self, layer: nn.Conv2d, places: Sequence[int | None]) -> None:
        """The geometry of torch's own."""
        super().__init__(layer, places)
        self.stride, self.dilation = list(layer.stride), list(layer.dilation)
        self.padding = padding_of(layer)
        self.groups, self.outputs = layer.groups, layer.out_channels

    def forward(self, x: Tensor) -> Tensor:
        """Correlate."""
        self.x = x
        return aten.convolution(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation,
            False, [0, 0], self.groups,
        )  # fmt: skip

    def through(self, g: Tensor) -> Tensor:
        """The transposed convolution."""
        return self._gradients(g, [True, False, False])[0]

    def _gradients(self, g: Tensor, wanted: list[bool]) -> tuple[Tensor, Tensor, Tensor]:
        return aten.convolution_backward(
            g, self.x, self.weight, [self.outputs], self.stride, self.padding, self.dilation,
            False, [0, 0], self.groups, wanted,
        )  # fmt: skip

    def backward(self, g: Tensor, deeper: bool) -> Tensor:
        """All three gradients in one call."""
        back, weight, bias = self._gradients(g, [deeper, True, self.bias is not None])
        self.add(self.weight_to, weight)
        self.add(self.bias_to, bias)
        return back


class GroupNorm(Trained):
    """Group normalisation."""

    def __init__(self, layer: nn.GroupNorm, places: Sequence[int | None]) -> None:
        """The geometry of torch's own."""
        super().__init__(layer, places)
        self.groups, self.eps = layer.num_groups, layer.eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalise, scale and shift."""
        self.x, self.size = x, (len(x), x.shape[1], x[0, 0].numel())
        out, self.mean, self.scale = aten.native_group_norm(
            x, self.weight, self.bias, *self.size, self.groups, self.eps
        )
        return out

    def through(self, g: Tensor) -> Tensor:
        """Through the scale, the deviation and the mean."""
        return self._gradients(g, [True, False, False])[0]

    def _gradients(self, g: Tensor, wanted: list[bool]) -> tuple[Tensor, Tensor, Tensor]:
        return aten.native_group_norm_backward(
            g, self.x, self.mean, self.scale, self.weight, *self.size, self.groups, wanted
        )

    def backward(self, g: Tensor, deeper: bool) -> Tensor:
        """All three gradients in one call."""
        wanted = [deeper, self.weight is not None, self.bias is not None]
        back, weight, bias = self._gradients(g, wanted)
        self.add(self.weight_to, weight)
        self.add(self.bias_to, bias)
        return back


class ReLU:
    """max(0, x), in the memory of x where nobody else needs it."""

    def __init__(self, in_place: bool) -> None:
        """Whether x may be overwritten."""
        self.in_place = in_place

    def forward(self, x: Tensor) -> Tensor:
        """Cut off what is negative."""
        self.out = torch.relu_(x) if self.in_place else torch.relu(x)
        return self.out

    def backward(self, g: Tensor, deeper: bool) -> Tensor:
        """Nothing flows where the output is 0."""
        return aten.threshold_backward.grad_input(g, self.out, 0, grad_input=g)


class MaxPool2d:
    """The largest of each window."""

    def __init__(self, layer: nn.MaxPool2d) -> None:
        """The geometry of torch's own."""
        parts = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        self.geometry = [pair(part) for part in parts]
        self.ceil = layer.ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        """Remember where each came from."""
        self.x = x
        out, self.where = aten.max_pool2d_with_indices(x, *self.geometry, self.ceil)
        return out

    def backward(self, g: Tensor, deeper: bool) -> Tensor:
        """Back to where each came from."""
        g = g.contiguous(memory_format=torch.channels_last)
        return aten.max_pool2d_with_indices_backward(
            g, self.x, *self.geometry, self.ceil, self.where
        )


class Reshape:
    """Flatten and Unflatten; `size` is the new shape of one example."""

    def __init__(self, size: Sequence[int]) -> None:
        """The shape of one example."""
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        """In the order of channels first, as torch counts."""
        self.shape = x.shape
        return arranged(x, x.reshape(len(x), *self.size))

    def backward(self, g: Tensor, deeper: bool) -> Tensor:
        """The old shape, channels last."""
        return arranged(g, g.reshape(self.shape))


class Drop:
    """Dropout by the shared masks."""

    def __init__(self, layer: Dropout) -> None:
        """As that layer."""
        self.layer, self.masks = layer, layer.masks

    def forward(self, x: Tensor) -> Tensor:
        """Drop some, enlarge the others."""
        if self.layer.p == 0:
            return x
        self.factor = self.masks.factor(x, self.layer.p, self.layer.whole_channels)
        return x * self.factor

    def backward(self, g: Tensor, deeper: bool) -> Tensor:
        """The same elements."""
        return g if self.layer.p == 0 else g.mul_(self.factor)


def pair(value: int | tuple[int, ...]) -> list[int]:
    """One number for both directions, or one for each."""
    return [value, value] if isinstance(value, int) else list(value)
