"""FedProx: federated averaging whose local steps are pulled back to the model they began with.

Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith: Federated Optimization in Heterogeneous Networks, 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.aggregates import MeanOfPresent
from confide.cohorts import Epoch, Fixed
from confide.engine.rounds import Local, Past, Round
from confide.local import Prox
from confide.methods.setting import Setting, wholes


@dataclass(frozen=True)
class FedProx:
    """No noise and no clip: nobody is protected from anybody, and the statement says so."""

    T: int = 200
    m: int = 10
    E: int = 20
    B: int = 10
    eta: float = 0.03
    mu: float = 1.0
    name: ClassVar = "fedprox"
    paper: ClassVar = "Li et al. 2020"
    setting: ClassVar = Setting(clients=1000, data="mnist", model="mlp", records=60)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "m", "E", "B")

    def round(self, past: Past) -> Round | None:
        """m clients minimise their loss plus mu/2 ‖w - w_t‖^2 for E epochs; the mean of theirs."""
        if past.t == self.T:
            return None
        return Round(
            cohort=Fixed(self.m),
            local=Local(Prox(self.eta, self.mu), self.E, Epoch(self.B, partial=True)),
            aggregate=MeanOfPresent(),
        )
