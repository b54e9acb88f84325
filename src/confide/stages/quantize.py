"""Stochastic quantisation to k levels, with rounding conditioned on the norm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf, isfinite, log, sqrt

import torch
from torch import Tensor

from confide.claims import Claim
from confide.randomness import Stream
from confide.stages.bounds import finite
from confide.stages.stage import Shared, Stage, at_least, floating, positive

BETA = exp(-0.5)
"""A rounding is drawn again with at most this probability; a smaller one loosens the bound."""

TRIES = 64


@dataclass(frozen=True)
class Quantize(Stage):
    """Round each entry at random to one of k equally spaced levels in [-X, X], without bias.

    `norm` is the l2 norm of what arrives. With it, rounding is drawn again until the rounded
    vector's norm is at most `bound` (a small bias), and after TRIES draws towards zero. With
    `failure` above 0 nothing is drawn again and the same bound holds but for that probability.

    Proof, in units of the step, for d entries x_i with fractional part f and rounding R_i:
    E R_i^2 = x_i^2 + f(1-f) <= x_i^2 + 1/4, and R_i^2 takes two values |2n+1| <= 2|x_i| + 1 apart,
    so by Hoeffding's inequality the sum exceeds ‖x‖^2 + d/4 + sqrt(2 log(1/beta)) (‖x‖ + sqrt(d)/2)
    with probability at most beta. Always ‖R‖ <= ‖x‖ + sqrt(d). Rounding towards zero lengthens
    nothing. Entries outside of [-X, X] are clamped first, which lengthens nothing either.
    """

    k: int
    X: float
    norm: float = inf
    failure: float = 0.0

    def __post_init__(self) -> None:
        """An odd number of levels, so that zero is one of them."""
        at_least(self, "k", 3)
        if self.k % 2 == 0:
            raise ValueError(
                f"Quantize: k = {self.k}, allowed are odd numbers, so that zero is a level."
            )
        positive(self, "X")
        if self.norm != inf:
            positive(self, "norm")
        if not (isfinite(self.failure) and 0 <= self.failure < 1):
            raise ValueError(
                f"Quantize: failure = {self.failure!r}, allowed is at least 0 and below 1."
            )

    @property
    def step(self) -> float:
        """The distance of two levels."""
        return 2 * self.X / (self.k - 1)

    def bound(self, entries: int) -> float:
        """The l2 norm of the rounded vector, given `norm`."""
        x, d = self.norm / self.step, entries
        beta = self.failure or BETA
        likely = x**2 + d / 4 + sqrt(2 * log(1 / beta)) * (x + sqrt(d) / 2)
        return self.step * min(sqrt(likely), x + sqrt(d))

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Round, in double precision, so that levels are exact."""
        most = (self.k - 1) // 2
        position = (finite(floating(self, x)).double() / self.step).clamp(-most, most)
        floor = position.floor()
        limit = inf if self.failure else self.bound(x.numel())
        for _ in range(TRIES):
            up = torch.from_numpy(own.uniform(tuple(x.shape))).to(x.device) <= position - floor
            level = (floor + up).mul(self.step)
            if float(torch.linalg.vector_norm(level)) <= limit:
                return level
        return position.trunc().mul(self.step)

    def claim(self, c: Claim) -> Claim:
        """The rounded vector's norms, and its grid."""
        out = replace(c.mapped(linf=self.X), grid=self.step)
        if c.length is None or self.norm == inf or c.l2 > self.norm or c.noisy or c.pooled:
            return out
        # The factor covers the rounding of a norm summed in double precision.
        l2 = min(out.l2, self.bound(c.length) * (1 + 1e-6))
        return replace(out, l2=l2, fails=c.fails + self.failure)
