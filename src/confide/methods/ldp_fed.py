"""LDP-Fed: clients send a part of their update, every entry randomised by itself.

Truex, Liu, Chow, Gursoy, Wei: LDP-Fed: Federated Learning with Local Differential Privacy, 2020; as
a row of UDP-FL's Table 1. What is assumed of it is numbered in docs/papers/udp-fl-table1.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from confide.aggregates import MeanOfPresent
from confide.cohorts import Epoch, Fixed
from confide.engine.rounds import Local, Past, Round, Stages
from confide.local import SGD, between
from confide.methods.dp_fedsam import kept
from confide.methods.setting import Setting, wholes
from confide.stages import Clip, Ordinal, RandK
from confide.stages.randomizers import MOST


@dataclass(frozen=True)
class LDPFed:
    """As printed: k clients, a share p of the entries, the ordinal mechanism for each of them.

    `epsilon` is what one entry costs over the whole range [-C, C]; `scale` divides it.
    """

    T: int = 100
    k: int = 50
    p: float = 0.1
    C: float = 0.01
    levels: int = 101
    epsilon: float = 1.0
    E: int = 1
    B: int = 50
    eta: float = 0.1
    scale: float = 1.0
    name: ClassVar = "ldp-fed"
    paper: ClassVar = "Truex et al. 2020"
    noise_field: ClassVar = "scale"
    setting: ClassVar = Setting(clients=50, data="mnist", model="mlp", records=1200)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "k", "levels", "E", "B")
        check(self, "C", "epsilon")
        between(self, "p", 0, 1, above=True)

    def round(self, past: Past) -> Round | None:
        """Local epochs; each client of the cohort sends its randomised entries by name."""
        if past.t == self.T:
            return None
        return Round(
            cohort=Fixed(self.k),
            local=Local(SGD(self.eta), self.E, Epoch(self.B, partial=True)),
            upload=self.sent(kept(self.p, past.public.dim)),
            aggregate=MeanOfPresent(),
        )

    def sent(self, entries: int) -> Stages:
        """The round's entries, the same for everyone, each randomised; the others stay zero."""
        if not self.scale:
            return (RandK(entries), Clip(self.C, p=float("inf")), RandK(entries))
        mechanism = Ordinal(self.levels, self.C, self.budget(entries))
        return (RandK(entries), mechanism, RandK(entries))

    def budget(self, entries: int) -> float:
        """The epsilon of one entry."""
        return self.epsilon / self.scale


@dataclass(frozen=True)
class LDPFedC(LDPFed):
    """Corrected: `epsilon` is what a whole report costs, so the entries share it."""

    p: float = 0.001
    epsilon: float = 8.0
    name: ClassVar = "ldp-fed-c"

    def budget(self, entries: int) -> float:
        """An equal share for every entry that is sent, as far as the mechanism can use it."""
        return min(MOST, self.epsilon / self.scale / entries)


def check(method: object, *fields: str) -> None:
    """Refuse budgets, bounds and noise that make no sense."""
    for field in fields:
        between(method, field, 0, above=True)
    between(method, "scale", 0)
