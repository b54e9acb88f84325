"""DP-BandMF: Gaussian noise whose rounds cancel one another, by a banded matrix factorisation.

Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta, Xu: (Amplified) Banded Matrix
Factorization: A unified approach to private training, 2023. docs/papers/beyond.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.channels import Sum
from confide.cohorts import Epoch, Spaced
from confide.correlations import least_error
from confide.engine.rounds import Local, Past, Round
from confide.local import SGD, between
from confide.methods.dp_fedavg import DPFedAvg
from confide.methods.setting import Setting, wholes
from confide.servers import Add, Momentum
from confide.stages import Clip, Correlated


@dataclass(frozen=True)
class DPBandMF:
    """As described: b groups of clients take turns, and the noise of b rounds is correlated."""

    T: int = 300
    b: int = 10
    C: float = 0.2
    sigma: float = 4.0
    E: int = 30
    B: int = 50
    eta: float = 0.1
    momentum: float = 0.5
    decay: float = 0.0005
    beta: float = 0.0
    name: ClassVar = "dp-bandmf"
    paper: ClassVar = "Choquette-Choo et al. 2023"
    noise_field: ClassVar = "sigma"
    setting: ClassVar[Setting] = DPFedAvg.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "b", "E", "B")
        between(self, "C", 0, above=True)
        between(self, "sigma", 0)
        between(self, "beta", 0, 1)

    def round(self, past: Past) -> Round | None:
        """The group whose turn it is clips; sigma C n_t is added once to its sum."""
        if past.t == self.T:
            return None
        expected = past.public.clients / self.b
        strategy = least_error(self.T, self.b, self.beta)
        return Round(
            cohort=Spaced(self.b),
            local=Local(
                SGD(self.eta, self.momentum, self.decay), self.E, Epoch(self.B, partial=True)
            ),
            upload=(Clip(self.C),),
            channel=Sum(),
            publish=(Correlated(self.sigma * self.C / expected, strategy),),
            server=Momentum(self.beta) if self.beta else Add(),
        )
