"""DP-FedSAM and DP-FedSAM-topk: sharpness-aware local steps, then clip and Gaussian noise.

Shi, Liu, Wei, Shen, Wang, Tao: Make Landscape Flatter in Differentially Private Federated Learning,
2023, and its journal version with the top-k sparsifier. docs/papers/dp-fedsam.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from confide.channels import Sum
from confide.cohorts import Epoch, Fixed, Poisson
from confide.engine.rounds import Local, Past, Round, Sizes
from confide.local import SAM, between
from confide.methods.dp_fedavg import check, cohort_size
from confide.methods.setting import Setting
from confide.published import dp_fedsam
from confide.published.value import Published
from confide.servers import Add, Momentum
from confide.stages import Clip, Gaussian, Stage, TopK

PAPER = "Shi et al. 2023"


@dataclass(frozen=True)
class DPFedSAM:
    """As printed (Algorithm 1, option I): a fixed cohort, a share of the noise in every upload."""

    T: int = 300
    q: float = 0.1
    C: float = 0.2
    sigma: float = 0.95
    rho: float = 0.5
    E: int = 30
    B: int = 50
    eta: float = 0.1
    momentum: float = 0.5
    decay: float = 0.0005
    name: ClassVar = "dp-fedsam"
    paper: ClassVar = PAPER
    noise_field: ClassVar = "sigma"
    setting: ClassVar = Setting(clients=500, data="cifar10", model="resnet18", records=100)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check(self)
        between(self, "rho", 0)

    def round(self, past: Past) -> Round | None:
        """Lines 3 to 16: SAM steps, clip by eq. (10), noise by eq. (11), mean over m."""
        if past.t == self.T:
            return None
        m = cohort_size(self.q, past.public)
        return Round(
            cohort=Fixed(m),
            local=Local(
                SAM(self.eta, self.rho, self.momentum, self.decay),
                self.E,
                Epoch(self.B, partial=True),
            ),
            upload=(
                Clip(self.C),
                Gaussian(self.sigma * self.C / sqrt(m)),
                *self.option(past.public.dim),
            ),
        )

    def option(self, d: int) -> tuple[Stage, ...]:
        """Option I: nothing is left out."""
        return ()

    def published(self, sizes: Sizes) -> Published | None:
        """Theorem 2, eq. (16), at the paper's delta = 1/M; without noise it has no value."""
        if not self.sigma:
            return None
        return dp_fedsam.eq_16_epsilon(self.q, self.sigma, self.T, 1 / sizes.clients)


@dataclass(frozen=True)
class DPFedSAMTopK(DPFedSAM):
    """As printed, option II: each client then keeps the share p of its noisy update."""

    p: float = 0.4
    name: ClassVar = "dp-fedsam-topk"

    def option(self, d: int) -> tuple[Stage, ...]:
        """Eq. (12)."""
        return (TopK(kept(self.p, d)),)


@dataclass(frozen=True)
class DPFedSAMC:
    """Corrected: Poisson cohorts, noise once on the sum, divided by the public q M."""

    T: int = 300
    q: float = 0.1
    C: float = 0.2
    sigma: float = 0.95
    rho: float = 0.5
    E: int = 30
    B: int = 50
    eta: float = 0.1
    momentum: float = 0.5
    decay: float = 0.0005
    beta: float = 0.0
    name: ClassVar = "dp-fedsam-c"
    paper: ClassVar = PAPER
    noise_field: ClassVar = "sigma"
    setting: ClassVar = DPFedSAM.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check(self)
        between(self, "rho", 0)

    def round(self, past: Past) -> Round | None:
        """SAM steps and clip at the clients, N(0, sigma^2 C^2) once on their sum."""
        if past.t == self.T:
            return None
        expected = self.q * past.public.clients
        return Round(
            cohort=Poisson(self.q),
            local=Local(
                SAM(self.eta, self.rho, self.momentum, self.decay),
                self.E,
                Epoch(self.B, partial=True),
            ),
            upload=(Clip(self.C),),
            channel=Sum(),
            publish=(
                Gaussian(self.sigma * self.C / expected),
                *self.option(past.public.dim),
            ),
            server=Momentum(self.beta) if self.beta else Add(),
        )

    def option(self, d: int) -> tuple[Stage, ...]:
        """Nothing is left out."""
        return ()


@dataclass(frozen=True)
class DPFedSAMTopKC(DPFedSAMC):
    """Corrected: the server keeps the share p of the noisy mean, which is post-processing."""

    p: float = 0.4
    name: ClassVar = "dp-fedsam-topk-c"

    def option(self, d: int) -> tuple[Stage, ...]:
        """Top-k of what is public by then."""
        return (TopK(kept(self.p, d)),)


def kept(p: float, d: int) -> int:
    """k = p d coordinates, at least one."""
    if not 0 < p <= 1:
        raise ValueError(f"top-k: p = {p!r}, allowed is above 0 and at most 1.")
    return max(1, round(p * d))
