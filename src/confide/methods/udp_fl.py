"""UDP-FL: clipped gradients with any noise, harmonised budgets, models joined along curves.

Feng, Mohammady, Hong, Yan, Kundu, Wang, Hong: Universally Harmonizing Differential Privacy
Mechanisms for Federated Learning: Boosting Accuracy and Convergence, 2024. docs/papers/udp-fl.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from confide.accounting.calibration import calibrate_scale
from confide.accounting.events import (
    DpEvent,
    GaussianDpEvent,
    LaplaceL2DpEvent,
    PoissonSampledDpEvent,
    PureDpEvent,
    SelfComposedDpEvent,
)
from confide.aggregates import Aggregate, Mean, MeanOfPresent, ModeConnectivity
from confide.channels import Each, Shuffle
from confide.cohorts import All, Cohort, Fixed, Poisson
from confide.engine.rounds import Local, Past, Round, Sizes, Stages, Upload
from confide.local import SGD, Pulled, Scaffold, Step, between
from confide.methods.setting import Setting, wholes
from confide.published import harmonizer
from confide.published.value import Published
from confide.servers import Add
from confide.stages import Clip, Gaussian, Laplace, PerClient, RadialStaircase, Stage, Staircase

PAPER = "Feng et al. 2024"
NOISES = ("gaussian", "laplace", "staircase")
Column = float | tuple[float, ...]


@dataclass(frozen=True)
class UDPFL:
    """As printed (Algorithm 1): every sampled record's gradient is clipped and noised by itself."""

    T: int = 150
    K: int = 10
    I: int = 2  # noqa: E741 (the paper's letter)
    q: float = 0.05
    c: float = 1.0
    eta: float = 0.01
    epsilon: Column = 8.0
    delta: Column = 1e-5
    noise: str = "gaussian"
    shuffle: bool = False
    aggregate: str = "mean"
    curve: str = "polygon"
    curve_steps: int = 10
    local: str = "sgd"
    scale: float = 1.0
    name: ClassVar = "udp-fl"
    paper: ClassVar = PAPER
    noise_field: ClassVar = "scale"
    setting: ClassVar = Setting(clients=10, data="mnist", model="cnn2", records=6000)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check(self)

    def round(self, past: Past) -> Round | None:
        """Lines 4 to 30: I noisy steps at each of K clients, then their models' mean or tree."""
        if past.t == self.T:
            return None
        noise = spread(self, self.multipliers(past.public))
        steps = Local(
            local_step(self),
            self.I,
            Poisson(self.q),
            example=(Clip(self.c), *noise),
            average=MeanOfPresent(),
            remembers=self.local == "scaffold",
        )
        return one_round(self, past, steps)

    def multipliers(self, sizes: Sizes) -> list[float]:
        """Algorithm 3 for every client's (epsilon_k, delta_k), or once for all."""
        clients = sizes.clients if self.shuffle else None

        def z(epsilon: float, delta: float) -> float:
            found = harmonizer.multiplier(self.noise, epsilon, delta, self.T * self.I, clients)
            return float(found.value.real)

        return for_budgets(self, z)

    def published(self, sizes: Sizes) -> Published | None:
        """What the Harmonizer promises: the budget that was asked for, of the weakest client."""
        if not self.scale:
            return None
        epsilon, delta = max(budgets(self))
        return Published(
            epsilon, "ε", "UDP-FL, Table 3 and Algorithm 3",
            "(ε, δ)-DP over all rounds", "record", PRINTED, delta,
        )  # fmt: skip


@dataclass(frozen=True)
class UDPFLC(UDPFL):
    """Corrected: noise once for each batch, from curves that hold for its clip and its sampling.

    Gaussian and Laplace noise under an l2 clip; the staircase is radial, under an l1 clip.
    """

    at_most: int | None = None
    name: ClassVar = "udp-fl-c"

    def round(self, past: Past) -> Round | None:
        """As Algorithm 1, with (sum_j clip(g_j) + noise) / (q n) in every step."""
        if past.t == self.T:
            return None
        radial = self.noise == "staircase"
        steps = Local(
            local_step(self),
            self.I,
            Poisson(self.q),
            example=(Clip(self.c, p=1 if radial else 2),),
            batch=spread(self, self.multipliers(past.public), radial),
            average=Mean(by=self.q * past.public.records),
            remembers=self.local == "scaffold",
        )
        return one_round(self, past, steps, self.at_most)

    def multipliers(self, sizes: Sizes) -> list[float]:
        """The least noise that is proved to keep each client's budget at the server."""
        rounds = self.T if self.at_most is None else min(self.T, self.at_most)
        rate = 1.0 if self.local == "scaffold" else self.q  # who remembers gets no credit for it

        def z(epsilon: float, delta: float) -> float:
            return least(self.noise, sizes.dim, rate, rounds * self.I, epsilon, delta)

        return for_budgets(self, z)

    def published(self, sizes: Sizes) -> Published | None:
        """Nothing: the paper's formulas are not used."""
        return None


PRINTED = (
    "Table 3's Laplace divergence is that of a scalar, Theorem 1's of the staircase lacks a "
    "logarithm, and Lemma 2 needs a pure local ε; none of them holds for clipped vectors."
)


def one_round(m: UDPFL, past: Past, steps: Local, at_most: int | None = None) -> Round:
    """Who takes part, what the channel shows, and what becomes of the models."""
    clients = past.public.clients
    if clients < m.K:
        raise ValueError(
            f"{type(m).__name__}: K = {m.K}, allowed is at most the number of clients, {clients}."
        )
    cohort: Cohort = All(at_most) if clients == m.K else Fixed(m.K, at_most)
    strongest = leader(m)
    return Round(
        cohort=cohort,
        local=steps,
        upload={"model": Upload(), **({"control": Upload()} if m.local == "scaffold" else {})},
        channel=Shuffle() if m.shuffle else Each(),
        aggregate=averaging(m),
        server=Add(share=m.K / clients),
        broadcast=strongest is not None,
        passes_on=strongest,
    )


def averaging(m: UDPFL) -> Aggregate:
    """The mean of the models, or Algorithm 2 over pairs of them."""
    if m.aggregate == "mean":
        return MeanOfPresent()
    return ModeConnectivity(m.curve_steps, m.eta, curve=m.curve)


def local_step(m: UDPFL) -> Step:
    """Plain or SCAFFOLD's; pulled towards w_max by lambda_k where budgets differ (section 3.3)."""
    step: Step = Scaffold(m.eta) if m.local == "scaffold" else SGD(m.eta)
    if leader(m) is None:
        return step
    epsilons = m.epsilon if isinstance(m.epsilon, tuple) else (m.epsilon,)
    most = max(epsilons)
    return Pulled(step, PerClient(tuple((most - epsilon) / most for epsilon in epsilons)))


def leader(m: UDPFL) -> int | None:
    """The first client with the largest epsilon, if some have less."""
    if not isinstance(m.epsilon, tuple) or min(m.epsilon) == max(m.epsilon):
        return None
    return m.epsilon.index(max(m.epsilon))


def budgets(m: UDPFL) -> list[tuple[float, float]]:
    """(epsilon_k, delta_k) of every client, or of all of them."""
    columns = [v for v in (m.epsilon, m.delta) if isinstance(v, tuple)]
    length = len(columns[0]) if columns else 1
    epsilons, deltas = (v if isinstance(v, tuple) else (v,) * length for v in (m.epsilon, m.delta))
    return list(zip(epsilons, deltas, strict=True))


def for_budgets(m: UDPFL, z: Callable[[float, float], float]) -> list[float]:
    """The noise multiplier of every client, or of all of them; none without a scale."""
    return [m.scale * z(*budget) for budget in budgets(m)] if m.scale else []


def spread(m: UDPFL, multipliers: list[float], radial: bool = False) -> Stages:
    """The noise stage: multipliers are its scale over the clip c, for a staircase 1 / epsilon."""
    if not multipliers:
        return ()
    kinds: dict[str, Callable[[Any], Stage]] = {
        "gaussian": Gaussian,
        "laplace": Laplace,
        "staircase": lambda epsilon: (RadialStaircase if radial else Staircase)(epsilon, m.c),
    }
    values = [1 / z if m.noise == "staircase" else z * m.c for z in multipliers]
    return (kinds[m.noise](values[0] if len(values) == 1 else PerClient(tuple(values))),)


@cache
def least(noise: str, dim: int, q: float, steps: int, epsilon: float, delta: float) -> float:
    """The least multiplier within the budget of one record, which may come or go (Poisson batches).

    The clip's margin, the grids and the rounding of multipliers take less than the share added.
    """
    kinds: dict[str, Callable[[float], DpEvent]] = {
        "gaussian": GaussianDpEvent,
        "laplace": lambda z: LaplaceL2DpEvent(z, dim),
        "staircase": lambda z: PureDpEvent(1 / z),
    }

    def run(z: float) -> DpEvent:
        one = kinds[noise](z)
        return SelfComposedDpEvent(one if q == 1 else PoissonSampledDpEvent(q, one), steps)

    return calibrate_scale(run, epsilon, delta).scale * (1 + 1e-5)


def check(m: UDPFL) -> None:
    """Refuse settings that make no sense, in one sentence."""
    wholes(m, "T", "K", "I", "curve_steps")
    between(m, "q", 0, 1, above=True)
    between(m, "c", 0, above=True)
    between(m, "eta", 0, above=True)
    between(m, "scale", 0)
    name = type(m).__name__
    words = {
        "noise": NOISES,
        "aggregate": ("mean", "mode-connectivity"),
        "curve": ("polygon", "bezier"),
        "local": ("sgd", "scaffold"),
    }
    for field, allowed in words.items():
        value = getattr(m, field)
        if value not in allowed:
            raise ValueError(f"{name}: {field} = {value!r}, allowed are {', '.join(allowed)}.")
    columns = {f: v for f in ("epsilon", "delta") if isinstance(v := getattr(m, f), tuple)}
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError(
            f"{name}: epsilon and delta have different lengths, allowed are equal ones."
        )
    for epsilon, delta in budgets(m):
        if not 0 < epsilon < float("inf"):
            raise ValueError(f"{name}: epsilon = {epsilon!r}, allowed is above 0.")
        if not 0 < delta < 1:
            raise ValueError(f"{name}: delta = {delta!r}, allowed is within 0..1.")
    if m.shuffle and leader(m) is not None:
        raise ValueError(
            f"{name}: shuffle = True and budgets that differ, allowed is one of them: behind the "
            "shuffler nobody knows whose model w_max is."
        )
