"""What a client's local training made, and what of it each kind of upload may look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from confide.engine.rounds import Upload

if TYPE_CHECKING:
    from confide.engine.client import Batch


@dataclass(frozen=True, eq=False)
class Outcome:
    """What local training made: all that an upload can be computed from."""

    start: Tensor
    end: Tensor
    records: int
    memory: Tensor | None
    remembered: Tensor | None
    data: Batch
    held_out: Callable[[], Tensor]  # the received model's loss on each of the client's test records

    @property
    def update(self) -> Tensor:
        """How far the model moved."""
        return self.end - self.start

    @property
    def model(self) -> Tensor:
        """Where it stands now."""
        return self.end

    @property
    def control(self) -> Tensor:
        """How far the client's control variate moved."""
        if self.remembered is None:
            return torch.zeros_like(self.start)
        return self.remembered if self.memory is None else self.remembered - self.memory

    @cached_property
    def loss(self) -> Tensor:
        """The mean loss of the received model on the client's records; 0 without any."""
        return self.start.new_tensor([self.data.loss(self.start)])

    @property
    def test_loss(self) -> Tensor:
        """Its mean loss on the client's own test records; 0 without any."""
        losses = self.held_out()
        return losses.mean().reshape(1) if len(losses) else self.start.new_zeros(1)


QUANTITIES = ("update", "model", "control", "loss")

ITERATES = ("start", "end", "update", "model", "memory", "remembered", "control")
MADE_OF = {
    "iterates": ITERATES,
    "train": (*ITERATES, "records", "data", "loss"),
    "test": ("start", "held_out", "test_loss"),
}
"""What an upload of each kind of data may look at; its row of the statement covers no more."""


class Shown:
    """An outcome, as far as an upload that says what it is made of may look at it."""

    def __init__(self, done: Outcome, data: str) -> None:
        """Nothing is looked at yet."""
        self._done, self._data = done, data

    def __getattr__(self, name: str) -> Any:
        """One of its fields, if what is said about the upload covers it."""
        allowed = MADE_OF[self._data]
        if name not in allowed:
            raise ValueError(
                f"Upload: data = {self._data!r} and a value that looks at {name!r}, allowed are "
                f"{', '.join(allowed)}: the statement would not cover it."
            )
        return getattr(self._done, name)


def quantity(name: str, upload: Upload, done: Outcome) -> Tensor:
    """The vector of this name before its stages."""
    vector = made(name, upload, done)
    check_length(name, upload, vector, len(done.start))
    return vector


def check_length(name: str, upload: Upload, vector: Tensor, dim: int) -> None:
    """Refuse more or fewer numbers than every claim about the upload counts with."""
    stated = dim if upload.length is None else upload.length
    anything: object = vector  # a value of one's own can bring what it likes
    if not isinstance(anything, Tensor) or tuple(vector.shape) != (stated,):
        shape = getattr(anything, "shape", None)
        what = type(anything).__name__ if shape is None else f"a vector of shape {tuple(shape)}"
        raise ValueError(
            f"Upload: {name!r} is {what}, allowed with length = {upload.length} is a tensor of "
            f"shape ({stated},): the statement counts with that many numbers."
        )


def made(name: str, upload: Upload, done: Outcome) -> Tensor:
    """What the client computes under this name."""
    if upload.value is not None:
        return upload.value(Shown(done, upload.data))
    if (name, upload.data) == ("loss", "test"):
        return done.test_loss
    if name not in QUANTITIES:
        raise ValueError(
            f"Round: upload {name!r} has no value, allowed are {', '.join(QUANTITIES)}, or an "
            "Upload with a value of its own."
        )
    return getattr(done, name)  # what it is made of was checked when the round was written
