"""What can be audited of one round: the releases that its statement is made of, each by itself.

A target takes one unit's vectors, sends them through the very stages that run, beside the zeros of
others, and returns what an observer sees. Its claim is the one that the fold derives for the same
stages, before any sampling hides who took part: every draw here is of a unit that did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import inf

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.accounting.events import OPEN, DpEvent
from confide.accounting.relations import Relation
from confide.aggregates import Mean, MeanOfPresent, WeightedMean
from confide.channels import Each, Shuffle, Sum, summed
from confide.claims import Claim
from confide.cohorts import Poisson
from confide.derive.inside import averaged
from confide.derive.outside import aggregated, sent, together
from confide.derive.release import fold
from confide.engine.client import passed
from confide.engine.rounds import Round, Sizes, Stages, Upload
from confide.randomness import Key
from confide.values import Bounded

Vectors = Mapping[str, Tensor]
Seen = NDArray[np.float64]
LINEAR = (Mean, MeanOfPresent, WeightedMean)
NO_NUMBER = 1e12
OTHERS = 3
"""Units beside the audited one, all zeros."""


@dataclass(frozen=True, eq=False)
class Target:
    """One release: what is claimed about it, and how to draw from it."""

    name: str
    unit: str
    observer: str
    event: DpEvent
    relation: Relation
    reason: str  # why nothing is claimed, if so
    lengths: dict[str, tuple[int, ...]]  # each vector's layers
    bound: float  # the length that a canary should have
    draw: Callable[[Vectors | None, Key, int], Seen]  # None: the unit is not there

    @property
    def claimed(self) -> bool:
        """Whether anything is proved."""
        return self.event != OPEN


def targets(r: Round, sizes: Sizes) -> Iterator[Target]:
    """The releases of one round, from the inside out."""
    inside = bool(r.local.example or r.local.batch)
    if r.local.example:
        yield one_example(r, sizes)
    if inside:
        yield one_batch(r, sizes)
    train = {n: u for n, u in r.uploads.items() if u.data != "test"}
    upload = one_upload(r, sizes, train, "one client's upload")
    covered = inside and not upload.claimed  # by the noise of the local steps
    if not covered:
        yield upload
    for name, one in r.uploads.items():
        raw = one.data == "test" or (covered and (one.data != "iterates" or name == "loss"))
        if raw and not isinstance(one.value, Bounded):
            yield one_upload(r, sizes, {name: one}, f"one client's `{name}`")
    if isinstance(r.aggregate, LINEAR) and any(r.published(name) for name in r.uploads):
        yield published(r, sizes)


def one_example(r: Round, sizes: Sizes) -> Target:
    """One example's gradient as it leaves `example`."""
    c = fold(r.local.example, Claim(Relation.REPLACE_ONE, length=sizes.dim))

    def draw(vectors: Vectors | None, key: Key, t: int) -> Seen:
        assert vectors is not None
        own = key.stream(t, 0, "example")
        return seen([through(r.local.example, vectors["gradient"], key, t, own)])

    return Target(
        "one example's gradient", "record", "device", c.event, c.relation, c.reason,
        {"gradient": sizes.layers}, reach(r.local.example, sizes.dim), draw,
    )  # fmt: skip


def one_batch(r: Round, sizes: Sizes) -> Target:
    """The sum over a batch, noised and divided: what one local step moves by."""
    local = r.local
    many = local.sampler.size(sizes.records) or OTHERS + 1

    def claim(relation: Relation) -> Claim:
        c = fold(local.example, Claim(relation, length=sizes.dim))
        terms = local.sampler.size(sizes.records) if relation is local.sampler.relation else None
        return averaged(local, fold(local.batch, summed(c, terms)), sizes.records)

    c = claim(local.sampler.relation)
    if c.open and isinstance(local.sampler, Poisson):
        c = claim(Relation.REPLACE_ONE)

    nothing = torch.zeros(sizes.dim, dtype=torch.float64)
    others = 0 if silent(local.example, sizes.dim) else many - 1

    def draw(vectors: Vectors | None, key: Key, t: int) -> Seen:
        own = key.stream(t, 0, "example")
        total = nothing.clone()
        for row in (
            [nothing] * others if vectors is None else [vectors["gradient"], *[nothing] * others]
        ):
            total += through(local.example, row, key, t, own)
        total = through(local.batch, total, key, t, key.stream(t, 0, "batch"))
        return seen([total / local.divisor(many - (vectors is None))])

    stages = (*local.example, *local.batch)
    return Target(
        "one local step", "record", "server", c.event, c.relation, c.reason,
        {"gradient": sizes.layers}, reach(stages, sizes.dim), draw,
    )  # fmt: skip


def one_upload(r: Round, sizes: Sizes, sent_by: dict[str, Upload], called: str) -> Target:
    """What the channel shows of these vectors of one client, before any shuffling."""
    pooled = isinstance(r.channel, Sum)
    relation = Relation.ZERO_OUT if pooled else Relation.REPLACE_ONE
    many = (r.cohort.size(sizes.clients) or OTHERS + 1) if pooled else 1
    if isinstance(r.channel, Sum) and r.channel.survivors is not None:
        many = r.channel.survivors
    channel = Each() if isinstance(r.channel, Shuffle) else r.channel
    claims = {n: channel.claim(sent(u, sizes, relation), many) for n, u in sent_by.items()}
    c, event = together(claims)

    def draw(vectors: Vectors | None, key: Key, t: int) -> Seen:
        return seen(list(sums(sent_by, sizes, vectors, many, key, t).values()))

    stages = next(iter(sent_by.values())).stages
    return Target(
        called, "client", "server", event, c.relation, c.reason,
        lengths(sent_by, sizes), reach(stages, sizes.dim), draw,
    )  # fmt: skip


def published(r: Round, sizes: Sizes) -> Target:
    """The aggregate as it is published."""
    relation = Relation.ADD_REMOVE if isinstance(r.cohort, Poisson) else Relation.ZERO_OUT
    train = {n: u for n, u in r.uploads.items() if u.data != "test"}
    c, event = aggregated(r, train, sizes, relation)
    many = r.cohort.size(sizes.clients) or OTHERS + 1

    def draw(vectors: Vectors | None, key: Key, t: int) -> Seen:
        totals = sums(train, sizes, vectors, many, key, t)
        came = many - (vectors is None)
        out: list[Tensor] = []
        for name, total in totals.items():
            own = key.stream(t, None, f"publish {name}")
            mean = total / divisor(r, came, sizes)
            out.append(through(r.published(name), mean, key, t, own))
        return seen(out)

    stages = next(iter(train.values())).stages
    return Target(
        "the published aggregate", "client", "world", event, c.relation, c.reason,
        lengths(train, sizes), reach(stages, sizes.dim), draw,
    )  # fmt: skip


def sums(
    uploads: Mapping[str, Upload],
    sizes: Sizes,
    vectors: Vectors | None,
    many: int,
    key: Key,
    t: int,
) -> dict[str, Tensor]:
    """Every vector of `many` clients through its stages, added up; all but the first send zeros."""
    out: dict[str, Tensor] = {}
    for name, upload in uploads.items():
        length = sizes.dim if upload.length is None else upload.length
        total: Tensor | None = None
        for client in range(1 if silent(upload.stages, length) else many):
            if client == 0 and vectors is None:
                continue
            x = torch.zeros(length, dtype=torch.float64)
            if client == 0 and vectors is not None:
                x = vectors[name]
            own = key.stream(t, client, f"upload {name}")
            report = through(upload.stages, x, key, t, own)
            total = report if total is None else total + report
        out[name] = torch.zeros(length, dtype=torch.float64) if total is None else total
    return out


@cache
def silent(stages: Stages, length: int) -> bool:
    """Whether who has nothing to say adds nothing: zeros stay zeros, and no noise is added."""
    nothing, key = torch.zeros(length, dtype=torch.float64), Key.from_seed(0)
    return not any(
        bool(through(stages, nothing, key, t, key.stream(t, 0, "silent")).any()) for t in (0, 1)
    )


def divisor(r: Round, came: int, sizes: Sizes) -> float:
    """What the loop divides by."""
    match r.aggregate:
        case Mean(by):
            return r.cohort.expected(sizes.clients) if by is None else by
        case WeightedMean(cap, by):
            return by / cap  # the audited client has the largest weight
        case _:
            return float(max(came, 1))


def through(stages: Stages, x: Tensor, key: Key, t: int, own: object) -> Tensor:
    """The stages as the engine calls them.

    What all clients share is public, so it is the same in all draws: a claim must hold given it.
    """
    for stage in stages:
        x = passed(stage, x, lambda purpose: key.stream(0, None, f"shared {purpose}"), own)  # type: ignore[arg-type]
    return x


def lengths(uploads: Mapping[str, Upload], sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Each vector's layers."""
    return {n: sizes.layers if u.length is None else (u.length,) for n, u in uploads.items()}


def reach(stages: Stages, dim: int) -> float:
    """The largest l2 norm that survives the stages; 1 where nothing bounds it."""
    c = Claim(Relation.REPLACE_ONE, length=dim)
    for stage in stages:
        c = replace(stage.claim(c), event=OPEN)
        if c.l2 < inf:
            return c.l2
    return 1.0


def seen(parts: list[Tensor]) -> Seen:
    """What an observer holds; what is no number is told from every number."""
    whole = torch.cat([part.double().flatten() for part in parts])
    return whole.nan_to_num(NO_NUMBER, NO_NUMBER, -NO_NUMBER).numpy()
