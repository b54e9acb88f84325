"""CLDP-SGD: each client sends one clipped gradient by a local randomiser, through a shuffler.

Girgis, Data, Diggavi, Kairouz, Suresh: Shuffled Model of Differential Privacy in Federated
Learning, 2021; as a row of UDP-FL's Table 1. Its printed form is sound, as
docs/papers/udp-fl-table1.md says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.aggregates import MeanOfPresent
from confide.channels import Shuffle
from confide.cohorts import Fixed
from confide.engine.rounds import Local, Past, Round, Stages
from confide.local import SGD
from confide.methods.ldp_fed import check
from confide.methods.setting import Setting, wholes
from confide.stages import BallRandomizer, Clip


@dataclass(frozen=True)
class CLDPSGD:
    """As printed, for the l2 ball: k of m clients, one record each, shuffled, averaged.

    `scale` divides the randomiser's epsilon_0.
    """

    T: int = 480
    k: int = 10_000
    C: float = 1.0
    epsilon_0: float = 2.0
    eta: float = 0.1
    scale: float = 1.0
    name: ClassVar = "cldp-sgd"
    paper: ClassVar = "Girgis et al. 2021"
    noise_field: ClassVar = "scale"
    setting: ClassVar = Setting(clients=60_000, data="mnist", model="mlp", records=1)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "k")
        check(self, "C", "epsilon_0")

    def round(self, past: Past) -> Round | None:
        """One step on one record; what it would move the model by is clipped and randomised."""
        if past.t == self.T:
            return None
        return Round(
            cohort=Fixed(self.k),
            local=Local(SGD(self.eta), sampler=Fixed(1)),
            upload=self.sent(),
            channel=Shuffle(),
            aggregate=MeanOfPresent(),
        )

    def sent(self) -> Stages:
        """A step of length eta C is a gradient of length C."""
        length = self.eta * self.C
        if not self.scale:
            return (Clip(length),)
        return (Clip(length), BallRandomizer(length, self.epsilon_0 / self.scale))
