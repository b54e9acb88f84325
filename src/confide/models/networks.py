"""The papers' models, sequential, with the sizes that docs/data.md lists.

Each takes the shape of one record and the number of outputs. A size that a paper does not give is
ours, and marked so in the list of models.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from torch import nn

Shape = tuple[int, ...]


class WrongSetting(ValueError):
    """A setting of a model is not what it may be; the records have no part in it."""


def mlp(shape: Shape, outputs: int, hidden: Sequence[int] = (32,)) -> nn.Module:
    """Dense layers with ReLU between them."""
    widths = [prod(shape), *_widths(hidden), outputs]
    layers: list[nn.Module] = [nn.Flatten()]
    for inner, outer in pairwise(widths):
        layers += [nn.Linear(inner, outer), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def mlp256(shape: Shape, outputs: int) -> nn.Module:
    """One hidden layer of 256."""
    return mlp(shape, outputs, (256,))


def tabular(shape: Shape, outputs: int, hidden: Sequence[int] = (64, 32)) -> nn.Module:
    """Two hidden layers for tables."""
    return mlp(shape, outputs, hidden)


def svm(shape: Shape, outputs: int) -> nn.Module:
    """A linear model with the hinge loss; its penalty is the weight decay of the local steps."""
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), outputs))


def cnn2(shape: Shape, outputs: int) -> nn.Module:
    """Two 5x5 convolutions with pooling, then two dense layers."""
    channels, height, width = images(shape)
    sides = [((side - 4) // 2 - 4) // 2 for side in (height, width)]
    return nn.Sequential(
        *(nn.Conv2d(channels, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * prod(sides), 64), nn.ReLU(), nn.Linear(64, outputs)),
    )


def cnn2_flat(shape: Shape, outputs: int) -> nn.Module:
    """Two 5x5 convolutions with pooling, then one dense layer."""
    channels, height, width = images(shape)
    sides = [((side - 4) // 2 - 4) // 2 for side in (height, width)]
    return nn.Sequential(
        *(nn.Conv2d(channels, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * prod(sides), outputs)),
    )


def cnn4(shape: Shape, outputs: int) -> nn.Module:
    """Four 3x3 convolutions, each with pooling, then two dense layers."""
    channels, height, width = images(shape)
    layers: list[nn.Module] = []
    for inner, outer in ((channels, 16), (16, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(inner, outer, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    flat = 64 * (height // 16) * (width // 16)
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(flat, 128), nn.ReLU(), nn.Linear(128, outputs)
    )


def cnn1(shape: Shape, outputs: int) -> nn.Module:
    """One 5x5 convolution with padding 4, pooling, and the classes."""
    channels, height, width = images(shape)
    flat = 16 * ((height + 4) // 2) * ((width + 4) // 2)
    return nn.Sequential(
        *(nn.Conv2d(channels, 16, 5, padding=4), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(flat, outputs)),
    )


def leaf_cnn(shape: Shape, outputs: int) -> nn.Module:
    """Two 5x5 convolutions of the input's size with pooling, then a dense layer of 512."""
    channels, height, width = images(shape)
    flat = 64 * (height // 4) * (width // 4)
    return nn.Sequential(
        *(nn.Conv2d(channels, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(flat, 512), nn.ReLU(), nn.Linear(512, outputs)),
    )


def simple_cnn(shape: Shape, outputs: int, dropout: bool = True) -> nn.Module:
    """Two 3x3 convolutions, one pooling, a dense layer of 128, with dropout."""
    if not isinstance(dropout, bool):
        raise WrongSetting(f"dropout = {dropout!r}, allowed are true and false")
    channels, height, width = images(shape)
    flat = 64 * ((height - 4) // 2) * ((width - 4) // 2)
    layers: list[nn.Module] = [
        *(nn.Conv2d(channels, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten()),
        *(nn.Linear(flat, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, outputs)),
    ]
    return nn.Sequential(*(x for x in layers if dropout or not isinstance(x, nn.Dropout)))


def wind_cnn(shape: Shape, outputs: int) -> nn.Module:
    """Two convolutions along time, each with pooling, then two dense layers."""
    channels, height, hours = images(shape)
    flat = 32 * height * (hours // 4)
    return nn.Sequential(
        *(nn.Conv2d(channels, 16, (1, 5), padding=(0, 2)), nn.ReLU(), nn.MaxPool2d((1, 2))),
        *(nn.Conv2d(16, 32, (1, 5), padding=(0, 2)), nn.ReLU(), nn.MaxPool2d((1, 2))),
        *(nn.Flatten(), nn.Linear(flat, 64), nn.ReLU(), nn.Linear(64, outputs)),
    )


def _widths(hidden: Sequence[int]) -> list[int]:
    """The sizes of hidden layers, as a person wrote them."""
    if not isinstance(hidden, list | tuple) or not all(
        isinstance(width, int) and not isinstance(width, bool) and width >= 1 for width in hidden
    ):
        raise WrongSetting(f"hidden = {hidden!r}, allowed is a list of whole numbers of at least 1")
    return list(hidden)


def images(shape: Shape) -> tuple[int, int, int]:
    """The three sizes of an image."""
    if len(shape) != 3:
        raise ValueError(f"an image has 3 sizes, not {len(shape)}")
    return shape
