"""Fed-CDP: per-example clipping and noise inside of the local steps.

Wei, Liu, Wu, Su, Iyengar: Gradient-Leakage Resilient Federated Learning, 2021.
docs/papers/fed-cdp.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from confide.aggregates import Mean
from confide.cohorts import All, Cohort, Fixed, Poisson
from confide.engine.rounds import Local, Past, Round, Sizes
from confide.local import SGD, between
from confide.methods.setting import Setting, wholes
from confide.published import fed_cdp
from confide.published.value import Published
from confide.servers import Add, Momentum
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
    setting: ClassVar = Setting(clients=1000, data="mnist", model="cnn2-flat", records=500)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "K_t", "L", "B")
        check(self)

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

    def published(self, sizes: Sizes) -> Published | None:
        """Table VI, whose rate is B/N_i and whose steps are T L + 1; without noise no value."""
        if not self.sigma:
            return None
        rate = min(1.0, self.B / sizes.records)
        return fed_cdp.moments_epsilon(rate, self.sigma, self.T * self.L + 1, 1e-5)


@dataclass(frozen=True)
class FedCDPDecay(FedCDP):
    """The bound falls linearly from C to C_last over the rounds, and the noise with it."""

    C: float = 6.0
    C_last: float = 2.0
    name: ClassVar = "fed-cdp-decay"

    def bound(self, t: int) -> float:
        """A schedule fixed in advance: no release chooses it."""
        return falling(self.C, self.C_last, t, self.T)


@dataclass(frozen=True)
class FedCDPC:
    """Corrected: noise once for each batch, in units of what a record can change there.

    batches: "poisson" draws each record by a coin, so a record adds at most S = C sqrt(M); "fixed"
    draws B records, of which one can be replaced: S = 2 C sqrt(M). K_t None: every client takes
    part in every round. beta: the server's momentum, not the paper's.
    """

    T: int = 100
    K_t: int | None = None
    L: int = 1
    B: float = 60.0
    C: float = 1.0
    sigma: float = 1.0
    eta: float = 0.5
    beta: float = 0.0
    batches: str = "poisson"
    name: ClassVar = "fed-cdp-c"
    paper: ClassVar = "Wei et al. 2021"
    noise_field: ClassVar = "sigma"
    setting: ClassVar = FedCDP.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "L", *(() if self.K_t is None else ("K_t",)))
        between(self, "B", 0, above=True)
        check(self)
        one_of(self, "batches", ("poisson", "fixed"))
        if self.batches == "fixed" and int(self.B) != self.B:
            raise ValueError(
                f"{type(self).__name__}: B = {self.B!r}, allowed with fixed batches are whole "
                "numbers."
            )

    def round(self, past: Past) -> Round | None:
        """L steps with (sum_j clip(g_j) + N(0, sigma^2 S^2)) / B, mean over the cohort."""
        if past.t == self.T:
            return None
        cohort: Cohort = All() if self.K_t is None else Fixed(self.K_t)
        layers = past.public.layers
        fixed = self.batches == "fixed"
        S = self.bound(past.t) * sqrt(len(layers)) * (2 if fixed else 1)
        return Round(
            cohort=cohort,
            local=Local(
                SGD(self.eta),
                self.L,
                Fixed(int(self.B)) if fixed else Poisson(min(1.0, self.B / past.public.records)),
                example=(ClipLayers(self.bound(past.t), layers),),
                batch=(Gaussian(self.sigma * S),),
                average=Mean(by=self.B),
            ),
            server=Momentum(self.beta) if self.beta else Add(),
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
        return falling(self.C, self.C_last, t, self.T)


def check(method: object) -> None:
    """Refuse bounds and noise that make no sense."""
    for field in ("C", "C_last"):
        if hasattr(method, field):
            between(method, field, 0, above=True)
    between(method, "sigma", 0)


def one_of(method: object, field: str, allowed: tuple[str, ...]) -> None:
    """Refuse any other word."""
    value = getattr(method, field)
    if value not in allowed:
        raise ValueError(
            f"{type(method).__name__}: {field} = {value!r}, allowed are {', '.join(allowed)}."
        )


def falling(first: float, last: float, t: int, T: int) -> float:
    """A line from the first value in round 0 to the last in round T - 1."""
    return first + (last - first) * t / max(1, T - 1)
