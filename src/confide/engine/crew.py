"""Some clients of a cohort on their way through a vmapped step: all that is done for each alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import vmap

from confide.engine.ahead import Ahead, ahead_of, noise_of
from confide.engine.client import (
    Job,
    Streams,
    Workshop,
    batches,
    is_clip,
    looked_at_again,
    losses_on_tests,
    passed,
)
from confide.engine.gradients.clipping import NOTHING, Bound, clip_row, norms_of
from confide.engine.outcomes import Outcome, check_length, quantity
from confide.engine.pool import Part, Pool
from confide.engine.remembering import keep, recalled
from confide.engine.rounds import Local, Round
from confide.engine.rows import seeds
from confide.engine.sums import Picked
from confide.randomness import Stream
from confide.stages.stage import Stage


@dataclass(frozen=True, eq=False)
class Member:
    """One client: the round as it lives it, and the records of its batches, by their place."""

    client: int
    round: Round
    streams: Streams
    batches: list[NDArray[np.int64]]
    own: Stream  # for the batch stages
    noise: Ahead[Tensor] | None  # for its examples
    memory: Tensor | None  # from earlier rounds

    def dropout_seed(self) -> int:
        """What its masks begin with."""
        return int(self.streams.own("dropout").uint64(1)[0]) >> 1

    @property
    def clip(self) -> Bound | None:
        """What every example's gradient is clipped by."""
        first = self.round.local.example[0] if self.round.local.example else None
        assert first is None or isinstance(first, Bound)
        return first


@dataclass(frozen=True, eq=False)
class Table:
    """Every step's batches, padded: (step, row, column) and (step, row); and a row's numbers."""

    places: Tensor
    counts: Tensor
    divisors: Tensor
    keys: Tensor
    radii: Tensor

    def picked(self, step: int, rows: int, columns: int, numbers: Tensor) -> Picked:
        """What the first rows take in this step."""
        places, counts = self.places[step, :rows, :columns], self.counts[step, :rows]
        return Picked(places, counts, self.keys[:rows], numbers[:rows], self.radii[:rows])


class Crew:
    """The clients of one chunk, those with most batches first: those at work are the first rows."""

    def __init__(self, shop: Workshop, job: Job, clients: Sequence[int], pool: Pool) -> None:
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

    def table(self, drops: bool, device: torch.device) -> Table:
        """All steps; columns beyond what is drawn repeat a record, to count nothing."""
        widest = max([1, *(self.columns(step) for step in range(self.steps))])
        places = np.zeros((self.steps, len(self.members), widest), np.int64)
        counts = np.zeros(places.shape[:2], np.int64)
        divisors = np.ones(places.shape[:2])
        for row, member in enumerate(self.members):
            for step, batch in enumerate(member.batches):
                places[step, row, : len(batch)] = batch
                places[step, row, len(batch) :] = batch[0] if len(batch) else 0
                counts[step, row] = len(batch)
                divisors[step, row] = member.round.local.divisor(len(batch))
        keys = seeds([m.dropout_seed() if drops else 0 for m in self.members])
        radii = [norms_of(m.clip) if m.clip is not None else (1.0,) for m in self.members]
        arrays = (torch.from_numpy(array) for array in (places, counts, divisors))
        parts = (*arrays, keys, torch.tensor(radii, dtype=torch.float64))
        return Table(*(part.to(device) for part in parts))

    def taken(self, device: torch.device) -> Tensor:
        """How many steps each takes."""
        return torch.tensor([len(member.batches) for member in self.members], device=device)

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
        for row, member in zip(rows, self.members, strict=True):
            if member.memory is not None:
                row.copy_(member.memory)
        return rows

    def uploads(
        self, start: Tensor, ends: Tensor, after: Tensor | None
    ) -> Iterator[dict[str, Tensor]]:
        """What each client sends, in the order that was asked for."""
        row_of = {member.client: row for row, member in enumerate(self.members)}
        if self._shop.canaries is not None:
            for client, row in row_of.items():
                self._shop.canaries.move(ends[row], client, self._job.t)
        ready = {
            name: cut(ends - start if name == "update" else ends, clips)
            for name, clips in leading_clips(self._job.round).items()
        }
        for client in self._clients:
            row = row_of[client]
            member = self.members[row]
            before, kept = member.memory, None
            if before is not None:
                before = before.to(start.device)
            if after is not None:
                kept = after[row] if member.batches else before
            if kept is not None:
                keep(self._shop, client, kept)
            count = len(self._shop.federation.clients[client])
            tested = partial(losses_on_tests, self._shop, start, client)
            data = looked_at_again(
                self._shop, member.round, member.streams, client, self._job.model.dtype
            )
            done = Outcome(start, ends[row], count, before, kept, data, tested)
            yield sent(member, done, {name: rows[row] for name, rows in ready.items()})


def joined(shop: Workshop, job: Job, client: int, pool: Pool) -> Member:
    """Draw the client's batches, and begin to draw its noise."""
    r, streams = job.round.for_client(client), Streams(shop.key, job.t, client)
    held = shop.federation.clients[client]
    drawn = [held[b] for b in batches(r.local, streams.own("records"), len(held))]
    memory = recalled(shop, client) if r.local.remembers else None
    sizes, own = [len(b) for b in drawn], NOTHING
    if r.local.batch:
        times = len(sizes) * r.local.step.gradients
        own = ahead_of(r.local.batch, streams.own("batch"), times, job.model, pool)
    noise = noise_ahead(r.local, streams, sizes, job.model, pool)
    return Member(client, r, streams, drawn, own, noise, memory)


def noise_ahead(
    local: Local, streams: Streams, sizes: Sequence[int], model: Tensor, pool: Pool
) -> Ahead[Tensor] | None:
    """The noise of each batch's examples, if there is any."""
    rest = local.example[1:]
    if not rest:
        return None
    own = streams.own("example")

    def works() -> Iterator[tuple[Sequence[Part], Tensor]]:
        for size in sizes:
            for _ in range(local.step.gradients):
                total = torch.zeros(model.shape, dtype=model.dtype)
                yield [partial(noise_of, rest, size, total, streams.shared, own)], total

    return Ahead(pool, works())


def sent(member: Member, done: Outcome, ready: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The client's uploads, as `client.work` sends them."""
    out: dict[str, Tensor] = {}
    for name, upload in member.round.uploads.items():
        stages, vector = upload.stages, ready.get(name)
        if vector is None:
            vector = quantity(name, upload, done)
        else:
            check_length(name, upload, vector, len(done.start))
            stages = stages[len(leading(stages)) :]
        own = member.streams.own(f"upload {name}")
        for stage in stages:
            vector = passed(stage, vector, member.streams.shared, own)
        out[name] = vector
    return out


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
