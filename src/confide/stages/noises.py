"""Continuous noises: Gaussian, Laplace, staircase."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from confide.accounting import staircase
from confide.accounting.events import (
    DpEvent,
    GaussianDpEvent,
    LaplaceBothDpEvent,
    LaplaceDpEvent,
    LaplaceL2DpEvent,
    PureDpEvent,
    StaircaseDpEvent,
)
from confide.claims import Claim, Noise
from confide.randomness import Stream
from confide.randomness.exact import LAPLACE_SLACK, LAPLACE_STEP, GriddedLaplace
from confide.randomness.floating import radial_staircase
from confide.randomness.floating import staircase as draw_staircase
from confide.stages.bounds import finite, number
from confide.stages.normal import normal, pieces
from confide.stages.stage import PerClient, Shared, Stage, floating, positive

NO_GRID = "floating point, no grid"
SUMMED = "real arithmetic: what the noise is added to was summed up in floating point, which rounds"
FLOATING = "real arithmetic: noise is drawn in floating point, whose gaps could tell values apart"


@dataclass(frozen=True)
class Gaussian(Stage):
    """x + N(0, std^2) in every coordinate.

    Proof: the loss between two worlds depends only on the l2 distance S of s, because the noise is
    rotation invariant: exactly the pair N(0, 1), N(S/std, 1). Earlier Gaussian noise adds its
    variance, as long as only linear maps came between.
    """

    std: float | PerClient

    def __post_init__(self) -> None:
        """Zero means no noise, and proves nothing."""
        positive(self, "std", zero=True)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Add noise."""
        x, std = floating(self, x).contiguous(), number(self.std)
        out = torch.empty_like(x)
        for part, to in zip(pieces(x), pieces(out), strict=True):
            to.copy_(normal(own, part).mul_(std).add_(part))
        return out

    def claim(self, c: Claim) -> Claim:
        """The event of the total variance over the distance."""
        std = number(self.std)
        if std == 0:
            return c
        out = c.noised(Noise("gaussian", std**2)).assuming(FLOATING)
        event = out.event_of(out.noise) if out.noise and out.noise.law == "gaussian" else None
        event = event or out.event_of(Noise("gaussian", std**2))
        return out.released(event) if event else out.uncovered(unbounded(self, "l2"))

    def unit_event(self) -> DpEvent:
        """The event at sensitivity 1."""
        return GaussianDpEvent(number(self.std))

    grid_words = NO_GRID


@dataclass(frozen=True)
class Laplace(Stage):
    """x + Laplace(scale) in every coordinate, on a grid so fine and exact that no gap tells.

    Proof: docs/proofs/noises.md, Theorem 2 for an l1 bound, Theorem 3 for an l2 bound; the grid
    costs the factor LAPLACE_SLACK in every norm (docs/proofs/sampling-noise.md) of a vector that is
    rounded towards zero by itself; on a sum, one grid step in each coordinate comes first.
    """

    scale: float | PerClient

    def __post_init__(self) -> None:
        """Zero means no noise, and proves nothing."""
        positive(self, "scale", zero=True)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Round towards zero to the grid, add exact discrete noise."""
        x = floating(self, x)
        scale = number(self.scale)
        if scale == 0:
            return x
        values = finite(x.detach().cpu().double()).numpy()
        return torch.from_numpy(GriddedLaplace(scale).add(own, values)).to(x)

    def claim(self, c: Claim) -> Claim:
        """The row of the norm that is bounded; both when both are."""
        scale = number(self.scale)
        if scale == 0:
            return c
        out = c.noised(None)
        if c.l2 == inf:
            return out.uncovered(unbounded(self, "l1 or l2"))
        l1, l2, linf = (c.distance(b) for b in (c.l1, c.l2, c.linf))
        if c.pooled or c.noisy:
            # What is rounded is more than s: two values can fall a grid step further apart.
            if c.dim is None:
                return out.uncovered("Laplace on a sum proves nothing in unknown dimension")
            step = scale * LAPLACE_STEP
            l1, l2, linf = l1 + c.dim * step, l2 + c.dim**0.5 * step, linf + step
            out = out.assuming(SUMMED)
        l1, l2, linf = (distance * LAPLACE_SLACK / scale for distance in (l1, l2, linf))
        return out.released(laplace_event(l1, l2, c.dim), per_coordinate=linf)

    def unit_event(self) -> DpEvent:
        """The event at l1 sensitivity 1."""
        return LaplaceDpEvent(number(self.scale))

    @property
    def grid_words(self) -> str:
        """For the statement."""
        return "exact integers on a grid of at most 2^-40 of its scale"


def laplace_event(l1: float, l2: float, dim: int | None) -> DpEvent:
    """Distances are in units of the scale; an l1 bound that only repeats the l2 one is left out."""
    if l1 <= l2:
        return LaplaceDpEvent(1 / l1)
    if l1 == inf or (dim is not None and l1 >= l2 * dim**0.5 * (1 - 1e-9)):
        return LaplaceL2DpEvent(1 / l2, dim)
    return LaplaceBothDpEvent(1 / l1, 1 / l2, dim)


@dataclass(frozen=True)
class Staircase(Stage):
    """x + staircase noise in every coordinate, with step `delta` and ratio e^epsilon.

    Proof: docs/proofs/noises.md, Theorem 1 (a scalar: three exact atoms), Theorems 4 and 5 (a
    vector: Renyi at equal spread, for an l1 or l2 distance of at most one step).
    """

    epsilon: float | PerClient
    delta: float
    gamma: float | None = None  # None: least variance

    def __post_init__(self) -> None:
        """The law exists."""
        check_staircase(self, self.epsilon, self.delta, self.gamma)

    grid_words = NO_GRID

    @property
    def fall(self) -> float:
        """Where in a step the density falls."""
        return fall(number(self.epsilon), self.gamma)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Add noise."""
        x = floating(self, x)
        shape, epsilon = tuple(x.shape), number(self.epsilon)
        noise = draw_staircase(own, shape, epsilon, self.delta, self.fall)
        return (x.double() + torch.from_numpy(noise).to(x.device)).to(x.dtype)

    def claim(self, c: Claim) -> Claim:
        """The l1 row if the l1 distance is within a step, otherwise the l2 row if that one is."""
        out = c.noised(None).assuming(FLOATING)
        l1, l2, linf = (c.distance(b) / self.delta for b in (c.l1, c.l2, c.linf))
        if l2 > 1:
            return out.uncovered(beyond(self, "l1 or l2"))
        shift, norm = (l1, "l1") if l1 <= 1 else (l2, "l2")
        if norm == "l2" and c.dim is None:
            return out.uncovered("Staircase under an l2 bound proves nothing in unknown dimension")
        epsilon = number(self.epsilon)
        event = StaircaseDpEvent(epsilon, self.fall, shift, norm, c.dim)
        return out.released(event, per_coordinate=epsilon if linf <= 1 else inf)

    def unit_event(self) -> DpEvent:
        """The event of a scalar at sensitivity 1."""
        if self.delta < 1:
            raise ValueError(f"Staircase: delta = {self.delta}, allowed is at least 1 at S = 1.")
        return StaircaseDpEvent(number(self.epsilon), self.fall, 1 / self.delta)


@dataclass(frozen=True)
class RadialStaircase(Stage):
    """x + noise whose joint density falls by e^-epsilon per step `delta` of the l1 norm.

    Proof: an l1 distance of at most one step changes the level of ‖x‖_1 by at most one, so the
    densities' ratio is at most e^epsilon everywhere: pure epsilon-DP.
    """

    epsilon: float | PerClient
    delta: float
    gamma: float | None = None

    def __post_init__(self) -> None:
        """The law exists."""
        check_staircase(self, self.epsilon, self.delta, self.gamma)

    grid_words = NO_GRID

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Add noise."""
        x = floating(self, x)
        epsilon = number(self.epsilon)
        gamma = fall(epsilon, self.gamma)
        noise = radial_staircase(own, x.numel(), epsilon, self.delta, gamma)
        return (x.double() + torch.from_numpy(noise).to(x.device).view(x.shape)).to(x.dtype)

    def claim(self, c: Claim) -> Claim:
        """Pure epsilon within one step."""
        out = c.noised(None).assuming(FLOATING)
        if c.distance(c.l1) > self.delta:
            return out.uncovered(beyond(self, "l1"))
        return out.released(PureDpEvent(number(self.epsilon)))

    def unit_event(self) -> DpEvent:
        """The event at l1 sensitivity 1."""
        if self.delta < 1:
            raise ValueError(
                f"RadialStaircase: delta = {self.delta}, allowed is at least 1 at S = 1."
            )
        return PureDpEvent(number(self.epsilon))


def fall(epsilon: float, gamma: float | None) -> float:
    """The given gamma, or the one of least variance."""
    return staircase.optimal_gamma(epsilon, "l2") if gamma is None else gamma


def check_staircase(
    stage: Stage, epsilon: float | PerClient, delta: float, gamma: float | None
) -> None:
    """Refuse parameters that give no density."""
    positive(stage, "epsilon")
    positive(stage, "delta")
    if gamma is not None and not 0 < gamma < 1:
        raise ValueError(
            f"{type(stage).__name__}: gamma = {gamma!r}, allowed is between 0 and 1, or None."
        )


def unbounded(stage: Stage, norm: str) -> str:
    """Why this noise proves nothing."""
    name = type(stage).__name__
    return f"{name}: the vector it receives has no {norm} bound; put a Clip before it"


def beyond(stage: Stage, norm: str) -> str:
    """Why a staircase of this step proves nothing."""
    name = type(stage).__name__
    return f"{name}: the {norm} distance of two neighbours is not within its step delta"
