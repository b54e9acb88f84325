"""A few clients and the server of one method, made to work by the engine's own code.

Every stage is replaced by a twin of its own class that does what it does and writes down what it
was given and what came out. The noise's key can be exchanged while everything else that is drawn
(cohorts, batches, dropout, what is public) stays as it was: what then changes is noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from math import ceil
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

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
from confide.engine.rounds import Method, Past, Round, Sizes, Stages
from confide.engine.spending import Plan, planned_at, unrolled
from confide.engine.trainers import Recipe, one_thread
from confide.randomness import Key, Stream
from confide.stages.stage import Shared, Stage

WIDTHS = (8, 16, 16, 8, 4)
"""The model: four layers of 36 to 272 parameters."""
CLIENTS = 3
"""So many are made to work; the others only count."""
LEAST_RECORDS, LEAST_BATCH = 16, 8
KEPT = "records", "dropout", "cohort", "turns"
MOST_CALLS = 6
"""Of one stage by one client in a round, as far as they are written down."""


class Counted(Stream):
    """A stream that counts the bytes that are taken."""

    def __init__(self, source: Stream, taken: list[int]) -> None:
        """Of this one, added to the only entry of `taken`."""
        self._source, self._taken = source, taken

    def _take(self, n: int) -> NDArray[np.uint8]:
        self._taken[0] += n
        return self._source._take(n)


@dataclass(frozen=True, repr=False)
class NoiseKey(Key):
    """A key whose noise comes from another one; the rest is as it was."""

    noise: Key = field(default_factory=Key.from_system)
    taken: list[int] = field(default_factory=lambda: [0])

    def stream(self, round: int, client: int | None, purpose: str) -> Stream:
        """Noise from the other key, counted."""
        if purpose in KEPT or purpose.startswith("shared "):
            return super().stream(round, client, purpose)
        return Counted(self.noise.stream(round, client, purpose), self.taken)


@dataclass(frozen=True, eq=False)
class Call:
    """One stage at work: where it stands, in which run, what it was given and what came out."""

    place: str
    vector: str
    number: int  # of the stage, from 0, at its place
    stage: Stage
    run: int
    t: int
    client: int | None
    times: int  # how often it had worked before, for this client in this round
    given: Tensor
    came: Tensor
    taken: int  # bytes of the noise's streams

    @property
    def seat(self) -> tuple[str, str, int]:
        """Which stage of the round it is."""
        return self.place, self.vector, self.number


@dataclass(eq=False)
class Notes:
    """What is written down, and of what."""

    taken: list[int] = field(default_factory=lambda: [0])
    run: int = 0
    t: int = 0
    client: int | None = None
    calls: list[Call] = field(default_factory=list[Call])
    times: dict[Any, int] = field(default_factory=dict[Any, int])

    def begin(self, t: int, client: int | None) -> None:
        """Whose turn it is."""
        self.t, self.client, self.times = t, client, {}


def twin(stage: Stage, seat: tuple[str, str, int], notes: Notes) -> Stage:
    """The same stage, which also writes down what it does."""
    kind = type(stage)

    def call(self: Stage, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        before, given = notes.taken[0], x.clone()
        came = kind.__call__(self, x, shared, own)
        times = notes.times[seat] = notes.times.get(seat, -1) + 1
        if times < MOST_CALLS:
            notes.calls.append(
                Call(
                    *seat, self, notes.run, notes.t, notes.client, times,
                    given, came.clone(), notes.taken[0] - before,
                )
            )  # fmt: skip
        return came

    made: Any = object.__new__(type(kind.__name__, (kind,), {"__call__": call}))
    names = [one.name for one in fields(stage)] if is_dataclass(stage) else []
    for name in names:
        object.__setattr__(made, name, getattr(stage, name))
    for name, value in getattr(stage, "__dict__", {}).items():
        object.__setattr__(made, name, value)
    return cast("Stage", made)


def written_down(r: Round, notes: Notes) -> Round:
    """The round with twins for all its stages."""

    def all_of(stages: Stages, place: str, vector: str) -> Stages:
        return tuple(twin(s, (place, vector, i), notes) for i, s in enumerate(stages))

    local = replace(
        r.local,
        example=all_of(r.local.example, "example", "gradient"),
        batch=all_of(r.local.batch, "batch", "gradient"),
    )
    uploads = {n: replace(u, stages=all_of(u.stages, "upload", n)) for n, u in r.uploads.items()}
    publish = {n: all_of(r.published(n), "publish", n) for n in r.uploads}
    return replace(r, local=local, upload=uploads, publish=publish)


@dataclass(frozen=True, eq=False)
class Seen:
    """What left the clients in one round, and what was published."""

    run: int
    t: int
    round: Round
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

        The rounds from 0 on follow from one another; one from later is the planned one, made on the
        first model.
        """
        noise = Key.from_seed(int.from_bytes(self.key.stream(run, None, "noise").bytes(32)))
        key = NoiseKey(self.key.material, self.key.source, noise, self.notes.taken)
        recipe = self.recipe(key, other)
        shop = recipe.workshop()
        self.notes.run = run
        loop = self.loop(recipe)
        for t in turns:
            if t != loop.progress.t:
                loop = self.loop(recipe)
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
        return Seen(self.notes.run, t, r, sent, kept)

    def recipe(self, key: Key, other: bool) -> Recipe:
        """What a workshop is made of, with a memory of its own."""
        held = federation(self.sizes, other)
        memory = memory_for(self.plan, self.sizes, torch.float32)
        return Recipe(self.module, "cross-entropy", held, key, torch.float32, "auto", *memory)

    def loop(self, recipe: Recipe) -> Loop:
        """The engine's loop before the first round; nothing here trains by it or charges for it."""
        nobody: Any = None
        flat = Flat(self.module)
        start = Progress(flat.vector.clone(), np.zeros(self.sizes.clients, np.int64))
        books = Books(self.method, self.sizes, self.plan, None, None, {}, None, None)
        return Loop(
            books=books,
            weights=recipe.federation.sizes,
            key=recipe.key,
            key_name="rehearsal",
            trainer=nobody,
            ledger=nobody,
            progress=start,
            public=ServersRecords(recipe),
        )


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
