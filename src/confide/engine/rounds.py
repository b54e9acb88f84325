"""`Round`: everything that happens in one round, in order, as plain data.

The engine runs these stages and `confide.derive` folds their claims: it is the same object, so
what is stated is about what runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast, runtime_checkable

from confide.aggregates import Aggregate, Mean, MeanOfPresent
from confide.channels import Each, Shuffle, Sum
from confide.cohorts import All, Cohort, Epoch, Sampler, whole
from confide.engine.places import KINDS, check_kinds, check_stages, check_uploads, columns_of
from confide.local import SGD, Step
from confide.published.value import Published
from confide.servers import Add, Server
from confide.stages.noises import Gaussian
from confide.stages.stage import Stage, resolved
from confide.values import Bounded, HeldOutLoss

Stages = tuple[Stage, ...]
Channel = Each | Sum | Shuffle


@dataclass(frozen=True)
class Sizes:
    """The public numbers a statement needs: how many clients, records and coordinates.

    `records` is the least number of records of a client, `most_records` the largest. `layers` are
    the lengths of the model's parameters in order. `copies` is the largest number of clients that
    hold one and the same record.
    """

    clients: int
    records: int
    layers: tuple[int, ...]
    most_records: int | None = None
    copies: int = 1

    def __post_init__(self) -> None:
        """Whole numbers of at least one."""
        for name in ("clients", "records", "largest", "copies"):
            whole("Sizes", name, getattr(self, name))
        if not self.layers:
            raise ValueError("Sizes: layers is empty, allowed is at least one length.")
        for length in self.layers:
            whole("Sizes", "layers", length)
        if self.largest < self.records:
            raise ValueError(
                f"most_records = {self.most_records}, allowed is at least records = {self.records}."
            )

    @property
    def dim(self) -> int:
        """The number of the model's parameters."""
        return sum(self.layers)

    @property
    def largest(self) -> int:
        """The largest number of records of a client."""
        return self.records if self.most_records is None else self.most_records


@dataclass(frozen=True)
class Local:
    """What a client does with its data before anything leaves it.

    `example` stages act on each example's gradient, their results are summed over the batch that
    `sampler` draws, `batch` stages act on that sum, `average` divides the result. `steps` counts
    local steps in a round; with `Epoch` it counts epochs. `remembers`: the client keeps state from
    round to round that has seen raw data (momentum, error feedback, control variates, personal
    layers).
    """

    step: Step = field(default_factory=SGD)
    steps: int = 1
    sampler: Sampler = field(default_factory=All)
    example: Stages = ()
    batch: Stages = ()
    average: Mean | MeanOfPresent | None = None
    remembers: bool = False

    def __post_init__(self) -> None:
        """At least one step, whose gradients are counted."""
        whole("Local", "steps", self.steps)
        whole("Local", "step.gradients", self.step.gradients)
        if self.keeps_iterates and not self.remembers:
            raise ValueError(
                f"Local: remembers = False, allowed with {type(self.step).__name__} is True: its "
                "state has seen raw data and survives the round."
            )
        if isinstance(self.average, Mean) and self.average.by is None:
            raise ValueError(
                "Local: average = Mean(by=None), allowed is a public number: a client's own number "
                "of records is not one."
            )

    @property
    def keeps_iterates(self) -> bool:
        """Whether what is kept is made by the step itself, of its iterates and of what was sent."""
        return getattr(self.step, "remember", None) is not None

    def divisor(self, present: int) -> float:
        """What the result of a batch of this many examples is divided by."""
        if isinstance(self.average, Mean):
            return self.average.by or 1.0
        plain = self.average is None and (self.example or self.batch)
        return 1.0 if plain else float(max(present, 1))

    def gradient_steps(self, records: int) -> int:
        """How many batches a client with this many records goes through in a round."""
        if isinstance(self.sampler, Epoch):
            return self.steps * self.sampler.batches(records)
        return self.steps


DATA = ("iterates", "train", "test")


@dataclass(frozen=True)
class Upload:
    """One named vector that leaves a client.

    `data` says what it is made of: "iterates" of the local steps (so noise inside them protects it
    too), "train" data looked at once more, or "test" data under the model that was received, which
    get a row of their own in the statement. `length`: None for the model's. `value` computes the
    vector from what the client did; None: the engine's quantity of that name.
    """

    stages: Stages = ()
    length: int | None = None
    data: str = "iterates"
    value: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        """Known data."""
        if self.data not in DATA:
            raise ValueError(f"Upload: data = {self.data!r}, allowed are {', '.join(DATA)}.")
        if isinstance(self.value, HeldOutLoss) and self.data != "test":
            raise ValueError(f"Upload: data = {self.data!r}, allowed for HeldOutLoss is 'test'.")
        first = next(iter(self.stages), None)
        if isinstance(self.value, Bounded) and not (isinstance(first, Gaussian) and first.std):
            raise ValueError(
                f"Upload: stages = {self.stages!r}, allowed after {type(self.value).__name__} is "
                "Gaussian noise first: its bound speaks of distances, not of lengths."
            )


@dataclass(frozen=True)
class Round:
    """One round in printed order.

    `publish` acts on the update; a mapping gives every vector its own stages; what they published
    is all that `server` makes the next model of. `broadcast`: the server passes on what only it saw
    (a client's upload, say), so the world sees that too. `passes_on`: the client whose last model
    the server sends to everyone from the next round on, as `passed_on`. `alike` is false for the
    round as one client of many different ones lives it.
    """

    cohort: Cohort
    local: Local = field(default_factory=Local)
    upload: Stages | Mapping[str, Upload] = ()
    channel: Channel = field(default_factory=Each)
    aggregate: Aggregate = field(default_factory=Mean)
    publish: Stages | Mapping[str, Stages] = ()
    server: Server = field(default_factory=Add)
    broadcast: bool = False
    passes_on: int | None = None
    alike: bool = True

    def __post_init__(self) -> None:
        """Only things that bring a proof may stand at a place that the statement rests on."""
        check_kinds(self, {**KINDS, "local": (Local,)})
        check_uploads(self)
        check_stages(self)

    @property
    def uploads(self) -> dict[str, Upload]:
        """The named vectors; a plain tuple of stages is the model update."""
        if isinstance(self.upload, tuple):
            return {"update": Upload(self.upload)}
        return dict(self.upload)

    def published(self, vector: str) -> Stages:
        """What happens to the aggregate of this vector before anybody else sees it."""
        if isinstance(self.publish, tuple):
            return self.publish if vector == next(iter(self.uploads)) else ()
        return self.publish.get(vector, ())

    def stages(self) -> list[tuple[str, str, Stage]]:
        """Every stage in order, with its place and the vector it acts on."""
        rows = [("example", "gradient", s) for s in self.local.example]
        rows += [("batch", "gradient", s) for s in self.local.batch]
        for name, upload in self.uploads.items():
            rows += [("upload", name, s) for s in upload.stages]
        for name in self.uploads:
            rows += [("publish", name, s) for s in self.published(name)]
        return rows

    def columns(self) -> tuple[tuple[float, ...], ...]:
        """All per-client columns in the round."""
        things = (self.local.step, *(stage for _, _, stage in self.stages()))
        return tuple(column for thing in things for column in columns_of(thing))

    def for_client(self, client: int) -> Round:
        """The round as this client lives it."""
        if not self.columns():
            return self

        def own(stages: Stages) -> Stages:
            return tuple(s.for_client(client) for s in stages)

        local = replace(
            self.local,
            step=resolved(self.local.step, client),
            example=own(self.local.example),
            batch=own(self.local.batch),
        )
        uploads = {n: replace(u, stages=own(u.stages)) for n, u in self.uploads.items()}
        publish = {n: own(self.published(n)) for n in self.uploads}
        return replace(self, local=local, upload=uploads, publish=publish, alike=False)


def published_of(method: object, sizes: Sizes) -> Published | None:
    """What the method's paper would print for these clients."""
    claim: Any = getattr(method, "published", None)
    return cast("Published | None", claim(sizes) if callable(claim) else claim)


@dataclass(frozen=True)
class Released:
    """One number or vector that somebody saw."""

    round: int
    name: str
    value: Any
    seen_by: str  # "server" or "world"


@dataclass(frozen=True)
class Past:
    """Everything released so far and public numbers, nothing else: all a method may adapt to."""

    t: int = 0
    sizes: Sizes | None = None
    model: Any = None
    earlier: tuple[Any, ...] = ()
    released: tuple[Released, ...] = ()
    validation: tuple[float, ...] = ()  # losses of the models so far on the server's own records

    @property
    def public(self) -> Sizes:
        """The public numbers; whoever asks a method for a round must know them."""
        if self.sizes is None:
            raise ValueError("Past: sizes is None, allowed are the Sizes of a federation.")
        return self.sizes

    def values(self, name: str, seen_by: str = "world") -> list[Any]:
        """What this observer saw under this name, in order.

        A method that adapts to what only the server saw passes it on: its rounds say `broadcast`.
        """
        seen = ("world",) if seen_by == "world" else ("server", "world")
        return [r.value for r in self.released if r.name == name and r.seen_by in seen]


@runtime_checkable
class Method(Protocol):
    """A published method: its fields are the paper's symbols."""

    def round(self, past: Past) -> Round | None:
        """What the next round does; None ends the training."""
        ...
