"""DP-FedAvg: clip each client's update, add Gaussian noise.

McMahan, Ramage, Talwar, Zhang: Learning Differentially Private Recurrent Language Models, 2018; in
the form in which Shi et al. (DP-FedSAM, 2023) compare with it. docs/papers/dp-fedsam.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from confide.channels import Sum
from confide.cohorts import Epoch, Fixed, Poisson
from confide.engine.rounds import Local, Past, Round, Sizes, Stages
from confide.local import SGD, Step, between
from confide.methods.setting import Setting, wholes
from confide.published import dp_fedsam
from confide.published.value import Published
from confide.servers import Add, Momentum
from confide.stages import Clip, Gaussian


@dataclass(frozen=True)
class DPFedAvg:
    """As compared with: a fixed cohort, and a share of the noise in every upload."""

    T: int = 300
    q: float = 0.1
    C: float = 0.2
    sigma: float = 0.95
    E: int = 30
    B: int = 50
    eta: float = 0.1
    momentum: float = 0.5
    decay: float = 0.0005
    name: ClassVar = "dp-fedavg"
    paper: ClassVar = "McMahan et al. 2018"
    noise_field: ClassVar = "sigma"
    setting: ClassVar = Setting(clients=500, data="cifar10", model="resnet18", records=100)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check(self)

    def round(self, past: Past) -> Round | None:
        """Each of the m = q M clients clips its update and adds N(0, sigma^2 C^2 / m)."""
        if past.t == self.T:
            return None
        m = cohort_size(self.q, past.public)
        return Round(
            cohort=Fixed(m),
            local=Local(self.step(), self.E, Epoch(self.B, partial=True)),
            upload=self.sent(self.sigma * self.C / sqrt(m), past.public.dim),
        )

    def step(self) -> Step:
        """Plain descent."""
        return SGD(self.eta, self.momentum, self.decay)

    def sent(self, share: float, d: int) -> Stages:
        """What a client does to its update; `share` is its part of the noise."""
        return (Clip(self.C), Gaussian(share))

    def published(self, sizes: Sizes) -> Published | None:
        """Shi et al., eq. (16), at their delta = 1/M; without noise it has no value."""
        if not self.sigma:
            return None
        return dp_fedsam.eq_16_epsilon(self.q, self.sigma, self.T, 1 / sizes.clients)


@dataclass(frozen=True)
class DPFedAvgC:
    """Corrected: Poisson cohorts, noise once on the sum, divided by the public q M."""

    T: int = 300
    q: float = 0.1
    C: float = 0.2
    sigma: float = 0.95
    E: int = 30
    B: int = 50
    eta: float = 0.1
    momentum: float = 0.5
    decay: float = 0.0005
    beta: float = 0.0
    name: ClassVar = "dp-fedavg-c"
    paper: ClassVar = "McMahan et al. 2018"
    noise_field: ClassVar = "sigma"
    setting: ClassVar = DPFedAvg.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check(self)

    def round(self, past: Past) -> Round | None:
        """Clients clip; whoever adds them up adds N(0, sigma^2 C^2) once, also to nothing."""
        if past.t == self.T:
            return None
        expected = self.q * past.public.clients
        return Round(
            cohort=Poisson(self.q),
            local=Local(self.step(), self.E, Epoch(self.B, partial=True)),
            upload=(*self.before(past), Clip(self.C)),
            channel=Sum(),
            publish=(Gaussian(self.sigma * self.C / expected), *self.after(past)),
            server=Momentum(self.beta) if self.beta else Add(),
        )

    def step(self) -> Step:
        """Plain descent."""
        return SGD(self.eta, self.momentum, self.decay)

    def before(self, past: Past) -> Stages:
        """What a client does to its update before the clip."""
        return ()

    def after(self, past: Past) -> Stages:
        """What is done to the noisy mean, which is post-processing."""
        return ()


def check(method: object) -> None:
    """Refuse settings of a method with clipped updates that make no sense."""
    wholes(method, "T", "E", "B")
    between(method, "q", 0, 1, above=True)
    between(method, "C", 0, above=True)
    between(method, "sigma", 0)


def cohort_size(q: float, sizes: Sizes) -> int:
    """m = q M, at least one client."""
    return max(1, round(q * sizes.clients))
