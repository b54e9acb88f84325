"""DP-SCAFFOLD: local steps along noisy gradients, corrected by control variates.

Noble, Bellet, Dieuleveut: Differentially Private Federated Learning on Heterogeneous Data, 2022.
docs/papers/beyond.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.aggregates import Mean
from confide.cohorts import Fixed
from confide.engine.rounds import Local, Past, Round, Upload
from confide.local import Scaffold, between
from confide.methods.dp_fedavg import cohort_size
from confide.methods.setting import Setting, wholes
from confide.servers import Add
from confide.stages import Clip, Gaussian


@dataclass(frozen=True)
class DPScaffold:
    """As printed: K steps on a share s of the records, per-example clip, noise on every batch.

    l: the share of clients in a round; sigma_g: noise over what one replaced record can change, 2C.
    What a client remembers is made of noisy gradients alone (docs/proofs/memory.md); no credit is
    taken for the sampling of its records. The paper's theorem is asymptotic: nothing is published.
    """

    T: int = 100
    l: float = 0.2  # noqa: E741 (the paper's symbol)
    s: float = 0.2
    K: int = 10
    C: float = 1.0
    sigma_g: float = 30.0
    eta_l: float = 0.1
    eta_g: float = 1.0
    name: ClassVar = "dp-scaffold"
    paper: ClassVar = "Noble et al. 2022"
    noise_field: ClassVar = "sigma_g"
    setting: ClassVar = Setting(clients=60, data="mnist", model="mlp", records=1000)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "K")
        between(self, "l", 0, 1, above=True)
        between(self, "s", 0, 1, above=True)
        between(self, "C", 0, above=True)
        between(self, "sigma_g", 0)
        between(self, "eta_g", 0, above=True)

    def round(self, past: Past) -> Round | None:
        """Steps along H - c_i + c, new controls by option II, means over the cohort."""
        if past.t == self.T:
            return None
        m = cohort_size(self.l, past.public)
        B = max(1, round(self.s * past.public.records))
        return Round(
            cohort=Fixed(m),
            local=Local(
                Scaffold(self.eta_l),
                self.K,
                Fixed(B),
                example=(Clip(self.C),),
                batch=(Gaussian(2 * self.C * self.sigma_g),),
                average=Mean(by=B),
                remembers=True,
            ),
            upload={"update": Upload(), "control": Upload()},
            server=Add(self.eta_g, share=m / past.public.clients),
        )
