"""A round in words: every stage in order, with what is proved after it."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

from confide.accounting.events import (
    DpEvent,
    GaussianDpEvent,
    LaplaceBothDpEvent,
    LaplaceDpEvent,
    LaplaceL2DpEvent,
    PureDpEvent,
    SkellamDpEvent,
)
from confide.accounting.relations import Relation
from confide.channels import Sum, summed
from confide.claims import Claim
from confide.cohorts import Poisson
from confide.derive import reports
from confide.engine.rounds import Round, Sizes, Stages

Row = dict[str, Any]


def trace(r: Round, sizes: Sizes) -> list[Row]:
    """The `round` field of a plan: place, vector, stage, claim; client 0's where clients differ."""
    r = r.for_client(0)
    sampler = r.local.sampler
    c = Claim(sampler.relation, length=sizes.dim)
    rows, c = walk("example", "gradient", r.local.example, c)
    c = summed(c, sampler.size(sizes.records))
    if r.local.example or r.local.batch:
        rows.append(row("batch", "gradient", f"sum over {sampler.words(sizes.records)}", c))
    more, c = walk("batch", "gradient", r.local.batch, c)
    rows += more
    if r.local.average is not None:
        c = r.local.average.claim(c, sampler.expected(sizes.records))
        rows.append(row("batch", "gradient", repr(r.local.average), c))
    for name, upload in r.uploads.items():
        length = sizes.dim if upload.length is None else upload.length
        c = Claim(relation_of(r), length=length)
        more, c = walk("upload", name, upload.stages, c)
        rows += more
        c = channel_claim(r, c, sizes)
        rows.append(row("channel", name, repr(r.channel), c))
        c = r.aggregate.claim(c, r.cohort.expected(sizes.clients))
        rows.append(row("aggregate", name, repr(r.aggregate), c))
        more, c = walk("publish", name, r.published(name), c)
        rows += more
    return rows


def relation_of(r: Round) -> Relation:
    """The relation in which the table speaks of clients."""
    shares = any(stage.claim(bounded(r)).noisy for u in r.uploads.values() for stage in u.stages)
    if not isinstance(r.channel, Sum) and shares:
        return Relation.REPLACE_ONE
    if isinstance(r.cohort, Poisson) and not shares:
        return Relation.ADD_REMOVE
    return Relation.ZERO_OUT if isinstance(r.channel, Sum) else r.cohort.relation


def bounded(r: Round) -> Claim:
    """A claim on which every noise shows that it is one."""
    return Claim(Relation.REPLACE_ONE, length=1, l1=1.0)


def channel_claim(r: Round, c: Claim, sizes: Sizes) -> Claim:
    """What the channel leaves of the claim; a mean of single uploads is a sum to the world."""
    if isinstance(r.channel, Sum) or c.relation is Relation.REPLACE_ONE:
        return r.channel.claim(c, reports(r, sizes))
    return summed(c, reports(r, sizes))


def walk(place: str, vector: str, stages: Stages, c: Claim) -> tuple[list[Row], Claim]:
    """One row for each stage."""
    rows: list[Row] = []
    for stage in stages:
        c = stage.claim(c)
        rows.append(row(place, vector, repr(stage), c))
    return rows, c


def row(place: str, vector: str, stage: str, c: Claim) -> Row:
    """One row."""
    return {"place": place, "vector": vector, "stage": stage, "claim": in_words(c)}


def in_words(c: Claim) -> str:
    """What is proved: a release, or the bounds so far, or why there is nothing."""
    if not c.open:
        return f"{c.relation}: {event_in_words(c.event)}"
    bounds = [
        f"{n} ≤ {b:.6g}" for n, b in (("l1", c.l1), ("l2", c.l2), ("linf", c.linf)) if b < inf
    ]
    told = c.reason if c.noisy or not bounds else ""
    return f"{c.relation}: " + "; ".join(filter(None, [", ".join(bounds), told]))


def event_in_words(event: DpEvent) -> str:
    """The release, with its multiplier where it has one."""
    match event:
        case GaussianDpEvent(z):
            return f"Gaussian, multiplier {z:.6g}"
        case LaplaceDpEvent(z):
            return f"Laplace (l1), multiplier {z:.6g}"
        case LaplaceL2DpEvent(z, _) | LaplaceBothDpEvent(_, z, _):
            return f"Laplace (l2), multiplier {z:.6g}"
        case SkellamDpEvent(variance, l2):
            return f"Skellam, multiplier {sqrt(variance) / l2:.6g}"
        case PureDpEvent(epsilon):
            return f"pure epsilon {epsilon:.6g}"
        case _:
            return repr(event)
