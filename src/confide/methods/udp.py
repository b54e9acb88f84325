"""UDP: every client takes one full-batch step with clipped gradients, and adds noise to it.

Wei, Li, Ding, Ma, Su, Zhang, Poor: User-Level Privacy-Preserving Federated Learning: Analysis and
Performance Optimization, 2022. "User-level" is the paper's word; its proof changes one sample.
docs/papers/udp-crd.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf, sqrt
from typing import ClassVar

from confide.accounting import gdp
from confide.aggregates import Aggregate, MeanOfPresent, WeightedMean
from confide.cohorts import All, Fixed
from confide.engine.rounds import Local, Past, Round, Sizes, Upload
from confide.local import SGD, between
from confide.methods.setting import Setting, wholes
from confide.published import udp_crd
from confide.published.value import Published
from confide.servers import Add, Server
from confide.stages import Clip, Gaussian, PerClient
from confide.values import HeldOutLoss

PAPER = "Wei et al. 2022"
Column = float | tuple[float, ...]
Sigma = Callable[[float, float], float]
"""The noise of a client with this epsilon and this delta, in units of the sensitivity."""


@dataclass(frozen=True)
class UDP:
    """As printed (Algorithm 1): clipped gradients of all samples, noise by eq. (10).

    epsilon and delta: one number, or one for each client. weights: "uniform", or by data "size".
    scale: a factor on all noise, which a budget sets.
    """

    T: int = 200
    K: int = 50
    epsilon: Column = 8.0
    delta: Column = 0.001
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
        return one_round(self, past, partial(eq_10, share(self, past.public), self.T), raw_loss())

    def published(self, sizes: Sizes) -> Published | None:
        """Theorem 1: what the client asked for."""
        return theorem_1(self)


@dataclass(frozen=True)
class UDPC(UDP):
    """Corrected: the exact Gaussian budget in place of eq. (10), and noised, cut test losses.

    at_most: how often a client takes part; its noise is then for so many rounds.
    """

    V_max: float = 4.0
    n_test: int = 200
    at_most: int | None = None
    name: ClassVar = "udp-c"

    def round(self, past: Past) -> Round | None:
        """As Algorithm 1; every client takes part at most `at_most` times."""
        if past.t >= self.T:
            return None
        n = self.T if self.at_most is None else min(self.T, self.at_most)
        return one_round(
            self,
            past,
            partial(exact, n),
            noised_loss(self, self.V_max, self.n_test, n),
            self.at_most,
        )

    def published(self, sizes: Sizes) -> None:
        """The paper says nothing about this noise."""


def one_round(
    m: UDP,
    past: Past,
    sigma: Sigma,
    loss: Upload | None,
    at_most: int | None = None,
    server: Server | None = None,
) -> Round:
    """One step of w - eta/|D_i| (sum of clipped gradients), noised by sigma_i in units of eq. (13).

    The noise stands on the sum, where the paper's N(0, sigma_i^2) on the model is N(0, s^2) with
    s = sigma_i |D_i| / eta: two sums with one sample changed are 2 C apart.
    """
    share(m, past.public)
    uploads = {"update": Upload()}
    if loss is not None:
        uploads["loss"] = loss
    return Round(
        cohort=All(at_most) if past.public.clients == m.K else Fixed(m.K, at_most),
        local=Local(
            SGD(m.eta),
            sampler=All(),
            example=(Clip(m.C),),
            batch=(Gaussian(column(m, sigma, m.scale * 2 * m.C)),),
            average=MeanOfPresent(),
        ),
        upload=uploads,
        aggregate=averaging(m, past.public),
        server=server or Add(),
    )


def averaging(m: UDP, sizes: Sizes) -> Aggregate:
    """The weights p_i: equal, or the clients' data sizes over what K of them hold on average."""
    if m.weights == "uniform":
        return MeanOfPresent()
    return WeightedMean(cap=sizes.largest, by=m.K * (sizes.records + sizes.largest) / 2)


def raw_loss() -> Upload:
    """The mean loss on a client's own test records, as it is."""
    return Upload((), length=1, data="test")


def noised_loss(m: UDP, V_max: float, n_test: int, releases: int) -> Upload:
    """The mean of a client's cut test losses, noised for this many releases; raw without noise."""
    if not m.scale:
        return raw_loss()
    std = column(m, partial(exact, releases), m.scale * V_max / n_test)
    return Upload((Gaussian(std),), length=1, data="test", value=HeldOutLoss(V_max, n_test))


def column(m: UDP, sigma: Sigma, times: float) -> float | PerClient:
    """`times` the noise of every client, or of all of them."""
    found = tuple(times * sigma(epsilon, delta) for epsilon, delta in budgets(m))
    own = isinstance(m.epsilon, tuple) or isinstance(m.delta, tuple)
    return PerClient(found) if own else found[0]


def budgets(m: UDP) -> list[tuple[float, float]]:
    """(epsilon_i, delta_i) of every client, or of all of them."""
    columns = [len(v) for v in (m.epsilon, m.delta) if isinstance(v, tuple)]
    many = columns[0] if columns else 1
    epsilon = m.epsilon if isinstance(m.epsilon, tuple) else (m.epsilon,) * many
    delta = m.delta if isinstance(m.delta, tuple) else (m.delta,) * many
    return list(zip(epsilon, delta, strict=True))


def exact(releases: int, epsilon: float, delta: float) -> float:
    """The noise at which so many equal releases are exactly (epsilon, delta)-private together."""
    return sqrt(releases) / mu(epsilon, delta)


def mu(epsilon: float, delta: float) -> float:
    """The mu of (epsilon, delta), less what rounding and a clip's slack can take."""
    return gdp.mu(epsilon, delta) * (1 - 1e-5)


def eq_10(q: float, T: int, epsilon: float, delta: float) -> float:
    """Eq. (10) in units of the sensitivity."""
    return float(udp_crd.eq_10_sigma(1.0, q, T, epsilon, delta).value.real)


def share(m: UDP, sizes: Sizes) -> float:
    """q = K / U, of clients whose number the settings fit."""
    kind, U = type(m).__name__, sizes.clients
    if m.K > U:
        raise ValueError(f"{kind}: K = {m.K}, allowed is at most the number of clients, {U}.")
    for field in ("epsilon", "delta"):
        value = getattr(m, field)
        if isinstance(value, tuple) and len(value) != U:
            raise ValueError(
                f"{kind}: {field} has {len(value)} numbers, allowed is one number, or one for each "
                f"of the {U} clients."
            )
    return m.K / U


def theorem_1(m: UDP) -> Published | None:
    """What Theorem 1 promises the client that asks for least; without noise it has no value."""
    if not m.scale:
        return None
    epsilon, delta = max(budgets(m))
    return Published(
        epsilon / m.scale, "ε_i", "UDP-CRD, Theorem 1", "(ε_i, δ_i)-LDP for the i-th MT", "record",
        udp_crd.EQ_10_NOTE, delta,
    )  # fmt: skip


def check(m: UDP) -> None:
    """Refuse settings that make no sense, in one sentence."""
    counts = (name for name in ("n_test", "at_most") if getattr(m, name, None) is not None)
    wholes(m, "T", "K", *counts)
    for field in ("C", "eta", "V_max"):
        if hasattr(m, field):
            between(m, field, 0, above=True)
    between(m, "scale", 0)
    for field, most, words in (("epsilon", inf, "above 0"), ("delta", 1.0, "above 0 and below 1")):
        value = getattr(m, field)
        several: tuple[float, ...] = value if isinstance(value, tuple) else (value,)
        if not several or not all(0 < one < most for one in several):
            raise ValueError(
                f"{type(m).__name__}: {field} = {value!r}, allowed is a finite number {words}, or "
                "one for each client."
            )
    if isinstance(m.epsilon, tuple) and isinstance(m.delta, tuple):
        given = len(m.epsilon), len(m.delta)
        if given[0] != given[1]:
            raise ValueError(
                f"{type(m).__name__}: epsilon has {given[0]} and delta has {given[1]} numbers, "
                "allowed is one for each client in both."
            )
    one_of(m, "weights", ("uniform", "size"))


def one_of(m: UDP, field: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not known."""
    value = getattr(m, field)
    if value not in allowed:
        raise ValueError(
            f"{type(m).__name__}: {field} = {value!r}, allowed are {' and '.join(allowed)}."
        )
