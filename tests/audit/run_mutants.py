"""Bugs that no single release shows: each is a small change to a real run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from confide import cells
from confide.cohorts import Poisson
from confide.derive import Release
from confide.engine.rounds import Past, Round
from confide.randomness import Key, Stream
from confide.stages import Clip, Gaussian
from confide.stages.stage import Shared
from small import Private

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Silent(Gaussian):
    """Claims its noise and draws none."""

    def __call__(self, x: torch.Tensor, shared: Shared, own: Stream) -> torch.Tensor:
        """What came in."""
        return x


@dataclass(frozen=True)
class Half(Clip):
    """Clips every second vector."""

    def __call__(self, x: torch.Tensor, shared: Shared, own: Stream) -> torch.Tensor:
        """By a coin of the client's."""
        return x if bool(own.bernoulli(0.5, 1)[0]) else super().__call__(x, shared, own)


@dataclass(frozen=True)
class Everyone(Poisson):
    """Draws everybody, and is accounted at its rate."""

    def draw(self, stream: Stream, units: int) -> NDArray[np.int64]:
        """All of them."""
        return np.arange(units)


@dataclass(frozen=True)
class Changed(Private):
    """DP-FedAvg with one round changed."""

    how: Callable[[Round, int], Round] = lambda r, t: r

    def round(self, past: Past) -> Round | None:
        """As before, but for the change."""
        r = super().round(past)
        return None if r is None else self.how(r, past.t)


def noise_in_the_first_round_only(r: Round, t: int) -> Round:
    """All later rounds are published as they are."""
    (noise,) = r.published("update")
    assert isinstance(noise, Gaussian)
    return replace(r, publish=(noise if t == 0 else Silent(noise.std),))


def no_noise_in_the_last_round(r: Round, t: int) -> Round:
    """One round is enough for whoever took part in it."""
    (noise,) = r.published("update")
    assert isinstance(noise, Gaussian)
    return replace(r, publish=(noise if t < LAST else Silent(noise.std),))


def clip_skipped_for_half(r: Round, t: int) -> Round:
    """Half of the uploads are longer than the noise was made for."""
    (clip,) = r.uploads["update"].stages
    assert isinstance(clip, Clip)
    return replace(r, upload=(Half(clip.C),))


def cohort_larger_than_accounted(r: Round, t: int) -> Round:
    """Everybody takes part in every round."""
    assert isinstance(r.cohort, Poisson)
    return replace(r, cohort=Everyone(r.cohort.q))


def same_stream(purpose: str) -> Callable[[Patch], None]:
    """Every round draws what the first one drew."""

    def patched(patch: Patch) -> None:
        fresh = Key.stream

        def stale(self: Key, round: int, client: int | None, what: str) -> Stream:
            return fresh(self, 0 if what.startswith(purpose) else round, client, what)

        patch.setattr(Key, "stream", stale)

    return patched


def charged_once(patch: Patch) -> None:
    """The ledger skips every entry but the first."""
    whole = cells.over_rounds

    def once(ways: list[tuple[Release, int]]) -> Any:
        return whole([(ways[0][0], 1)])

    patch.setattr(cells, "over_rounds", once)


LAST = 11
ROUNDS = LAST + 1

CHANGES: dict[str, Callable[[Round, int], Round]] = {
    "noise in the first round only": noise_in_the_first_round_only,
    "no noise in the last round": no_noise_in_the_last_round,
    "clip skipped for half of the clients": clip_skipped_for_half,
    "cohort larger than accounted": cohort_larger_than_accounted,
}
PATCHES: dict[str, Callable[[Patch], None]] = {
    "noise key used again in every round": same_stream("publish"),
    "the same cohort in every round": same_stream("cohort"),
    "ledger entries skipped": charged_once,
}
