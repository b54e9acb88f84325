"""DP-FedAvg with noise added once on the sum, in one file.

McMahan, Ramage, Talwar, Zhang: Learning Differentially Private Recurrent Language Models, 2018.
"""

from dataclasses import dataclass
from typing import ClassVar

from confide import Clip, Gaussian, Past, Poisson, Round, Sum
from confide.methods.setting import Setting


@dataclass(frozen=True)
class DPFedAvg:
    """Clients clip their update to C; the aggregator adds noise of sigma C to the sum, once."""

    T: int = 60
    q: float = 0.1
    C: float = 0.3
    sigma: float = 2.4
    noise_field: ClassVar = "sigma"  # what a budget sets
    setting: ClassVar = Setting(clients=1000, data="mnist", model="mlp", records=60)

    def round(self, past: Past) -> Round | None:
        """One round: clip, sum, divide by the public expected size q M, add noise."""
        if past.t == self.T:
            return None
        return Round(
            cohort=Poisson(self.q),
            upload=(Clip(self.C),),
            channel=Sum(),
            publish=(Gaussian(self.sigma * self.C / (self.q * past.public.clients)),),
        )
