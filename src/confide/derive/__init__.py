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

from dataclasses import replace

from confide.accounting.relations import Refused
from confide.channels import Shuffle, Sum
from confide.cohorts import Spaced
from confide.derive.inside import at_device, inside
from confide.derive.outside import at_server, reports, to_world
from confide.derive.release import Release
from confide.engine.rounds import Round, Sizes
from confide.stages import Correlated

__all__ = ["Key", "Release", "derive", "reports"]

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
    return {key: tuple(finished(r, sizes, key, way) for way in ways) for key, ways in cells.items()}


def check(r: Round, sizes: Sizes) -> None:
    """Refuse a round that these clients cannot run."""
    if isinstance(r.channel, Sum) and (r.channel.survivors or 1) > sizes.clients:
        raise Refused(
            f"Sum: survivors = {r.channel.survivors}, allowed is at most {sizes.clients} clients"
        )
    for place, vector, stage in r.stages():
        if isinstance(stage, Correlated):
            if place != "publish":
                raise Refused(f"Correlated: at {place} of {vector}, allowed is publish")
            if stage.bands > spacing(r):
                raise Refused(
                    f"Correlated: c has {stage.bands} numbers, allowed with the cohort {r.cohort} "
                    f"are {spacing(r)}: in so many rounds a client must take part at most once "
                    "(Spaced)"
                )
    for vector in r.uploads:
        if sum(isinstance(stage, Correlated) for stage in r.published(vector)) > 1:
            raise Refused(f"Correlated: twice at publish of {vector}, allowed is once")


def spacing(r: Round) -> int:
    """In how many rounds a client takes part at most once."""
    return r.cohort.b if isinstance(r.cohort, Spaced) else 1


def correlated(r: Round) -> tuple[tuple[str, int, tuple[float, ...]], ...]:
    """How the noise of each published vector goes on from round to round, and the spacing."""
    return tuple(
        (vector, spacing(r), stage.c)
        for vector in r.uploads
        for stage in r.published(vector)
        if isinstance(stage, Correlated)
    )


def finished(r: Round, sizes: Sizes, key: Key, way: Release) -> Release:
    """What every release of the round shares."""
    more: list[str] = []
    if not r.aggregate.equal_weights:
        more.append("data sizes are public")
    unit, _, of = key
    if isinstance(r.channel, Shuffle) and way.way.startswith("local steps"):
        more.append("shuffling buys nothing here: the noise is inside of the local steps")
    if sizes.copies > 1 and (unit, of) == ("record", "update"):
        more.append(
            f"a record is one client's copy of it, and up to {sizes.copies} clients hold the same"
        )
    kept = way.assumptions if way.open else tuple(dict.fromkeys((*way.assumptions, *more)))
    return replace(
        way,
        at_most=r.cohort.at_most,
        spaced=spacing(r),
        correlated=correlated(r),
        assumptions=kept,
    )
