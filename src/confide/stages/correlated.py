"""Gaussian noise that is correlated over rounds, so that less of it is left in the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.accounting.events import DpEvent, GaussianDpEvent
from confide.claims import Claim, Noise
from confide.randomness import Stream
from confide.randomness.streams import Shape
from confide.stages.noises import FLOATING, NO_GRID, unbounded
from confide.stages.stage import Shared, Stage, floating, positive


@dataclass(frozen=True)
class Correlated(Stage):
    """x + std n_t in round t, where c_0 n_t + c_1 n_{t-1} + ... + c_{B-1} n_{t-B+1} = z_t.

    The z_t are independent and standard normal. The engine makes the earlier ones again from their
    keys (`Echoes`), and no state is kept.

    Proof: docs/proofs/correlated.md. Where a unit takes part at most once in any B rounds, a round
    with distance S costs it one Gaussian release of multiplier std / (S ‖c‖), whatever the rounds
    before and after; the fold checks the cohort and that every round has the same c.
    """

    std: float
    c: tuple[float, ...]

    def __post_init__(self) -> None:
        """Noise in every round."""
        positive(self, "std", zero=True)
        if not self.c or not all(isfinite(value) for value in self.c) or self.c[0] < 1:
            raise ValueError(
                f"Correlated: c = {self.c!r}, allowed are finite numbers of which the first is at "
                "least 1."
            )

    @property
    def bands(self) -> int:
        """How many rounds the same noise is felt in."""
        return len(self.c)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Add this round's noise, which `own` brings."""
        x = floating(self, x)
        noise = torch.from_numpy(own.normal(tuple(x.shape))).to(x.device)
        return (x.double() + self.std * noise).to(x.dtype)

    def claim(self, c: Claim) -> Claim:
        """What one participation costs; as no later noise adds to it, none is remembered."""
        if self.std == 0:
            return c
        out = c.noised(None).assuming(FLOATING)
        event = out.event_of(Noise("gaussian", (self.std / self.length) ** 2))
        return out.released(event) if event else out.uncovered(unbounded(self, "l2"))

    @property
    def length(self) -> float:
        """‖c‖, never less."""
        return sqrt(sum(value * value for value in self.c)) * (1 + 1e-12)

    def unit_event(self) -> DpEvent:
        """The event of one participation at sensitivity 1."""
        return GaussianDpEvent(self.std / self.length)

    grid_words = NO_GRID


class Echoes(Stream):
    """The noise n_0, n_1, ... of one vector, one after the other, from the rounds' own streams.

    Only the last B - 1 are held. Whoever begins later, after a resume, makes the earlier ones
    again, in the same order and so to the same bits.
    """

    def __init__(self, c: tuple[float, ...], streams: Iterator[Stream]) -> None:
        """`streams` holds those of round 0, 1, ..."""
        self.c, self._streams = c, streams
        self._last: list[NDArray[np.floating]] = []  # the newest first
        self._made = 0

    def reach(self, t: int, length: int) -> Echoes:
        """Come to round t, so that its noise is the next to be asked for."""
        if t < self._made:
            raise ValueError(f"round {t}: its correlated noise was made already, allowed is once.")
        while self._made < t:
            self.normal((length,))
        return self

    def normal(
        self, shape: Shape, dtype: type[np.float64] | type[np.float32] = np.float64
    ) -> NDArray[np.floating]:
        """The next round's noise."""
        n = next(self._streams).normal(shape)
        if self._last and self._last[0].shape != n.shape:
            raise ValueError(
                f"Correlated: round {self._made} publishes {n.size} numbers, allowed are the "
                f"{self._last[0].size} of the rounds before."
            )
        for value, earlier in zip(self.c[1:], self._last, strict=False):
            n -= value * earlier
        n /= self.c[0]
        self._last = [n, *self._last][: len(self.c) - 1]
        self._made += 1
        return n
