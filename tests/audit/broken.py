"""Stages that claim what the right ones prove and do something else: bugs that people make."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from confide.randomness import Stream
from confide.stages import Clip, Gaussian, Laplace, Shared, Staircase
from confide.stages.stage import Stage


@dataclass(frozen=True)
class Weak(Gaussian):
    """Noise of a wrong scale."""

    factor: float = 1.0

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std * self.factor * torch.from_numpy(own.normal(tuple(x.shape)))


@dataclass(frozen=True)
class OneLayerForgotten(Gaussian):
    """No noise on the first eighth."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        noise = self.std * torch.from_numpy(own.normal(tuple(x.shape)))
        noise[: len(x) // 8] = 0
        return x + noise


@dataclass(frozen=True)
class NoClip(Clip):
    """Forgets to clip."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x


@dataclass(frozen=True)
class ClipsEachLayer(Clip):
    """Every eighth by itself, claimed as one clip."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        parts = [part * min(1.0, self.C / max(float(part.norm()), 1e-300)) for part in x.chunk(8)]
        return torch.cat(parts)


@dataclass(frozen=True)
class ClaimsL1(Clip):
    """An l2 clip that is claimed as an l1 clip."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return Clip(float(self.C))(x, shared, own)


@dataclass(frozen=True)
class ShiftedStaircase(Staircase):
    """A geometric number of steps that starts one too low, so the first step is mirrored."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        shape = tuple(x.shape)
        b = np.exp(-self.epsilon)
        steps = np.floor(np.log(own.uniform(shape)) / np.log(b)) - 1
        inside = own.uniform(shape) < self.fall / (self.fall + (1 - self.fall) * b)
        place = own.uniform(shape)
        first = (steps + self.fall * place) * self.delta
        second = (steps + self.fall + (1 - self.fall) * place) * self.delta
        size = np.where(inside, first, second)
        sign = np.where(own.uniform(shape) < 0.5, -1.0, 1.0)
        return x + torch.from_numpy(sign * size)


@dataclass(frozen=True)
class OnlyAboveThreshold(Gaussian):
    """Noise where a noisy test finds an entry large, and nowhere else."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        noise = torch.from_numpy(own.normal(tuple(x.shape)))
        test = torch.from_numpy(own.normal(tuple(x.shape)))
        return torch.where(x + 0.01 * test >= 0.05, x + self.std * noise, x)


STD = 2 * 3.7307
"""Epsilon 1 at delta 1e-5 for two vectors of length 1."""
STD_4 = 2 / 0.925
"""Epsilon 4: at epsilon 1 a fault as small as 0.8 sigma takes some 60,000 draws at level 0.001."""

RIGHT: dict[str, tuple[Stage, ...]] = {
    "Gaussian": (Clip(1.0), Gaussian(STD)),
    "Laplace of sqrt(d) times the scale": (Clip(1.0), Laplace(2.0 * 8)),
    "staircase under an l1 clip": (Clip(1.0, p=1), Staircase(1.0, 2.0)),
}
BROKEN: dict[str, tuple[Stage, ...]] = {
    "noise of 0.8 sigma": (Clip(1.0), Weak(STD_4, 0.8)),
    "noise of sigma / 2": (Clip(1.0), Weak(STD, 0.5)),
    "noise of sigma / B": (Clip(1.0), Weak(STD, 1 / 64)),
    "one layer without noise": (Clip(1.0), OneLayerForgotten(STD)),
    "no clip": (NoClip(1.0), Gaussian(STD)),
    "eight clips claimed as one": (ClipsEachLayer(1.0), Gaussian(STD)),
    "Laplace for an l1 clip that is an l2 clip": (ClaimsL1(1.0, p=1), Laplace(2.0)),
    "staircase for an l1 clip that is an l2 clip": (ClaimsL1(1.0, p=1), Staircase(1.0, 2.0)),
    "UDP-FL's shifted staircase": (ClaimsL1(1.0, p=1), ShiftedStaircase(1.0, 2.0)),
    "noise above a threshold only": (Clip(1.0), OnlyAboveThreshold(STD)),
}
