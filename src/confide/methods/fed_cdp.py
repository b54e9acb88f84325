"""Fed-CDP: per-example clipping and noise inside of the local steps.

Wei, Liu, Wu, Su, Iyengar: Gradient-Leakage Resilient Federated Learning, 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from confide.aggregates import Mean
from confide.cohorts import All, Cohort, Fixed, Poisson
from confide.engine.rounds import Local, Past, Round
from confide.local import SGD
from confide.methods.setting import Setting
from confide.stages import ClipLayers, Gaussian


@dataclass(frozen=True)
class FedCDP:
    """As printed (Algorithm 2): every layer of every example's gradient is clipped and noised."""

    T: int = 100
    K_t: int = 100
    L: int = 100
    B: int = 5
    C: float = 4.0
    sigma: float = 6.0
    eta: float = 0.1
    name: ClassVar = "fed-cdp"
    paper: ClassVar = "Wei et al. 2021"
    noise_field: ClassVar = "sigma"
    setting: ClassVar = Setting(clients=1000, data="mnist", model="cnn2", records=500)

    def round(self, past: Past) -> Round | None:
        """Lines 4 to 20: L steps with mean_j (clip(g_j) + N(0, sigma^2 C^2)), mean over K_t."""
        if past.t == self.T:
            return None
        return Round(
            cohort=Fixed(self.K_t),
            local=Local(
                SGD(self.eta),
                self.L,
                Fixed(self.B),
                example=(
                    ClipLayers(self.bound(past.t), past.public.layers),
                    Gaussian(self.sigma * self.bound(past.t)),
                ),
                average=Mean(by=self.B),
            ),
        )

    def bound(self, t: int) -> float:
        """The clipping bound of round t."""
        return self.C


@dataclass(frozen=True)
class FedCDPDecay(FedCDP):
    """The bound falls linearly from C to C_last over the rounds, and the noise with it."""

    C: float = 6.0
    C_last: float = 2.0
    name: ClassVar = "fed-cdp-decay"

    def bound(self, t: int) -> float:
        """A schedule fixed in advance: no release chooses it."""
        return self.C + (self.C_last - self.C) * t / max(1, self.T - 1)


@dataclass(frozen=True)
class FedCDPC:
    """Corrected: Poisson batches, noise once for each batch, in units of S = C sqrt(M).

    K_t None: every client takes part in every round.
    """

    T: int = 100
    K_t: int | None = None
    L: int = 1
    B: float = 60.0
    C: float = 1.0
    sigma: float = 1.0
    eta: float = 0.5
    name: ClassVar = "fed-cdp-c"
    paper: ClassVar = "Wei et al. 2021"
    noise_field: ClassVar = "sigma"
    setting: ClassVar = FedCDP.setting

    def round(self, past: Past) -> Round | None:
        """L steps with (sum_j clip(g_j) + N(0, sigma^2 C^2 M)) / B, mean over the cohort."""
        if past.t == self.T:
            return None
        cohort: Cohort = All() if self.K_t is None else Fixed(self.K_t)
        layers = past.public.layers
        return Round(
            cohort=cohort,
            local=Local(
                SGD(self.eta),
                self.L,
                Poisson(min(1.0, self.B / past.public.records)),
                example=(ClipLayers(self.bound(past.t), layers),),
                batch=(Gaussian(self.sigma * self.bound(past.t) * sqrt(len(layers))),),
                average=Mean(by=self.B),
            ),
        )

    def bound(self, t: int) -> float:
        """The clipping bound of round t."""
        return self.C


@dataclass(frozen=True)
class FedCDPDecayC(FedCDPC):
    """Corrected, with the linearly falling bound: equal multipliers, so an equal statement."""

    C: float = 1.5
    C_last: float = 0.5
    name: ClassVar = "fed-cdp-decay-c"

    def bound(self, t: int) -> float:
        """A schedule fixed in advance."""
        return self.C + (self.C_last - self.C) * t / max(1, self.T - 1)
