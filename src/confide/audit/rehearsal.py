"""A few clients and the server of one method, made to work by the engine's own code.

Every stage is replaced by a twin that writes down what it does. The noise's key can be exchanged
while everything else that is drawn stays as it was: what then changes is noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from confide.audit.twins import NoiseKey, Notes, written_down
from confide.cohorts import Fixed, Poisson
from confide.data.dataset import Dataset, Federation
from confide.engine import client as clients
from confide.engine import uploads
from confide.engine.books import Books
from confide.engine.checkpoint import Progress
from confide.engine.client import Job, Workshop
from confide.engine.flat import Flat
from confide.engine.loop import Loop, Published
from confide.engine.public import ServersRecords
from confide.engine.resuming import memory_for
from confide.engine.rounds import Local, Method, Past, Round, Sizes
from confide.engine.spending import Plan, planned_at, unrolled
from confide.engine.trainers import Recipe, one_thread
from confide.randomness import Key

WIDTHS = (8, 16, 16, 8, 4)
"""The model: four layers of 36 to 272 parameters."""
CLIENTS = 3
"""So many are made to work; the others only count."""
LEAST_RECORDS, LEAST_BATCH = 16, 8
HEAVY, FAR_OUT = 10**6, 100.0


@dataclass(frozen=True, eq=False)
class Seen:
    """What left the clients in one round, and what was published."""

    run: int
    t: int
    round: Round
    weights: NDArray[np.int64]
    sent: Mapping[int, Mapping[str, Tensor]]
    published: Mapping[str, Tensor]


@dataclass(eq=False)
class Rehearsal:
    """A method with a small model and small clients."""

    method: Method
    sizes: Sizes
    key: Key
    plan: Plan
    module: nn.Module
    notes: Notes = field(default_factory=Notes)

    @classmethod
    def of(cls, method: Method, many: int, key: Key) -> Rehearsal:
        """As many records as the batches of its first round need."""
        module = network()
        layers = Flat(module).layers
        sizes = Sizes(many, LEAST_RECORDS, layers, LEAST_RECORDS + CLIENTS)
        first = method.round(Past(sizes=sizes))
        if first is not None:
            records = enough(first)
            sizes = Sizes(many, records, layers, records + CLIENTS)
        return cls(method, sizes, key, unrolled(method, sizes), module)

    @property
    def rounds(self) -> int:
        """How many are planned."""
        return sum(count for _, count in self.plan)

    def play(self, run: int, turns: tuple[int, ...], *, other: bool = False) -> Iterator[Seen]:
        """These rounds under a noise key of this run's own; `other`: other records.

        Round 1 follows from round 0; one from later is the planned one, made on the first model.
        """
        noise = Key.from_seed(int.from_bytes(self.key.stream(run, None, "noise").bytes(32)))
        key = NoiseKey(self.key.material, self.key.source, noise, self.notes.taken)
        shop, loop = self.begun(key, other)
        self.notes.run = run
        for t in turns:
            if t > 1:
                shop, loop = self.begun(key, other)
                loop.progress.t = t
                r = planned_at(self.plan, t)
            else:
                r = loop.next_round()
            if r is None:
                return
            yield self.one(loop, shop, written_down(r, self.notes))

    def one(self, loop: Loop, shop: Workshop, r: Round) -> Seen:
        """Every client's message, then what the server publishes."""
        p = loop.progress
        t, job = p.t, Job(p.t, r, p.model, p.server)
        sent: dict[int, Mapping[str, Tensor]] = {}
        with one_thread():
            for client in range(min(CLIENTS, self.sizes.clients)):
                self.notes.begin(t, client)
                vectors = clients.work(shop, job, client)
                sent[client] = {name: vector.clone() for name, vector in vectors.items()}
            self.notes.begin(t, None)
            got = uploads.received(r, sent.items(), loop.weights)
            published = loop.publisher.publish(r, t, p.model, got, len(sent))
            model, server = r.server(p.model, published, dict(p.server))
        if got.passed_on is not None:
            server = {**server, "passed_on": got.passed_on}
        kept = {name: vector.clone() for name, vector in published.items()}
        loop.accept(r, np.array(list(sent)), Published(model, server, published, ""))
        return Seen(self.notes.run, t, r, loop.weights, sent, kept)

    def gradient(self, local: Local) -> Tensor:
        """The first client's sum of gradients after these stages, of records that are far out."""
        recipe = self.recipe(self.key, False)
        shop, held = recipe.workshop(), recipe.federation.clients[0]
        x, y = clients.records(shop, held, torch.float32)
        bare = replace(local, batch=(), average=None)
        with one_thread():
            batch = clients.Batch(shop, bare, clients.Streams(self.key, 0, 0), FAR_OUT * x, y)
            return batch(Flat(self.module).vector.clone()).clone()

    def recipe(self, key: Key, other: bool) -> Recipe:
        """What a workshop is made of, with a memory of its own."""
        held = federation(self.sizes, other)
        memory = memory_for(self.plan, self.sizes, torch.float32)
        return Recipe(self.module, "cross-entropy", held, key, torch.float32, "auto", *memory)

    def begun(self, key: Key, other: bool) -> tuple[Workshop, Loop]:
        """The clients' workshop, and the engine's loop before the first round.

        Nothing here trains by the loop or charges for it.
        """
        recipe = self.recipe(key, other)
        nobody: Any = None
        flat = Flat(self.module)
        start = Progress(flat.vector.clone(), np.zeros(self.sizes.clients, np.int64))
        books = Books(self.method, self.sizes, self.plan, None, None, {}, None, None)
        loop = Loop(
            books=books,
            weights=heavy(recipe.federation.sizes),
            key=recipe.key,
            key_name="rehearsal",
            trainer=nobody,
            ledger=nobody,
            progress=start,
            public=ServersRecords(recipe),
        )
        return recipe.workshop(), loop


def heavy(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of records; one client says that it has so many that any cap must hold it."""
    out = sizes.copy()
    out[min(CLIENTS, len(out)) - 1] = HEAVY
    return out


def enough(r: Round) -> int:
    """Records for a full batch, or for one that is most probably not empty."""
    match r.local.sampler:
        case Fixed(m):
            return max(LEAST_RECORDS, m)
        case Poisson(q):
            return max(LEAST_RECORDS, min(4000, ceil(LEAST_BATCH / q)))
        case _:
            return LEAST_RECORDS


def network() -> nn.Module:
    """Linear layers with ReLU between them, always with the same parameters."""
    parts: list[nn.Module] = []
    for narrow, wide in pairwise(WIDTHS):
        parts += [nn.Linear(narrow, wide), nn.ReLU()]
    random = np.random.default_rng(1)
    module = nn.Sequential(*parts[:-1])
    with torch.no_grad():
        for parameter in module.parameters():
            drawn = random.normal(size=tuple(parameter.shape)) / parameter.shape[-1] ** 0.5
            parameter.copy_(torch.from_numpy(drawn))
    return module


def federation(sizes: Sizes, other: bool) -> Federation:
    """Clients whose records and numbers of records differ; all `other` ones have other records."""
    random = np.random.default_rng(3 if other else 2)
    working = min(CLIENTS, sizes.clients)
    spare = sizes.largest - sizes.records
    counts = [sizes.records + (k + other) % (spare + 1) for k in range(working)]
    ends = np.cumsum(counts)
    held = [np.arange(end - n, end) for n, end in zip(counts, ends, strict=True)]
    total, kept = int(ends[-1]), 8

    def points(n: int) -> tuple[Tensor, Tensor]:
        x = random.normal(size=(n, WIDTHS[0]))
        return torch.from_numpy(x).float(), torch.from_numpy(random.integers(WIDTHS[-1], size=n))

    data = Dataset("points", *points(total + 2 * kept), *points(4 * sizes.clients), WIDTHS[-1])
    everyone = tuple(held) + (held[0],) * (sizes.clients - working)
    validation, public = np.arange(total, total + kept), np.arange(total + kept, total + 2 * kept)
    return Federation(data, everyone, validation, public, "by hand", sizes.clients)
