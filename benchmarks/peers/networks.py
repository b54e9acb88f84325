"""The models that every side trains, and their equal initial parameters.

`python benchmarks/peers/networks.py WORKLOAD PATH.npz` writes the initial parameters.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from protocol import Clock
from torch import Tensor, nn
from workloads import CLASSES, SEED, WORKLOADS


def linear() -> nn.Module:
    return nn.Linear(5000, CLASSES)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, CLASSES))


def cnn() -> nn.Module:
    """FedAvg's CNN for MNIST."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 512),
        nn.ReLU(),
        nn.Linear(512, CLASSES),
    )


def simple_cnn() -> nn.Module:
    """The CNN of pfl-research's image classification benchmark."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(64 * 14 * 14, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, CLASSES),
    )


class Block(nn.Module):
    """Two 3x3 convolutions with GroupNorm and a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.GroupNorm(32, outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.GroupNorm(32, outputs),
        )
        self.around = nn.Sequential()
        if stride != 1 or inputs != outputs:
            shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.around = nn.Sequential(shortcut, nn.GroupNorm(32, outputs))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.inner(x) + self.around(x))


def resnet18() -> nn.Module:
    """ResNet-18 for 32x32 pictures, with GroupNorm."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.GroupNorm(32, 64)]
    layers.append(nn.ReLU())
    width = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(width, outputs, stride), Block(outputs, outputs, 1)]
        width = outputs
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES)]
    return nn.Sequential(*layers)


NETWORKS = {made.__name__: made for made in (linear, mlp, cnn, simple_cnn, resnet18)}


def build(
    name: str, initial: Path, *, double: bool, dropout: bool, device: str = "cpu"
) -> nn.Module:
    """A model in training mode with the initial parameters of that file."""
    made = NETWORKS[name]()
    made.load_state_dict({key: torch.from_numpy(value) for key, value in np.load(initial).items()})
    if not dropout:
        for part in made.modules():
            if isinstance(part, nn.Dropout):
                part.p = 0.0
    return (made.double() if double else made).to(device)


def tensors(
    records: NDArray[np.float32], labels: NDArray[np.int64], *, double: bool, device: str = "cpu"
) -> tuple[Tensor, Tensor]:
    x = torch.from_numpy(records)
    return (x.double() if double else x).to(device), torch.from_numpy(labels).to(device)


def arrays(model: nn.Module) -> dict[str, NDArray[np.floating]]:
    return {name: value.detach().cpu().numpy().copy() for name, value in model.named_parameters()}


def clock_of(device: str) -> Clock:
    """A clock that waits for the device before it looks at the time."""
    return Clock(settle=torch.cuda.synchronize) if device == "cuda" else Clock()


if __name__ == "__main__":
    torch.manual_seed(SEED)
    np.savez(sys.argv[2], **arrays(NETWORKS[WORKLOADS[sys.argv[1]].network]()))
