"""RDP-PFL: meta-learning at the clients, both of its gradients clipped and noised.

Wei, Li, Ma, Ding, Chen, Wu, Tao, Poor: Personalized Federated Learning with Differential Privacy
and Convergence Guarantee, 2023; as a row of UDP-FL's Table 1. What is assumed of it is numbered in
docs/papers/udp-fl-table1.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from confide.aggregates import Mean, MeanOfPresent
from confide.cohorts import Fixed, Sampler
from confide.cohorts import Poisson as Coins
from confide.engine.rounds import Local, Past, Round
from confide.local import Course, Gradient, between
from confide.methods.setting import Setting, wholes
from confide.stages import Clip, Gaussian


@dataclass(frozen=True)
class Meta:
    """First-order meta-learning: descend by the gradient found one inner step of alpha away."""

    eta: float
    alpha: float
    losses = 0

    @property
    def gradients(self) -> int:
        """Two; with alpha 0 it is plain descent."""
        return 2 if self.alpha else 1

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        """Both gradients come out of the same clip and noise."""
        g = gradient(w)
        if self.alpha:
            g = gradient(w - self.alpha * g)
        w.sub_(g, alpha=self.eta)


@dataclass(frozen=True)
class RDPPFL:
    """As printed: L steps on batches of B, N(0, sigma^2 C^2) on each of the two gradient sums.

    A client then takes one more inner step for itself; that personal model never leaves it.
    """

    T: int = 100
    m: int = 10
    L: int = 10
    B: int = 32
    C: float = 1.0
    sigma: float = 2.0
    eta: float = 0.1
    alpha: float = 0.05
    name: ClassVar = "rdp-pfl"
    paper: ClassVar = "Wei et al. 2023"
    noise_field: ClassVar = "sigma"
    setting: ClassVar = Setting(clients=100, data="mnist", model="mlp")

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "m", "L", "B")
        for field in ("C", "eta"):
            between(self, field, 0, above=True)
        for field in ("sigma", "alpha"):
            between(self, field, 0)

    def round(self, past: Past) -> Round | None:
        """The mean of the models that m clients have trained."""
        if past.t == self.T:
            return None
        return Round(
            cohort=Fixed(self.m),
            local=Local(
                Meta(self.eta, self.alpha),
                self.L,
                self.batches(past.public.records),
                example=(Clip(self.C),),
                batch=(Gaussian(self.sigma * self.C),),
                average=Mean(by=self.B),
            ),
            aggregate=MeanOfPresent(),
        )

    def batches(self, records: int) -> Sampler:
        """B of a client's records without replacement."""
        return Fixed(self.B)


@dataclass(frozen=True)
class RDPPFLC(RDPPFL):
    """Corrected: a coin for each record, so that C is the whole distance of two neighbours."""

    name: ClassVar = "rdp-pfl-c"

    def batches(self, records: int) -> Sampler:
        """B records on average."""
        return Coins(min(1.0, self.B / records))
