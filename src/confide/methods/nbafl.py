"""NbAFL: clip the trained model and noise it before it is added up, and once more on its way down.

Wei, Li, Ding, Ma, Yang, Farokhi, Jin, Quek, Poor: Federated Learning with Differential Privacy:
Algorithms and Performance Analysis, 2020; in the form in which UDP-FL compares with it.
docs/papers/udp-fl.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.aggregates import MeanOfPresent
from confide.cohorts import All, Cohort, Epoch, Fixed
from confide.engine.rounds import Local, Past, Round, Sizes, Upload
from confide.local import Prox, between
from confide.methods.setting import Setting, wholes
from confide.methods.udp import exact
from confide.published import nbafl
from confide.published.value import Published
from confide.stages import Clip, Gaussian


@dataclass(frozen=True)
class NbAFL:
    """As printed: the model is clipped to C; uplink noise for L exposures, downlink noise for T."""

    T: int = 25
    K: int = 50
    L: int = 25
    E: int = 5
    B: int = 32
    C: float = 10.0
    eta: float = 0.05
    mu: float = 0.0
    epsilon: float = 50.0
    delta: float = 0.01
    scale: float = 1.0
    name: ClassVar = "nbafl"
    paper: ClassVar = "Wei et al. 2020"
    noise_field: ClassVar = "scale"
    setting: ClassVar = Setting(clients=50, data="mnist", model="mlp256", records=1200)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check(self)

    def round(self, past: Past) -> Round | None:
        """Train, w / max(1, ‖w‖/C), plus N(0, sigma_U^2); the mean, plus N(0, sigma_D^2)."""
        if past.t == self.T:
            return None
        sigma_U, sigma_D = self.sigmas(past.public)
        return Round(
            cohort=everyone(self, past),
            local=Local(Prox(self.eta, self.mu), self.E, Epoch(self.B, partial=True)),
            upload={"model": Upload((Clip(self.C), Gaussian(sigma_U)))},
            aggregate=MeanOfPresent(),
            publish=(Gaussian(sigma_D),),
        )

    def sigmas(self, sizes: Sizes) -> tuple[float, float]:
        """The uplink's and the downlink's, with m the least number of records of a client."""
        m, budget = sizes.records, (self.epsilon, self.delta)
        up = nbafl.sigma_U(self.C, m, self.L, *budget)
        down = nbafl.sigma_D(self.C, m, self.L, self.T, sizes.clients, *budget)
        return self.scale * float(up.value.real), self.scale * float(down.value.real)

    def published(self, sizes: Sizes) -> Published | None:
        """Theorem 1: the budget that was asked for."""
        if not self.scale:
            return None
        return Published(
            self.epsilon, "ε", "NbAFL, Theorem 1", "(ε, δ)-DP in uplink and downlink", "record",
            nbafl.SENSITIVITY_NOTE, self.delta,
        )  # fmt: skip


@dataclass(frozen=True)
class NbAFLC:
    """Corrected: each of E steps takes all records, each gradient cut to C, and noise on their sum.

    So 2C is what a record changes, over m records 2C/m as the paper has it. Exact for T E steps.
    """

    T: int = 25
    K: int = 50
    E: int = 2
    C: float = 1.0
    eta: float = 0.5
    mu: float = 0.0
    epsilon: float = 50.0
    delta: float = 0.01
    scale: float = 1.0
    at_most: int | None = None
    name: ClassVar = "nbafl-c"
    paper: ClassVar = "Wei et al. 2020"
    noise_field: ClassVar = "scale"
    setting: ClassVar = NbAFL.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check(self)

    def round(self, past: Past) -> Round | None:
        """E noisy full-batch steps at K clients, and the mean of their models, as it is."""
        if past.t == self.T:
            return None
        rounds = self.T if self.at_most is None else min(self.T, self.at_most)
        sigma = self.scale * exact(rounds * self.E, self.epsilon, self.delta)
        return Round(
            cohort=everyone(self, past, self.at_most),
            local=Local(
                Prox(self.eta, self.mu),
                self.E,
                All(),
                example=(Clip(self.C),),
                batch=(Gaussian(sigma * 2 * self.C),),
                average=MeanOfPresent(),
            ),
            upload={"model": Upload()},
            aggregate=MeanOfPresent(),
        )


def everyone(m: NbAFL | NbAFLC, past: Past, at_most: int | None = None) -> Cohort:
    """All clients, or K of them at random."""
    clients = past.public.clients
    if clients < m.K:
        raise ValueError(
            f"{type(m).__name__}: K = {m.K}, allowed is at most the number of clients, {clients}."
        )
    return All(at_most) if clients == m.K else Fixed(m.K, at_most)


def check(m: NbAFL | NbAFLC) -> None:
    """Refuse settings that make no sense."""
    wholes(m, "T", "K", "E", *(("L", "B") if isinstance(m, NbAFL) else ()))
    for field in ("C", "eta", "epsilon", "delta"):
        between(m, field, 0, above=True)
    between(m, "mu", 0)
    between(m, "scale", 0)
    if m.delta >= 1:
        raise ValueError(f"{type(m).__name__}: delta = {m.delta!r}, allowed is below 1.")
