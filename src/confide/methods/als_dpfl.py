"""ALS-DPFL: noisy local steps, as many in each round as a convergence bound asks for.

Ling, Fu, Chen: Adaptive Local Steps Federated Learning with Differential Privacy Driven by
Convergence Analysis, 2023; as a row of UDP-FL's Table 1. What is assumed of it is numbered in
docs/papers/udp-fl-table1.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, sqrt
from typing import ClassVar

from confide.aggregates import Mean, MeanOfPresent
from confide.cohorts import Fixed, Poisson
from confide.engine.rounds import Local, Past, Round, Sizes, Upload
from confide.local import SGD, between
from confide.methods.setting import Setting, wholes
from confide.stages import Clip, Gaussian


@dataclass(frozen=True)
class ALSDPFL:
    """As printed: clients report their losses, and tau follows what they say about heterogeneity.

    T rounds and R_c steps in all; mu is the bound's constant of strong convexity.
    """

    T: int = 50
    R_c: int = 200
    m: int = 10
    q: float = 0.05
    C: float = 0.1
    sigma: float = 1.0
    eta: float = 0.5
    mu: float = 1.0
    most: int = 100
    name: ClassVar = "als-dpfl"
    paper: ClassVar = "Ling et al. 2023"
    noise_field: ClassVar = "sigma"
    adapts: ClassVar = True
    setting: ClassVar = Setting(clients=10, data="mnist", model="mlp", records=6000)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "R_c", "m", "most")
        check(self)

    def round(self, past: Past) -> Round | None:
        """tau noisy steps at every client; the mean of their models, and their losses."""
        heard = [float(loss) for loss in past.values("loss")]
        steps = spent = 0
        for t in range(past.t + 1):
            if t >= self.T or spent >= self.R_c:
                return None
            Gamma = heard[t - 1] if 0 < t <= len(heard) else 0.0
            steps = min(tau(self, past.public, Gamma, steps, t, spent), self.R_c - spent)
            spent += steps
        uploads = {"update": Upload(), "loss": Upload((), length=1, data="train")}
        return noisy_steps(self, steps, past.public, uploads)


@dataclass(frozen=True)
class ALSDPFLC(ALSDPFL):
    """Corrected: Gamma is a public constant, so every tau is known before the first round."""

    Gamma: float = 0.5
    name: ClassVar = "als-dpfl-c"
    adapts: ClassVar = False

    def __post_init__(self) -> None:
        """Sensible numbers."""
        super().__post_init__()
        between(self, "Gamma", 0)

    def round(self, past: Past) -> Round | None:
        """The same steps, and nothing is said about losses."""
        steps = spent = 0
        for t in range(past.t + 1):
            if t >= self.T or spent >= self.R_c:
                return None
            steps = min(tau(self, past.public, self.Gamma, steps, t, spent), self.R_c - spent)
            spent += steps
        return noisy_steps(self, steps, past.public, {"update": Upload()})


def noisy_steps(m: ALSDPFL, steps: int, sizes: Sizes, uploads: dict[str, Upload]) -> Round:
    """Poisson batches, clipped examples, N(0, sigma^2 C^2) once on each sum."""
    return Round(
        cohort=Fixed(m.m),
        local=Local(
            SGD(m.eta),
            steps,
            Poisson(m.q),
            example=(Clip(m.C),),
            batch=(Gaussian(m.sigma * m.C),),
            average=Mean(by=m.q * sizes.records),
        ),
        upload=uploads,
        aggregate=MeanOfPresent(),
    )


def tau(m: ALSDPFL, sizes: Sizes, Gamma: float, last: int, t: int, spent: int) -> int:
    """The number of steps at which the convergence bound is least, between 1 and `most`.

    sqrt(1 + (4/mu^2 + 3 C^2 + 2 Gamma S mu + N) / ((2 + 2/S) (C^2 + N))), where N is the noise's
    part sigma^2 C^2 d / B^2, and S the steps that can still come: rounds left times the last tau,
    or what is left of the budget.
    """
    N = (m.sigma * m.C / (m.q * sizes.records)) ** 2 * sizes.dim
    S = min((m.T - t) * max(last, 1), m.R_c - spent)
    above = 4 / m.mu**2 + 3 * m.C**2 + 2 * Gamma * S * m.mu + N
    below = (2 + 2 / S) * (m.C**2 + N)
    return max(1, min(m.most, floor(sqrt(1 + above / below) + 0.5)))


def check(method: object) -> None:
    """Refuse rates, bounds and noise that make no sense."""
    between(method, "q", 0, 1, above=True)
    for field in ("C", "eta", "mu"):
        between(method, field, 0, above=True)
    between(method, "sigma", 0)
