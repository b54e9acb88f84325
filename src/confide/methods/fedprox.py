"""FedProx: federated averaging whose local steps are pulled back to the model they began with.

Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith: Federated Optimization in Heterogeneous Networks, 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.local import Prox, Step
from confide.methods.fedavg import FedAvg
from confide.methods.setting import Setting


@dataclass(frozen=True)
class FedProx(FedAvg):
    """No noise and no clip: nobody is protected from anybody, and the statement says so."""

    T: int = 200
    E: int = 20
    eta: float = 0.03
    mu: float = 1.0
    name: ClassVar = "fedprox"
    paper: ClassVar = "Li et al. 2020"
    setting: ClassVar = Setting(clients=1000, data="mnist", model="mlp", records=60)

    def step(self) -> Step:
        """Clients minimise their loss plus mu/2 ‖w - w_t‖^2."""
        return Prox(self.eta, self.mu)
