"""How the clients of a cohort get trained: the interface, and one process with one thread.

Results never depend on the trainer's way of batching: `train` yields what each client uploads in
the order of `clients`, and the loop adds them up in that order.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import torch
from torch import Tensor, nn

from confide.data.dataset import Federation
from confide.engine.canaries import Canaries
from confide.engine.client import Job, Workshop, work
from confide.engine.flat import Flat
from confide.engine.gradients import example_gradient_of, gradient_of
from confide.engine.gradients.halves import Halves
from confide.engine.overheard import overheard
from confide.engine.pool import Pool, cores
from confide.engine.ways import WAYS
from confide.losses import LOSSES
from confide.randomness import Key

EVALUATED_AT_ONCE = 500
"""Test records in one piece; a constant, so that sums do not depend on the number of processes."""


@dataclass(frozen=True)
class Scores:
    """Sums over some test records; of numbers to predict, the errors instead of what is right."""

    records: int = 0
    loss: float = 0.0
    right: int = 0
    error: float = 0.0
    squared: float = 0.0
    of_numbers: bool = False

    def plus(self, other: Scores) -> Scores:
        """Both together."""
        return Scores(
            self.records + other.records,
            self.loss + other.loss,
            self.right + other.right,
            self.error + other.error,
            self.squared + other.squared,
            self.of_numbers or other.of_numbers,
        )

    def figures(self) -> dict[str, float]:
        """Accuracy, or mean absolute and root mean squared error; and the mean loss."""
        loss = {"loss": self.loss / self.records}
        if not self.of_numbers:
            return {"accuracy": self.right / self.records, **loss}
        rmse = sqrt(self.squared / self.records)
        return {"error": self.error / self.records, "rmse": rmse, **loss}


class Trainer(Protocol):
    """Trains clients and evaluates models; rounds compute best where it does, on `device`."""

    words: str
    device: torch.device

    def train(self, job: Job, clients: Sequence[int]) -> Iterator[Mapping[str, Tensor]]:
        """What each of these clients uploads, in their order; a vector may be overwritten later."""
        ...

    def evaluate(self, model: Tensor) -> Scores:
        """The model on the held-out records."""
        ...

    def close(self) -> None:
        """Let go of processes and memory."""
        ...


@dataclass(frozen=True, eq=False)
class Recipe:
    """Everything a process needs to make a workshop; it travels to workers."""

    module: nn.Module
    loss: str
    federation: Federation
    key: Key
    dtype: torch.dtype = torch.float32
    strategy: str = "auto"
    memory: Tensor | None = None
    remembered: Tensor | None = None
    canaries: Canaries | None = None

    def workshop(self) -> Workshop:
        """Ready to train on this process's CPU."""
        flat = Flat(self.module, self.dtype)
        loss = LOSSES[self.loss]
        strategy = "auto" if self.strategy in WAYS else self.strategy
        gradient = gradient_of(flat, loss, strategy)
        examples = example_gradient_of(flat, loss, strategy)
        return Workshop(
            gradient,
            examples,
            loss,
            self.federation,
            self.key,
            self.memory,
            self.remembered,
            self.canaries,
        )


class InProcess:
    """Everything in this process, with one thread: the number of cores changes no bits."""

    def __init__(self, recipe: Recipe) -> None:
        """Make the workshop, and threads that draw noise while this one works."""
        self._shop, self.device = recipe.workshop(), torch.device("cpu")
        self._pool = Pool(max(1, cores() - 1))
        self._shop.pool = self._pool
        if isinstance(self._shop.examples, Halves):
            self._shop.examples.pool = self._pool
        self.words = f"one process, {strategy_words(self._shop)}"

    def train(self, job: Job, clients: Sequence[int]) -> Iterator[Mapping[str, Tensor]]:
        """One client after the other."""
        for client in clients:
            with one_thread():
                sent = (overheard if job.inside else work)(self._shop, job, client)
            yield sent

    def evaluate(self, model: Tensor) -> Scores:
        """Piece by piece."""
        total = Scores()
        with one_thread():
            for start in pieces(self._shop.federation):
                total = total.plus(scores(self._shop, model, start))
        return total

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


@contextmanager
def one_thread() -> Generator[None]:
    """One thread for torch: a sum's rounding depends on how many share it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def strategy_words(shop: Workshop) -> str:
    """How gradients are found."""
    return f"gradients {shop.gradient.words}, single examples {shop.examples.words}"


def pieces(federation: Federation) -> range:
    """Where each piece of the held-out records starts."""
    return range(0, len(federation.data.x_test), EVALUATED_AT_ONCE)


@torch.no_grad()
def scores(shop: Workshop, model: Tensor, start: int) -> Scores:
    """One piece of the held-out records."""
    data = shop.federation.data
    x = data.x_test[start : start + EVALUATED_AT_ONCE].to(model.dtype)
    y = data.y_test[start : start + EVALUATED_AT_ONCE]
    outputs = shop.gradient.outputs(model, x)
    loss = float(shop.loss(outputs, y).double().sum())
    if data.classes is None:
        off = (outputs - y).double()
        error, squared = float(off.abs().mean(1).sum()), float(off.square().mean(1).sum())
        return Scores(len(x), loss, 0, error, squared, True)
    return Scores(len(x), loss, int((outputs.argmax(1) == y).sum()))
