"""Stages that claim what the right ones prove and do something else."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from confide.randomness import Key, Stream
from confide.stages import (
    Binomial,
    Clip,
    Gaussian,
    Laplace,
    RandomizedResponse,
    Rotate,
    Scale,
    Shared,
    Skellam,
    TwoPoint,
)


def normal(own: Stream, x: Tensor) -> Tensor:
    return torch.from_numpy(own.normal(tuple(x.shape)))


@dataclass(frozen=True)
class Forgotten(Gaussian):
    """No noise."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x


@dataclass(frozen=True)
class VarianceForDeviation(Gaussian):
    """The variance where the deviation belongs."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std**2 * normal(own, x)


@dataclass(frozen=True)
class LengthForDeviation(Gaussian):
    """Noise of length sigma in all, instead of sigma in each coordinate."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std * normal(own, x) / len(x) ** 0.5


@dataclass(frozen=True)
class OneNumber(Gaussian):
    """One draw for all coordinates."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std * normal(own, x[:1])


@dataclass(frozen=True)
class LayersAlike(Gaussian):
    """The generator is seeded anew for each layer."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std * normal(own, x[: len(x) // 8]).repeat(8)


@dataclass(frozen=True)
class FixedSeed(Gaussian):
    """The same noise whenever it is called."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std * normal(Key.from_seed(0).stream(0, 0, "noise"), x)


@dataclass(frozen=True)
class PublicNoise(Gaussian):
    """Noise from the stream that everybody has."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std * normal(shared("noise"), x)


@dataclass(frozen=True)
class AsLongAsTheVector(Gaussian):
    """Noise in units of the vector's own length."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std * x.norm() * normal(own, x)


@dataclass(frozen=True)
class Multiplied(Gaussian):
    """x (1 + noise) for x + noise."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x * (1 + self.std * normal(own, x))


@dataclass(frozen=True)
class OnlyWhereNotZero(Gaussian):
    """A sparse vector stays sparse."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return torch.where(x == 0, x, x + self.std * normal(own, x))


@dataclass(frozen=True)
class OwnLargest(Gaussian):
    """Sends the entries that are largest in the client's own vector, with noise, and zeros."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        keep = x.abs().topk(len(x) // 4).indices
        noisy = x + self.std * normal(own, x)
        return torch.zeros_like(noisy).index_copy(0, keep, noisy[keep])


@dataclass(frozen=True)
class OnlyIfClipped(Gaussian):
    """Noise only for vectors that the clip has shortened."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std * normal(own, x) if float(x.norm()) > 0.99 else x


@dataclass(frozen=True)
class NotForNobody(Gaussian):
    """An empty cohort's sum is published as it is."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std * normal(own, x) if bool(x.any()) else x


@dataclass(frozen=True)
class Uniform(Gaussian):
    """Another law of the same variance, which ends somewhere."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        width = self.std * 12**0.5
        return x + width * (torch.from_numpy(own.uniform(tuple(x.shape))) - 0.5)


@dataclass(frozen=True)
class CutOff(Gaussian):
    """Large noise is cut, so that the model does not suffer."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x + self.std * normal(own, x).clamp(-1, 1)


@dataclass(frozen=True)
class OneSided(Laplace):
    """The sign is forgotten."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        noise = super().__call__(torch.zeros_like(x), shared, own)
        return x + noise.abs()


@dataclass(frozen=True)
class InverseScale(Laplace):
    """epsilon / Delta for Delta / epsilon."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return Laplace(1 / self.scale)(x, shared, own)


@dataclass(frozen=True)
class FewerTrials(Binomial):
    """The trials are shared by the clients, and nobody adds the others'."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return Binomial(self.step, self.trials // 512 * 2)(x, shared, own)


@dataclass(frozen=True)
class WrongUnits(Skellam):
    """The variance of the steps is taken for that of the values."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return Skellam(self.step, self.variance * self.step**3)(x, shared, own)


@dataclass(frozen=True)
class LiesTooSeldom(RandomizedResponse):
    """epsilon for every entry, where it was for all of them."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return RandomizedResponse(self.k, self.C, self.epsilon * len(x))(x, shared, own)


@dataclass(frozen=True)
class TooSure(TwoPoint):
    """The bit follows the sign of the entry."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return TwoPoint(self.C, self.epsilon)(x.sign() * self.C * 4, shared, own) * x.sign().abs()


@dataclass(frozen=True)
class NaNPasses(Clip):
    """min(1, C / norm) is no number for no number."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x * min(1.0, self.C / max(float(x.norm()), 1e-300))


@dataclass(frozen=True)
class EveryEntry(Clip):
    """Values are clipped, not the norm."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x.nan_to_num().clamp(-self.C, self.C)


@dataclass(frozen=True)
class FirstLayer(Clip):
    """The norm is that of the first layer."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        x = x.nan_to_num()
        return x * min(1.0, self.C / max(float(x[: len(x) // 8].norm()), 1e-12))


@dataclass(frozen=True)
class MeanLength(Clip):
    """The root of the mean square is taken for the norm."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        x = x.nan_to_num()
        return x * min(1.0, self.C / max(float(x.norm()) / len(x) ** 0.5, 1e-12))


@dataclass(frozen=True)
class ClipsCopy(Clip):
    """Clips a copy and goes on with the vector itself, where it is longer than twice C."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        x = x.nan_to_num()
        return x if float(x.norm()) > 2 * self.C else super().__call__(x, shared, own)


@dataclass(frozen=True)
class NotOrthonormal(Rotate):
    """The transform without 1 / sqrt(d)."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        out = super().__call__(x, shared, own)
        return out * len(out) ** 0.5


@dataclass(frozen=True)
class RoundsUp(Scale):
    """Rounds away from zero to a coarse grid, and claims that nothing grows."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x.sign() * torch.ceil(x.abs() * 2) / 2


@dataclass(frozen=True)
class Louder(Scale):
    """The server's learning rate is applied before the noise."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return 4 * super().__call__(x, shared, own)
