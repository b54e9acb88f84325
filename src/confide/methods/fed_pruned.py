"""Communication-efficient federated learning: clients leave the smallest entries of updates out.

In the form in which Wei et al. (Gradient-Leakage Resilient Federated Learning, 2021, Fig. 5) prune
up to 30 % of what is sent, by itself or on top of their own methods. docs/papers/fed-cdp.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from confide.cohorts import Fixed
from confide.engine.rounds import Local, Past, Round
from confide.local import SGD, between
from confide.methods.dp_fedsam import kept
from confide.methods.fed_cdp import FedCDP, FedCDPDecay, check, one_of
from confide.methods.fed_sdp import FedSDP
from confide.methods.setting import wholes
from confide.stages import TopK

PRIVACY = ("none", "fed-sdp", "fed-cdp", "fed-cdp-decay")


@dataclass(frozen=True)
class FedPruned:
    """As printed: each client leaves out the share `ratio` of its update, its smallest entries.

    privacy: which method the pruning comes after, "none", "fed-sdp" (with noise at the client),
    "fed-cdp" or "fed-cdp-decay"; C, C_last and sigma are that method's. Pruning is no protection.
    """

    T: int = 100
    K_t: int = 100
    L: int = 100
    B: int = 5
    ratio: float = 0.3
    privacy: str = "none"
    C: float = 4.0
    C_last: float = 2.0
    sigma: float = 6.0
    eta: float = 0.1
    name: ClassVar = "fed-pruned"
    paper: ClassVar = "Wei et al. 2021"
    setting: ClassVar = FedCDP.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "K_t", "L", "B")
        check(self)
        between(self, "ratio", 0, 1)
        if self.ratio == 1:
            raise ValueError("FedPruned: ratio = 1, allowed is below 1: something must be sent.")
        one_of(self, "privacy", PRIVACY)

    def round(self, past: Past) -> Round | None:
        """The round of the method beneath, and at the end of every upload its largest entries."""
        if past.t == self.T:
            return None
        beneath = self.unpruned(past)
        (update,) = beneath.uploads.values()
        prune = TopK(kept(1 - self.ratio, past.public.dim))
        return replace(beneath, upload=(*update.stages, prune))

    def unpruned(self, past: Past) -> Round:
        """The same round without pruning."""
        counts = self.T, self.K_t, self.L, self.B
        given = Round(Fixed(self.K_t), Local(SGD(self.eta), self.L, Fixed(self.B)))
        match self.privacy:
            case "fed-sdp":
                given = FedSDP(*counts, self.C, self.sigma, self.eta, "client").round(past)
            case "fed-cdp":
                given = FedCDP(*counts, self.C, self.sigma, self.eta).round(past)
            case "fed-cdp-decay":
                method = FedCDPDecay(*counts, self.C, self.sigma, self.eta, self.C_last)
                given = method.round(past)
            case _:
                pass
        assert given is not None  # it has as many rounds
        return given
