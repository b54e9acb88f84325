"""Federated stochastic gradient descent: one step on all of a client's records in each round.

McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-Efficient Learning of Deep Networks
from Decentralized Data, 2017; there it is the case E = 1 and B = infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.aggregates import MeanOfPresent
from confide.cohorts import All, Fixed
from confide.engine.rounds import Local, Past, Round
from confide.local import SGD
from confide.methods.fedavg import FedAvg
from confide.methods.setting import wholes


@dataclass(frozen=True)
class FedSGD:
    """No noise and no clip: nobody is protected from anybody, and the statement says so."""

    T: int = 100
    m: int = 10
    eta: float = 0.1
    name: ClassVar = "fedsgd"
    paper: ClassVar = "McMahan et al. 2017"
    setting: ClassVar = FedAvg.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "m")

    def round(self, past: Past) -> Round | None:
        """m clients take one full-batch step; the next model is the mean of theirs."""
        if past.t == self.T:
            return None
        return Round(
            cohort=Fixed(self.m),
            local=Local(SGD(self.eta), sampler=All()),
            aggregate=MeanOfPresent(),
        )
