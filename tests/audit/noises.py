"""Noise whose source is wrong: its scale and its law are those of the stage it pretends to be."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from confide.randomness import Stream
from confide.stages import Gaussian, Laplace, Shared


@dataclass(frozen=True)
class Torchs(Gaussian):
    """Of torch's global generator."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        own.bytes(8 * x.numel())
        return x + self.std * torch.randn(x.shape)


@dataclass(frozen=True)
class Unseeded(Gaussian):
    """Of a generator that nobody seeded: a resumed run draws again."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        own.bytes(8 * x.numel())
        return x + self.std * torch.from_numpy(np.random.default_rng().normal(size=x.numel()))


@dataclass(frozen=True)
class SeedZero(Gaussian):
    """Always the same."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std * torch.from_numpy(np.random.default_rng(0).normal(size=x.numel()))


@dataclass(frozen=True)
class Everyones(Gaussian):
    """Of the round's public stream."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std * torch.from_numpy(shared("noise").normal(tuple(x.shape)))


@dataclass(frozen=True)
class OneWord(Gaussian):
    """Of another generator, seeded by one word of the stream."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        random = np.random.default_rng(own.uint64(1))
        return x + self.std * torch.from_numpy(random.normal(size=x.numel()))


@dataclass(frozen=True)
class LowWord(Gaussian):
    """Of the low 32 bits of as many bytes as it needs."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        seed = int(own.uint64(x.numel())[0]) & 0xFFFFFFFF
        return x + self.std * torch.from_numpy(np.random.default_rng(seed).normal(size=x.numel()))


@dataclass(frozen=True)
class LayersAlike(Gaussian):
    """The first layer's noise in every layer."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        noise = own.normal(tuple(x.shape))
        for start in (144, 416, 552):
            noise[start:] = noise[: len(noise) - start]
        return x + self.std * torch.from_numpy(noise)


@dataclass(frozen=True)
class OffGrid(Laplace):
    """In floating point, where integers are promised."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        size, sign = own.exponential(tuple(x.shape)), own.signs(tuple(x.shape))
        return x + float(self.scale) * torch.from_numpy(size * sign)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Vanishing(Gaussian):
    """In the precision of the vector, shifted so far that the noise is rounded away."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        noise = self.std * torch.from_numpy(own.normal(tuple(x.shape)))
        return (x.float() + noise.float() + 2.0**40) - 2.0**40
