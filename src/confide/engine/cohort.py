"""The cohort as one vmapped step: every client is a row of a matrix, on a GPU or on the CPU.

All draws are made on the CPU from the streams of `client.work`, so a client's batches, masks and
noise are the same as anywhere else. Clients of unequal sizes are padded: a padded example counts
exactly zero, and a client that has gone through its batches is out of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from confide.engine.client import Job, Workshop, is_clip
from confide.engine.compiling import CompiledSums
from confide.engine.crew import Crew, Table
from confide.engine.flat import Flat
from confide.engine.gradients import example_gradient_of, gradient_of
from confide.engine.gradients.clipping import Bound, groups_of
from confide.engine.pool import Pool, cores
from confide.engine.room import Room
from confide.engine.rounds import Local
from confide.engine.rows import VECTORISED, Courses, move, remembered
from confide.engine.sums import Picked, Sums
from confide.engine.trainers import InProcess, Recipe, Scores, one_thread, pieces, scores
from confide.engine.ways import way_of
from confide.losses import LOSSES
from confide.stages import Clip, Gaussian

Total = Callable[[Tensor, Picked], Tensor]


class Cohort:
    """A trainer that moves all clients of a chunk by one call for each local step."""

    def __init__(
        self, recipe: Recipe, device: str | torch.device = "cuda", rows: int | None = None
    ) -> None:
        """Put the records on the device; `rows` bounds a chunk, which otherwise fits the memory."""
        self.device, self._recipe = torch.device(device), recipe
        self._way = way_of(recipe.strategy, self.device)
        self._shop = shop_on(recipe, self.device)
        data = self._shop.federation.data
        self._flat = Flat(recipe.module, recipe.dtype, self.device)
        self._sums = Sums(self._flat, self._shop.loss, data.x_train, data.y_train, self._way)
        self._compiled = CompiledSums(self._sums)
        self._room = Room(self._shop.federation, self._flat.vector, rows, self._try_out)
        self._pool = Pool(cores())
        self._alone: InProcess | None = None
        self.words = (
            f"the cohort as one vmapped step on {self.device.type}, {self._way.words(recipe.dtype)}"
        )
        with self._way.rules():
            check_apart(self._sums, self._flat.vector)

    def train(self, job: Job, clients: Sequence[int]) -> Iterator[Mapping[str, Tensor]]:
        """Chunk after chunk; what is sent lies where the received model lies."""
        home = job.model.device
        if (why := unsuited(job.round.local)) is not None:
            yield from self._one_by_one(job, clients, why)
            return
        there = {name: vector.to(self.device) for name, vector in job.sent.items()}
        job = Job(job.t, job.round, job.model.to(self.device), there)
        size = self._room.rows(job.round)
        for first in range(0, len(clients), size):
            chunk = clients[first : first + size]
            with one_thread(), self._way.rules():
                crew = Crew(self._shop, job, chunk, self._pool)
                uploads = crew.uploads(job.model, *self._trained(job, crew, size))
            for _ in chunk:
                with one_thread(), self._way.rules():
                    sent = next(uploads)
                yield {name: vector.to(home) for name, vector in sent.items()}

    def evaluate(self, model: Tensor) -> Scores:
        """Piece by piece, with products in full precision."""
        total, model = Scores(), model.to(self.device)
        exact = replace(self._way, products="float32")
        with one_thread(), exact.rules():
            for start in pieces(self._shop.federation):
                total = total.plus(scores(self._shop, model, start))
        return total

    def close(self) -> None:
        """End the threads that draw noise."""
        self._pool.shutdown()
        if self._alone is not None:
            self._alone.close()

    def _one_by_one(
        self, job: Job, clients: Sequence[int], why: str
    ) -> Iterator[Mapping[str, Tensor]]:
        """Rounds that have no rows: on the CPU, one client after the other."""
        if self._alone is None:
            self._alone = InProcess(replace(self._recipe, strategy="auto"))
            self.words += f"; {why}: such rounds in {self._alone.words}"
        home, sent = job.model.device, {n: v.cpu() for n, v in job.sent.items()}
        here = Job(job.t, job.round, job.model.cpu(), sent)
        for vectors in self._alone.train(here, clients):
            yield {name: vector.to(home) for name, vector in vectors.items()}

    def _trained(self, job: Job, crew: Crew, size: int) -> tuple[Tensor, Tensor | None]:
        """Where every row ends, and what it remembers now."""
        local, start = job.round.local, job.model
        table = crew.table(self._sums.draws, self.device)
        w = start.repeat(len(crew.members), 1)
        state = State(
            w,
            torch.ones(len(w), dtype=torch.int64, device=self.device),
            torch.zeros_like(w) if getattr(local.step, "momentum", 0) else None,
            crew.memories(w) if local.remembers else None,
        )
        shape = size, self._room.width(local)
        lengths = lengths_of(local, self._flat)
        columns = self._room.columns(local)

        def total(w: Tensor, picked: Picked) -> Tensor:
            if self._way.compiled:
                return self._compiled(w, picked, lengths, columns, shape)
            return self._sums(w, picked, lengths, columns)

        for step in range(crew.steps):
            part = state.first(crew.at_work(step))
            batch = Batches(table, step, crew, part.numbers, total)
            course = Courses(start, job.sent, part.memory, part.velocity, step)
            move(local.step, part.w, batch, course)
        course = Courses(start, job.sent, state.memory)
        return w, remembered(local.step, w, course, crew.taken(self.device))

    def _try_out(self, local: Local, columns: int) -> None:
        """The gradients of a few examples of one client."""
        lengths = lengths_of(local, self._flat)
        picked = one_row([0] * columns, self.device, layers=len(lengths))
        with self._way.rules():
            self._sums(self._flat.vector.unsqueeze(0), picked, lengths)


@dataclass(frozen=True, eq=False)
class State:
    """Where the rows are; `numbers` are those of their batches, for dropout."""

    w: Tensor
    numbers: Tensor
    velocity: Tensor | None
    memory: Tensor | None

    def first(self, rows: int) -> State:
        """The first rows, in the same memory."""
        velocity, memory = self.velocity, self.memory
        return State(
            self.w[:rows],
            self.numbers[:rows],
            None if velocity is None else velocity[:rows],
            None if memory is None else memory[:rows],
        )


@dataclass(frozen=True, eq=False)
class Batches:
    """A batch for each row that is at work, as a vectorised step sees it."""

    table: Table
    step: int
    crew: Crew
    numbers: Tensor
    total: Total

    def __call__(self, w: Tensor, asked: Tensor | None = None) -> Tensor:
        """Sums of gradients, the noise and stages of each row, divided."""
        rows = len(w)
        picked = self.table.picked(self.step, rows, self.crew.columns(self.step), self.numbers)
        total = self.total(w, picked)
        drawn = picked.counts > 0
        self.numbers.add_(drawn if asked is None else drawn & asked)
        divisors = self.table.divisors[self.step, :rows].to(w.dtype)
        return self.crew.noised(total).div_(divisors.unsqueeze(1))


def unsuited(local: Local) -> str | None:
    """Why these local steps have no vectorised form, if so."""
    if type(local.step) not in VECTORISED:
        return f"steps of the type {type(local.step).__name__} have no vectorised form"
    if local.example:
        first, *rest = local.example
        if not is_clip(first) or not all(isinstance(stage, Gaussian) for stage in rest):
            return "stages of examples other than an l2 clip and Gaussian noise are not vectorised"
    return None


def lengths_of(local: Local, flat: Flat) -> tuple[int, ...]:
    """The lengths of the pieces of an example's gradient that are clipped by themselves."""
    if not local.example:
        return ()
    clip = local.example[0]
    assert isinstance(clip, Bound)
    groups_of(clip, flat.lengths)  # refuses lengths that are not the model's
    return (flat.dim,) if isinstance(clip, Clip) else clip.sizes


def shop_on(recipe: Recipe, device: torch.device) -> Workshop:
    """A workshop whose records and model lie on the device."""
    data = recipe.federation.data
    there = {n: getattr(data, n).to(device) for n in ("x_train", "y_train", "x_test", "y_test")}
    federation = replace(recipe.federation, data=replace(data, **there))
    flat, loss = Flat(recipe.module, recipe.dtype, device), LOSSES[recipe.loss]
    return Workshop(
        gradient_of(flat, loss, "autograd"),
        example_gradient_of(flat, loss),
        loss,
        federation,
        recipe.key,
        recipe.memory,
        recipe.remembered,
        recipe.canaries,
    )


def one_row(
    places: Sequence[int], device: torch.device, count: int | None = None, layers: int = 0
) -> Picked:
    """A batch for a single row."""
    ones = torch.ones(1, dtype=torch.int64, device=device)
    counts = ones * (len(places) if count is None else count)
    radii = torch.ones(1, max(layers, 1), dtype=torch.float64, device=device)
    return Picked(torch.tensor([list(places)], device=device), counts, ones, ones, radii)


def check_apart(sums: Sums, w: Tensor) -> None:
    """Refuse a model that has no vmapped form, or lets padded examples change the others."""
    last = min(3, len(sums.x) - 1)
    try:
        alone, beside = (
            sums(w.unsqueeze(0), one_row([0, other, other], w.device, 1)) for other in (0, last)
        )
    except RuntimeError as why:
        raise ValueError(
            f"Cohort: the model has no vmapped form ({str(why).splitlines()[0]}); "
            "allowed is device = 'cpu' with strategy = 'auto'."
        ) from why
    slack = torch.finfo(w.dtype).eps ** 0.5 * float(alone.abs().max())
    if float((alone - beside).abs().max()) > slack:
        raise ValueError(
            "Cohort: the model lets the examples of a batch change one another's outputs, so "
            "batches cannot be padded; allowed is device = 'cpu' with strategy = 'auto'."
        )
