"""Federated averaging: local epochs, then the plain mean of what came back.

McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-Efficient Learning of Deep Networks
from Decentralized Data, 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.aggregates import MeanOfPresent
from confide.cohorts import Epoch, Fixed
from confide.engine.rounds import Local, Past, Round
from confide.local import SGD, Step
from confide.methods.setting import Setting, wholes


@dataclass(frozen=True)
class FedAvg:
    """No noise and no clip: nobody is protected from anybody, and the statement says so."""

    T: int = 100
    m: int = 10
    E: int = 1
    B: int = 10
    eta: float = 0.1
    name: ClassVar = "fedavg"
    paper: ClassVar = "McMahan et al. 2017"
    setting: ClassVar = Setting(clients=100, data="mnist", model="mlp")

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "m", "E", "B")

    def round(self, past: Past) -> Round | None:
        """m clients train for E epochs; the next model is the mean of theirs."""
        if past.t == self.T:
            return None
        return Round(
            cohort=Fixed(self.m),
            local=Local(self.step(), self.E, Epoch(self.B, partial=True)),
            aggregate=MeanOfPresent(),
        )

    def step(self) -> Step:
        """Plain descent."""
        return SGD(self.eta)
