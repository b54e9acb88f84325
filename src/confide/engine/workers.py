"""Worker processes of one thread each: on a CPU, where two threads in one process gain nothing.

The model and the clients' vectors travel through shared memory, everything small through pipes.
Workers get chunks of clients in order and the loop folds them in that same order, so the bits do
not depend on their number. They are forked where the system can do that safely, so they work from a
notebook and from a script without a main guard; elsewhere they are spawned without running the
caller's script again. Where what they need cannot travel, or a process may have no children, one
process does the work and its words say why.
"""

from __future__ import annotations

import multiprocessing as mp
import sys
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import prod
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any, Literal

import torch
from torch import Tensor

from confide.engine.client import Job
from confide.engine.rounds import Round
from confide.engine.serving import CANNOT_TRAVEL, Needs, Shared, cannot_travel, serve
from confide.engine.trainers import InProcess, Recipe, Scores, Trainer, pieces

SLOT_VALUES = 1 << 24
"""At most this many values in one chunk, as long as that is a client at all."""

Start = Literal["fork", "spawn"]


class WorkerDied(RuntimeError):
    """A worker process ended by itself; the round must be run again."""


def trainer_on_cpu(
    recipe: Recipe, workers: int, length: int, first: Round, start: Start | None = None
) -> Trainer:
    """Worker processes if more than one is asked for and possible; `length` values a client."""
    if workers <= 1:
        return InProcess(recipe)
    try:
        if mp.current_process().daemon:
            raise WorkerDied("this process is a worker itself and may have none")
        return Workers(recipe, workers, length, first, start or start_here())
    except (OSError, WorkerDied, *CANNOT_TRAVEL) as why:
        alone = InProcess(recipe)
        alone.words += f" (no worker processes: {' '.join(str(why).split())})"
        return alone


def start_here() -> Start:
    """Forking is safe on Linux only."""
    return "fork" if sys.platform == "linux" else "spawn"


class Workers:
    """Processes that each hold a workshop."""

    def __init__(
        self, recipe: Recipe, count: int, length: int, first: Round, start: Start = "fork"
    ) -> None:
        """Start them; `length` is how many values a client uploads, `first` what they are to do."""
        dim = sum(p.numel() for p in recipe.module.parameters())
        rows = max(1, min(16, SLOT_VALUES // max(length, 1)))
        self._rows, self._count = rows, count
        self.device = torch.device("cpu")
        self._shared = Shared(
            torch.zeros(dim, dtype=recipe.dtype).share_memory_(),
            torch.zeros(4 * count, rows, length, dtype=recipe.dtype).share_memory_(),
        )
        if recipe.memory is not None and recipe.remembered is not None:
            recipe.memory.share_memory_()
            recipe.remembered.share_memory_()
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        self._pieces = list(pieces(recipe.federation))
        try:
            for _ in range(count):
                self._begin(recipe, first, start)
            words = [self._receive(pipe) for pipe in self._pipes]
        except BaseException:
            self.close()
            raise
        self.words = f"{count} worker processes of one thread, {words[0]}"

    def _begin(self, recipe: Recipe, first: Round, start: Start) -> None:
        """One more process; it is sent a round so that one that cannot travel shows at once."""
        context: Any = mp.get_context(start)
        ours, theirs = context.Pipe()
        needs = Needs(recipe, self._shared)
        inherited = ([*self._pipes, ours], needs) if start == "fork" else ([], None)
        process = context.Process(target=serve, args=(theirs, *inherited), daemon=True)
        with quiet_start(start):
            process.start()
        theirs.close()
        self._pipes.append(ours)
        self._processes.append(process)
        if start == "fork":
            self._send(ours, (None, first))
        else:
            share(recipe)
            self._send(ours, (needs, first))

    def train(self, job: Job, clients: Sequence[int]) -> Iterator[Mapping[str, Tensor]]:
        """Chunks go out in order to whoever is free; what comes back is yielded in order."""
        self._shared.model.copy_(job.model)
        sent = {name: vector.numpy() for name, vector in job.sent.items()}
        for pipe in self._pipes:
            try:
                self._send(pipe, ("round", (job.t, job.round, sent, job.inside)))
            except CANNOT_TRAVEL as why:
                raise cannot_travel(str(why)) from why
        chunks = chunks_of(clients, self._count, self._rows)
        for slot, answer in self._in_order([("train", chunk) for chunk in chunks]):
            yield from self._unpacked(slot, answer)

    def evaluate(self, model: Tensor) -> Scores:
        """Every worker takes pieces; they are added in order."""
        self._shared.model.copy_(model)
        total = Scores()
        for _, answer in self._in_order([("evaluate", start) for start in self._pieces]):
            total = total.plus(answer)
        return total

    def close(self) -> None:
        """End the processes; they also end by themselves when this one does."""
        for pipe in self._pipes:
            with suppress(OSError):
                pipe.send(("stop", None))
            pipe.close()
        for process in self._processes:
            process.join(timeout=5)
            if process.is_alive():
                process.kill()
                process.join()

    def _in_order(self, tasks: Sequence[tuple[str, Any]]) -> Iterator[tuple[int, Any]]:
        """Hand out tasks as workers and slots get free; yield (slot, answer) in their order."""
        free = list(range(len(self._shared.slots)))[::-1]
        waiting: dict[int, tuple[int, Any]] = {}
        busy: dict[Connection, list[tuple[int, int]]] = {pipe: [] for pipe in self._pipes}
        handed, due = 0, 0
        while due < len(tasks):
            for pipe in sorted(self._pipes, key=lambda p: len(busy[p])):
                # A second task waits at each worker, so that it never idles for a message; the
                # last ones go to whoever is free first.
                most = 2 if handed < len(tasks) - self._count else 1
                if handed < len(tasks) and free and len(busy[pipe]) < most:
                    slot = free.pop()
                    self._send(pipe, (tasks[handed][0], (tasks[handed][1], slot)))
                    busy[pipe].append((handed, slot))
                    handed += 1
            if due in waiting:
                slot, answer = waiting.pop(due)
                yield slot, answer
                free.append(slot)
                due += 1
                continue
            for pipe in wait([p for p in self._pipes if busy[p]]):
                assert isinstance(pipe, Connection)
                number, slot = busy[pipe].pop(0)
                waiting[number] = slot, self._receive(pipe)

    def _send(self, pipe: Connection, message: Any) -> None:
        try:
            pipe.send(message)
        except OSError as end:
            raise WorkerDied(self._epitaph()) from end

    def _receive(self, pipe: Connection) -> Any:
        try:
            kind, answer = pipe.recv()
        except (EOFError, OSError) as end:
            raise WorkerDied(self._epitaph()) from end
        if kind == "wrong":
            raise answer
        if kind == "failed":
            raise WorkerDied(answer)
        return answer

    def _epitaph(self) -> str:
        ended = wait([process.sentinel for process in self._processes], timeout=10)
        for process in self._processes:
            if process.sentinel in ended:  # its pipe closes a moment before it has a status
                process.join(timeout=10)
        codes = [p.exitcode for p in self._processes if p.exitcode is not None]
        how = "by itself"
        if codes:
            how = f"by signal {-codes[0]}" if codes[0] < 0 else f"with status {codes[0]}"
        return f"a worker process ended {how}; was there enough memory? The run can be resumed."

    def _unpacked(self, slot: int, answer: Any) -> Iterator[Mapping[str, Tensor]]:
        for row, (layout, loose) in enumerate(answer):
            if loose is not None:
                yield {name: torch.from_numpy(array) for name, array in loose.items()}
                continue
            values = self._shared.slots[slot, row]
            vectors: dict[str, Tensor] = {}
            for name, shape in layout:
                vectors[name], values = values[: prod(shape)].view(shape), values[prod(shape) :]
            yield vectors


def chunks_of(clients: Sequence[int], workers: int, most: int) -> list[Sequence[int]]:
    """Large ones first, single clients at the end, so that all workers finish together."""
    chunks: list[Sequence[int]] = []
    start = 0
    while start < len(clients):
        size = max(1, min(most, (len(clients) - start) // (4 * workers)))
        chunks.append(clients[start : start + size])
        start += size
    return chunks


def share(recipe: Recipe) -> None:
    """Data in memory that spawned processes see too, instead of a copy in each."""
    data = recipe.federation.data
    for tensor in (data.x_train, data.y_train, data.x_test, data.y_test):
        tensor.share_memory_()


@contextmanager
def quiet_start(start: Start) -> Generator[None]:
    """Fork without a complaint about threads; spawn without running the caller's script again."""
    if start == "fork":
        with warnings.catch_warnings():
            # A child uses none of the parent's threads: one thread, its own model, no device.
            warnings.filterwarnings("ignore", ".*multi-threaded.*", DeprecationWarning)
            yield
        return
    main: ModuleType = sys.modules["__main__"]
    hidden = {name: main.__dict__.pop(name) for name in ("__file__",) if name in main.__dict__}
    spec, main.__spec__ = main.__spec__, None
    try:
        yield
    finally:
        main.__dict__.update(hidden)
        main.__spec__ = spec
