"""SCAFFOLD: federated averaging whose local steps are corrected by control variates.

Karimireddy, Kale, Mohri, Reddi, Stich, Suresh: SCAFFOLD: Stochastic Controlled Averaging for
Federated Learning, 2020; with their option II for a client's new control.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.aggregates import MeanOfPresent
from confide.cohorts import Epoch, Fixed
from confide.engine.rounds import Local, Past, Round, Upload
from confide.local import Scaffold, between
from confide.methods.setting import Setting, wholes
from confide.servers import Add


@dataclass(frozen=True)
class SCAFFOLD:
    """No noise and no clip: nobody is protected from anybody, and the statement says so."""

    T: int = 100
    m: int = 20
    E: int = 1
    B: int = 120
    eta: float = 0.1
    eta_g: float = 1.0
    name: ClassVar = "scaffold"
    paper: ClassVar = "Karimireddy et al. 2020"
    setting: ClassVar = Setting(clients=100, data="mnist", model="mlp")

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "m", "E", "B")
        between(self, "eta_g", 0, above=True)

    def round(self, past: Past) -> Round | None:
        """Steps along g - c_i + c; the model moves by the mean update, c by |S|/N of the mean."""
        if past.t == self.T:
            return None
        cohort = Fixed(self.m)
        return Round(
            cohort=cohort,
            local=Local(Scaffold(self.eta), self.E, Epoch(self.B, partial=True), remembers=True),
            upload={"update": Upload(), "control": Upload()},
            aggregate=MeanOfPresent(),
            server=Add(self.eta_g, share=cohort.rate(past.public.clients)),
        )
