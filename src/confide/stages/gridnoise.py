"""Noises on an integer grid, drawn exactly: discrete Gaussian, Skellam, binomial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.accounting.events import DiscreteGaussianDpEvent
from confide.claims import Claim, Noise
from confide.randomness import Stream
from confide.randomness.exact import BinomialLaw
from confide.randomness.exact import DiscreteGaussian as DiscreteGaussianLaw
from confide.randomness.exact import Skellam as SkellamLaw
from confide.stages.noises import unbounded
from confide.stages.stage import Shared, Stage, at_least, floating, positive

OFF_GRID = "the vector it receives is not on its grid; put Quantize with the same step before it"


class Law(Protocol):
    """An exact sampler of integers."""

    def draw(self, stream: Stream, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Independent draws."""
        ...


@dataclass(frozen=True)
class DiscreteGaussian(Stage):
    """x + step N_Z(0, sigma^2): the Gaussian's density on the integers.

    Proof: docs/proofs/noises.md. Sums of discrete Gaussians are not discrete Gaussian, so shares
    of several clients are not added up; Skellam is the noise for that.
    """

    step: float
    sigma: float  # in grid steps

    def __post_init__(self) -> None:
        """A grid and some noise."""
        positive(self, "step")
        positive(self, "sigma")

    @property
    def grid_words(self) -> str:
        """For the statement."""
        return f"exact integers on a grid of {self.step:.6g}"

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Add noise."""
        return plus_on_grid(self, x, self.step, DiscreteGaussianLaw(self.sigma), own)

    def claim(self, c: Claim) -> Claim:
        """The l2 distance in grid steps."""
        out = c.noised(None, keeps_grid=on_grid(c, self.step))
        if not on_grid(c, self.step):
            return out.uncovered(f"DiscreteGaussian: {OFF_GRID}")
        if c.l2 == float("inf"):
            return out.uncovered(unbounded(self, "l2"))
        l2 = c.distance(c.l2) / self.step
        return out.released(DiscreteGaussianDpEvent(self.sigma, l2, c.dim))


@dataclass(frozen=True)
class Skellam(Stage):
    """x + step (Poisson(variance/2) - Poisson(variance/2)).

    Proof: docs/proofs/noises.md. Closed under sums: shares of several clients add their variances.
    """

    step: float
    variance: float  # in squared grid steps

    def __post_init__(self) -> None:
        """A grid and some noise."""
        positive(self, "step")
        positive(self, "variance")

    @property
    def grid_words(self) -> str:
        """For the statement."""
        return f"exact integers on a grid of {self.step:.6g}"

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Add noise."""
        return plus_on_grid(self, x, self.step, SkellamLaw(self.variance), own)

    def claim(self, c: Claim) -> Claim:
        """The l1 and l2 distances in grid steps."""
        return covered(self, c, self.step, Noise("skellam", self.variance))


@dataclass(frozen=True)
class Binomial(Stage):
    """x + step (Bin(trials, p) - trials p), p = 1/2.

    Proof: the exact hockey stick for a scalar, cpSGD's Theorem 1 for a vector (Agarwal et al.,
    2018); no Renyi divergence is finite, as the two worlds' ranges differ. Closed under sums.
    """

    step: float
    trials: int

    def __post_init__(self) -> None:
        """A grid and an even number of trials, so that the centred noise is on it."""
        positive(self, "step")
        at_least(self, "trials", 2)
        if self.trials % 2:
            raise ValueError(f"Binomial: trials = {self.trials}, allowed are even numbers.")

    @property
    def grid_words(self) -> str:
        """For the statement."""
        return f"exact integers on a grid of {self.step:.6g}"

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Add noise."""
        return plus_on_grid(self, x, self.step, BinomialLaw(self.trials, 0.5), own)

    def claim(self, c: Claim) -> Claim:
        """All three distances in grid steps."""
        return covered(self, c, self.step, Noise("binomial", self.trials))


def on_grid(c: Claim, step: float) -> bool:
    """Whether the vector lies on the grid of this step (arithmetic on the step may round)."""
    return c.grid is not None and abs(c.grid / step - 1) < 1e-12


def covered(stage: Stage, c: Claim, step: float, noise: Noise) -> Claim:
    """The claim after grid noise of a law that is closed under sums."""
    if not on_grid(c, step):
        out = c.noised(None)
        return out.uncovered(f"{type(stage).__name__}: {OFF_GRID}")
    out = c.noised(noise, keeps_grid=True)
    total = out.noise if out.noise is not None and out.noise.law == noise.law else noise
    event = out.event_of(total)
    return out.released(event) if event else out.uncovered(unbounded(stage, "l2"))


def plus_on_grid(stage: Stage, x: Tensor, step: float, law: Law, own: Stream) -> Tensor:
    """The vector's grid position plus integer noise, in double; refuses a vector off the grid."""
    position = floating(stage, x).double() / step
    whole = position.round()
    if not torch.all((position - whole).abs() <= 1e-6):
        raise ValueError(f"{type(stage).__name__}: {OFF_GRID}.")
    noise = torch.from_numpy(law.draw(own, tuple(x.shape))).to(x.device)
    return (whole + noise).mul(step)
