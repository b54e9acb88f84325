"""DP-FedAvg with BLUR, a bounded local update regularisation, and LUS, a local sparsification.

Cheng, Wang, Zhang, Cheng: Differentially Private Federated Learning with Local Regularization and
Sparsification, 2022; in the form in which Shi et al. (DP-FedSAM, 2023) compare with them.
docs/papers/dp-fedsam.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.engine.rounds import Past, Stages
from confide.local import Blur, Step
from confide.methods.dp_fedavg import DPFedAvg, DPFedAvgC
from confide.methods.dp_fedsam import kept
from confide.stages import Clip, Gaussian, TopK

PAPER = "Cheng et al. 2022"


@dataclass(frozen=True)
class DPFedAvgBlur(DPFedAvg):
    """As printed: a pull back once the update is longer than C; clip and noise as before."""

    lam: float = 0.1
    name: ClassVar = "dp-fedavg-blur"
    paper: ClassVar = PAPER

    def step(self) -> Step:
        """Descent on the loss plus lam/2 (‖w - w_t‖^2 - C^2)+."""
        return Blur(self.eta, self.lam, self.C, self.momentum, self.decay)


@dataclass(frozen=True)
class DPFedAvgBlurC(DPFedAvgC):
    """Corrected: Poisson cohorts, and noise once on the sum."""

    lam: float = 0.1
    name: ClassVar = "dp-fedavg-blur-c"
    paper: ClassVar = PAPER

    def step(self) -> Step:
        """The same steps."""
        return Blur(self.eta, self.lam, self.C, self.momentum, self.decay)


@dataclass(frozen=True)
class DPFedAvgBlurs(DPFedAvgBlur):
    """As printed: with BLUR, each client keeps its largest p d coordinates before the clip."""

    p: float = 0.4
    name: ClassVar = "dp-fedavg-blurs"

    def sent(self, share: float, d: int) -> Stages:
        """Top-k first: the noise covers all d coordinates, so the choice does not show."""
        return (TopK(kept(self.p, d)), Clip(self.C), Gaussian(share))


@dataclass(frozen=True)
class DPFedAvgBlursC(DPFedAvgBlurC):
    """Corrected: Poisson cohorts, and noise once on all coordinates of the sum."""

    p: float = 0.4
    name: ClassVar = "dp-fedavg-blurs-c"

    def before(self, past: Past) -> Stages:
        """Top-k before the clip."""
        return (TopK(kept(self.p, past.public.dim)),)
