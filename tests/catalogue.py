"""Every stage at small size, for batteries that walk through orders of stages."""

from dataclasses import dataclass

import torch
from torch import Tensor

from confide.claims import Claim
from confide.methods.dp_fedags import NoiseAboveThreshold
from confide.randomness import Key, Stream
from confide.stages import (
    Assume,
    BallRandomizer,
    Binomial,
    Clip,
    ClipLayers,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Mask,
    Ordinal,
    Quantize,
    RadialStaircase,
    RandK,
    RandomizedResponse,
    Rotate,
    Scale,
    Shared,
    Skellam,
    Stage,
    Staircase,
    TopK,
    TwoPoint,
)

DIM = 8
STEP = 0.25


@dataclass(frozen=True)
class Cube(Stage):
    """A stage without a proof: it can stretch any distance."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x**3


CLIPS: tuple[Stage, ...] = (
    Clip(1.0),
    Clip(1.0, p=1),
    Clip(0.5, p=float("inf")),
    ClipLayers(0.5, (3, 5)),
    ClipLayers(0.5, (3, 5), p=1),
)
MAPS: tuple[Stage, ...] = (
    Scale(0.5),
    TopK(2),
    RandK(3),
    Mask((0, 2, 5)),
    Rotate(),
    Quantize(9, 1.0, norm=1.0),
    Cube(),
    NoiseAboveThreshold(rank=3, alpha=0.5, beta=0.5, std=1.0),
)
UNPROVED = (Cube, NoiseAboveThreshold)
NOISES: tuple[Stage, ...] = (
    Gaussian(0.8),
    Laplace(0.7),
    Staircase(1.0, 4.0),
    RadialStaircase(1.0, 4.0),
    DiscreteGaussian(STEP, 4.0),
    Skellam(STEP, 30.0),
    Binomial(STEP, 4000),
)
RANDOMIZERS: tuple[Stage, ...] = (
    RandomizedResponse(3, 1.0, 0.5),
    TwoPoint(1.0, 0.5),
    Ordinal(5, 1.0, 0.5),
    BallRandomizer(1.0, 0.5),
)
ASSUMPTION = Assume("eq. (13)", l2=1.0)
STAGES: tuple[Stage, ...] = (*CLIPS, *MAPS, *NOISES, *RANDOMIZERS, ASSUMPTION)

KEY = Key.from_seed(20261118)


def shared(purpose: str) -> Stream:
    """Public randomness of one round."""
    return KEY.stream(0, None, purpose)


def own(place: int) -> Stream:
    """One client's secret randomness at one place of its pipeline."""
    return KEY.stream(0, 7, f"stage {place}")


def run(stages: tuple[Stage, ...], x: Tensor) -> Tensor:
    """Apply stages to one client's vector; the same randomness whenever it is called."""
    for place, stage in enumerate(stages):
        x = stage(x, shared, own(place))
    return x


def fold(stages: tuple[Stage, ...], c: Claim) -> Claim:
    """The claim after stages."""
    for stage in stages:
        c = stage.claim(c)
    return c


def inputs() -> list[Tensor]:
    """Vectors that try to break bounds: zero, tiny, huge, sparse, dense, not finite."""
    g = torch.Generator().manual_seed(5)
    unit = torch.zeros(DIM)
    unit[0] = 1.0
    dense = torch.full((DIM,), 1 / DIM**0.5)
    random = [torch.randn(DIM, generator=g) * 10.0**k for k in (-3, -1, 0, 1, 3)]
    broken = torch.tensor([float("nan"), float("inf"), -float("inf"), 1, -2, 0, 3, 1e30])
    return [torch.zeros(DIM), unit, -unit, unit * 1e6, -dense * 1e6, dense, *random, broken]
