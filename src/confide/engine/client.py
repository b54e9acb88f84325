"""What one client does in one round: its local steps, then the stages of every vector it uploads.

All draws come from streams of (round, client, purpose), so the result depends on nothing else: not
on the order of clients, nor on which process works on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.cohorts import Epoch, Fixed
from confide.data.dataset import Federation
from confide.engine.ahead import ahead_of
from confide.engine.canaries import Canaries
from confide.engine.gradients import ExampleGradient, Gradient
from confide.engine.outcomes import Outcome, quantity
from confide.engine.pool import Pool
from confide.engine.remembering import keep, recalled
from confide.engine.rounds import Local, Round
from confide.local import SGD, Course
from confide.losses import Loss
from confide.randomness import Key, Stream
from confide.schedules import rate_of
from confide.stages import Clip, ClipLayers, Gaussian
from confide.stages.stage import Shared, Stage


@dataclass(frozen=True, eq=False)
class Job:
    """One round as every client receives it; `inside`: a tap records what happens inside."""

    t: int
    round: Round
    model: Tensor
    sent: Mapping[str, Tensor]
    inside: bool = False


@dataclass(eq=False)
class Workshop:
    """What it takes to train any client; a worker process has one of its own.

    `memory` holds a row for each client (SCAFFOLD's controls), and `remembered` which are filled.
    Where there is a `pool`, its threads draw the noise of the next steps.
    """

    gradient: Gradient
    examples: ExampleGradient
    loss: Loss
    federation: Federation
    key: Key
    memory: Tensor | None = None
    remembered: Tensor | None = None
    canaries: Canaries | None = None
    pool: Pool | None = None


class Batch:
    """One batch, as a step may see it: gradients and losses at any w, after all stages, counted."""

    def __init__(
        self,
        shop: Workshop,
        local: Local,
        streams: Streams,
        x: Tensor,
        y: Tensor,
        dummies: Sequence[tuple[int, float]] = (),
    ) -> None:
        """Nothing is computed yet; `dummies` are the gradients of an audit's canaries."""
        self._shop, self._local, self._streams = shop, local, streams
        self._x, self._y, self._dummies = x, y, dummies
        self.gradients = 0
        self.losses = 0

    def __call__(self, w: Tensor) -> Tensor:
        """The gradient: examples through their stages, summed, through the batch's, divided."""
        self.gradients += 1
        local, streams = self._local, self._streams
        if local.example:
            total = self._of_examples(w)
        else:
            total = self._shop.gradient.total(w, self._x, self._y)
            for place, value in self._dummies:
                total[place] += value
        for stage in local.batch:
            total = stage(total, streams.shared, streams.own("batch"))
        divisor = local.divisor(len(self._x) + len(self._dummies))
        return total if divisor == 1 else total.div_(divisor)

    def loss(self, w: Tensor) -> float:
        """The mean loss at w."""
        self.losses += 1
        if not len(self._x):
            return 0.0
        return float(self._shop.gradient.losses(w, self._x, self._y).double().mean())

    def _of_examples(self, w: Tensor) -> Tensor:
        """The sum of what the example stages make of each gradient."""
        first, *rest = self._local.example
        own, shared = self._streams.own("example"), self._streams.shared
        if is_clip(first) and all(isinstance(stage, Gaussian) for stage in rest):
            total = self._shop.examples.clipped(w, self._x, self._y, first)
            if rest:
                nothing = torch.zeros_like(total)
                for _ in range(len(self._x)):
                    for noise in rest:
                        total += noise(nothing, shared, own)
        else:
            total = torch.zeros_like(w)
            rows = self._shop.examples.each(w, self._x, self._y) if len(self._x) else ()
            for row in rows:
                total += self._staged(row)
        for place, value in self._dummies:
            row = torch.zeros_like(w)
            row[place] = value
            total += self._staged(row)
        return total

    def _staged(self, row: Tensor) -> Tensor:
        """One example's gradient after its stages."""
        own, shared = self._streams.own("example"), self._streams.shared
        for stage in self._local.example:
            row = stage(row, shared, own)
        return row


class Streams:
    """The streams of one client in one round, each made when it is first asked for."""

    def __init__(self, key: Key, t: int, client: int) -> None:
        """Nothing is drawn yet."""
        self._key, self._t, self._client = key, t, client
        self._own: dict[str, Stream] = {}

    def own(self, purpose: str) -> Stream:
        """Secret randomness of this client; every further use takes up where the last one ended."""
        if purpose not in self._own:
            self._own[purpose] = self._key.stream(self._t, self._client, purpose)
        return self._own[purpose]

    def use(self, purpose: str, stream: Stream) -> None:
        """From now on this one, which has the same draws."""
        self._own[purpose] = stream

    def shared(self, purpose: str) -> Stream:
        """Public randomness of the round, from its start."""
        return shared_streams(self._key, self._t)(purpose)


def shared_streams(key: Key, t: int) -> Shared:
    """The public randomness of a round, the same for every client and again at `publish`."""
    return lambda purpose: key.stream(t, None, f"shared {purpose}")


def is_clip(stage: Stage) -> TypeGuard[Clip | ClipLayers]:
    """Whether this is an l2 clip, for which sums are found without single gradients."""
    return isinstance(stage, Clip | ClipLayers) and stage.p == 2


def passed(stage: Stage, x: Tensor, shared: Shared, own: Stream) -> Tensor:
    """The stage, where the vector lies if it can work there, otherwise on the CPU."""
    if not x.is_cuda or isinstance(stage, Clip | ClipLayers | Gaussian):
        return stage(x, shared, own)
    return stage(x.cpu(), shared, own).to(x.device)


def work(
    shop: Workshop, job: Job, client: int, before: dict[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """Everything this client uploads in this round, as it leaves; `before` gets it unprotected."""
    r = job.round.for_client(client)
    streams = Streams(shop.key, job.t, client)
    done = trained(shop, job, r, streams, client)
    sent: dict[str, Tensor] = {}
    for name, upload in r.uploads.items():
        vector = quantity(name, upload, done)
        if before is not None:
            before[name] = vector.clone()
        own = streams.own(f"upload {name}")
        for stage in upload.stages:
            vector = stage(vector, streams.shared, own)
        sent[name] = vector
    return sent


def trained(shop: Workshop, job: Job, r: Round, streams: Streams, client: int) -> Outcome:
    """The client's copy of the model after its local steps."""
    local, dtype, held = r.local, job.model.dtype, shop.federation.clients[client]
    memory = recalled(shop, client) if local.remembers else None
    course = Course(job.model, job.sent, memory)
    w = job.model.clone()
    audited = shop.canaries is not None and shop.canaries.unit == "record"
    fused = is_plain(local) and not audited
    shop.gradient.seed_dropout(int(streams.own("dropout").uint64(1)[0]) >> 1)
    drawn: Iterable[NDArray[np.int64]] = batches(local, streams.own("records"), len(held))
    if shop.pool is not None and local.batch:
        drawn = list(drawn)
        times = len(drawn) * local.step.gradients
        ahead = ahead_of(local.batch, streams.own("batch"), times, job.model, shop.pool)
        streams.use("batch", ahead)
    for chosen in drawn:
        here, dummies = told_apart(shop, held[chosen], job.t)
        bx, by = records(shop, here, dtype)
        if not (fused and len(bx) and fused_step(shop, local, w, bx, by, course.taken)):
            batch = Batch(shop, local, streams, bx, by, dummies)
            local.step(w, batch, course)
            check_calls(local, batch)
        course.taken += 1
    remember: Any = getattr(local.step, "remember", None)
    after = None if remember is None else remember(w, course)
    if after is not None:
        keep(shop, client, after)
    if shop.canaries is not None:
        shop.canaries.move(w, client, job.t)
    data = looked_at_again(shop, r, streams, client, dtype)
    tested = partial(losses_on_tests, shop, job.model, client)
    return Outcome(job.model, w, len(held), memory, after, data, tested)


def told_apart(
    shop: Workshop, held: NDArray[np.int64], t: int
) -> tuple[NDArray[np.int64], Sequence[tuple[int, float]]]:
    """A batch's records, and the gradients of its canaries where the run is an audit."""
    return (held, ()) if shop.canaries is None else shop.canaries.split(held, t)


def looked_at_again(
    shop: Workshop, r: Round, streams: Streams, client: int, dtype: torch.dtype
) -> Any:
    """All records of the client, for uploads that look at them again; otherwise nothing."""
    if not any(name == "loss" or upload.value is not None for name, upload in r.uploads.items()):
        return None
    x, y = records(shop, shop.federation.clients[client], dtype)
    return Batch(shop, r.local, streams, x, y)


def losses_on_tests(shop: Workshop, model: Tensor, client: int) -> Tensor:
    """The model's loss on each test record that this client holds."""
    data, held = shop.federation.data, torch.from_numpy(shop.federation.tests(client))
    x, y = data.x_test[held], data.y_test[held]
    if not len(x):
        return model.new_zeros(0)
    return shop.gradient.losses(model, x.to(model.dtype), y)


def records(shop: Workshop, held: NDArray[np.int64], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """These records; only they are copied, and only for as long as they are looked at."""
    data, places = shop.federation.data, torch.from_numpy(held)
    x, y = data.x_train[places], data.y_train[places]
    return (x.to(dtype) if x.is_floating_point() else x), y


def is_plain(local: Local) -> bool:
    """Whether a step is w - eta times the mean gradient and nothing else."""
    step = local.step
    if type(step) is not SGD or step.momentum or step.decay:  # a subclass may do anything
        return False
    return not local.example and not local.batch and local.divisor(2) == 2


def fused_step(shop: Workshop, local: Local, w: Tensor, x: Tensor, y: Tensor, taken: int) -> bool:
    """Let the gradient itself move w, without writing a gradient down; False: it cannot."""
    assert isinstance(local.step, SGD)
    return shop.gradient.descend(w, x, y, rate_of(local.step.eta, taken))


def check_calls(local: Local, batch: Batch) -> None:
    """A step that looks at data more often than it says would be charged too little."""
    step = local.step
    if batch.gradients > step.gradients or batch.losses > step.losses:
        raise ValueError(
            f"{type(step).__name__}: a step took {batch.gradients} gradients and {batch.losses} "
            f"losses, allowed are the {step.gradients} and {step.losses} that it declares."
        )


def batches(local: Local, stream: Stream, records: int) -> Iterator[NDArray[Any]]:
    """The positions of every local step's records, in order."""
    sampler = local.sampler
    if not records and isinstance(sampler, Epoch | Fixed):
        return
    for _ in range(local.steps):
        drawn = sampler.draw(stream, records)
        if isinstance(sampler, Epoch):
            for start in range(0, len(drawn), sampler.m):
                yield drawn[start : start + sampler.m]
        else:
            yield drawn
