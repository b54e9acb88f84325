"""LDP-FL: every weight of a client's model becomes one of two values, and all are shuffled.

Sun, Qian, Chen: LDP-FL: Practical Private Aggregation in Federated Learning with Local Differential
Privacy, 2021; as a row of UDP-FL's Table 1. What is assumed of it is numbered in
docs/papers/udp-fl-table1.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.aggregates import MeanOfPresent
from confide.channels import Shuffle
from confide.cohorts import Epoch, Fixed
from confide.engine.rounds import Local, Past, Round, Sizes, Stages, Upload
from confide.local import SGD, between
from confide.methods.dp_fedsam import kept
from confide.methods.ldp_fed import check
from confide.methods.setting import Setting, wholes
from confide.published.value import Published
from confide.stages import Clip, RandK, TwoPoint
from confide.stages.randomizers import MOST

PAPER = "Sun et al. 2021"


@dataclass(frozen=True)
class LDPFL:
    """As printed: weights within [-r, r], epsilon for each of them, split and shuffled.

    `scale` divides epsilon. The centre of the range is 0.
    """

    T: int = 10
    m: int = 500
    r: float = 0.15
    epsilon: float = 1.0
    E: int = 1
    B: int = 10
    eta: float = 0.03
    scale: float = 1.0
    name: ClassVar = "ldp-fl"
    paper: ClassVar = PAPER
    noise_field: ClassVar = "scale"
    setting: ClassVar = Setting(clients=500, data="mnist", model="mlp", records=120)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "m", "E", "B")
        check(self, "r", "epsilon")

    def round(self, past: Past) -> Round | None:
        """Each client trains and sends its weights one by one, without a name and in any order."""
        if past.t == self.T:
            return None
        return Round(
            cohort=Fixed(self.m),
            local=Local(SGD(self.eta), self.E, Epoch(self.B, partial=True)),
            upload={"model": Upload(self.sent())},
            channel=Shuffle("coordinate"),
            aggregate=MeanOfPresent(),
        )

    def sent(self) -> Stages:
        """r (e^ε + 1) / (e^ε - 1) or its negative, with the weight as expectation."""
        if not self.scale:
            return (Clip(self.r, p=float("inf")),)
        return (TwoPoint(self.r, self.epsilon / self.scale),)

    def published(self, sizes: Sizes) -> Published:
        """What the paper counts: one weight."""
        return Published(
            self.epsilon, "ε", "LDP-FL, the claim for one weight after splitting and shuffling",
            "ε-LDP for every weight", "client",
            "the weights of one client are different releases, and so are its rounds",
        )  # fmt: skip


@dataclass(frozen=True)
class LDPFLC:
    """Corrected: a share p of an update's entries, and `epsilon` for all of them in one round.

    Updates instead of weights, because entries that are not sent are then zero. `C` is their range.
    """

    T: int = 100
    m: int = 500
    p: float = 0.001
    C: float = 0.02
    epsilon: float = 8.0
    E: int = 1
    B: int = 10
    eta: float = 0.03
    scale: float = 1.0
    name: ClassVar = "ldp-fl-c"
    paper: ClassVar = PAPER
    noise_field: ClassVar = "scale"
    setting: ClassVar = LDPFL.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "m", "E", "B")
        check(self, "C", "epsilon")
        between(self, "p", 0, 1, above=True)

    def round(self, past: Past) -> Round | None:
        """As printed, for the entries of the round's public mask."""
        if past.t == self.T:
            return None
        entries = kept(self.p, past.public.dim)
        share = min(MOST, self.epsilon / self.scale / entries) if self.scale else 0.0
        noisy = TwoPoint(self.C, share) if share else None
        return Round(
            cohort=Fixed(self.m),
            local=Local(SGD(self.eta), self.E, Epoch(self.B, partial=True)),
            upload=(RandK(entries), noisy or Clip(self.C, p=float("inf")), RandK(entries)),
            channel=Shuffle("coordinate"),
            aggregate=MeanOfPresent(),
        )
