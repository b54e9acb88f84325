"""Twins of stages, which write down what they are given and what comes out; a key for noise."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from confide.engine.rounds import Round, Stages
from confide.randomness import Key, Stream
from confide.stages.stage import Shared, Stage

KEPT = "records", "dropout", "cohort", "turns"
"""What is drawn for these purposes stays as it was when the noise's key is exchanged."""
MOST_CALLS = 6
"""Of one stage by one client in a round, as far as they are written down."""


class Counted(Stream):
    """A stream that counts the bytes that are taken."""

    def __init__(self, source: Stream, taken: list[int]) -> None:
        """Of this one, added to the only entry of `taken`."""
        self._source, self._taken = source, taken

    def _take(self, n: int) -> NDArray[np.uint8]:
        self._taken[0] += n
        return self._source._take(n)


@dataclass(frozen=True, repr=False)
class NoiseKey(Key):
    """A key whose noise comes from another one; the rest is as it was."""

    noise: Key = field(default_factory=Key.from_system)
    taken: list[int] = field(default_factory=lambda: [0])

    def stream(self, round: int, client: int | None, purpose: str) -> Stream:
        """Noise from the other key, counted."""
        if purpose in KEPT or purpose.startswith("shared "):
            return super().stream(round, client, purpose)
        return Counted(self.noise.stream(round, client, purpose), self.taken)


@dataclass(frozen=True, eq=False)
class Call:
    """One stage at work: where it stands, in which run, what it was given and what came out."""

    place: str
    vector: str
    number: int  # of the stage, from 0, at its place
    stage: Stage
    run: int
    t: int
    client: int | None
    times: int  # how often it had worked before, for this client in this round
    given: Tensor
    came: Tensor
    taken: int  # bytes of the noise's streams

    @property
    def seat(self) -> tuple[str, str, int]:
        """Which stage of the round it is."""
        return self.place, self.vector, self.number


@dataclass(eq=False)
class Notes:
    """What is written down, and of what."""

    taken: list[int] = field(default_factory=lambda: [0])
    run: int = 0
    t: int = 0
    client: int | None = None
    calls: list[Call] = field(default_factory=list[Call])
    times: dict[Any, int] = field(default_factory=dict[Any, int])

    def begin(self, t: int, client: int | None) -> None:
        """Whose turn it is."""
        self.t, self.client, self.times = t, client, {}


def twin(stage: Stage, seat: tuple[str, str, int], notes: Notes) -> Stage:
    """The same stage, which also writes down what it does."""
    kind = type(stage)

    def call(self: Stage, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        before, given = notes.taken[0], x.clone()
        came = kind.__call__(self, x, shared, own)
        times = notes.times[seat] = notes.times.get(seat, -1) + 1
        if times < MOST_CALLS:
            notes.calls.append(
                Call(
                    *seat, self, notes.run, notes.t, notes.client, times,
                    given, came.clone(), notes.taken[0] - before,
                )
            )  # fmt: skip
        return came

    made: Any = object.__new__(type(kind.__name__, (kind,), {"__call__": call}))
    names = [one.name for one in fields(stage)] if is_dataclass(stage) else []
    for name in names:
        object.__setattr__(made, name, getattr(stage, name))
    for name, value in getattr(stage, "__dict__", {}).items():
        object.__setattr__(made, name, value)
    return cast("Stage", made)


def written_down(r: Round, notes: Notes) -> Round:
    """The round with twins for all its stages."""

    def all_of(stages: Stages, place: str, vector: str) -> Stages:
        return tuple(twin(s, (place, vector, i), notes) for i, s in enumerate(stages))

    local = replace(
        r.local,
        example=all_of(r.local.example, "example", "gradient"),
        batch=all_of(r.local.batch, "batch", "gradient"),
    )
    uploads = {n: replace(u, stages=all_of(u.stages, "upload", n)) for n, u in r.uploads.items()}
    publish = {n: all_of(r.published(n), "publish", n) for n in r.uploads}
    return replace(r, local=local, upload=uploads, publish=publish)
