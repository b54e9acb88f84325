"""DP-FedAGS: noise on significant gradients only, and weights from sizes and losses.

Zhang, Mao, Tu, He, Ping, Wu: Optimizing Privacy-Accuracy Trade-off in DP-FL via Significant
Gradient Perturbation. docs/papers/dp-fedags.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from confide.aggregates import ByLossAndSize
from confide.channels import Sum
from confide.claims import Claim
from confide.cohorts import Epoch, Fixed, Poisson
from confide.engine.rounds import Local, Past, Round, Sizes, Upload
from confide.local import SGD, between
from confide.methods.setting import Setting, wholes
from confide.published import dp_fedags
from confide.published.value import Published
from confide.randomness import Stream
from confide.servers import Add
from confide.stages import Clip, Gaussian, Mask, Places, Scale, Shared, Stage

if TYPE_CHECKING:
    from confide.engine.outcomes import Outcome

PAPER = "Zhang et al. (DP-FedAGS)"
LEAST_LOSS = 0.01
"""A noisy mean of losses counts as at least this share of L_max: it is divided by."""


@dataclass(frozen=True)
class DPFedAGS:
    """As printed (Algorithm 1): raw losses and sizes, and noise above the threshold only.

    `rest` is epsilon_3's share of epsilon, `scale` a factor on sigma, `weights` "fixed" for n_k/n.
    """

    T: int = 200
    m: int = 10
    E: int = 1
    B: int = 128
    eta: float = 0.1
    C: float = 1.0
    epsilon: float = 0.5
    rest: float = 0.9
    q: float = 1.0
    Delta_S: float = 1.0
    weights: str = "dynamic"
    scale: float = 1.0
    name: ClassVar = "dp-fedags"
    paper: ClassVar = PAPER
    noise_field: ClassVar = "scale"
    setting: ClassVar = Setting(clients=100, data="mnist", model="cnn2")

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check(self)
        between(self, "q", 0, above=True)
        if not 0 < self.rest < 1:
            raise ValueError(f"DPFedAGS: rest = {self.rest!r}, allowed is between 0 and 1.")

    def round(self, past: Past) -> Round | None:
        """Lines 4 to 31, on x = -g' in place of g'."""
        if past.t == self.T:
            return None
        one, two, _ = dp_fedags.budget_split(self.epsilon, self.rest * self.epsilon, self.q)
        alpha, beta = (dp_fedags.algorithm_1_scale(self.Delta_S, number(e)) for e in (one, two))
        noise = NoiseAboveThreshold(
            rank=threshold_rank(past.t + 1, self.T, past.public.dim),
            alpha=number(alpha),
            beta=number(beta),
            std=self.scale * number(dp_fedags.eq_2_sigma(self.Delta_S, self.epsilon)) * self.C,
        )
        update = Upload((Scale(1 / self.eta), Clip(self.C), noise), data="train")
        return printed_round(self, update, losses=self.weights == "dynamic")

    def published(self, sizes: Sizes) -> Published | None:
        """Theorem 2; without noise it has no value."""
        return dp_fedags.theorem_2_epsilon(self.epsilon) if self.scale else None


def printed_round(method: Any, update: Upload, losses: bool) -> Round:
    """m clients send this, their raw sizes and, if they are weighed by them, their raw losses."""
    uploads = {"update": update, "size": Upload((), length=1, data="train", value=size)}
    if losses:
        uploads["loss"] = Upload((), length=1, data="train")
    return Round(
        cohort=Fixed(method.m),
        local=Local(SGD(method.eta), method.E, Epoch(method.B, partial=True)),
        upload=uploads,
        aggregate=ByLossAndSize(losses),
        server=Add(method.eta),
    )


@dataclass(frozen=True)
class DPFedAGSC:
    """Corrected: a public mask, noise on all coordinates, and weights inside the clip.

    `sigma` is the multiplier of the whole round: the losses, the significant coordinates and the
    others share 1/sigma^2 as `loss_share`, the rest of it and `other_share` say. Clients compare
    their loss with the mean of the last `window` released ones, their size with the constant
    `records`. What is proved, and why: docs/papers/dp-fedags.md.
    """

    T: int = 200
    q: float = 0.1
    E: int = 1
    B: int = 128
    eta: float = 0.1
    C: float = 1.0
    C_N: float = 0.1
    omega: float = 0.1
    sigma: float = 1.0
    loss_share: float = 0.02
    other_share: float = 0.1
    L_max: float = 4.0
    window: int = 10
    records: float = 600.0
    weights: str = "dynamic"
    name: ClassVar = "dp-fedags-c"
    paper: ClassVar = PAPER
    noise_field: ClassVar = "sigma"
    setting: ClassVar = DPFedAGS.setting
    keep: ClassVar = 1  # the model before the last: the mask needs the last aggregate

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check(self)
        between(self, "q", 0, 1, above=True)
        between(self, "omega", 0, 1, above=True)
        if not self.loss_share + self.other_share < 1:
            raise ValueError(
                f"DPFedAGSC: loss_share + other_share = {self.loss_share + self.other_share!r}, "
                "allowed is below 1: the significant coordinates have the rest."
            )

    def round(self, past: Past) -> Round | None:
        """Clip w(L_k, L-hat) g_k on the mask and off it; one coin for the round's noisy sums."""
        if past.t == self.T:
            return None
        share = max(1 - past.t / self.T, self.omega)
        significant, others = masks(past, ceil(share * past.public.dim))
        parts = {"update": Part(significant, self.C, 1 - self.loss_share - self.other_share)}
        if others:
            parts["rest"] = Part(others, self.C_N, self.other_share)
        dynamic = self.weights == "dynamic"
        if dynamic:
            parts["loss"] = Part((), self.L_max, self.loss_share)
        seen = past.values("loss")
        L = mean_loss(seen[-self.window :], self.L_max) if seen else None
        return weighted_round(self, past, parts, Weighed(self.eta, self.records, dynamic, L))


@dataclass(frozen=True)
class Part:
    """One of the vectors that a round releases: its stages, its bound, its share of 1/sigma^2."""

    mask: tuple[Stage, ...]
    bound: float
    share: float


def weighted_round(method: Any, past: Past, parts: dict[str, Part], weigh: Weighed) -> Round:
    """Clipped sums of these parts of w_k g_k, and of the losses, all noised under one coin."""
    expected = method.q * past.public.clients
    whole = sum(part.share for part in parts.values())

    def upload(name: str, part: Part) -> Upload:
        if name == "loss":
            return Upload((Clip(part.bound),), length=1, data="train")
        return Upload((*part.mask, Clip(part.bound)), data="train", value=weigh)

    def noise(part: Part) -> Gaussian:
        return Gaussian(method.sigma * sqrt(whole / part.share) * part.bound / expected)

    return Round(
        cohort=Poisson(method.q),
        local=Local(SGD(method.eta), method.E, Epoch(method.B, partial=True)),
        upload={name: upload(name, part) for name, part in parts.items()},
        channel=Sum(),
        publish={name: (noise(part), *part.mask) for name, part in parts.items()},
        server=Add(method.eta),
    )


@dataclass(frozen=True)
class Weighed:
    """-w_k g_k, w_k = (n_k / n + L_k / L) / 2: eq. (37) times the number of clients.

    `n` is a constant that depends on no data, `L` a released noisy mean of losses; before the first
    all losses count as equal. Nothing is proved here: the clip that follows it does.
    """

    eta: float
    n: float
    losses: bool
    L: float | None

    def __call__(self, done: Outcome) -> Tensor:
        """The summed gradients are minus the update over eta."""
        weight = done.records / self.n
        if self.losses:
            weight = (weight + (1.0 if self.L is None else float(done.loss) / self.L)) / 2
        return done.update * (weight / self.eta)


def mean_loss(released: list[float], L_max: float) -> float:
    """The mean of released noisy means of losses, kept away from 0."""
    return max(sum(released) / len(released), LEAST_LOSS * L_max)


def masks(past: Past, k: int) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
    """The k coordinates that moved most in the last aggregate, and the others, if there are any."""
    d = past.public.dim
    if k >= d:
        return (), ()
    if past.model is None:  # a plan
        return (Mask(Places.first(k, d)),), (Mask(Places.first(d - k, d)),)
    moved = (past.model - past.earlier[-1]).abs()
    chosen = torch.zeros_like(moved, dtype=torch.bool)
    chosen[moved.topk(k).indices] = True
    return (Mask(Places.of(chosen)),), (Mask(Places.of(~chosen)),)


def threshold_rank(t: int, T: int, d: int) -> int:
    """Eq. (35): the place of lambda_t among the d sorted values, for t = 1..T."""
    return min(-(-t * d // T), -(-9 * d // 10))


def size(done: Outcome) -> Tensor:
    """The raw number of records."""
    return done.start.new_tensor([float(done.records)])


def number(printed: Published) -> float:
    """What a printed formula sets the noise to."""
    return float(printed.value.real)


def check(method: Any) -> None:
    """Refuse settings that make no sense."""
    wholes(method, *(f for f in ("T", "m", "E", "B", "window") if hasattr(method, f)))
    least = ("scale", "sigma", "tau")  # these may be 0
    above = ("eta", "C", "C_N", "epsilon", "Delta_S", "L_max", "loss_share", "other_share")
    for field in (*least, *above, "records"):
        if hasattr(method, field):
            between(method, field, 0, above=field not in least)
    if getattr(method, "weights", "fixed") not in ("dynamic", "fixed"):
        raise ValueError(
            f"{type(method).__name__}: weights = {method.weights!r}, "
            "allowed are 'dynamic' and 'fixed'."
        )


@dataclass(frozen=True)
class NoiseAboveThreshold(Stage):
    """N(0, std^2) wherever g + alpha >= lambda + beta, for g = -x and lambda its rank-th value.

    alpha has a Laplace draw for each coordinate, beta one for all. It proves nothing: coordinates
    below the threshold leave as they are, and lambda is a raw order statistic.
    """

    rank: int
    alpha: float
    beta: float
    std: float

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Lines 23 to 29 of Algorithm 1."""
        threshold = (-x).kthvalue(self.rank).values.double().cpu()
        alpha, beta = (laplace(own, n) for n in (x.numel(), 1))
        noise = torch.from_numpy(own.normal(tuple(x.shape)))
        values = x.detach().cpu().double()
        above = -values + self.alpha * alpha >= threshold + self.beta * beta
        return torch.where(above, values + self.std * noise, values).to(x)

    def claim(self, c: Claim) -> Claim:
        """Its zeros of noise are what a client's own data choose."""
        return c.forgotten(
            "coordinates below the threshold carry no noise, and a client's own data choose them"
        )


def laplace(own: Stream, n: int) -> Tensor:
    """Standard Laplace draws."""
    return torch.from_numpy(own.exponential((n,)) - own.exponential((n,)))
