"""DSSGD, distributed selective SGD: clients share only a part of their update, without noise.

Shokri, Shmatikov: Privacy-Preserving Deep Learning, 2015; in the form in which Wei et al. (Fed-CDP,
2021, Fig. 4) compare with it. docs/papers/fed-cdp.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from confide.aggregates import MeanOfPresent
from confide.cohorts import Fixed
from confide.engine.rounds import Local, Past, Round
from confide.local import SGD, between
from confide.methods.dp_fedsam import kept
from confide.methods.fed_cdp import FedCDP, one_of
from confide.methods.setting import wholes
from confide.randomness import Stream
from confide.stages import Shared, Stage, TopK


@dataclass(frozen=True)
class DSSGD:
    """The share theta_u of every update, in the clear: nobody is protected from anybody.

    select: "largest" for the entries of largest magnitude, "random" for random ones above tau.
    """

    T: int = 100
    K_t: int = 100
    L: int = 100
    B: int = 5
    theta_u: float = 0.1
    tau: float = 0.0001
    select: str = "largest"
    eta: float = 0.1
    name: ClassVar = "dssgd"
    paper: ClassVar = "Shokri and Shmatikov 2015"
    setting: ClassVar = FedCDP.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "K_t", "L", "B")
        between(self, "theta_u", 0, 1, above=True)
        between(self, "tau", 0)
        one_of(self, "select", ("largest", "random"))

    def round(self, past: Past) -> Round | None:
        """L steps, the selected entries of the update, their mean over the K_t clients."""
        if past.t == self.T:
            return None
        k = kept(self.theta_u, past.public.dim)
        chosen = TopK(k) if self.select == "largest" else RandomAbove(k, self.tau)
        return Round(
            cohort=Fixed(self.K_t),
            local=Local(SGD(self.eta), self.L, Fixed(self.B)),
            upload=(chosen,),
            aggregate=MeanOfPresent(),
        )


@dataclass(frozen=True)
class RandomAbove(Stage):
    """Keep k entries that the client draws among those above tau in magnitude, or all of those.

    It proves nothing: which entries are above tau depends on data.
    """

    k: int
    tau: float

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Zero all others."""
        places = torch.nonzero(x.abs() > self.tau).flatten()
        if len(places) > self.k:
            places = places[torch.from_numpy(own.choose(len(places), self.k))]
        return torch.zeros_like(x).index_copy(0, places, x[places])
