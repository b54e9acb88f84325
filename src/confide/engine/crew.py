"""Some clients of a cohort on their way through a vmapped step: all that is done for each alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import repeat, takewhile
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import vmap

from confide.engine.ahead import Ahead, Drawn, noise_of, normals
from confide.engine.client import (
    Batch,
    Job,
    Outcome,
    Streams,
    Workshop,
    batches,
    is_clip,
    keep,
    quantity,
    recalled,
    records,
)
from confide.engine.gradients.clipping import Bound, clip_row
from confide.engine.rounds import Round
from confide.randomness import Stream
from confide.stages import Clip, ClipLayers, Gaussian
from confide.stages.stage import Shared, Stage


@dataclass(frozen=True, eq=False)
class Member:
    """One client: the round as it lives it, and the records of its batches, by their place."""

    client: int
    round: Round
    streams: Streams
    batches: list[NDArray[np.int64]]
    own: Stream  # for the batch stages
    noise: Ahead[Tensor] | None  # for its examples


@dataclass(frozen=True, eq=False)
class RowBatch:
    """One batch for each row, and the key of its dropout masks."""

    places: Tensor
    counts: Tensor
    divisors: Tensor
    active: Tensor
    keys: Tensor

    def tensors(self) -> tuple[Tensor, ...]:
        """All of it."""
        return self.places, self.counts, self.divisors, self.active, self.keys


@dataclass(frozen=True, eq=False)
class Table:
    """Every step's batches, padded: (step, row, column) and (step, row)."""

    places: Tensor
    counts: Tensor
    divisors: Tensor
    active: Tensor

    def batch(self, step: int, rows: int, columns: int, keys: Tensor) -> RowBatch:
        """What the first rows take in this step."""
        parts = (self.counts, self.divisors, self.active)
        here = (part[step, :rows] for part in parts)
        return RowBatch(self.places[step, :rows, :columns], *here, keys[:rows])


class Crew:
    """The clients of one chunk; those with most batches come first, so those at work are a prefix."""

    def __init__(self, shop: Workshop, job: Job, clients: Sequence[int], pool: Executor) -> None:
        """Draw what each of them does."""
        self._shop, self._job, self._clients = shop, job, clients
        drawn = [joined(shop, job, client, pool) for client in clients]
        self.members = sorted(drawn, key=lambda member: -len(member.batches))
        self.steps = len(self.members[0].batches) if drawn else 0

    def at_work(self, step: int) -> int:
        """How many take this step."""
        return sum(len(member.batches) > step for member in self.members)

    def columns(self, step: int) -> int:
        """The largest batch of this step, at least 1: an empty one is padded too."""
        return max([1, *(len(m.batches[step]) for m in self.members if len(m.batches) > step)])

    def table(self, rows: int, columns: int, device: torch.device) -> Table:
        """All steps; rows and columns beyond what is drawn hold records that count nothing."""
        widest = max([columns, *(self.columns(s) for s in range(self.steps))])
        places = np.zeros((self.steps, rows, widest), np.int64)
        counts = np.zeros((self.steps, rows), np.int64)
        divisors = np.ones((self.steps, rows))
        active = np.zeros((self.steps, rows), np.bool_)
        for row, member in enumerate(self.members):
            for step, batch in enumerate(member.batches):
                places[step, row, : len(batch)] = batch
                places[step, row, len(batch) :] = batch[0] if len(batch) else 0
                counts[step, row] = len(batch)
                divisors[step, row] = member.round.local.divisor(len(batch))
            active[: len(member.batches), row] = True
        arrays = (places, counts, divisors, active)
        return Table(*(torch.from_numpy(array).to(device) for array in arrays))

    def dropout_seeds(self) -> list[int]:
        """What each client's masks begin with."""
        return [int(m.streams.own("dropout").uint64(1)[0]) >> 1 for m in self.members]

    def noised(self, total: Tensor) -> Tensor:
        """The first rows' sums after the noise of their examples and the stages of their batch."""
        for row, member in zip(total, self.members, strict=False):
            if member.noise is not None:
                row += member.noise.take().to(row.device)
            for stage in member.round.local.batch:
                row.copy_(passed(stage, row, member.streams.shared, member.own))
        return total

    def memories(self, like: Tensor) -> Tensor:
        """What the clients kept, a row for each; zeros where there is nothing."""
        rows = torch.zeros_like(like)
        for row, member in zip(rows, self.members, strict=False):
            if (memory := recalled(self._shop, member.client)) is not None:
                row.copy_(memory)
        return rows

    def uploads(
        self, start: Tensor, ends: Tensor, before: Tensor | None, after: Tensor | None
    ) -> Iterator[dict[str, Tensor]]:
        """What each client sends, in the order that was asked for."""
        row_of = {member.client: row for row, member in enumerate(self.members)}
        ready = {
            name: cut(ends - start if name == "update" else ends, clips)
            for name, clips in leading_clips(self._job.round).items()
        }
        for client in self._clients:
            row = row_of[client]
            member = self.members[row]
            acted = after is not None and bool(member.batches)
            if after is not None and acted:
                keep(self._shop, client, after[row])
            done = Outcome(
                start,
                ends[row],
                len(self._shop.federation.clients[client]),
                None if before is None else before[row],
                after[row] if after is not None and acted else None,
                self._data(member),
            )
            yield sent(member, done, {name: rows[row] for name, rows in ready.items()})

    def _data(self, member: Member) -> Any:
        """The client's records, for uploads that look at them again; otherwise nothing."""
        uploads = member.round.uploads
        if not any(name == "loss" or up.value is not None for name, up in uploads.items()):
            return None
        x, y = records(self._shop, member.client, self._job.model.dtype)
        return Batch(self._shop, member.round.local, member.streams, x, y)


def joined(shop: Workshop, job: Job, client: int, pool: Executor) -> Member:
    """Draw the client's batches, and begin to draw its noise."""
    r, streams = job.round.for_client(client), Streams(shop.key, job.t, client)
    held = shop.federation.clients[client]
    drawn = [held[b] for b in batches(r.local, streams.own("records"), len(held))]
    local, like = r.local, torch.empty(job.model.shape, dtype=job.model.dtype)
    noise = None
    if rest := local.example[1:]:
        make, own = partial(noise_of, rest), streams.own("example")
        calls = (
            partial(make, len(batch), like, streams.shared, own)
            for batch in drawn
            for _ in range(local.step.gradients)
        )
        noise = Ahead(pool, calls)
    own = streams.own("batch")
    gaussians = sum(isinstance(stage, Gaussian) for stage in local.batch)
    if gaussians and all(isinstance(s, Gaussian | Clip | ClipLayers) for s in local.batch):
        draw = partial(normals, own, len(like), job.model.is_cuda)
        times = len(drawn) * local.step.gradients * gaussians
        own = Drawn(Ahead(pool, iter(repeat(draw, times))))
    return Member(client, r, streams, drawn, own, noise)


def sent(member: Member, done: Outcome, ready: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The client's uploads, as `client.work` sends them."""
    out: dict[str, Tensor] = {}
    for name, upload in member.round.uploads.items():
        stages, vector = upload.stages, ready.get(name)
        if vector is None:
            vector = quantity(name, upload, done)
        else:
            stages = stages[len(leading(stages)) :]
        own = member.streams.own(f"upload {name}")
        for stage in stages:
            vector = passed(stage, vector, member.streams.shared, own)
        out[name] = vector
    return out


def passed(stage: Stage, x: Tensor, shared: Shared, own: Stream) -> Tensor:
    """The stage, where the vector lies if it can work there, otherwise on the CPU."""
    if not x.is_cuda or isinstance(stage, Clip | ClipLayers | Gaussian):
        return stage(x, shared, own)
    return stage(x.cpu(), shared, own).to(x.device)


def leading_clips(r: Round) -> dict[str, tuple[Bound, ...]]:
    """Uploads of the engine's own vectors that begin with clips to the same norm for everyone."""
    return {
        name: leading(upload.stages)
        for name, upload in r.uploads.items()
        if name in ("update", "model") and upload.value is None and not r.columns()
    }


def leading(stages: Sequence[Stage]) -> tuple[Bound, ...]:
    """The l2 clips before the first other stage."""
    first = takewhile(is_clip, stages)
    return tuple(stage for stage in first if isinstance(stage, Bound))


def cut(rows: Tensor, clips: Sequence[Bound]) -> Tensor:
    """Each row after these clips."""
    for clip in clips:
        rows = vmap(partial(clip_row, stage=clip))(rows)
    return rows
