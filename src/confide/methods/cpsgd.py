"""cpSGD: rotate, round to k levels, add binomial noise, and see nothing but the sum.

Agarwal, Suresh, Yu, Kumar, McMahan: cpSGD: Communication-efficient and differentially-private
distributed SGD, 2018; in the setting in which Zhang et al. (DP-FedAGS) compare with it.
docs/papers/dp-fedags.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil, log, sqrt
from typing import Any, ClassVar

from confide.accounting import binomial
from confide.accounting.events import BinomialDpEvent
from confide.accounting.relations import Refused
from confide.accounting.roots import root
from confide.channels import Sum
from confide.cohorts import Epoch, Fixed, Poisson
from confide.engine.rounds import Local, Past, Round, Sizes, Stages
from confide.local import SGD, between
from confide.methods.setting import Setting, wholes
from confide.published.value import Published
from confide.servers import Add
from confide.stages import Binomial, Clip, Quantize, Rotate, Scale, Unrotate
from confide.stages.maps import ROUNDING, power_of_two

PAPER = "Agarwal et al. 2018"
FAILURE = 1e-100
"""Plain rounding exceeds its bound with at most this probability; a smaller one costs little."""


@dataclass(frozen=True)
class CpSGD:
    """As printed: every client brings a share of the binomial noise, for one round's budget.

    `scale` is a factor on the noise; k None rounds nothing, which is for comparisons without noise.
    """

    T: int = 200
    m: int = 10
    E: int = 1
    B: int = 128
    eta: float = 0.1
    C: float = 1.0
    k: int | None = 65
    epsilon: float = 0.5
    delta: float = 0.001
    scale: float = 1.0
    name: ClassVar = "cpsgd"
    paper: ClassVar = PAPER
    noise_field: ClassVar = "scale"
    setting: ClassVar = Setting(clients=100, data="mnist", model="cnn2")

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "m")
        between(self, "epsilon", 0, above=True)
        check(self, self.scale)

    def round(self, past: Past) -> Round | None:
        """Rotate, round, add Bin(trials, 1/2) at each client; sum, divide, rotate back."""
        if past.t == self.T:
            return None
        noise: Stages = ()
        if self.scale and (levels := quantizer(self, past.public, self.m, FAILURE)):
            event = event_of(levels, past.public.dim)
            total = self.scale**2 * least_trials(event, self.epsilon, self.delta)
            noise = (Binomial(levels.step, 2 * ceil(total / self.m / 2)),)
        before, after = rounding(self, past.public, self.m, FAILURE)
        return Round(
            cohort=Fixed(self.m),
            local=Local(SGD(self.eta), self.E, Epoch(self.B, partial=True)),
            upload=(*before, *noise),
            channel=Sum(),
            publish=after,
            server=Add(self.eta),
        )

    def published(self, sizes: Sizes) -> Published | None:
        """Theorem 1 for one round; without noise it has no value."""
        if not self.scale:
            return None
        return Published(
            self.epsilon, "ε", "cpSGD, Theorem 1", "Theorem 1's ε(Δ1, Δ2, Δ∞, δ)", "client",
            f"One of {self.T} rounds: nothing is composed.", self.delta,
        )  # fmt: skip


@dataclass(frozen=True)
class CpSGDC:
    """Corrected: Poisson cohorts, binomial noise once on the sum, rounding within its bound.

    `sigma` is the standard deviation of the noise on the sum over C.
    """

    T: int = 200
    q: float = 0.1
    E: int = 1
    B: int = 128
    eta: float = 0.1
    C: float = 1.0
    k: int | None = 65
    delta: float = 0.001
    sigma: float = 10.0
    name: ClassVar = "cpsgd-c"
    paper: ClassVar = PAPER
    noise_field: ClassVar = "sigma"
    setting: ClassVar = CpSGD.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        between(self, "q", 0, 1, above=True)
        check(self, self.sigma)

    def round(self, past: Past) -> Round | None:
        """Clients rotate and round; whoever adds them up adds Bin(trials, 1/2) once."""
        if past.t == self.T:
            return None
        expected = self.q * past.public.clients
        noise: Stages = ()
        if self.sigma and (levels := quantizer(self, past.public, expected, 0.0)):
            trials = 2 * ceil(2 * (self.sigma * self.C / levels.step) ** 2)
            noise = (Binomial(levels.step / expected, trials),)
        before, after = rounding(self, past.public, expected, 0.0)
        return Round(
            cohort=Poisson(self.q),
            local=Local(SGD(self.eta), self.E, Epoch(self.B, partial=True)),
            upload=before,
            channel=Sum(),
            publish=(*noise, *after),
            server=Add(self.eta),
        )


def rounding(m: Any, sizes: Sizes, clients: float, failure: float) -> tuple[Stages, Stages]:
    """What a client does to its update, and what undoes the rotation."""
    short = (Scale(1 / m.eta), Clip(m.C))
    levels = quantizer(m, sizes, clients, failure)
    return ((*short, Rotate(), levels), (Unrotate(sizes.dim),)) if levels else (short, ())


def quantizer(m: Any, sizes: Sizes, clients: float, failure: float) -> Quantize | None:
    """k levels up to X, which no coordinate of any rotated vector exceeds but for delta.

    A coordinate is a sum of ±x_j / sqrt(d), so by Hoeffding's inequality it exceeds X with
    probability at most 2 exp(-d X^2 / (2 C^2)); larger ones are cut, so no statement rests on it.
    """
    if m.k is None:
        return None
    d = power_of_two(sizes.dim)
    X = m.C * sqrt(2 * log(2 * max(clients, 1) * d / m.delta) / d)
    return Quantize(m.k, X, norm=m.C * ROUNDING, failure=failure)


def event_of(levels: Quantize, dim: int) -> BinomialDpEvent:
    """One client more or less, in steps; the number of trials is still open."""
    d = power_of_two(dim)
    l2 = levels.bound(d) / levels.step
    return BinomialDpEvent(2, 0.5, min(sqrt(d) * l2, l2**2), l2, (levels.k - 1) / 2, d)


@cache
def least_trials(event: BinomialDpEvent, epsilon: float, delta: float) -> int:
    """The fewest trials at which Theorem 1 gives this epsilon and delta."""

    def excess(log_trials: float) -> float:
        there = BinomialDpEvent(
            ceil(2**log_trials), event.p, event.l1, event.l2, event.linf, event.dim
        )
        try:
            return binomial.certificate(there, delta).epsilon - epsilon
        except Refused:
            return 1e9  # too few for the theorem

    return ceil(2 ** root(excess, 1.0, 62.0, 1e-9))


def check(m: Any, noise: float) -> None:
    """Refuse settings that make no sense."""
    wholes(m, "T", "E", "B")
    between(m, "eta", 0, above=True)
    between(m, "C", 0, above=True)
    between(m, m.noise_field, 0)
    if not 0 < m.delta < 1:
        raise ValueError(f"{type(m).__name__}: delta = {m.delta!r}, allowed is within 0..1.")
    if m.k is not None:
        Quantize(m.k, 1.0)
    elif noise:
        raise ValueError(
            f"{type(m).__name__}: k = None, allowed with noise are odd numbers from 3: binomial "
            "noise needs a grid."
        )
