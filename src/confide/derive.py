"""The fold: from the stages of a round to what each observer can learn about each unit.

A record is one training example of one client, a client is all of its data. Observers:

* device: sees what happens inside of a client, that is every example's gradient after `example`;
* server: knows the cohort, sees what the channel shows of the uploads;
* world: sees what is published, neither the cohort nor its size.

There can be several ways to prove something for one cell: noise inside of the local steps, noise
on the uploads, noise at `publish`. Each is a `Release`; whatever an observer sees is computed from
it and from things independent of the unit, so each is a statement by itself; the best one counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt

from confide.accounting.events import (
    OPEN,
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    MixedDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.relations import Refused, Relation
from confide.aggregates import MeanOfPresent
from confide.channels import Shuffle, Sum, summed
from confide.claims import Claim
from confide.cohorts import All, Epoch, Fixed, Poisson
from confide.engine.rounds import Local, Round, Sizes, Stages, Upload

PUBLIC_RECORDS = "a client's number of records is public"
UNITS = ("record", "client")
OBSERVERS = ("device", "server", "world")


@dataclass(frozen=True)
class Release:
    """What one round gives away, and how rounds add up.

    `rounds`: "all" of them count, or the "participations" of a client; with `chance` below 1 a
    client takes part in each round with that probability, by a schedule free of data. `hops`: the
    row's unit is that many neighbours away; replacing a client is removing it and adding another.
    `way` names the argument; only releases by the same one add up over rounds.
    """

    event: DpEvent
    relation: Relation
    rounds: str
    way: str = ""
    hops: int = 1
    chance: float = 1.0
    at_most: int | None = None
    sampler: str = ""
    fails: float = 0.0
    assumptions: tuple[str, ...] = ()
    reason: str = ""

    @property
    def open(self) -> bool:
        """Nothing is proved this way."""
        return self.event == OPEN


Key = tuple[str, str, str]  # unit, observer, of


def derive(r: Round, sizes: Sizes) -> dict[Key, tuple[Release, ...]]:
    """Every way to prove every cell of one round."""
    check(r, sizes)
    train = {n: u for n, u in r.uploads.items() if u.data != "test"}
    cells: dict[Key, tuple[Release, ...]] = {}
    for unit, sent_by_unit in (("record", train), ("client", r.uploads)):
        local = replace(inside(r, sent_by_unit, sizes, unit), way="local steps")
        at = at_server(r, sent_by_unit, sizes, unit)
        server = (local, at) if unit == "record" else (at, local)
        cells[unit, "device", "update"] = (at_device(r, sent_by_unit, sizes, unit),)
        cells[unit, "server", "update"] = server
        cells[unit, "world", "update"] = to_world(r, sent_by_unit, sizes, unit, server)
        for name, upload in r.uploads.items():
            if upload.data == "test":
                side = at_server(r, {name: upload}, sizes, unit)
                cells[unit, "server", name] = (side,)
                cells[unit, "world", name] = to_world(r, {name: upload}, sizes, unit, (side,))
    return {key: tuple(finished(r, way) for way in ways) for key, ways in cells.items()}


def check(r: Round, sizes: Sizes) -> None:
    """Refuse a round that these clients cannot run."""
    if isinstance(r.channel, Sum) and (r.channel.survivors or 1) > sizes.clients:
        raise Refused(
            f"Sum: survivors = {r.channel.survivors}, allowed is at most {sizes.clients} clients"
        )


def finished(r: Round, way: Release) -> Release:
    """What every release of the round shares."""
    assumptions = way.assumptions
    if not r.aggregate.equal_weights and not way.open:
        assumptions = tuple(dict.fromkeys((*assumptions, "data sizes are public")))
    return replace(way, at_most=r.cohort.at_most, assumptions=assumptions)


def fold(stages: Stages, c: Claim) -> Claim:
    """The claim after these stages."""
    for stage in stages:
        c = stage.claim(c)
    return c


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

    That needs that nothing else has seen raw data: no memory, no loss, no second look.
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
    """What is computed from raw data beside the gradients of the local steps, in words."""
    if local.remembers:
        return "the client's own state has seen raw data, and noise in the local steps misses it"
    if local.step.losses:
        return "a local step looks at raw losses, and noise on gradients misses them"
    raw = [n for n, u in train.items() if u.data != "iterates"]
    return f"{raw[0]}: made from raw data, noise in the local steps misses it" if raw else ""


def record_in_batches(local: Local, sizes: Sizes) -> Release:
    """One record: the batch sum is its channel, the sampler its coin."""
    sampler, gradients = local.sampler, local.step.gradients
    c = fold(local.example, Claim(sampler.relation, length=sizes.dim))
    c = averaged(local, fold(local.batch, summed(c, sampler.size(sizes.records))), sizes.records)
    drawn = sampler.amplify(repeated(c.event, gradients), sizes.records)
    if c.open and isinstance(sampler, Poisson):
        # Noise of each example: the number of examples must not differ, so replace-one, for which
        # a Poisson coin buys only joint convexity.
        c = fold(local.example, Claim(Relation.REPLACE_ONE, length=sizes.dim))
        c = averaged(local, fold(local.batch, summed(c, None)), sizes.records)
        drawn = MixedDpEvent(sampler.q, repeated(c.event, gradients))
    terms = sampler.size(sizes.records) or 1  # each example of a fixed batch can break its bound
    uses = local.steps * gradients * terms
    out = released(c, repeated(drawn, local.steps), "participations", uses)
    return replace(out, sampler=sampler.words(sizes.records))


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
    total = replace(
        c,
        l1=c.l1 * many,
        l2=c.l2 * many,
        linf=c.linf * many,
        noise=noise,
        event=OPEN,
        per_coordinate=inf,
        fails=c.fails * many,
    )
    event = total.event_of(noise) if noise is not None else None
    total = total.released(event) if event is not None else total
    if isinstance(local.sampler, All | Epoch):
        total = total.assuming(PUBLIC_RECORDS)
    return averaged(local, fold(local.batch, total), sizes.largest)


def averaged(local: Local, c: Claim, records: int) -> Claim:
    """The claim after the batch sum is divided, if it is."""
    if local.average is None:
        return c
    return local.average.claim(c, local.sampler.expected(records))


def at_server(r: Round, train: dict[str, Upload], sizes: Sizes, unit: str) -> Release:
    """What the channel shows of the uploads, to somebody who knows the cohort."""
    zero_out = unit == "client" and isinstance(r.channel, Sum)
    relation = Relation.ZERO_OUT if zero_out else Relation.REPLACE_ONE
    terms = reports(r, sizes)
    if isinstance(r.channel, Shuffle) and len(r.uploads) > 1:
        terms = None  # vectors that travel together are linked, whatever order they come in
    claims = {n: r.channel.claim(sent(u, sizes, relation), terms) for n, u in train.items()}
    uses = terms or 1 if isinstance(r.channel, Shuffle) else 1
    return replace(released(*together(claims), "participations", uses), way=f"uploads {relation}")


def to_world(
    r: Round, train: dict[str, Upload], sizes: Sizes, unit: str, server: tuple[Release, ...]
) -> tuple[Release, ...]:
    """What is published; also anything that already holds for the server."""
    if r.broadcast:
        return server
    chance = r.cohort.rate(sizes.clients)
    words = r.cohort.words(sizes.clients)
    behind = tuple(replace(w, chance=chance, sampler=both(words, w.sampler)) for w in server)
    if unit == "record":
        hidden = isinstance(r.cohort, Poisson)
        relation = Relation.ADD_REMOVE if hidden else Relation.ZERO_OUT
        through = published(r, train, sizes, relation)
        return (*behind, *published(r, train, sizes, Relation.REPLACE_ONE), *map(two_hops, through))
    if isinstance(r.cohort, Poisson):
        hidden = published(r, train, sizes, Relation.ADD_REMOVE)
        return (*hidden, *published(r, train, sizes, Relation.ZERO_OUT), *behind)
    alone = Relation.ZERO_OUT if chance == 1 else Relation.REPLACE_ONE
    return (*published(r, train, sizes, alone), *behind)


def published(
    r: Round, train: dict[str, Upload], sizes: Sizes, relation: Relation
) -> tuple[Release, ...]:
    """The aggregates after `publish`, under the cohort's coin where it goes with the relation."""
    claims: dict[str, Claim] = {}
    for name, upload in train.items():
        channel = r.channel if isinstance(r.channel, Sum) else Sum()
        c = channel.claim(sent(upload, sizes, relation), reports(r, sizes))
        c = r.aggregate.claim(c, r.cohort.expected(sizes.clients))
        claims[name] = fold(r.published(name), c)
    c, event = together(claims)
    cohort, words = r.cohort, r.cohort.words(sizes.clients)
    named = f"published {relation}"
    if relation is cohort.relation and (not isinstance(cohort, Fixed) or interchangeable(r)):
        event = cohort.amplify(event, sizes.clients)
    elif relation is Relation.ADD_REMOVE:
        raise Refused("only Poisson cohorts hide whether a client is there at all")
    elif relation is Relation.REPLACE_ONE and isinstance(cohort, Poisson) and cohort.q < 1:
        event = MixedDpEvent(cohort.rate(sizes.clients), event)
    else:
        out = released(c, event, "participations")
        chance = cohort.rate(sizes.clients)
        return (replace(out, chance=chance, sampler=words, way=named),)
    others = cohort.size(sizes.clients) or 1  # bounds of whoever could stand in for the unit
    return (replace(released(c, event, "all", others), sampler=words, way=named),)


def interchangeable(r: Round) -> bool:
    """Whether any client could stand in for the unit, as sampling without replacement needs.

    Its proof compares the unit's report with the other world's and with that of whoever is drawn
    instead: all must obey the same bounds and bring the same noise, and the others' state must not
    depend on whether the unit was drawn before.
    """
    return r.alike and r.aggregate.equal_weights and not r.local.remembers


def two_hops(way: Release) -> Release:
    """A record's row by way of its client: the client leaves, and comes back with other data."""
    return replace(way, hops=2, way=f"{way.way} twice")


def sent(upload: Upload, sizes: Sizes, relation: Relation) -> Claim:
    """One client's vector as it leaves."""
    length = sizes.dim if upload.length is None else upload.length
    return fold(upload.stages, Claim(relation, length=length))


def reports(r: Round, sizes: Sizes) -> int | None:
    """How many equal noise shares a sum holds, as far as that is known."""
    return r.cohort.size(sizes.clients) if r.aggregate.equal_weights and r.alike else 1


def together(claims: dict[str, Claim]) -> tuple[Claim, DpEvent]:
    """Several vectors of one client under one coin: one release, composed before amplification."""
    first = next(iter(claims.values()))
    for name, c in claims.items():
        first = replace(
            first,
            fails=first.fails if c is first else first.fails + c.fails,
            assumptions=tuple(dict.fromkeys(first.assumptions + c.assumptions)),
        )
        if c.open:
            why = c.reason if len(claims) == 1 else f"{name}: {c.reason}"
            return replace(first, event=OPEN, reason=why), OPEN
    return first, composed([c.event for c in claims.values()])


def composed(events: list[DpEvent]) -> DpEvent:
    """One after the other; Gaussians add their squared inverse multipliers exactly."""
    if any(e == OPEN for e in events):
        return OPEN
    if all(isinstance(e, GaussianDpEvent) for e in events):
        weight = sum(e.noise_multiplier**-2 for e in events if isinstance(e, GaussianDpEvent))
        return events[0] if len(events) == 1 else GaussianDpEvent((1 - 1e-15) / sqrt(weight))
    return events[0] if len(events) == 1 else ComposedDpEvent(events)


def repeated(event: DpEvent, times: int) -> DpEvent:
    """The same release this many times."""
    if event == OPEN or times == 1:
        return event
    if isinstance(event, GaussianDpEvent):
        return GaussianDpEvent(event.noise_multiplier / sqrt(times) * (1 - 1e-15))
    return SelfComposedDpEvent(event, times)


def released(c: Claim, event: DpEvent, rounds: str, uses: int = 1) -> Release:
    """What a finished claim says, or why it says nothing; its bounds are relied on `uses` times."""
    if c.open:
        return unproved(c, c.reason)
    fails = c.fails * uses
    return Release(event, c.relation, rounds, fails=fails, assumptions=c.assumptions)


def unproved(c: Claim, why: str) -> Release:
    """Nothing is proved, for this reason."""
    return Release(OPEN, c.relation, "all", assumptions=c.assumptions, reason=why)


def both(outer: str, inner: str) -> str:
    """Two samplers in words."""
    return f"clients: {outer}; records: {inner}" if inner else outer
