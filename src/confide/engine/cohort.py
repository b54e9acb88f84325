"""The cohort as one vmapped step: every client is a row of a matrix, on a GPU or on the CPU.

All draws are made on the CPU from the streams of `client.work`, so a client's batches, masks and
noise are the same as anywhere else. Clients of unequal sizes are padded: a padded example counts
exactly zero, and a client that has gone through its batches is out of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import ceil, sqrt

import torch
from torch import Tensor

from confide.cohorts import Epoch, Fixed, Poisson
from confide.engine.client import Job, Workshop, is_clip
from confide.engine.crew import Crew, RowBatch
from confide.engine.flat import Flat
from confide.engine.gradients import example_gradient_of, gradient_of
from confide.engine.gradients.clipping import Bound
from confide.engine.rounds import Local, Round, columns_of
from confide.engine.rows import VECTORISED, Courses, move, remembered, seeds
from confide.engine.sums import WAYS, Compiler, Picked, Sums, Way
from confide.engine.trainers import InProcess, Recipe, Scores, one_thread, pieces, scores
from confide.engine.workers import cores
from confide.losses import LOSSES
from confide.stages import Gaussian

Total = Callable[[Tensor, Picked], Tensor]

ROWS_ON_CPU, ROWS_ON_GPU = 32, 1024
"""More rows than this gain nothing."""

MEMORY_ON_CPU = 1 << 30
"""Bytes for one chunk."""

SHARE = 0.7
"""Of a device's memory, for one chunk; its total is the same in every run, what is free is not."""

COPIES = 8
"""Vectors of the model's length that a row needs at the most: w, gradients, momentum, an upload."""


class Cohort:
    """A trainer that moves all clients of a chunk by one call for each local step."""

    def __init__(
        self, recipe: Recipe, device: str | torch.device = "cuda", rows: int | None = None
    ) -> None:
        """Put the records on the device; `rows` bounds a chunk, which otherwise fits the memory."""
        self._device, self._dtype = torch.device(device), recipe.dtype
        self._way = way_of(recipe.strategy, self._device)
        self._recipe, self._most = recipe, rows
        self._shop = shop_on(recipe, self._device)
        data = self._shop.federation.data
        flat = Flat(recipe.module, recipe.dtype, self._device)
        self._start = flat.vector
        self._sums = Sums(flat, self._shop.loss, data.x_train, data.y_train, self._way)
        self._compiler = Compiler()
        self._pool = ThreadPoolExecutor(cores())
        self._needs: dict[object, float] = {}
        self._alone: InProcess | None = None
        self.words = f"the cohort as one vmapped step on {device}, {self._way.words(self._dtype)}"
        with self._way.rules():
            check_apart(self._sums, flat.vector)

    def train(self, job: Job, clients: Sequence[int]) -> Iterator[Mapping[str, Tensor]]:
        """Chunk after chunk; what is sent lies where the received model lies."""
        home = job.model.device
        if unsuited(job.round.local) is not None:
            yield from self._one_by_one(job, clients)
            return
        there = {name: vector.to(self._device) for name, vector in job.sent.items()}
        job = Job(job.t, job.round, job.model.to(self._device), there)
        size = self._chunk(job.round)
        for first in range(0, len(clients), size):
            with one_thread(), self._way.rules():
                crew = Crew(self._shop, job, clients[first : first + size], self._pool)
                results = self._trained(job, crew, size)
            uploads = crew.uploads(job.model, *results)
            for _ in clients[first : first + size]:
                with one_thread(), self._way.rules():
                    sent = next(uploads)
                yield {name: vector.to(home) for name, vector in sent.items()}

    def evaluate(self, model: Tensor) -> Scores:
        """Piece by piece."""
        total, model = Scores(), model.to(self._device)
        exact = replace(self._way, products="float32")
        with one_thread(), exact.rules():
            for start in pieces(self._shop.federation):
                total = total.plus(scores(self._shop, model, start))
        return total

    def close(self) -> None:
        """End the threads that draw noise."""
        self._pool.shutdown()

    def _one_by_one(self, job: Job, clients: Sequence[int]) -> Iterator[Mapping[str, Tensor]]:
        """Rounds that have no rows: on the CPU, one client after the other."""
        if self._alone is None:
            self._alone = InProcess(replace(self._recipe, strategy="auto"))
        home, sent = job.model.device, {n: v.cpu() for n, v in job.sent.items()}
        here = Job(job.t, job.round, job.model.cpu(), sent)
        for vectors in self._alone.train(here, clients):
            yield {name: vector.to(home) for name, vector in vectors.items()}

    def _trained(
        self, job: Job, crew: Crew, size: int
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Where every row ends, and what it remembered before and remembers now."""
        local, start = job.round.local, job.model
        rows = size if self._way.compiled else len(crew.members)
        width = self._width(local)
        table = crew.table(rows, width, self._device)
        w = start.repeat(rows, 1)
        state = State(
            w,
            torch.zeros(rows, dtype=torch.int64, device=self._device),
            torch.zeros_like(w) if getattr(local.step, "momentum", 0) else None,
            crew.memories(w) if local.remembers else None,
        )
        keys = [0] * rows
        if self._sums.draws:
            keys[: len(crew.members)] = crew.dropout_seeds()
        at_device = seeds(keys).to(self._device)
        for step in range(crew.steps):
            work, columns = crew.at_work(step), crew.columns(step)
            # One shape is compiled; the few rows and columns that are left at the end are not.
            full = rows < 2 * work and columns <= width < 2 * columns
            if self._way.compiled and full and not hosted(local):
                self._step_compiled(job, state, table.batch(step, rows, width, at_device))
            else:
                self._step(job, state, table.batch(step, work, columns, at_device), crew)
        course = Courses(start, job.sent, state.memory)
        taken = table.active.sum(0)
        return state.w, state.memory, remembered(local.step, state.w, course, taken)

    def _step(self, job: Job, state: State, batch: RowBatch, crew: Crew) -> None:
        """One step of the rows that are at work, operation by operation."""
        part, local = state.first(len(batch.counts)), job.round.local
        gradient = Gradient(batch, part.numbers, self._total(local), crew)
        move(local.step, part.w, gradient, Courses(job.model, job.sent, part.memory, part.velocity))

    def _step_compiled(self, job: Job, state: State, batch: RowBatch) -> None:
        """One step of all rows as one compiled function."""
        local, total = job.round.local, self._summed(job.round.local)
        more = {"velocity": state.velocity, "memory": state.memory, **job.sent}
        some = {name: tensor for name, tensor in more.items() if tensor is not None}

        def stepped(
            w: Tensor, numbers: Tensor, start: Tensor, places: Tensor, counts: Tensor,
            divisors: Tensor, active: Tensor, keys: Tensor, *given: Tensor,
        ) -> tuple[Tensor, ...]:  # fmt: skip
            named = dict(zip(some, given, strict=True))
            memory, velocity = named.pop("memory", None), named.pop("velocity", None)
            end, numbers = w.clone(), numbers.clone()
            velocity = None if velocity is None else velocity.clone()
            rows = RowBatch(places, counts, divisors, active, keys)
            course = Courses(start, named, memory, velocity)
            move(local.step, end, Gradient(rows, numbers, total), course)
            end = torch.where(active.unsqueeze(1), end, w)
            return (end, numbers) if velocity is None else (end, numbers, velocity)

        name = ("step", local.step, local.example, self._fit(local)[1], tuple(some))
        given = (state.w, state.numbers, job.model, *batch.tensors(), *some.values())
        state.w, state.numbers, *velocity = self._compiler(name, stepped, *given)
        if velocity:
            state.velocity = velocity[0]

    def _total(self, local: Local) -> Total:
        """The rows' sums; compiled, if everything around them is not."""
        total = self._summed(local)
        if not (self._way.compiled and hosted(local)):
            return total
        width = self._width(local)

        def sums(w: Tensor, *picked: Tensor) -> Tensor:
            return total(w, Picked(*picked))

        def either(w: Tensor, picked: Picked) -> Tensor:
            if picked.places.shape[1] < width:
                return total(w, picked)
            given = (picked.places, picked.counts, picked.keys, picked.batch)
            return self._compiler(("sums", local.example, self._fit(local)[1]), sums, w, *given)

        return either

    def _summed(self, local: Local) -> Total:
        """The rows' sums of gradients, clipped where the round clips examples."""
        clip = local.example[0] if local.example else None
        assert clip is None or isinstance(clip, Bound)
        columns = self._fit(local)[1]
        return lambda w, picked: self._sums(w, picked, clip, columns)

    def _chunk(self, r: Round) -> int:
        """How many rows a chunk has: the same in every round, so that one shape is compiled."""
        clients = len(self._shop.federation.clients)
        expected = r.cohort.expected(clients)
        if isinstance(r.cohort, Poisson):
            expected = min(clients, expected + 2 * sqrt(expected))
        expected = max(1, ceil(expected))
        return ceil(expected / ceil(expected / self._fit(r.local)[0]))

    def _width(self, local: Local) -> int:
        """How many columns a batch has; only a Poisson batch is now and then larger."""
        largest = max(1, *(len(held) for held in self._shop.federation.clients))
        match local.sampler:
            case Epoch(m) | Fixed(m):
                return min(m, largest)
            case Poisson(q):
                return min(largest, max(1, ceil(q * largest + 3 * sqrt(q * largest))))
            case _:
                return largest

    def _fit(self, local: Local) -> tuple[int, int | None]:
        """How many rows fit the memory, and how many columns of one row if not even that does."""
        if self._most is not None:
            return self._most, None
        width, size = self._width(local), self._start.element_size() * len(self._start)
        budget, most = MEMORY_ON_CPU, ROWS_ON_CPU
        if self._device.type == "cuda":
            total = torch.cuda.get_device_properties(self._device).total_memory
            budget, most = SHARE * (total - self._sums.x.nbytes), ROWS_ON_GPU
        need = self._need(local, size, width)
        rows = int(budget / (COPIES * size + width * need))
        if rows:
            return min(rows, most), None
        return 1, max(1, int((budget - COPIES * size) / need))

    def _need(self, local: Local, size: int, width: int) -> float:
        """The bytes that one example takes: measured on a GPU, guessed elsewhere."""
        if self._device.type != "cuda":
            return 4.0 * size if local.example else 0.0
        key = (bool(local.example), width)
        if key not in self._needs:
            columns = min(width, 8)
            clip = local.example[0] if local.example else None
            assert clip is None or isinstance(clip, Bound)
            before = torch.cuda.memory_allocated(self._device)
            torch.cuda.reset_peak_memory_stats(self._device)
            with self._way.rules():
                self._sums(self._start.unsqueeze(0), one_row([0] * columns, self._device), clip)
            peak = torch.cuda.max_memory_allocated(self._device)
            self._needs[key] = (peak - before) / columns
        return self._needs[key]


@dataclass(eq=False)
class State:
    """Where the rows are; `numbers` counts their batches, for dropout."""

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
class Gradient:
    """A batch for each row, as a vectorised step sees it."""

    batch: RowBatch
    numbers: Tensor
    total: Total
    crew: Crew | None = None

    def __call__(self, w: Tensor, asked: Tensor | None = None) -> Tensor:
        """Sums of gradients, the noise and stages of each row, divided."""
        batch = self.batch
        drawn = batch.counts > 0 if asked is None else (batch.counts > 0) & asked
        picked = Picked(batch.places, batch.counts, batch.keys, self.numbers + 1)
        total = self.total(w, picked)
        self.numbers.add_(drawn)
        if self.crew is not None:
            total = self.crew.noised(total)
        return total / batch.divisors.to(w.dtype).unsqueeze(1)


def unsuited(local: Local) -> str | None:
    """Why these local steps have no vectorised form, if so."""
    if type(local.step) not in VECTORISED:
        return f"steps of the type {type(local.step).__name__} have no vectorised form"
    if local.example:
        first, *rest = local.example
        if not is_clip(first) or not all(isinstance(stage, Gaussian) for stage in rest):
            return "stages of examples other than an l2 clip and Gaussian noise are not vectorised"
        if columns_of(first):
            return "a clip of examples with a norm for each client is not vectorised"
    return None


def hosted(local: Local) -> bool:
    """Whether a step needs the CPU between its gradient and its move."""
    return bool(local.batch) or len(local.example) > 1


def way_of(strategy: str, device: torch.device) -> Way:
    """How the step is run."""
    if strategy == "auto":
        return WAYS["compiled" if device.type == "cuda" else "cohort"]
    if strategy not in WAYS:
        names = ("auto", *WAYS)
        near = get_close_matches(strategy, names, 1, 0)[0]
        raise ValueError(
            f"strategy = {strategy!r}, allowed on {device.type} are {', '.join(names)}; "
            f"did you mean {near!r}?"
        )
    return WAYS[strategy]


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
    )


def one_row(places: Sequence[int], device: torch.device, count: int | None = None) -> Picked:
    """A batch for a single row."""
    ones = torch.ones(1, dtype=torch.int64, device=device)
    counts = ones * (len(places) if count is None else count)
    return Picked(torch.tensor([list(places)], device=device), counts, ones, ones)


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
