"""UDP and its communication-rounds discounting (CRD): noise on every client's one full-batch step.

Wei, Li, Ding, Ma, Su, Zhang, Poor: User-Level Privacy-Preserving Federated Learning: Analysis and
Performance Optimization, 2022. "User-level" is the paper's word; its proof changes one sample.
docs/papers/udp-crd.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log, sqrt
from typing import Any, ClassVar

from confide.accounting import gdp
from confide.aggregates import Aggregate, MeanOfPresent, WeightedMean
from confide.cohorts import All, Fixed
from confide.engine.rounds import Local, Past, Round, Sizes, Upload
from confide.local import SGD
from confide.methods.setting import Setting, wholes
from confide.published import udp_crd
from confide.published.value import Published
from confide.stages import Clip, Gaussian, PerClient
from confide.values import HeldOutLoss

PAPER = "Wei et al. 2022"
Column = float | tuple[float, ...]


@dataclass(frozen=True)
class UDP:
    """As printed (Algorithm 1): clipped gradients of all samples, noise by eq. (10)."""

    T: int = 200
    K: int = 50
    epsilon: Column = 8.0
    delta: float = 0.001
    C: float = 1.0
    eta: float = 0.5
    weights: str = "uniform"
    scale: float = 1.0
    name: ClassVar = "udp"
    paper: ClassVar = PAPER
    noise_field: ClassVar = "scale"
    setting: ClassVar = Setting(clients=50, data="mnist", model="mlp256", records=800)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check(self)

    def round(self, past: Past) -> Round | None:
        """Lines 4 to 18: one step each, noise, weighted mean, and everybody's test loss."""
        if past.t >= self.T:
            return None
        q = share(self, past)
        sigmas = column(self.epsilon, lambda e: eq_10(q, self.T, e, self.delta))
        return one_round(self, past, sigmas, Upload((), length=1, data="test"))

    def published(self, sizes: Sizes) -> Published:
        """Theorem 1: what the client asked for."""
        return theorem_1(self)


@dataclass(frozen=True)
class UDPCRD(UDP):
    """As printed (Algorithm 2): T shrinks when the test loss stops falling, noise by eq. (25)."""

    beta: float = 0.9
    zeta: float = 0.001
    name: ClassVar = "udp-crd"
    adapts: ClassVar = True

    def round(self, past: Past) -> Round | None:
        """Lines 3 to 19."""
        q, losses = share(self, past), past.values("loss")
        rounds = discounted(self.T, self.beta, self.zeta, losses, past.t)
        if past.t >= rounds[-1]:
            return None

        def sigma(e: float) -> float:
            return eq_25(e**2 / (2 * q * log(1 / self.delta)), rounds)

        return one_round(
            self, past, column(self.epsilon, sigma), Upload((), length=1, data="test")
        )


@dataclass(frozen=True)
class UDPLei(UDP):
    """As compared with: noise that falls linearly from twice eq. (10) until the budget is spent.

    Lei, Wang, Wu, Yin: Differentially private gradient descent with linearly falling noise, as the
    paper's section 6 describes it.
    """

    name: ClassVar = "udp-lei"
    first: float = 2.0
    last: float = 0.5

    def round(self, past: Past) -> Round | None:
        """The next round, unless it would spend more than eq. (10) does in T."""
        q = share(self, past)
        if not lei_fits(self, past.t):
            return None

        def sigma(e: float) -> float:
            return falling(self, past.t) * eq_10(q, self.T, e, self.delta)

        return one_round(
            self, past, column(self.epsilon, sigma), Upload((), length=1, data="test")
        )


@dataclass(frozen=True)
class UDPC(UDP):
    """Corrected: the exact Gaussian budget in place of eq. (10), and noised, cut test losses."""

    V_max: float = 4.0
    n_test: int = 200
    at_most: int | None = None
    name: ClassVar = "udp-c"

    def round(self, past: Past) -> Round | None:
        """As Algorithm 1; every client takes part at most `at_most` times."""
        if past.t >= self.T:
            return None
        n = joined(self, self.T)
        sigmas = column(self.epsilon, lambda e: sqrt(n) / gdp.mu(e, self.delta))
        return one_round(self, past, sigmas, noised_loss(self), self.at_most)


@dataclass(frozen=True)
class UDPCRDC(UDP):
    """Corrected: eq. (25) with the exact budget, a filter before each release, a noisy trigger.

    `trigger`: "clients" follows the noised losses, smoothed over `window` rounds; "public" follows
    the loss on the server's own validation records, and no test loss is sent.
    """

    beta: float = 0.9
    zeta: float = 0.001
    V_max: float = 4.0
    n_test: int = 200
    trigger: str = "clients"
    window: int = 5
    name: ClassVar = "udp-crd-c"
    adapts: ClassVar = True

    @property
    def validates(self) -> bool:
        """Whether the loss on the server's own records is followed."""
        return self.trigger == "public"

    def round(self, past: Past) -> Round | None:
        """As Algorithm 2."""
        public = self.trigger == "public"
        losses = list(past.validation) if public else smoothed(past.values("loss"), self.window)
        rounds = discounted(self.T, self.beta, self.zeta, losses, past.t, self.window)
        if past.t >= rounds[-1]:
            return None
        sigmas = column(self.epsilon, lambda e: eq_25(gdp.mu(e, self.delta) ** 2, rounds))
        return one_round(self, past, sigmas, None if public else noised_loss(self))


@dataclass(frozen=True)
class UDPLeiC(UDP):
    """Corrected: the same falling noise against the exact budget; whether a round fits is public."""

    first: float = 2.0
    last: float = 0.5
    V_max: float = 4.0
    n_test: int = 200
    name: ClassVar = "udp-lei-c"

    def round(self, past: Past) -> Round | None:
        """The next round, unless it would spend more than T equal ones."""
        if not lei_fits(self, past.t):
            return None

        def sigma(e: float) -> float:
            return falling(self, past.t) * sqrt(self.T) / gdp.mu(e, self.delta)

        return one_round(self, past, column(self.epsilon, sigma), noised_loss(self))
