"""Layer 3: attacks on a finished run that guess who was in it.

An attack gets what its observer has (`Evidence`) and records of which some were trained on, and
answers with one score for each, larger for those it takes to be in. It never learns which were:
that is kept beside it, so an attack cannot cheat. Other attacks plug in by the same protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Scores = NDArray[np.float64]

PIECE = 64
"""Records whose gradients are held at once."""

GRADIENT_VALUES = 600_000_000
"""How many values of gradients an attack computes at the most (some 6 s of one core); rounds beyond
that are left out."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Records that may have been trained on, and the client that each would have belonged to."""

    x: Tensor
    y: Tensor
    client: NDArray[np.int64]

    def __len__(self) -> int:
        """How many."""
        return len(self.client)


@dataclass(frozen=True, eq=False)
class Step:
    """One round as its observer saw it: the model that went out, and who moved it whereto.

    `moves` are differences of models by client; under None that of everybody who took part, who
    are `members` where the observer knows them.
    """

    model: Tensor
    moves: Mapping[int | None, Tensor]
    members: frozenset[int] | None = None


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one observer has of a finished run, and what it can compute with the model.

    `steps` reads the rounds in this order, or is None where nothing of them was recorded.
    """

    observer: str
    model: Tensor
    losses: Callable[[Tensor, Tensor, Tensor], Tensor]
    gradients: Callable[[Tensor, Tensor, Tensor], Tensor]
    rounds: int
    steps: Callable[[Iterable[int]], Iterable[Step]] | None = None


class Attack(Protocol):
    """A membership attack: by its name, for one observer; `needs` the rounds, or the model only."""

    @property
    def name(self) -> str:
        """What it is called in the table."""
        ...

    @property
    def needs(self) -> str:
        """`model` or `rounds`."""
        ...

    def run(self, evidence: Evidence, records: Candidates) -> Scores:
        """One score for each record, larger for those it takes to have been trained on."""
        ...


@dataclass(frozen=True)
class LossThreshold:
    """Who was trained on has a small loss under the last model (Yeom et al., CSF 2018)."""

    name: str = "loss threshold"
    needs: str = "model"

    def run(self, evidence: Evidence, records: Candidates) -> Scores:
        """Minus the loss."""
        losses = evidence.losses(evidence.model, records.x, records.y)
        return -losses.double().cpu().numpy()


@dataclass(frozen=True)
class GradientAlignment:
    """Who was trained on has pulled the model its own way.

    A step of training moves the model against the gradients of its records, and in many dimensions
    the gradients of two records have little in common. So the score is the cosine between the
    gradient of a record at the model that went out and the way back from where the model moved,
    averaged over the rounds in which its client can have taken part.
    """

    name: str = "gradient alignment"
    needs: str = "rounds"

    def run(self, evidence: Evidence, records: Candidates) -> Scores:
        """The mean cosine; rounds are looked at in an order that spreads over the run."""
        assert evidence.steps is not None
        total, times = np.zeros(len(records)), np.zeros(len(records))
        left = GRADIENT_VALUES // len(evidence.model)
        for step in evidence.steps(spread(evidence.rounds)):
            if left <= 0:
                break
            for client, move in step.moves.items():
                meant = chosen(records, client, step.members)
                left -= len(meant)
                total[meant] += cosines(evidence, step.model, -move, records, meant)
                times[meant] += 1
        return total / np.maximum(times, 1)


ATTACKS: tuple[Attack, ...] = (LossThreshold(), GradientAlignment())


def chosen(
    records: Candidates, client: int | None, members: frozenset[int] | None
) -> NDArray[np.int64]:
    """The records that this move can have come from."""
    if client is not None:
        return np.flatnonzero(records.client == client)
    if members is None:
        return np.arange(len(records))
    return np.flatnonzero(np.isin(records.client, list(members)))


def cosines(
    evidence: Evidence, model: Tensor, way: Tensor, records: Candidates, meant: NDArray[np.int64]
) -> Scores:
    """How far each record's gradient points this way; 0 for one without a gradient."""
    out = np.zeros(len(meant))
    length = float(torch.linalg.vector_norm(way.double()))
    if not np.isfinite(length) or length == 0:
        return out
    unit = (way.double() / length).to(model.dtype)
    for start in range(0, len(meant), PIECE):
        part = torch.from_numpy(meant[start : start + PIECE])
        rows = evidence.gradients(model, records.x[part], records.y[part])
        along = (rows @ unit).double()
        norms = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
        cosine = torch.where(norms > 0, along / norms, 0.0)
        out[start : start + PIECE] = torch.nan_to_num(cosine).cpu().numpy()
    return out


def spread(rounds: int) -> list[int]:
    """All rounds, in an order of which every beginning is spread over the run."""
    bits = max(1, (rounds - 1).bit_length())
    turned = (int(f"{t:0{bits}b}"[::-1], 2) for t in range(1 << bits))
    return [t for t in turned if t < rounds]
