"""A federation so small that a paper's algorithm can be done again example by example.

`World` is what a naive algorithm may use: the clients' records, one example's loss and gradient
written out by hand for a network 5-4-3, and the recorded draws. The draws are those of the engine
because both ask for them by (round, client, purpose): the streams are the only thing they share.

Purposes: "cohort" and "publish NAME" belong to the round; "records" (batches), "example", "batch"
and "upload NAME" to a client in a round; "shared NAME" is public. A stream is taken up where the
last draw ended, so a naive algorithm fetches it once for a client and round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from confide.data import Dataset, Federation
from confide.randomness import Key, Stream

Vector = NDArray[np.float64]
INPUTS, HIDDEN, CLASSES = 5, 4, 3
LAYERS = (INPUTS * HIDDEN + HIDDEN, HIDDEN * CLASSES + CLASSES)
DIM = sum(LAYERS)
ROUNDS = 3
SEED = 23


@dataclass(frozen=True)
class World:
    """Records, gradients and draws; `sizes` are the clients' numbers of records."""

    sizes: tuple[int, ...] = (8, 8, 8, 8, 8, 8)

    @property
    def M(self) -> int:
        """The number of clients."""
        return len(self.sizes)

    @cached_property
    def key(self) -> Key:
        """Of all draws."""
        return Key.from_seed(SEED)

    @cached_property
    def data(self) -> Dataset:
        """Noisy points around three centres."""
        random = np.random.default_rng(5)
        centres = random.normal(size=(CLASSES, INPUTS))

        def points(n: int) -> tuple[torch.Tensor, torch.Tensor]:
            y = random.integers(CLASSES, size=n)
            x = centres[y] + 0.7 * random.normal(size=(n, INPUTS))
            return torch.from_numpy(x).float(), torch.from_numpy(y)

        x, y = points(sum(self.sizes) + 12)
        return Dataset("points", x, y, *points(30), classes=CLASSES)

    @cached_property
    def federation(self) -> Federation:
        """The clients in order; 12 public records at the end."""
        ends = np.cumsum(self.sizes)
        held = tuple(np.arange(e - n, e) for n, e in zip(self.sizes, ends, strict=True))
        public = np.arange(ends[-1], ends[-1] + 12)
        return Federation(self.data, held, np.empty(0, np.int64), public, "by hand", 1)

    def records(self, client: int) -> list[tuple[Vector, int]]:
        """What this client holds."""
        held = self.federation.clients[client]
        return [(self.data.x_train[i].double().numpy(), int(self.data.y_train[i])) for i in held]

    def start(self) -> Vector:
        """The first model."""
        parts = [p.detach().double().numpy().ravel() for p in network().parameters()]
        return np.concatenate(parts)

    # Gradients ----------------------------------------------------------------------------------

    def loss(self, w: Vector, x: Vector, y: int) -> float:
        """Cross-entropy of one example."""
        _, _, logits = forward(w, x)
        return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[y])

    def gradient(self, w: Vector, x: Vector, y: int) -> Vector:
        """Its gradient, by the chain rule."""
        inner, hidden, logits = forward(w, x)
        out = np.exp(logits - logits.max())
        out /= out.sum()
        out[y] -= 1
        second = unpacked(w)[2]
        back = (second.T @ out) * (inner > 0)
        return np.concatenate([np.outer(back, x).ravel(), back, np.outer(out, hidden).ravel(), out])

    def mean_gradient(self, w: Vector, records: list[tuple[Vector, int]]) -> Vector:
        """Of a batch."""
        total = np.zeros(DIM)
        for x, y in records:
            total += self.gradient(w, x, y)
        return total / len(records)

    # Draws --------------------------------------------------------------------------------------

    def stream(self, t: int, client: int | None, purpose: str) -> Stream:
        """A stream from its start."""
        return self.key.stream(t, client, purpose)

    def fixed(self, t: int, m: int) -> list[int]:
        """A cohort of m clients without replacement."""
        return [int(i) for i in self.stream(t, None, "cohort").choose(self.M, m)]

    def poisson(self, t: int, q: float) -> list[int]:
        """A cohort by coins."""
        coins = self.stream(t, None, "cohort").bernoulli(q, self.M)
        return [i for i in range(self.M) if coins[i]]

    def epochs(self, t: int, client: int, E: int, B: int) -> Iterator[list[tuple[Vector, int]]]:
        """Batches of at most B in E shuffled passes."""
        records, stream = self.records(client), self.stream(t, client, "records")
        for _ in range(E):
            order = [int(i) for i in stream.permutation(len(records))]
            while order:
                yield [records[i] for i in order[:B]]
                order = order[B:]

    def subsets(self, t: int, client: int, L: int, B: int) -> Iterator[list[tuple[Vector, int]]]:
        """L batches of B, each drawn afresh without replacement."""
        records, stream = self.records(client), self.stream(t, client, "records")
        for _ in range(L):
            yield [records[i] for i in np.sort(stream.choose(len(records), B))]

    def coins(self, t: int, client: int, L: int, q: float) -> Iterator[list[tuple[Vector, int]]]:
        """L batches by a coin for each record."""
        records, stream = self.records(client), self.stream(t, client, "records")
        for _ in range(L):
            heads = stream.bernoulli(q, len(records))
            yield [record for record, head in zip(records, heads, strict=True) if head]


Naive = Callable[[World, Any], Vector]


@dataclass(frozen=True)
class Case:
    """How a method is tested: its settings here, and the same algorithm done naively.

    `naive(world, method)` gives the model after ROUNDS rounds. `plain`: further settings that turn
    off noise, clip and the method's own device, so that it must equal federated averaging with the
    settings `fedavg`; None where it cannot, for the reason `differs`. `wrong`: settings that must
    be refused before any training, each with a word of the sentence.
    """

    naive: Naive
    settings: dict[str, Any]
    plain: dict[str, Any] | None = None
    fedavg: dict[str, Any] | None = None
    differs: str = ""
    wrong: tuple[tuple[dict[str, Any], str], ...] = ()
    rounds: int = ROUNDS
    world: World = World()


def network() -> nn.Module:
    """The network 5-4-3 as the engine gets it, always with the same parameters."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        return nn.Sequential(
            nn.Flatten(), nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES)
        )


def unpacked(w: Vector) -> tuple[Vector, Vector, Vector, Vector]:
    """Weights and biases of both layers."""
    a, b = INPUTS * HIDDEN, LAYERS[0]
    c = b + HIDDEN * CLASSES
    return w[:a].reshape(HIDDEN, INPUTS), w[a:b], w[b:c].reshape(CLASSES, HIDDEN), w[c:]


def forward(w: Vector, x: Vector) -> tuple[Vector, Vector, Vector]:
    """What comes out of the first layer, the same after ReLU, and the logits."""
    first, bias, second, last = unpacked(w)
    inner = first @ x + bias
    hidden = np.maximum(inner, 0)
    return inner, hidden, second @ hidden + last


def shortened(x: Vector, C: float) -> Vector:
    """x min(1, C/‖x‖)."""
    length = float(np.sqrt((x * x).sum()))
    return x * min(1.0, C / length) if length > 0 else x


def shortened_layers(x: Vector, C: float, layers: tuple[int, ...] = LAYERS) -> Vector:
    """Every layer by itself."""
    parts = np.split(x, np.cumsum(layers)[:-1])
    return np.concatenate([shortened(part, C) for part in parts])


def largest(x: Vector, k: int) -> Vector:
    """The k entries of largest magnitude, zeros elsewhere."""
    out = np.zeros_like(x)
    for place in sorted(range(len(x)), key=lambda j: -abs(x[j]))[:k]:
        out[place] = x[place]
    return out
