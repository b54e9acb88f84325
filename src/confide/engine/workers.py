"""Worker processes of one thread each: on a CPU, where two threads in one process gain nothing.

The model and the clients' vectors travel through shared memory, everything small through pipes.
Workers get chunks of clients in order and the loop folds them in that same order, so the bits do
not depend on their number. They are forked where the system can do that safely, so they work from a
notebook and from a script without a main guard; elsewhere they are spawned without running the
caller's script again, and where what they need cannot travel, one process does the work.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import ceil, prod
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from confide.engine.client import Job, work
from confide.engine.trainers import (
    InProcess,
    Recipe,
    Scores,
    Trainer,
    one_thread,
    pieces,
    scores,
    strategy_words,
)

SLOT_VALUES = 1 << 24
"""At most this many values in one chunk, as long as that is a client at all."""

Layout = tuple[tuple[str, tuple[int, ...]], ...]


class WorkerDied(RuntimeError):
    """A worker process ended by itself; the round must be run again."""


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def trainer_on_cpu(recipe: Recipe, workers: int, length: int) -> Trainer:
    """Worker processes if more than one is asked for and possible; `length` values a client."""
    if workers <= 1:
        return InProcess(recipe)
    method = "fork" if sys.platform == "linux" else "spawn"
    try:
        return Workers(recipe, workers, length, method)
    except (OSError, pickle.PicklingError, AttributeError, TypeError, WorkerDied) as why:
        alone = InProcess(recipe)
        alone.words += f" (worker processes could not start: {why})"
        return alone


@dataclass(frozen=True, eq=False)
class Shared:
    """Memory that the loop and its workers both see."""

    model: Tensor
    slots: Tensor  # slot, client, values


class Workers:
    """Processes that each hold a workshop."""

    def __init__(self, recipe: Recipe, count: int, length: int, method: str = "fork") -> None:
        """Start them; `length` is how many values a client uploads."""
        dim = sum(p.numel() for p in recipe.module.parameters())
        rows = max(1, min(16, SLOT_VALUES // max(length, 1)))
        self._rows, self._count = rows, count
        context = mp.get_context(method)
        self.device = torch.device("cpu")
        self._shared = Shared(
            torch.zeros(dim, dtype=recipe.dtype).share_memory_(),
            torch.zeros(4 * count, rows, length, dtype=recipe.dtype).share_memory_(),
        )
        if recipe.memory is not None and recipe.remembered is not None:
            recipe.memory.share_memory_()
            recipe.remembered.share_memory_()
        if method != "fork":
            recipe = share(recipe)
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        self._pieces = list(pieces(recipe.federation))
        for _ in range(count):
            ours, theirs = context.Pipe()
            inherited = [*self._pipes, ours] if method == "fork" else []
            process = context.Process(
                target=serve, args=(theirs, inherited, recipe, self._shared), daemon=True
            )
            with quiet_start(method):
                process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)
        words = [self._receive(pipe) for pipe in self._pipes]
        self.words = f"{count} worker processes of one thread, {words[0]}"

    def train(self, job: Job, clients: Sequence[int]) -> Iterator[Mapping[str, Tensor]]:
        """Chunks go out in order to whoever is free; what comes back is yielded in order."""
        self._shared.model.copy_(job.model)
        sent = {name: vector.numpy() for name, vector in job.sent.items()}
        for pipe in self._pipes:
            pipe.send(("round", (job.t, job.round, sent)))
        size = min(self._rows, max(1, ceil(len(clients) / (8 * self._count))))
        chunks = [clients[i : i + size] for i in range(0, len(clients), size)]
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
            # A second task waits at each worker, so that it never idles for a message.
            for pipe in sorted(self._pipes, key=lambda p: len(busy[p])):
                if handed < len(tasks) and free and len(busy[pipe]) < 2:
                    slot = free.pop()
                    pipe.send((tasks[handed][0], (tasks[handed][1], slot)))
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
        for process in self._processes:
            process.join(timeout=1)
        codes = [p.exitcode for p in self._processes if p.exitcode is not None]
        how = f"by signal {-codes[0]}" if codes and codes[0] < 0 else f"with status {codes}"
        return f"a worker process ended {how}; was there enough memory?"

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


def serve(pipe: Connection, inherited: list[Connection], recipe: Recipe, shared: Shared) -> None:
    """A worker's life: answer until the pipe closes."""
    for other in inherited:  # or this process would keep a dead loop's pipes open
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with one_thread():
        try:
            shop = recipe.workshop()
            pipe.send(("words", strategy_words(shop)))
        except Exception as why:
            pipe.send(refusal(why))
            return
        job = Job(0, None, shared.model, {})  # pyright: ignore[reportArgumentType]
        while True:
            try:
                what, given = pipe.recv()
            except (EOFError, OSError):
                return
            if what == "stop":
                return
            try:
                if what == "round":
                    t, r, sent = given
                    vectors = {name: torch.from_numpy(array) for name, array in sent.items()}
                    job = Job(t, r, shared.model.clone(), vectors)
                    continue
                task, slot = given
                if what == "train":
                    answer: Any = [
                        packed(work(shop, job, client), shared.slots[slot, row])
                        for row, client in enumerate(task)
                    ]
                else:
                    answer = scores(shop, shared.model, task)
                pipe.send(("done", answer))
            except Exception as why:
                pipe.send(refusal(why))


def packed(vectors: Mapping[str, Tensor], row: Tensor) -> tuple[Layout, Any]:
    """Into shared memory if they fit there as they are, otherwise as arrays for the pipe."""
    same = all(vector.dtype == row.dtype for vector in vectors.values())
    if not same or sum(vector.numel() for vector in vectors.values()) > row.numel():
        return (), {name: vector.numpy() for name, vector in vectors.items()}
    for vector in vectors.values():
        row[: vector.numel()].copy_(vector.reshape(-1))
        row = row[vector.numel() :]
    return tuple((name, tuple(vector.shape)) for name, vector in vectors.items()), None


def refusal(why: Exception) -> tuple[str, Any]:
    """What went wrong, as something that travels."""
    if isinstance(why, ValueError | TypeError):
        return "wrong", type(why)(str(why))
    return "failed", f"a worker process failed: {type(why).__name__}: {why}"


def share(recipe: Recipe) -> Recipe:
    """Data in memory that spawned processes see too, instead of a copy in each."""
    data = recipe.federation.data
    for tensor in (data.x_train, data.y_train, data.x_test, data.y_test):
        tensor.share_memory_()
    return replace(recipe)


@contextmanager
def quiet_start(method: str) -> Iterator[None]:
    """Fork without a complaint about threads; spawn without running the caller's script again."""
    if method == "fork":
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
