"""What one round gives away about one unit to one observer, by one argument."""

from __future__ import annotations

from dataclasses import dataclass

from confide.accounting.events import OPEN, DpEvent
from confide.accounting.relations import Relation
from confide.claims import Claim
from confide.engine.rounds import Stages


@dataclass(frozen=True)
class Release:
    """What one round gives away, and how rounds add up.

    `rounds`: "all" of them count, or the "participations" of a client; with `chance` below 1 a
    client takes part in each round with that probability, by a schedule free of data. `hops`: the
    row's unit is that many neighbours away; replacing a client is removing it and adding another.
    `way` names the argument; only releases by the same one add up over rounds. `spaced`: a client
    takes part at most once in that many rounds. `correlated`: how published noise goes on from
    round to round, and the cohort's spacing; what is proved of it needs both to stay the same.
    """

    event: DpEvent
    relation: Relation
    rounds: str
    way: str = ""
    hops: int = 1
    chance: float = 1.0
    at_most: int | None = None
    spaced: int = 1
    correlated: tuple[tuple[str, int, tuple[float, ...]], ...] = ()
    sampler: str = ""
    fails: float = 0.0
    assumptions: tuple[str, ...] = ()
    reason: str = ""

    @property
    def open(self) -> bool:
        """Nothing is proved this way."""
        return self.event == OPEN


def fold(stages: Stages, c: Claim) -> Claim:
    """The claim after these stages."""
    for stage in stages:
        c = stage.claim(c)
    return c


def released(c: Claim, event: DpEvent, rounds: str, uses: int = 1) -> Release:
    """What a finished claim says, or why it says nothing; its bounds are relied on `uses` times."""
    if c.open:
        return unproved(c, c.reason)
    fails = c.fails * uses
    return Release(event, c.relation, rounds, fails=fails, assumptions=c.assumptions)


def unproved(c: Claim, why: str) -> Release:
    """Nothing is proved, for this reason."""
    return Release(OPEN, c.relation, "all", assumptions=c.assumptions, reason=why)
