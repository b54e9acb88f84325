"""Noise inside of a client: what its device sees, and what its local steps protect."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from confide.accounting.events import OPEN, MixedDpEvent
from confide.accounting.relations import Relation
from confide.accounting.sequences import repeated
from confide.aggregates import MeanOfPresent
from confide.channels import summed
from confide.claims import Claim
from confide.cohorts import Epoch, Poisson, Sampler
from confide.derive.release import Release, fold, released, unproved
from confide.engine.rounds import Local, Round, Sizes, Upload

PUBLIC_RECORDS = "a client's number of records is public"


def at_device(r: Round, train: dict[str, Upload], sizes: Sizes, unit: str) -> Release:
    """Every noisy gradient by itself; no sampling hides anything from inside."""
    c = fold(r.local.example, Claim(Relation.REPLACE_ONE, length=sizes.dim))
    if c.open:
        why = c.reason if r.local.example else "a client's own device computes with its raw data"
        return unproved(c, why)
    raw = looks_again(r.local, train)
    if raw:
        return unproved(c, raw)
    uses = r.local.steps * r.local.step.gradients
    if unit == "client":
        batch = r.local.sampler.size(sizes.largest)
        if batch is None:
            return unproved(c, "the number of a client's gradients tells how many records it has")
        uses = r.local.gradient_steps(sizes.largest) * r.local.step.gradients * batch
        c = c.assuming(PUBLIC_RECORDS)
    return released(c, repeated(c.event, uses), "participations", uses)


def inside(r: Round, train: dict[str, Upload], sizes: Sizes, unit: str) -> Release:
    """Noise in the local steps: an upload made of their iterates is post-processing of it.

    That needs that nothing else has seen raw data: no loss, no second look, and no memory but that
    of a step, which is made of noisy gradients (docs/proofs/memory.md).
    """
    claim = Claim(Relation.REPLACE_ONE, length=sizes.dim)
    raw = looks_again(r.local, train)
    if raw:
        return unproved(claim, raw)
    if unit == "client":
        c = batch_of_client(r.local, sizes)
        uses = r.local.gradient_steps(sizes.largest) * r.local.step.gradients
        return released(c, repeated(c.event, uses), "participations", uses)
    if not r.aggregate.equal_weights and r.local.sampler.relation is Relation.ADD_REMOVE:
        return unproved(claim, "weights by data size tell how many records a client has")
    return record_in_batches(r.local, sizes)


def looks_again(local: Local, train: dict[str, Upload]) -> str:
    """What is computed from raw data beside the gradients of the local steps, in words.

    The engine's own `loss` is one of these things, whatever its upload says about it. What a step
    keeps of its iterates is not: docs/proofs/memory.md.
    """
    if local.remembers and not local.keeps_iterates:
        return "the client's own state has seen raw data, and noise in the local steps misses it"
    if local.step.losses:
        return "a local step looks at raw losses, and noise on gradients misses them"
    raw = [n for n, u in train.items() if u.data != "iterates" or (n == "loss" and not u.value)]
    return f"{raw[0]}: made from raw data, noise in the local steps misses it" if raw else ""


def record_in_batches(local: Local, sizes: Sizes) -> Release:
    """One record: the batch sum is its channel, the sampler its coin.

    A client that remembers gets no credit for the coin: every batch counts as if it held the
    record, which is what an observer would see at the worst who is told the draw.
    """
    sampler, gradients = local.sampler, local.step.gradients
    c = fold(local.example, Claim(sampler.relation, length=sizes.dim))
    c = averaged(local, fold(local.batch, summed(c, sampler.size(sizes.records))), sizes.records)
    drawn = repeated(c.event, gradients)
    if not local.remembers:
        drawn = sampler.amplify(drawn, sizes.records)
    if c.open and isinstance(sampler, Poisson):
        # Noise of each example: the number of examples must not differ, so replace-one, for which
        # a Poisson coin buys only joint convexity.
        c = fold(local.example, Claim(Relation.REPLACE_ONE, length=sizes.dim))
        c = averaged(local, fold(local.batch, summed(c, None)), sizes.records)
        drawn = repeated(c.event, gradients)
        if not local.remembers:
            drawn = MixedDpEvent(sampler.q, drawn)
    # Each example of a batch of public size can break its bound.
    terms = sampler.m if isinstance(sampler, Epoch) else sampler.size(sizes.records) or 1
    uses = local.steps * gradients * terms
    out = released(c, repeated(drawn, local.steps), "participations", uses)
    words = sampler.words(sizes.records)
    return replace(out, sampler=f"{words}, without credit" if local.remembers else words)


def batch_of_client(local: Local, sizes: Sizes) -> Claim:
    """One client: all examples of the batch change at once, so bounds and noise shares multiply."""
    c = fold(local.example, Claim(Relation.REPLACE_ONE, length=sizes.dim)).pool()
    fixed = local.sampler.size(sizes.largest)
    if fixed is None and (c.noisy or isinstance(local.average, MeanOfPresent)):
        return c.refused(
            "the number of examples in a batch differs from one client's data to another's"
        )
    many = sizes.largest if fixed is None else fixed
    noise = None if c.noise is None else c.noise.times(many)
    if noise is not None and noise.law != "gaussian" and one_size(local.sampler, sizes) is None:
        noise = None  # no proof that many shares at a long distance cover few at a short one
    total = replace(
        c,
        l1=c.l1 * many,
        l2=c.l2 * many,
        linf=c.linf * many,
        noise=noise,
        event=OPEN,
        per_coordinate=inf,
        fails=c.fails * many,
        reason=c.reason or "what protects each example has no proof for a whole batch of them",
    )
    event = total.event_of(noise) if noise is not None else None
    total = total.released(event) if event is not None else total
    if not isinstance(local.sampler, Poisson):  # a fixed batch needs its m records
        total = total.assuming(PUBLIC_RECORDS)
    return averaged(local, fold(local.batch, total), sizes.largest)


def one_size(sampler: Sampler, sizes: Sizes) -> int | None:
    """The size of a batch, if clients of few and of many records have the same."""
    least, most = (sampler.size(records) for records in (sizes.records, sizes.largest))
    return least if least == most else None


def averaged(local: Local, c: Claim, records: int) -> Claim:
    """The claim after the batch sum is divided, if it is."""
    if local.average is None:
        return c
    return local.average.claim(c, local.sampler.expected(records))
