"""FedSAM: federated averaging of sharpness-aware local steps, without privacy.

Qu, Li, Duan, Liu, Tang, Lu: Generalized Federated Learning via Sharpness Aware Minimization, 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.local import SAM, Step
from confide.methods.dp_fedavg import DPFedAvg
from confide.methods.fedavg import FedAvg


@dataclass(frozen=True)
class FedSAM(FedAvg):
    """No noise and no clip: nobody is protected from anybody, and the statement says so."""

    T: int = 300
    m: int = 50
    E: int = 30
    B: int = 50
    rho: float = 0.5
    momentum: float = 0.5
    decay: float = 0.0005
    name: ClassVar = "fedsam"
    paper: ClassVar = "Qu et al. 2022"
    setting: ClassVar = DPFedAvg.setting

    def step(self) -> Step:
        """Clients take sharpness-aware steps."""
        return SAM(self.eta, self.rho, self.momentum, self.decay)
