"""UDP: every client takes one full-batch step with clipped gradients, and adds noise to it.

Wei, Li, Ding, Ma, Su, Zhang, Poor: User-Level Privacy-Preserving Federated Learning: Analysis and
Performance Optimization, 2022. "User-level" is the paper's word; its proof changes one sample.
docs/papers/udp-crd.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import sqrt
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
        sigmas = column(self.epsilon, partial(eq_10, q, self.T, self.delta))
        return one_round(self, past, sigmas, Upload((), length=1, data="test"))

    def published(self, sizes: Sizes) -> Published:
        """Theorem 1: what the client asked for."""
        return theorem_1(self)


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
        n = self.T if self.at_most is None else min(self.T, self.at_most)

        def sigma(e: float) -> float:
            return sqrt(n) / exact(e, self.delta)

        sigmas = column(self.epsilon, sigma)
        return one_round(
            self, past, sigmas, noised_loss(self, self.V_max, self.n_test, n), self.at_most
        )


def one_round(
    m: UDP, past: Past, sigmas: list[float], loss: Upload | None, at_most: int | None = None
) -> Round:
    """One step of w - eta/|D_i| (sum of clipped gradients), noised by sigma_i in units of eq. (13).

    The noise stands on the sum, where the paper's N(0, sigma_i^2) on the model is N(0, s^2) with
    s = sigma_i |D_i| / eta: two sums with one sample changed are 2 C apart.
    """
    share(m, past)
    s = [m.scale * sigma * 2 * m.C for sigma in sigmas]
    std = s[0] if len(s) == 1 else PerClient(tuple(s))
    uploads = {"update": Upload()}
    if loss is not None:
        uploads["loss"] = loss
    return Round(
        cohort=All(at_most) if past.public.clients == m.K else Fixed(m.K, at_most),
        local=Local(
            SGD(m.eta),
            sampler=All(),
            example=(Clip(m.C),),
            batch=(Gaussian(std),),
            average=MeanOfPresent(),
        ),
        upload=uploads,
        aggregate=averaging(m, past.public),
    )


def averaging(m: UDP, sizes: Sizes) -> Aggregate:
    """The weights p_i: equal, or the clients' data sizes over what K of them hold on average."""
    if m.weights == "uniform":
        return MeanOfPresent()
    return WeightedMean(cap=sizes.largest, by=m.K * (sizes.records + sizes.largest) / 2)


def noised_loss(m: UDP, V_max: float, n_test: int, releases: int) -> Upload:
    """The mean of a client's cut test losses, noised for this many releases; raw without noise."""
    if not m.scale:
        return Upload((), length=1, data="test")
    epsilon = min(m.epsilon) if isinstance(m.epsilon, tuple) else m.epsilon
    std = m.scale * V_max / n_test * sqrt(releases) / exact(epsilon, m.delta)
    return Upload((Gaussian(std),), length=1, data="test", value=HeldOutLoss(V_max, n_test))


def exact(epsilon: float, delta: float) -> float:
    """The mu of (epsilon, delta), less what rounding and a clip's slack can take."""
    return gdp.mu(epsilon, delta) * (1 - 1e-5)


def eq_10(q: float, T: int, delta: float, epsilon: float) -> float:
    """Eq. (10) in units of the sensitivity."""
    return float(udp_crd.eq_10_sigma(1.0, q, T, epsilon, delta).value.real)


def share(m: UDP, past: Past) -> float:
    """q = K / U."""
    if past.public.clients < m.K:
        raise ValueError(
            f"{type(m).__name__}: K = {m.K}, allowed is at most the number of clients, "
            f"{past.public.clients}."
        )
    return m.K / past.public.clients


def column(epsilon: Column, sigma: Callable[[float], float]) -> list[float]:
    """The noise of every client, or of all of them."""
    return [sigma(e) for e in epsilon] if isinstance(epsilon, tuple) else [sigma(epsilon)]


def theorem_1(m: UDP) -> Published:
    """What Theorem 1 promises: the client's own (epsilon, delta)."""
    epsilon = max(m.epsilon) if isinstance(m.epsilon, tuple) else m.epsilon
    return Published(
        epsilon, "ε_i", "UDP-CRD, Theorem 1", "(ε_i, δ_i)-LDP for the i-th MT", "record",
        udp_crd.EQ_10_NOTE, m.delta,
    )  # fmt: skip


def check(m: Any) -> None:
    """Refuse settings that make no sense, in one sentence."""
    wholes(m, "T", "K")
    for field in ("delta", "beta"):
        value = getattr(m, field, 0.5)
        if not 0 < value < 1:
            raise ValueError(f"{type(m).__name__}: {field} = {value!r}, allowed is within 0..1.")
    if not 0 <= m.scale < float("inf"):
        raise ValueError(f"{type(m).__name__}: scale = {m.scale!r}, allowed is at least 0.")
    for field in ("C", "eta", "first", "last", "V_max"):
        value = getattr(m, field, 1.0)
        if not 0 < value < float("inf"):
            raise ValueError(f"{type(m).__name__}: {field} = {value!r}, allowed is above 0.")
    for value in m.epsilon if isinstance(m.epsilon, tuple) else (m.epsilon,):
        if not 0 < value < float("inf"):
            raise ValueError(f"{type(m).__name__}: epsilon = {value!r}, allowed is above 0.")
    words = {"weights": ("uniform", "size"), "trigger": ("clients", "public")}
    for field, allowed in words.items():
        value = getattr(m, field, allowed[0])
        if value not in allowed:
            raise ValueError(
                f"{type(m).__name__}: {field} = {value!r}, allowed are {' and '.join(allowed)}."
            )
