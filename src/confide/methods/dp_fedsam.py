"""DP-FedSAM and DP-FedSAM-topk: sharpness-aware local steps, then clip and Gaussian noise.

Shi, Liu, Wei, Shen, Wang, Tao: Make Landscape Flatter in Differentially Private Federated Learning,
2023, and its journal version with the top-k sparsifier. docs/papers/dp-fedsam.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.engine.rounds import Past, Stages
from confide.local import SAM, Step, between
from confide.methods.dp_fedavg import DPFedAvg, DPFedAvgC
from confide.stages import TopK

PAPER = "Shi et al. 2023"


@dataclass(frozen=True)
class DPFedSAM(DPFedAvg):
    """As printed (Algorithm 1, option I): DP-FedAvg's cohort, clip and share of noise, SAM steps.

    rho: the radius of eq. (7). Clip by eq. (10), noise by eq. (11); the published epsilon is
    Theorem 2's, eq. (16), which DP-FedAvg is given, too.
    """

    rho: float = 0.5
    name: ClassVar = "dp-fedsam"
    paper: ClassVar = PAPER

    def __post_init__(self) -> None:
        """Sensible numbers."""
        super().__post_init__()
        between(self, "rho", 0)

    def step(self) -> Step:
        """Lines 7 to 9: up by eq. (9), then down by eq. (8)."""
        return SAM(self.eta, self.rho, self.momentum, self.decay)


@dataclass(frozen=True)
class DPFedSAMTopK(DPFedSAM):
    """As printed, option II: each client then keeps the share p of its noisy update."""

    p: float = 0.4
    name: ClassVar = "dp-fedsam-topk"

    def sent(self, share: float, d: int) -> Stages:
        """Eq. (12), after the noise."""
        return (*super().sent(share, d), TopK(kept(self.p, d)))


@dataclass(frozen=True)
class DPFedSAMC(DPFedAvgC):
    """Corrected: Poisson cohorts, noise once on the sum, divided by the public q M."""

    rho: float = 0.5
    name: ClassVar = "dp-fedsam-c"
    paper: ClassVar = PAPER

    def __post_init__(self) -> None:
        """Sensible numbers."""
        super().__post_init__()
        between(self, "rho", 0)

    def step(self) -> Step:
        """The same steps."""
        return SAM(self.eta, self.rho, self.momentum, self.decay)


@dataclass(frozen=True)
class DPFedSAMTopKC(DPFedSAMC):
    """Corrected: the server keeps the share p of the noisy mean, which is post-processing."""

    p: float = 0.4
    name: ClassVar = "dp-fedsam-topk-c"

    def after(self, past: Past) -> Stages:
        """Top-k of what is public by then."""
        return (TopK(kept(self.p, past.public.dim)),)


def kept(p: float, d: int) -> int:
    """k = p d coordinates, at least one."""
    if not 0 < p <= 1:
        raise ValueError(f"top-k: p = {p!r}, allowed is above 0 and at most 1.")
    return max(1, round(p * d))
