"""DP-FedAvg: clip each client's update, add Gaussian noise.

McMahan, Ramage, Talwar, Zhang: Learning Differentially Private Recurrent Language Models, 2018; in
the form in which Shi et al. (DP-FedSAM, 2023) compare with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from confide.channels import Sum
from confide.cohorts import Epoch, Fixed, Poisson
from confide.engine.rounds import Local, Past, Round, Sizes
from confide.local import SGD
from confide.methods.setting import Setting
from confide.published import dp_fedsam
from confide.published.value import Published
from confide.servers import Add, Momentum
from confide.stages import Clip, Gaussian


@dataclass(frozen=True)
class DPFedAvg:
    """As compared with: a fixed cohort, and a share of the noise in every upload."""

    T: int = 200
    q: float = 0.1
    C: float = 0.2
    sigma: float = 0.95
    E: int = 30
    B: int = 32
    eta: float = 0.1
    momentum: float = 0.5
    decay: float = 0.0005
    name: ClassVar = "dp-fedavg"
    paper: ClassVar = "McMahan et al. 2018"
    noise_field: ClassVar = "sigma"
    setting: ClassVar = Setting(clients=500, data="emnist", model="emnist-cnn", records=177)

    def round(self, past: Past) -> Round | None:
        """Each of the m = q M clients clips its update and adds N(0, sigma^2 C^2 / m)."""
        if past.t == self.T:
            return None
        m = cohort_size(self.q, past.public)
        return Round(
            cohort=Fixed(m),
            local=self.local(),
            upload=(Clip(self.C), Gaussian(self.sigma * self.C / sqrt(m))),
        )

    def local(self) -> Local:
        """E epochs of descent."""
        step = SGD(self.eta, self.momentum, self.decay)
        return Local(step, self.E, Epoch(self.B, partial=True))

    def published(self, sizes: Sizes) -> Published:
        """Shi et al., eq. (16), at their delta = 1/M."""
        return dp_fedsam.eq_16_epsilon(self.q, self.sigma, self.T, 1 / sizes.clients)


@dataclass(frozen=True)
class DPFedAvgC:
    """Corrected: Poisson cohorts, noise once on the sum, divided by the public q M."""

    T: int = 200
    q: float = 0.1
    C: float = 0.2
    sigma: float = 0.95
    E: int = 30
    B: int = 32
    eta: float = 0.1
    momentum: float = 0.5
    decay: float = 0.0005
    beta: float = 0.0
    name: ClassVar = "dp-fedavg-c"
    paper: ClassVar = "McMahan et al. 2018"
    noise_field: ClassVar = "sigma"
    setting: ClassVar = DPFedAvg.setting

    def round(self, past: Past) -> Round | None:
        """Clients clip; whoever adds them up adds N(0, sigma^2 C^2) once, also to nothing."""
        if past.t == self.T:
            return None
        expected = self.q * past.public.clients
        step = SGD(self.eta, self.momentum, self.decay)
        return Round(
            cohort=Poisson(self.q),
            local=Local(step, self.E, Epoch(self.B, partial=True)),
            upload=(Clip(self.C),),
            channel=Sum(),
            publish=(Gaussian(self.sigma * self.C / expected),),
            server=Momentum(self.beta) if self.beta else Add(),
        )


def cohort_size(q: float, sizes: Sizes) -> int:
    """m = q M, at least one client."""
    return max(1, round(q * sizes.clients))
