"""What leaves a client: to the server by the channel, to the world by `publish`."""

from __future__ import annotations

from dataclasses import replace

from confide.accounting.events import OPEN, DpEvent, MixedDpEvent
from confide.accounting.relations import Refused, Relation
from confide.accounting.sequences import composed
from confide.channels import Shuffle, Sum
from confide.claims import Claim
from confide.cohorts import Fixed, Poisson
from confide.derive.release import Release, fold, released
from confide.engine.rounds import Round, Sizes, Upload


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


def both(outer: str, inner: str) -> str:
    """Two samplers in words."""
    return f"clients: {outer}; records: {inner}" if inner else outer
