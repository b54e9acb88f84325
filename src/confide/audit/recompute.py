"""The numbers of a statement computed once more, by another way, from the rounds themselves.

No claim, no event and no accountant of this package has a part in it. One unit's vector is sent
through the stages that come before the noise; how far apart two worlds then are, over the noise's
standard deviation, is what one release shows of the best canary that was found. dp-accounting
composes that over all rounds, with the coin that the observer does not see, rounded in the
statement's favour. So what is found is a lower bound, and a row below it is refuted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import torch
from torch import Tensor

from confide.aggregates import Mean, MeanOfPresent, WeightedMean
from confide.audit.canaries import OVERSIZE
from confide.audit.composing import Shown, composed
from confide.audit.targets import through
from confide.cells import Cell
from confide.channels import Each, Shuffle, Sum
from confide.cohorts import All, Cohort, Epoch, Fixed, Poisson, Sampler
from confide.engine.rounds import Round, Sizes, Stages, Upload
from confide.randomness import Key
from confide.stages import Gaussian, Stage
from confide.statements import Statement, groups

Plan = Sequence[tuple[Round, int]]
SLACK = 1e-6
KEY = Key.from_seed(0)


class Unread(Exception):
    """This row is not computed once more; the message says why."""


@dataclass(frozen=True)
class Recomputed:
    """A proved row beside its lower bound; `why` none was found."""

    cell: Cell
    least: float | None
    why: str = ""

    @property
    def verdict(self) -> str:
        """`fail` if the row says less than the bound, or has a delta that says nothing."""
        below = self.least is not None and self.cell.epsilon < self.least * (1 - SLACK)
        return "fail" if below or self.why.startswith("delta") else "pass"

    def words(self) -> str:
        """One sentence."""
        row = f"the {self.cell.unit}'s row to the {self.cell.observer} says {self.cell.epsilon:.4g}"
        if self.least is None:
            return f"{row}; not computed once more: {self.why}"
        found = f"computed once more, from the rounds themselves, it is at least {self.least:.4g}"
        return f"{row}; {found}"


def recomputed(plan: Plan, sizes: Sizes, statement: Statement) -> tuple[Recomputed, ...]:
    """Every proved row about updates."""
    out: list[Recomputed] = []
    for unit in ("record", "client"):
        for observer in ("server", "world"):
            cell = statement.cell(unit, observer)
            if cell.epsilon < inf:
                out.append(once_more(plan, sizes, cell))
    return tuple(out)


def once_more(plan: Plan, sizes: Sizes, cell: Cell) -> Recomputed:
    """One row, for the group of clients to whom most is shown."""
    units = sizes.clients * (sizes.largest if cell.unit == "record" else 1)
    if cell.delta > 1 / units:
        return Recomputed(cell, None, f"delta = {cell.delta:g} is above one in {units} units")
    try:
        found = [
            composed(
                [(one, n) for r, n in plan for one in shown(lived(r, client), sizes, cell)],
                cell,
            )
            for _, client in groups(list(plan), sizes)
        ]
    except Unread as why:
        return Recomputed(cell, None, str(why))
    return Recomputed(cell, max(found))


def lived(r: Round, client: int | None) -> Round:
    """The round as a member of a group lives it."""
    return r if client is None else r.for_client(client)


# What one round shows ---------------------------------------------------------------------------


def shown(r: Round, sizes: Sizes, cell: Cell) -> list[Shown]:
    """The releases of one round about the unit of a row, each with its own coin."""
    if cell.unit == "record":
        return of_record(r, sizes, cell.observer)
    if cell.observer == "server" or r.broadcast:
        return [to_server(r, sizes)]
    return [to_world(r, sizes)]


def of_record(r: Round, sizes: Sizes, observer: str) -> list[Shown]:
    """One record in the batches of its client, where noise on the batch is what hides it."""
    local, sampler = r.local, r.local.sampler
    if observer == "world" and r.cohort.rate(sizes.clients) < 1:
        raise Unread("whether a record's client takes part is another coin")
    if not has_noise(local.batch) or has_noise(local.example):
        raise Unread("the noise is not that of a batch")
    hidden = isinstance(sampler, Poisson)
    before, noise = parted((*local.example, *local.batch))
    mu = apart(before, sizes.layers, opposite=not hidden) / std_of(noise)
    coin = 1.0 if local.remembers else rate_of(sampler, sizes.records)
    one = Shown(mu * sqrt(local.step.gradients), coin, both=not hidden)
    return [one] * local.steps


def to_server(r: Round, sizes: Sizes) -> Shown:
    """One client's vectors as the channel shows them to whoever knows the cohort."""
    if isinstance(r.channel, Shuffle):
        raise Unread("a shuffled report has no Gaussian law")
    alone = isinstance(r.channel, Each)
    least = r.channel.survivors if isinstance(r.channel, Sum) else None
    shares = 1 if alone else least or r.cohort.size(sizes.clients) or 1
    parts = [of_upload(u, sizes, shares, opposite=alone) for u in trained(r)]
    return Shown(sqrt(sum(mu * mu for mu in parts)), both=alone)


def to_world(r: Round, sizes: Sizes) -> Shown:
    """One client in what is published, behind the cohort's coin."""
    if not isinstance(r.aggregate, Mean | MeanOfPresent | WeightedMean):
        raise Unread("the aggregate is no sum")
    replaced = isinstance(r.cohort, Fixed) and r.cohort.rate(sizes.clients) < 1
    squares = 0.0
    for name, upload in r.uploads.items():
        if upload.data == "test":
            continue
        if has_noise(upload.stages):
            if has_noise(r.published(name)) or not r.aggregate.equal_weights:
                raise Unread("noises of several places")
            shares = r.cohort.size(sizes.clients) or 1
            squares += of_upload(upload, sizes, shares, opposite=replaced) ** 2
            continue
        before, noise = parted(r.published(name))
        if before:
            raise Unread("stages of the aggregate come before its noise")
        moved = apart(upload.stages, layers_of(upload, sizes), opposite=replaced)
        squares += (moved / divisor(r, sizes) / std_of(noise)) ** 2
    return Shown(sqrt(squares), rate_of(r.cohort, sizes.clients), both=replaced)


def of_upload(upload: Upload, sizes: Sizes, shares: int, *, opposite: bool) -> float:
    """The shift of one client's vector in the noise of so many."""
    before, noise = parted(upload.stages)
    moved = apart(before, layers_of(upload, sizes), opposite=opposite)
    return moved / (std_of(noise) * sqrt(shares))


def trained(r: Round) -> list[Upload]:
    """The uploads that training made."""
    return [u for u in r.uploads.values() if u.data != "test"]


def layers_of(upload: Upload, sizes: Sizes) -> tuple[int, ...]:
    """The lengths of a vector's parts."""
    return sizes.layers if upload.length is None else (upload.length,)


def divisor(r: Round, sizes: Sizes) -> float:
    """What one client's vector is divided by in the aggregate."""
    match r.aggregate:
        case Mean(by):
            return r.cohort.expected(sizes.clients) if by is None else by
        case WeightedMean(cap, by):
            return by / cap
        case _:
            return float(r.cohort.size(sizes.clients) or 1)


def rate_of(cohort: Cohort | Sampler, units: int) -> float:
    """The coin, from the numbers that the draws are made with."""
    match cohort:
        case Poisson(q):
            return q
        case Fixed(m):
            return m / units
        case All() | Epoch():
            return 1.0
        case _:
            raise Unread("turns are no coin")


def has_noise(stages: Stages) -> bool:
    """Whether Gaussian noise is among them."""
    return any(isinstance(stage, Gaussian) and stage.std for stage in stages)


def parted(stages: Stages) -> tuple[Stages, Stage]:
    """What comes before the one noise, and the noise."""
    places = [n for n, stage in enumerate(stages) if has_noise((stage,))]
    if len(places) != 1:
        raise Unread("there is no Gaussian noise, or more than one")
    return stages[: places[0]], stages[places[0]]


def std_of(noise: Stage) -> float:
    """Its own number."""
    assert isinstance(noise, Gaussian) and isinstance(noise.std, int | float)
    return float(noise.std)


def apart(stages: Stages, layers: tuple[int, ...], *, opposite: bool) -> float:
    """The largest distance of two worlds behind these stages, over some canaries."""
    found = 0.0
    for canary in directions(layers, stages):
        here, there = (
            through(stages, x, KEY, 0, KEY.stream(0, 0, "apart"))
            for x in (canary, -canary if opposite else torch.zeros_like(canary))
        )
        found = max(found, float(torch.linalg.vector_norm(here.double() - there.double())))
    if found in (0.0, inf) or found >= OVERSIZE**2:
        raise Unread("nothing bounds how far apart two worlds are")
    return found


def directions(layers: tuple[int, ...], stages: Stages) -> Iterator[Tensor]:
    """Vectors far beyond every clip: dense, in each layer, and what the stages let through."""
    d = sum(layers)
    dense = torch.full((d,), OVERSIZE**2 / sqrt(d), dtype=torch.float64)
    each = torch.cat([torch.full((n,), OVERSIZE**2 / sqrt(n)) for n in layers]).double()
    yield dense
    yield each
    kept = through(stages, dense, KEY, 0, KEY.stream(0, 0, "apart")).double()
    if len(kept) == d and 0 < float(kept.norm()) < inf:
        yield kept * OVERSIZE**2 / kept.norm()
