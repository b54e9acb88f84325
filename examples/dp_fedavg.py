"""DP-FedAvg with noise added once on the sum, in one file.

McMahan, Ramage, Talwar, Zhang: Learning Differentially Private Recurrent Language Models, 2018.
"""

from dataclasses import dataclass

from confide.channels import Sum
from confide.cohorts import Poisson
from confide.engine import Past, Round
from confide.stages import Clip, Gaussian


@dataclass(frozen=True)
class DPFedAvg:
    """Clients clip their update to C; the aggregator adds noise of sigma C to the sum, once."""

    clients: int = 1000
    records: int = 60
    layers: tuple[int, ...] = (25088, 32, 320, 10)  # an MLP 784-32-10
    T: int = 60
    q: float = 0.1
    C: float = 0.3
    sigma: float = 2.4

    def round(self, past: Past) -> Round | None:
        """One round: clip, sum, divide by the public expected size q M, add noise."""
        if past.t == self.T:
            return None
        return Round(
            cohort=Poisson(self.q),
            upload=(Clip(self.C),),
            channel=Sum(),
            publish=(Gaussian(self.sigma * self.C / (self.q * self.clients)),),
        )
