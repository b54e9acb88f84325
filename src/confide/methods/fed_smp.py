"""Fed-SMP: sparsify the update, clip it, and add noise to the coordinates that are left.

Hu, Guo, Gong: Federated Learning with Sparsified Model Perturbation: Improving Accuracy under
Client-Level Differential Privacy, 2022; in the form in which Shi et al. (DP-FedSAM, 2023) compare
with it. docs/papers/dp-fedsam.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from confide.claims import Claim
from confide.engine.rounds import Past, Stages
from confide.methods.dp_fedavg import DPFedAvg, DPFedAvgC
from confide.methods.dp_fedsam import kept
from confide.methods.setting import wholes
from confide.randomness import Stream
from confide.stages import Clip, Gaussian, Mask, Places, RandK, Shared, Stage, TopK

PAPER = "Hu et al. 2022"


@dataclass(frozen=True)
class FedSMPRandK(DPFedAvg):
    """As printed: public randomness chooses p d coordinates, the same for the whole cohort."""

    p: float = 0.4
    name: ClassVar = "fed-smp-randk"
    paper: ClassVar = PAPER

    def sent(self, share: float, d: int) -> Stages:
        """Mask, clip, noise on the mask."""
        k = kept(self.p, d)
        return (RandK(k), Clip(self.C), Gaussian(share), RandK(k))


@dataclass(frozen=True)
class FedSMPRandKC(DPFedAvgC):
    """Corrected: Poisson cohorts, and noise once on the sum of the masked updates."""

    p: float = 0.4
    name: ClassVar = "fed-smp-randk-c"
    paper: ClassVar = PAPER

    def before(self, past: Past) -> Stages:
        """The mask comes before the clip."""
        return (RandK(kept(self.p, past.public.dim)),)

    def after(self, past: Past) -> Stages:
        """The same mask."""
        return self.before(past)


@dataclass(frozen=True)
class FedSMPTopK(DPFedAvg):
    """As printed: every client keeps its own largest p d coordinates, and noises only those."""

    p: float = 0.4
    name: ClassVar = "fed-smp-topk"
    paper: ClassVar = PAPER

    def sent(self, share: float, d: int) -> Stages:
        """Top-k, clip, noise on what was kept."""
        return (TopK(kept(self.p, d)), Clip(self.C), NoiseOnSupport(share))


@dataclass(frozen=True)
class FedSMPTopKC(DPFedAvgC):
    """Corrected: the largest coordinates of the last complete public aggregate, for everyone.

    Every R-th round releases all coordinates; the rounds after it keep the p d largest of that.
    """

    p: float = 0.4
    R: int = 5
    name: ClassVar = "fed-smp-topk-c"
    paper: ClassVar = PAPER

    def __post_init__(self) -> None:
        """Sensible numbers."""
        super().__post_init__()
        wholes(self, "R")

    @property
    def keep(self) -> int:
        """How many earlier models the masks need."""
        return self.R - 1

    def before(self, past: Past) -> Stages:
        """Nothing in a complete round; else the mask, before the clip."""
        k, since = kept(self.p, past.public.dim), past.t % self.R
        if not since:
            return ()
        if past.model is None:  # a plan
            return (Mask(Places.first(k, past.public.dim)),)
        models = (*past.earlier, past.model)
        change = (models[-since] - models[-since - 1]).abs()
        chosen = torch.zeros_like(change, dtype=torch.bool)
        chosen[change.topk(k).indices] = True
        return (Mask(Places.of(chosen)),)

    def after(self, past: Past) -> Stages:
        """The same mask."""
        return self.before(past)


@dataclass(frozen=True)
class NoiseOnSupport(Stage):
    """x + N(0, std^2) wherever x is not zero; the zeros stay."""

    std: float

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Add noise to what was kept."""
        noise = torch.from_numpy(own.normal(tuple(x.shape))).to(x.device)
        return torch.where(x != 0, x.double() + self.std * noise, 0.0).to(x.dtype)

    def claim(self, c: Claim) -> Claim:
        """The zeros give the client's choice away."""
        return c.forgotten(
            "a client's own data choose the coordinates it sends, and those it leaves out carry "
            "no noise"
        )
