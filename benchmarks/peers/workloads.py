"""What every side of `benchmarks/engine.py` trains: sizes, cohorts, synthetic data from one seed.

Needs numpy alone. Every process makes the same arrays for itself, so no side is given an advantage
or a disadvantage by how the data reach it, and nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

SEED = 20261119
CLASSES = 10
DATA, SIZES, COHORT = range(3)  # what a stream of random numbers is for


@dataclass(frozen=True)
class Workload:
    """One thing to train: each client in a cohort runs one epoch of SGD, in order, at rate 0.1.

    With the unit "client" its update is clipped to C = 1, N(0, 1) is added to the sum of the
    cohort's updates and the sum is divided by the cohort's size. With the unit "example" there is
    one client, each example's gradient is clipped to C = 1, N(0, 1) is added to the sum of the
    batch and the sum is divided by the batch's size, in every step.
    """

    name: str
    network: str
    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    cohort: int
    batch: int
    rounds: int  # timed ones, after one that is not
    unit: str = "client"
    rate: float = 0.1
    clip: float = 1.0
    noise: float = 1.0

    def members(self, number: int) -> list[int]:
        """The clients of one round's cohort."""
        drawn = np.random.default_rng([SEED, COHORT, number])
        return drawn.choice(len(self.sizes), self.cohort, replace=False).tolist()

    def cohorts(self) -> Iterator[int]:
        """The clients of the first round, of the second, and so on without end."""
        number = 0
        while True:
            yield from self.members(number)
            number += 1

    def examples(self, number: int) -> int:
        """How many examples one round goes through."""
        return sum(self.sizes[client] for client in self.members(number))

    def data(self) -> list[tuple[NDArray[np.float32], NDArray[np.int64]]]:
        """Every client's records and labels, views of two arrays; a class shifts its records."""
        drawn = np.random.default_rng([SEED, DATA])
        count = sum(self.sizes)
        y = drawn.integers(0, CLASSES, count)
        x = drawn.standard_normal((count, *self.shape), dtype=np.float32)
        x[:, *([0] * len(self.shape))] += y.astype(np.float32) / CLASSES
        cuts = np.cumsum(self.sizes)[:-1]
        return list(zip(np.split(x, cuts), np.split(y, cuts), strict=True))


def _uneven() -> tuple[int, ...]:
    """100 clients of 100 to 500 examples."""
    return tuple(np.random.default_rng([SEED, SIZES]).integers(100, 501, 100).tolist())


WORKLOADS = {
    made.name: made
    for made in (
        Workload("W1-MLP", "mlp", (784,), _uneven(), cohort=50, batch=20, rounds=5),
        Workload("W1-CNN", "cnn", (1, 28, 28), _uneven(), cohort=50, batch=20, rounds=1),
        Workload("W3", "simple_cnn", (3, 32, 32), (50,) * 1000, cohort=50, batch=10, rounds=2),
        Workload("W2-5", "cnn", (1, 28, 28), (500,), 1, batch=5, rounds=1, unit="example"),
        Workload("W2-64", "cnn", (1, 28, 28), (1024,), 1, batch=64, rounds=1, unit="example"),
        Workload("empty", "linear", (5000,), (0,) * 10, cohort=10, batch=10, rounds=4),
        Workload("ResNet-18", "resnet18", (3, 32, 32), (48,) * 40, cohort=10, batch=16, rounds=1),
    )
}


def workload(name: str, cohort: int | None = None, rounds: int | None = None) -> Workload:
    """The workload of that name, or a smaller one for a quick look.

    A smaller cohort gets as little noise in its mean as the whole one, or the model would explode.
    """
    found = WORKLOADS[name]
    if cohort is not None:
        fewer = min(cohort, found.cohort)
        found = replace(found, cohort=fewer, noise=found.noise * fewer / found.cohort)
    return found if rounds is None else replace(found, rounds=rounds)
