"""Local randomisers: each is pure epsilon-DP for any two inputs, whatever their distance.

Coins are tossed with 53 bits. The least probability of a coin at epsilon <= MOST is above 2e-9, so
rounding changes no logarithm of a ratio by more than ROUNDING, which every claim adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log, sqrt, tanh

import dp_accounting as dp
import numpy as np
import torch
from torch import Tensor

from confide.accounting.events import DpEvent, PureDpEvent, SelfComposedDpEvent
from confide.accounting.relations import Relation
from confide.claims import Claim
from confide.randomness import Stream
from confide.randomness.floating import sphere
from confide.stages.bounds import finite
from confide.stages.noises import FLOATING
from confide.stages.stage import Shared, Stage, at_least, floating, positive

MOST = 20.0
ROUNDING = 1e-6


@dataclass(frozen=True)
class RandomizedResponse(Stage):
    """Each entry goes to the nearest of k levels in [-C, C], then to another one at random.

    It stays with probability e^epsilon / (e^epsilon + k - 1), else each other level is as likely.

    Proof: for any two levels, any output is at most e^epsilon times as likely under one as under
    the other. Entries are randomised independently, so a vector composes one release per entry.
    """

    k: int
    C: float
    epsilon: float

    def __post_init__(self) -> None:
        """At least two levels."""
        check_levels(self)

    @property
    def lies(self) -> float:
        """The probability that an entry's level is exchanged for a uniformly chosen one."""
        return self.k / (exp(self.epsilon) + self.k - 1)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Nearest level, then randomise."""
        shape, level = tuple(x.shape), nearest_level(self, x)
        other = torch.from_numpy(own.integers(self.k, shape).astype(np.int64)).to(x.device)
        lie = torch.from_numpy(own.bernoulli(self.lies, shape)).to(x.device)
        level = torch.where(lie, other.double(), level)
        return of_level(self, level)

    def claim(self, c: Claim) -> Claim:
        """One release for each entry that can differ."""
        if c.relation is Relation.REPLACE_ONE:
            one: DpEvent = dp.RandomizedResponseDpEvent(self.lies, self.k)
        else:
            one = PureDpEvent(self.epsilon + ROUNDING)
        return randomized(self, c, one, self.epsilon, self.C)


@dataclass(frozen=True)
class TwoPoint(Stage):
    """Each entry of [-C, C] becomes one bit, +A or -A, with its own value as expectation.

    A = C / tanh(epsilon/2), and +A has probability 1/2 + x/(2A). (Duchi, Jordan, Wainwright:
    Local privacy and statistical minimax rates, 2013.)

    Proof: the probability of either sign lies in [1/(1+e^epsilon), e^epsilon/(1+e^epsilon)].
    """

    C: float
    epsilon: float

    def __post_init__(self) -> None:
        """A range and a budget."""
        positive(self, "C")
        positive(self, "epsilon", most=MOST)

    @property
    def A(self) -> float:
        """The size of what is sent."""
        return self.C / tanh(self.epsilon / 2)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Toss each entry's coin."""
        x = finite(floating(self, x)).double().clamp(-self.C, self.C)
        toss = torch.from_numpy(own.uniform(tuple(x.shape))).to(x.device)
        return torch.where(toss <= 0.5 + x / (2 * self.A), 1.0, -1.0).double() * self.A

    def claim(self, c: Claim) -> Claim:
        """One release for each entry that can differ."""
        return randomized(self, c, PureDpEvent(self.epsilon + ROUNDING), self.epsilon, self.A)


@dataclass(frozen=True)
class Ordinal(Stage):
    """Exponential mechanism on k ordered levels: level j with weight exp(-epsilon |i-j| / (k-1)).

    Proof: let t = epsilon/(k-1), Z(i) = sum_j exp(-t |i-j|) and G(i) = exp(t i) Z(i), which is
    sum_j exp(t min(j, 2i-j)) and so does not fall in i. For i < u an output j is at most
    exp(t (u-i)) Z(u)/Z(i) = G(u)/G(i) times as likely under i as under u, hence at most
    G(k-1)/G(0) = e^epsilon times, as Z(0) = Z(k-1). For i > u reflect the levels.
    """

    k: int
    C: float
    epsilon: float

    def __post_init__(self) -> None:
        """At least two levels."""
        check_levels(self)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Nearest level, then the exponential mechanism by inversion."""
        level = nearest_level(self, x).long()
        index = torch.arange(self.k)
        weight = torch.exp(-self.epsilon / (self.k - 1) * (index[:, None] - index).abs().double())
        cdf = (weight.cumsum(1) / weight.sum(1, keepdim=True)).contiguous()
        toss = torch.from_numpy(own.uniform(tuple(x.shape))).to(x.device)
        chosen = torch.zeros_like(level)
        for i in range(self.k):
            here = level == i
            chosen[here] = torch.searchsorted(cdf[i].to(x.device), toss[here])
        return of_level(self, chosen.clamp(max=self.k - 1))

    def claim(self, c: Claim) -> Claim:
        """One release for each entry that can differ."""
        return randomized(self, c, PureDpEvent(self.epsilon + ROUNDING), self.epsilon, self.C)


@dataclass(frozen=True)
class BallRandomizer(Stage):
    """A vector of the l2 ball of radius C becomes a point of a sphere, with itself as expectation.

    Its direction u gets a random sign, + with probability 1/2 + ‖x‖/(2C); then a uniform point of
    the unit sphere is sent, from the half facing that direction with probability
    e^epsilon/(1+e^epsilon), times the radius that makes the expectation x. (Duchi, Jordan,
    Wainwright: Minimax optimal procedures for locally private estimation, 2018.)

    Proof: whatever the direction, the density on the sphere takes only two values, in the ratio
    e^epsilon, and mixing two such densities stays within that ratio.
    """

    C: float
    epsilon: float

    def __post_init__(self) -> None:
        """A radius and a budget."""
        positive(self, "C")
        positive(self, "epsilon", most=MOST)

    def radius(self, dim: int) -> float:
        """The length of what is sent: C / (tanh(epsilon/2) E|v_1|), v uniform on the sphere."""
        mean = exp(lgamma(dim / 2) - lgamma((dim + 1) / 2) - log(sqrt(np.pi)))
        return self.C / (tanh(self.epsilon / 2) * mean)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Random sign, random half sphere."""
        flat = finite(floating(self, x)).double().flatten().cpu()
        length = float(torch.linalg.vector_norm(flat))
        axis = flat / length if length > 0 else torch.from_numpy(sphere(own, flat.numel()))
        facing = float(own.uniform((1,))[0]) <= 0.5 + min(length, self.C) / (2 * self.C)
        keep = float(own.uniform((1,))[0]) <= 1 / (1 + exp(-self.epsilon))
        point = torch.from_numpy(sphere(own, flat.numel()))
        along = float(point @ axis) >= 0
        sign = 1.0 if along == (facing == keep) else -1.0
        return (point * (sign * self.radius(flat.numel()))).view(x.shape).to(x.device)

    def claim(self, c: Claim) -> Claim:
        """One release of the whole vector."""
        size = self.radius(c.length) if c.length is not None else float("inf")
        out = c.randomized(l2=size).assuming(FLOATING)
        return out.released(PureDpEvent(self.epsilon + ROUNDING))


def check_levels(stage: RandomizedResponse | Ordinal) -> None:
    """At least two levels, a range and a budget."""
    at_least(stage, "k", 2)
    positive(stage, "C")
    positive(stage, "epsilon", most=MOST)


def nearest_level(stage: RandomizedResponse | Ordinal, x: Tensor) -> Tensor:
    """For each entry the number of the nearest of the k levels in [-C, C]."""
    x = finite(floating(stage, x)).double().clamp(-stage.C, stage.C)
    return ((x + stage.C) * ((stage.k - 1) / (2 * stage.C))).round()


def of_level(stage: RandomizedResponse | Ordinal, level: Tensor) -> Tensor:
    """The value of each level."""
    return level * (2 * stage.C / (stage.k - 1)) - stage.C


def randomized(stage: Stage, c: Claim, one: DpEvent, epsilon: float, size: float) -> Claim:
    """Entries randomised one by one: a release for each that can differ between two worlds."""
    out = c.randomized(linf=size)
    if c.dim is None:
        name = type(stage).__name__
        return out.uncovered(f"{name}: the number of entries is unknown, so is what they add up to")
    event = one if c.dim == 1 else SelfComposedDpEvent(one, c.dim)
    return out.released(event, per_coordinate=epsilon + ROUNDING)
