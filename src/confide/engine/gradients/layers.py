"""What one layer adds to each example's gradient, from its inputs and its outputs' gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from confide.engine.gradients.products import add_outer

Call = tuple[nn.Module, Tensor, Tensor]
"""A layer, its input, and the gradient of its output."""

PATCHES = 1 << 18
"""Bytes of one example's patches up to which a product with them beats a convolution of its own."""

BLOCK = 1 << 16
"""Values that are squared in double precision at a time: their copy stays in the cache."""

KEPT = 1 << 26
"""Bytes of per-example gradients that one layer may keep; beyond, they are computed twice."""


class Part(Protocol):
    """One parameter's share of every example's gradient."""

    def squares(self) -> Tensor:
        """Each example's squared norm, in double precision."""
        ...

    def write(self, out: Tensor, factors: Tensor) -> None:
        """The sum of the examples' gradients times their factors, to a piece of the flat vector."""
        ...

    def rows(self, start: int, stop: int) -> Tensor:
        """Some examples' gradients in the layout of the flat vector."""
        ...


@dataclass(frozen=True, eq=False)
class Outer:
    """A dense layer on one vector: an outer product, whose norm is the product of the norms."""

    x: Tensor
    g: Tensor

    def squares(self) -> Tensor:
        """Each example's squared norm."""
        return row_squares(self.x) * row_squares(self.g)

    def write(self, out: Tensor, factors: Tensor) -> None:
        """One matrix product for all examples."""
        scaled = self.g * factors.unsqueeze(1)
        add_outer(out.view(self.g.shape[1], self.x.shape[1]), scaled, self.x, 0, 1)

    def rows(self, start: int, stop: int) -> Tensor:
        """The outer products."""
        return (self.g[start:stop, :, None] * self.x[start:stop, None]).flatten(1)


@dataclass(frozen=True, eq=False)
class Rows:
    """Every example's gradient, in memory."""

    values: Tensor

    def squares(self) -> Tensor:
        """Each example's squared norm."""
        return row_squares(self.values)

    def write(self, out: Tensor, factors: Tensor) -> None:
        """One product of a matrix and a vector."""
        torch.mv(self.values.t(), factors, out=out)

    def rows(self, start: int, stop: int) -> Tensor:
        """Some of them."""
        return self.values[start:stop]


@dataclass(frozen=True, eq=False)
class Twice:
    """Gradients too large to keep: computed for their norms, and again, the same, to add."""

    compute: Callable[[int, int], Tensor]
    examples: int
    size: int
    itemsize: int

    def squares(self) -> Tensor:
        """Each example's squared norm."""
        return torch.cat([row_squares(self.rows(i, j)) for i, j in self._pieces()])

    def write(self, out: Tensor, factors: Tensor) -> None:
        """Piece by piece."""
        out.zero_()
        for i, j in self._pieces():
            out.addmv_(self.rows(i, j).t(), factors[i:j])

    def rows(self, start: int, stop: int) -> Tensor:
        """Compute some of them."""
        return self.compute(start, stop)

    def _pieces(self) -> list[tuple[int, int]]:
        step = max(1, KEPT // (self.size * self.itemsize))
        return [(i, min(i + step, self.examples)) for i in range(0, self.examples, step)]


@dataclass(frozen=True, eq=False)
class Tokens:
    """An embedding: only the rows of the table that an example looks up."""

    example: Tensor
    token: Tensor
    values: Tensor
    examples: int
    size: int

    def squares(self) -> Tensor:
        """Each example's squared norm."""
        squares = torch.zeros(self.examples, dtype=torch.float64, device=self.values.device)
        return squares.index_add_(0, self.example, row_squares(self.values))

    def write(self, out: Tensor, factors: Tensor) -> None:
        """Row by row of the table."""
        out.zero_()
        scaled = self.values * factors[self.example].unsqueeze(1)
        out.view(-1, self.values.shape[1]).index_add_(0, self.token, scaled)

    def rows(self, start: int, stop: int) -> Tensor:
        """Whole tables, mostly zero."""
        here = (self.example >= start) & (self.example < stop)
        width = self.values.shape[1]
        place = (self.example[here] - start) * (self.size // width) + self.token[here]
        out = self.values.new_zeros(stop - start, self.size)
        out.view(-1, width).index_add_(0, place, self.values[here])
        return out


def kept(compute: Callable[[int, int], Tensor], examples: int, size: int, itemsize: int) -> Part:
    """Keep the per-example gradients where they are small enough."""
    if examples * size * itemsize <= KEPT:
        return Rows(compute(0, examples))
    return Twice(compute, examples, size, itemsize)


def row_squares(values: Tensor) -> Tensor:
    """Each row's squared norm, summed in double precision."""
    step = max(1, BLOCK // max(1, values.shape[1]))
    norms = [
        torch.linalg.vector_norm(part, dim=1, dtype=torch.float64) for part in values.split(step)
    ]
    return torch.cat(norms).square_()


def linear(layer: nn.Module, x: Tensor, g: Tensor) -> dict[str, Part]:
    """A dense layer, on one vector or on a sequence of them."""
    if x.dim() == 2:
        return {"weight": Outer(x, g), "bias": Rows(g)}
    x, g = x.flatten(1, -2), g.flatten(1, -2)

    def compute(start: int, stop: int) -> Tensor:
        return (g[start:stop].transpose(1, 2) @ x[start:stop]).flatten(1)

    size = x.shape[2] * g.shape[2]
    return {"weight": kept(compute, len(x), size, x.itemsize), "bias": Rows(g.sum(1))}


def conv2d(layer: nn.Module, x: Tensor, g: Tensor) -> dict[str, Part]:
    """A convolution: products with patches where they are few or the device is no CPU, else
    one example's weight gradient after the other, channels last.
    """
    layer = cast(nn.Conv2d, layer)
    x = x.contiguous(memory_format=torch.channels_last)
    g = g.contiguous(memory_format=torch.channels_last)
    size = layer.weight.numel()
    patch = size // layer.out_channels * g[0, 0].numel() * x.itemsize
    by_patches = layer.groups == 1 and (patch <= PATCHES or x.device.type != "cpu")
    compute = (patched if by_patches else convolved)(layer, x, g)
    return {"weight": kept(compute, len(x), size, x.itemsize), "bias": Rows(g.sum((2, 3)))}


def patched(layer: nn.Conv2d, x: Tensor, g: Tensor) -> Callable[[int, int], Tensor]:
    """The weights' gradients as products of the outputs' gradients with the patches they saw."""
    (up, left), (down, right), (high, wide) = padding_of(layer), layer.stride, layer.dilation
    padded = functional.pad(x.permute(0, 2, 3, 1), (0, 0, left, left, up, up)).contiguous()
    n, row, column, channel = padded.stride()
    slopes = g.permute(0, 2, 3, 1).flatten(1, 2).transpose(1, 2)
    window = (*g.shape[2:], *layer.kernel_size, x.shape[1])
    steps = (n, row * down, column * right, row * high, column * wide, channel)

    def compute(start: int, stop: int) -> Tensor:
        out = x.new_empty(stop - start, g.shape[1], window[2] * window[3] * window[4])
        step = max(1, BLOCK // (window[0] * window[1] * out.shape[2]))
        for i in range(start, stop, step):
            j = min(i + step, stop)
            patches = padded[i:j].as_strided((j - i, *window), steps)
            torch.bmm(
                slopes[i:j],
                patches.reshape(j - i, -1, out.shape[2]),
                out=out[i - start : j - start],
            )
        return out.flatten(1)

    return compute


def convolved(layer: nn.Conv2d, x: Tensor, g: Tensor) -> Callable[[int, int], Tensor]:
    """The weights' gradients by the convolution's own backward pass on single examples."""
    padding, weight = padding_of(layer), layer.weight.detach()

    def compute(start: int, stop: int) -> Tensor:
        out = x.new_empty(stop - start, weight.numel())
        outputs, inputs, height, width = weight.shape
        views = out.view(-1, outputs, height, width, inputs).permute(0, 1, 4, 2, 3)
        for i in range(start, stop):
            views[i - start] = torch.ops.aten.convolution_backward(
                g[i : i + 1], x[i : i + 1], weight, [0], layer.stride, padding, layer.dilation,
                False, [0, 0], layer.groups, [False, True, False],
            )[1]  # fmt: skip
        return out

    return compute


def padding_of(layer: nn.Conv2d) -> list[int]:
    """The padding in numbers."""
    if isinstance(layer.padding, str):
        return [
            d * (k - 1) // 2 if layer.padding == "same" else 0
            for d, k in zip(layer.dilation, layer.kernel_size, strict=True)
        ]
    return list(layer.padding)


def group_norm(layer: nn.Module, x: Tensor, g: Tensor) -> dict[str, Part]:
    """A group norm's scale and shift."""
    layer = cast(nn.GroupNorm, layer)
    normal = functional.group_norm(x, layer.num_groups, eps=layer.eps)
    scale, shift = normal * g, g
    if x.dim() > 2:
        scale, shift = scale.flatten(2).sum(2), shift.flatten(2).sum(2)
    return {"weight": Rows(scale), "bias": Rows(shift)}


def layer_norm(layer: nn.Module, x: Tensor, g: Tensor) -> dict[str, Part]:
    """A layer norm's scale and shift."""
    layer = cast(nn.LayerNorm, layer)
    normal = functional.layer_norm(x, layer.normalized_shape, eps=layer.eps)
    scale, shift = normal * g, g
    between = tuple(range(1, x.dim() - len(layer.normalized_shape)))
    if between:
        scale, shift = scale.sum(between), shift.sum(between)
    return {"weight": Rows(scale.flatten(1)), "bias": Rows(shift.flatten(1))}


def embedding(layer: nn.Module, x: Tensor, g: Tensor) -> dict[str, Part]:
    """A table: the gradients of one example's equal tokens are added, others stay apart."""
    layer = cast(nn.Embedding, layer)
    examples, table = len(x), layer.num_embeddings
    tokens = x.reshape(examples, -1)
    first = torch.arange(examples, device=x.device).unsqueeze(1) * table
    pairs, place = torch.unique(first + tokens, return_inverse=True)
    values = g.new_zeros(len(pairs), g.shape[-1])
    values.index_add_(0, place.reshape(-1), g.reshape(-1, g.shape[-1]))
    example, token = pairs // table, pairs % table
    if layer.padding_idx is not None:
        values[token == layer.padding_idx] = 0
    size = table * g.shape[-1]
    return {"weight": Tokens(example, token, values, examples, size)}


KINDS: dict[type[nn.Module], Callable[[nn.Module, Tensor, Tensor], dict[str, Part]]] = {
    nn.Linear: linear,
    nn.Conv2d: conv2d,
    nn.GroupNorm: group_norm,
    nn.LayerNorm: layer_norm,
    nn.Embedding: embedding,
}


def understood(layer: nn.Module) -> bool:
    """Whether a layer's gradients can be taken apart by the rules here."""
    if isinstance(layer, nn.Conv2d):
        same = layer.padding == "same" and any(
            d * (k - 1) % 2 for d, k in zip(layer.dilation, layer.kernel_size, strict=True)
        )
        return type(layer) is nn.Conv2d and layer.padding_mode == "zeros" and not same
    if isinstance(layer, nn.Embedding):
        odd = layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse
        return type(layer) is nn.Embedding and not odd
    return type(layer) in KINDS
