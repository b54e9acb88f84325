"""FedSAM: federated averaging of sharpness-aware local steps, without privacy.

Qu, Li, Duan, Liu, Tang, Lu: Generalized Federated Learning via Sharpness Aware Minimization, 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.aggregates import MeanOfPresent
from confide.cohorts import Epoch, Fixed
from confide.engine.rounds import Local, Past, Round
from confide.local import SAM
from confide.methods.dp_fedavg import DPFedAvg
from confide.methods.setting import wholes


@dataclass(frozen=True)
class FedSAM:
    """No noise and no clip: nobody is protected from anybody, and the statement says so."""

    T: int = 300
    m: int = 50
    E: int = 30
    B: int = 50
    eta: float = 0.1
    rho: float = 0.5
    momentum: float = 0.5
    decay: float = 0.0005
    name: ClassVar = "fedsam"
    paper: ClassVar = "Qu et al. 2022"
    setting: ClassVar = DPFedAvg.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "m", "E", "B")

    def round(self, past: Past) -> Round | None:
        """m clients take SAM steps for E epochs; the next model is the mean of theirs."""
        if past.t == self.T:
            return None
        return Round(
            cohort=Fixed(self.m),
            local=Local(
                SAM(self.eta, self.rho, self.momentum, self.decay),
                self.E,
                Epoch(self.B, partial=True),
            ),
            aggregate=MeanOfPresent(),
        )
