"""ResNet-18 with group normalisation, for small images."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional

from confide.models.networks import Shape, images
from confide.models.norms import groups


class Block(nn.Module):
    """Two 3x3 convolutions around a shortcut."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        """A block that may widen and halve the image."""
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, padding=1, bias=False)
        self.first_norm = nn.GroupNorm(groups(outer), outer)
        self.second = nn.Conv2d(outer, outer, 3, padding=1, bias=False)
        self.second_norm = nn.GroupNorm(groups(outer), outer)
        self.shortcut = nn.Sequential()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride, bias=False), nn.GroupNorm(groups(outer), outer)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Add the shortcut before the last ReLU."""
        inside = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(inside)) + self.shortcut(x))


def resnet18(shape: Shape, outputs: int) -> nn.Module:
    """Eight blocks of two convolutions; the stem is a 3x3 convolution without pooling."""
    channels, _, _ = images(shape)
    widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
    blocks = [Block(inner, outer, 1 if inner == outer else 2) for inner, outer in pairwise(widths)]
    return nn.Sequential(
        *(nn.Conv2d(channels, 64, 3, padding=1, bias=False), nn.GroupNorm(groups(64), 64)),
        *(nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, outputs)),
    )
