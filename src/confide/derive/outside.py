"""What leaves a client: to the server by the channel, to the world by `publish`."""

from __future__ import annotations

from dataclasses import replace

from confide.accounting.events import OPEN, DpEvent, MixedDpEvent
from confide.accounting.relations import Refused, Relation
from confide.accounting.sequences import composed
from confide.channels import ABORTED, Shuffle, Sum
from confide.claims import Claim
from confide.cohorts import Fixed, Poisson
from confide.derive.release import Release, fold, released, unproved
from confide.engine.rounds import Round, Sizes, Upload
from confide.values import Bounded


def at_server(r: Round, train: dict[str, Upload], sizes: Sizes, unit: str) -> Release:
    """What the channel shows of the uploads, to somebody who knows the cohort."""
    zero_out = unit == "client" and isinstance(r.channel, Sum)
    relation = Relation.ZERO_OUT if zero_out else Relation.REPLACE_ONE
    terms = reports(r, sizes)
    if isinstance(r.channel, Shuffle) and len(r.uploads) > 1:
        terms = None  # vectors that travel together are linked, whatever order they come in
    claims = {n: r.channel.claim(sent(u, sizes, relation, unit), terms) for n, u in train.items()}
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
    r: Round, vectors: dict[str, Upload], sizes: Sizes, relation: Relation
) -> tuple[Release, ...]:
    """The aggregates after `publish`, with the cohort's coin hidden if it can be, or in sight."""
    words = r.cohort.words(sizes.clients)
    ways: list[Release] = []
    hides = relation is r.cohort.relation and hidden(r, sizes)
    if hides:
        ways.append(replace(behind_coin(r, sizes, relation), way=f"published {relation}"))
    elif relation is Relation.ADD_REMOVE:
        raise Refused("only Poisson cohorts hide whether a client is there at all")
    if relation is not Relation.ADD_REMOVE and (not hides or len(vectors) < len(r.uploads)):
        way = f"published {relation}" + (", coin in sight" if hides else "")
        ways.append(replace(beside_coin(r, vectors, sizes, relation), way=way))
    return tuple(replace(way, sampler=words) for way in ways)


def behind_coin(r: Round, sizes: Sizes, relation: Relation) -> Release:
    """Amplified by a coin that the world does not see.

    The proof compares a client's round to one without it, or with somebody else in its place. All
    that it sends is different there and could show the coin, so this covers every upload of the
    round, test data too, whichever of them the row is about. A round that may be aborted for want
    of clients shows how many came, whatever noise is on what it publishes.
    """
    c, event = aggregated(r, r.uploads, sizes, relation)
    if relation is Relation.ADD_REMOVE and aborts(r):
        return unproved(c, ABORTED)
    others = r.cohort.size(sizes.clients) or 1  # bounds of whoever could stand in for the unit
    return released(c, r.cohort.amplify(event, sizes.clients), "all", others)


def beside_coin(r: Round, vectors: dict[str, Upload], sizes: Sizes, relation: Relation) -> Release:
    """Without amplification: in some rounds the client takes part, and that may be seen."""
    c, event = aggregated(r, vectors, sizes, relation)
    chance = r.cohort.rate(sizes.clients)
    if relation is Relation.REPLACE_ONE and isinstance(r.cohort, Poisson) and chance < 1:
        return released(c, MixedDpEvent(chance, event), "all")
    return replace(released(c, event, "participations"), chance=chance)


def aggregated(
    r: Round, vectors: dict[str, Upload], sizes: Sizes, relation: Relation
) -> tuple[Claim, DpEvent]:
    """These vectors summed, averaged and through `publish`: the claim and the event together."""
    claims: dict[str, Claim] = {}
    for name, upload in vectors.items():
        channel = r.channel if isinstance(r.channel, Sum) else Sum()
        c = channel.claim(sent(upload, sizes, relation), reports(r, sizes))
        c = r.aggregate.claim(c, r.cohort.expected(sizes.clients))
        claims[name] = fold(r.published(name), c)
    return together(claims)


def hidden(r: Round, sizes: Sizes) -> bool:
    """Whether the cohort's coin can be hidden from the world.

    Sampling without replacement needs that any client could stand in for the unit: its proof
    compares the unit's report with the other world's and with that of whoever is drawn instead.
    All must obey the same bounds and bring the same noise, the others' state must not depend on
    whether the unit was drawn before, and nobody may drop out: clients who often do would leave
    less noise, or abort the round, when they are drawn instead.
    """
    if not isinstance(r.cohort, Fixed):
        return isinstance(r.cohort, Poisson)
    alike = r.alike and r.aggregate.equal_weights and not r.local.remembers
    return alike and not aborts(r) and r.cohort.rate(sizes.clients) < 1


def aborts(r: Round) -> bool:
    """Whether clients may drop out, and too many of them end the round."""
    return isinstance(r.channel, Sum) and r.channel.survivors is not None


def two_hops(way: Release) -> Release:
    """A record's row by way of its client: the client leaves, and comes back with other data."""
    return replace(way, hops=2, way=f"{way.way} twice")


def sent(upload: Upload, sizes: Sizes, relation: Relation, unit: str = "client") -> Claim:
    """One client's vector as it leaves, when one unit of it changes."""
    c = Claim(relation, length=sizes.dim if upload.length is None else upload.length)
    if isinstance(upload.value, Bounded):
        c = upload.value.claim(c, unit)
    return fold(upload.stages, c)


def reports(r: Round, sizes: Sizes) -> int | None:
    """How many equal noise shares a sum holds, as far as that is known."""
    return r.cohort.size(sizes.clients) if r.aggregate.equal_weights and r.alike else 1


def together(claims: dict[str, Claim]) -> tuple[Claim, DpEvent]:
    """Several vectors of one client under one coin: one release, composed before amplification."""
    first = replace(
        next(iter(claims.values())),
        fails=sum(c.fails for c in claims.values()),
        assumptions=tuple(dict.fromkeys(a for c in claims.values() for a in c.assumptions)),
    )
    bare: dict[str, list[str]] = {}
    for name, c in claims.items():
        if c.open:
            bare.setdefault(c.reason, []).append(name)
    if bare:
        named = [f"{' and '.join(names)}: {why}" for why, names in bare.items()]
        return replace(
            first, event=OPEN, reason="; ".join(named if len(claims) > 1 else bare)
        ), OPEN
    return first, composed([c.event for c in claims.values()])


def both(outer: str, inner: str) -> str:
    """Two samplers in words."""
    return f"clients: {outer}; records: {inner}" if inner else outer
