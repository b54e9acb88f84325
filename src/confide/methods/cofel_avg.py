"""COFEL-AVG: clients send only some layers of their update, with Laplace noise.

Lian, Wang, Su: COFEL: Communication-Efficient and Optimized Federated Learning with Local
Differential Privacy, 2021; as a row of UDP-FL's Table 1. What is assumed of it is numbered in
docs/papers/udp-fl-table1.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import torch
from torch import Tensor

from confide.aggregates import MeanOfPresent
from confide.claims import Claim
from confide.cohorts import Epoch, Fixed
from confide.engine.rounds import Local, Past, Round, Sizes, Stages
from confide.local import SGD
from confide.methods.ldp_fed import check
from confide.methods.setting import Setting, wholes
from confide.randomness import Stream
from confide.stages import Clip, Laplace, Mask, Places, Shared, Stage


@dataclass(frozen=True)
class COFELAvg:
    """As printed: each client chooses the k layers that it has changed most, and noises those.

    Laplace noise of scale `scale` C / epsilon.
    """

    T: int = 100
    m: int = 10
    k: int = 2
    C: float = 1.0
    epsilon: float = 1.0
    E: int = 1
    B: int = 10
    eta: float = 0.05
    scale: float = 1.0
    name: ClassVar = "cofel-avg"
    paper: ClassVar = "Lian et al. 2021"
    noise_field: ClassVar = "scale"
    setting: ClassVar = Setting(clients=100, data="mnist", model="mlp")

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "m", "k", "E", "B")
        check(self, "C", "epsilon")

    def round(self, past: Past) -> Round | None:
        """Local epochs, then the chosen layers; the others stay as they were."""
        if past.t == self.T:
            return None
        if self.k > len(past.public.layers):
            raise ValueError(
                f"{type(self).__name__}: k = {self.k}, allowed is at most the number of layers, "
                f"{len(past.public.layers)}."
            )
        return Round(
            cohort=Fixed(self.m),
            local=Local(SGD(self.eta), self.E, Epoch(self.B, partial=True)),
            upload=self.sent(past.public, past.t),
            aggregate=MeanOfPresent(),
        )

    def sent(self, sizes: Sizes, t: int) -> Stages:
        """Clip, choose, noise."""
        noise = Laplace(self.scale * self.C / self.epsilon)
        return (Clip(self.C), OwnLayers(self.k, sizes.layers, noise))


@dataclass(frozen=True)
class COFELAvgC(COFELAvg):
    """Corrected: the layers take turns, l1 clips, and noise on all entries that are sent.

    Two reports are at most 2 C apart, so one of them costs `epsilon` at scale 2 C / epsilon.
    """

    C: float = 5.0
    epsilon: float = 4.0
    name: ClassVar = "cofel-avg-c"

    def sent(self, sizes: Sizes, t: int) -> Stages:
        """The k layers whose turn it is."""
        turn = Mask(turns(self.k, sizes.layers, t % len(sizes.layers)))
        return (turn, Clip(self.C, p=1), Laplace(self.scale * 2 * self.C / self.epsilon), turn)


@dataclass(frozen=True)
class OwnLayers(Stage):
    """Noise on the k layers of largest mean magnitude; the others are zero."""

    k: int
    lengths: tuple[int, ...]
    noise: Laplace

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Look at the data, choose, noise what was chosen."""
        sizes = torch.stack([part.abs().mean() for part in x.split(list(self.lengths))])
        chosen = torch.zeros(len(self.lengths), dtype=torch.bool)
        chosen[sizes.topk(self.k).indices] = True
        sent = chosen.repeat_interleave(torch.tensor(self.lengths)).to(x.device)
        return torch.where(sent, self.noise(x, shared, own), torch.zeros_like(x))

    def claim(self, c: Claim) -> Claim:
        """The zeros give the client's choice away."""
        return c.forgotten(
            "a client's own data choose the layers it sends, and those it leaves out carry no noise"
        )


@cache
def turns(k: int, lengths: tuple[int, ...], first: int) -> Places:
    """The entries of k layers in a row, beginning with this one."""
    layers = {(first + i) % len(lengths) for i in range(k)}
    parts = [torch.full((n,), layer in layers) for layer, n in enumerate(lengths)]
    return Places.of(torch.cat(parts))
