"""Convolutions as one matrix product for each client.

Under vmap a convolution becomes one with a group for each client, which a GPU's library is slow at,
above all backwards. Of the same numbers laid out once more for each place of the kernel, the layer
and both its gradients are plain products, and the copies are made by additions in a fixed order.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional


class Unfolded(nn.Conv2d):
    """nn.Conv2d, computed in training by a product."""

    def forward(self, input: Tensor) -> Tensor:
        """In evaluation, where the model is one and the batches are large, as it always was."""
        if not self.training:
            return super().forward(input)
        top, left = cast(tuple[int, int], self.padding)
        x = functional.pad(input, (left, left, top, top)) if top or left else input
        places = unfolded(x, self.kernel_size, self.stride, self.dilation)
        kernel = self.weight.permute(0, 2, 3, 1).flatten(1)
        out = kernel @ places.flatten(0, 1).flatten(1)
        out = out.view(len(kernel), *places.shape[2:]).movedim(1, 0)
        return out if self.bias is None else out + self.bias.view(-1, 1, 1)


def unfolded(
    x: Tensor, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> Tensor:
    """What each place of the kernel meets: (place, channel, example, row, column)."""
    high, wide = (
        (x.shape[2 + i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)
    )
    shifted = [
        x[
            :,
            :,
            i * dilation[0] : i * dilation[0] + stride[0] * (high - 1) + 1 : stride[0],
            j * dilation[1] : j * dilation[1] + stride[1] * (wide - 1) + 1 : stride[1],
        ]
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]
    return torch.stack(shifted).transpose(1, 2)


def install(module: nn.Module) -> None:
    """Make the convolutions of a module products where they have such a form."""
    for part in module.modules():
        plain = type(part) is nn.Conv2d and part.padding_mode == "zeros"
        if plain and part.groups == 1 and not isinstance(part.padding, str):
            part.__class__ = Unfolded
