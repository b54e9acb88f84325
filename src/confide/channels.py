"""Channels: what the server learns of the uploads, and aggregates: what it makes of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from confide.accounting.events import (
    LaplaceBothDpEvent,
    LaplaceDpEvent,
    PureDpEvent,
    ShuffledDpEvent,
)
from confide.accounting.relations import Relation
from confide.accounting.sequences import repeated
from confide.claims import Claim
from confide.cohorts import whole

SHARES = "every report brings its own noise, so under add-remove the noise tells how many there are"
ABORTED = "a round aborted for want of survivors tells how many clients came"
EVERYONE = (
    "everyone in the cohort is honest, nobody drops out, and the observer is not one of them "
    "(who would know its own share)"
)


@dataclass(frozen=True)
class Each:
    """The server sees every upload by itself, and from whom it came."""

    shows = "each upload"

    def claim(self, c: Claim, reports: int | None) -> Claim:
        """Seeing one report is the report's own release; the server compares two inputs."""
        if c.relation is not Relation.REPLACE_ONE:
            return c.refused(
                "a server that sees each upload compares two inputs: only replace-one speaks of it"
            )
        return c


@dataclass(frozen=True)
class Sum:
    """The server sees only the sum of the uploads (secure aggregation).

    `survivors` is the least number of honest clients whose reports are in every sum; with fewer
    the round must be aborted. None: everyone in the cohort.
    """

    survivors: int | None = None
    shows = "the sum of the uploads"

    def __post_init__(self) -> None:
        """At least the client itself."""
        if self.survivors is not None:
            whole("Sum", "survivors", self.survivors)

    def claim(self, c: Claim, reports: int | None) -> Claim:
        """See `summed`."""
        least = self.survivors
        if least is not None and c.relation is Relation.ADD_REMOVE:
            return c.refused(ABORTED)
        if least is not None and reports is not None:
            least = min(least, reports)
        out = summed(c, reports if least is None else least)
        if out.noise is None or out.noise == c.noise:
            return out
        if least is None:
            return out.assuming(EVERYONE)
        return out.assuming(f"{least} members of every cohort are honest, or the round is aborted")


def summed(c: Claim, terms: int | None) -> Claim:
    """The claim on a sum of vectors, one of them the unit's, with at least this many noise shares.

    Proof. The other terms are fixed by conditioning on them and on the cohort, so s moves by what
    the unit's own vector moves. Without noise shares (nothing random but the other units' s)
    nothing more is needed. With them, under zero-out and replace-one the same reports are made in
    both worlds, each with its noise: the sum's noise is the sum of at least `terms` independent
    copies, of a law closed under sums, and what is beyond them is independent noise, the same in
    both worlds (rule 3); whether the round happens at all does not depend on the unit. A report
    whose event is already set keeps it: the sum is computed from that report and from things
    independent of the unit. Under add-remove the number of shares differs between the worlds, and
    with it the law of the noise; no bound on s covers that.
    """
    pooled = c.pool()
    if c.relation is Relation.ADD_REMOVE and (c.noisy or not c.open):
        return pooled.refused(SHARES)
    if c.noise is None or terms is None or terms <= 1:
        return pooled
    shares = c.noise.times(terms)
    event = pooled.event_of(shares)
    if event is None:
        return replace(pooled, noise=shares)
    return replace(pooled, noise=shares, event=event, per_coordinate=inf, reason="")


@dataclass(frozen=True)
class Shuffle:
    """The server sees the uploads, or each coordinate's entries, in random order without names."""

    per: str = "client"
    shows = "the uploads in random order"

    def __post_init__(self) -> None:
        """Whole uploads or single coordinates."""
        if self.per not in ("client", "coordinate"):
            raise ValueError(f'Shuffle: per = {self.per!r}, allowed are "client" and "coordinate".')

    def claim(self, c: Claim, reports: int | None) -> Claim:
        """Hiding among the clones, where every report has a finite pure epsilon.

        A client sends one vector in a round; several would be linked by travelling together.

        Proof: docs/proofs/shuffling.md for one message of each of `reports` clients. Coordinates
        that are randomised independently and shuffled by independent permutations compose. Under
        any other noise the order is only post-processing, and the report keeps its own event.
        """
        c = Each().claim(c, reports)
        if c.open or reports is None or reports < 2:
            return c
        whole = pure_epsilon(c)
        if self.per == "client":
            if whole == inf:
                return c.assuming("shuffling buys nothing here: the noise has no pure epsilon")
            return replace(c, event=ShuffledDpEvent(whole, reports), noise=None)
        if c.per_coordinate == inf or c.dim is None:
            return c.assuming("shuffling buys nothing here: an entry has no pure epsilon")
        one = ShuffledDpEvent(c.per_coordinate, reports)
        return replace(c, event=repeated(one, c.dim), noise=None)


def pure_epsilon(c: Claim) -> float:
    """The least pure epsilon that is proved for the whole vector."""
    match c.event:
        case PureDpEvent(epsilon):
            return epsilon
        case LaplaceDpEvent(multiplier) | LaplaceBothDpEvent(multiplier):
            return 1 / multiplier
        case _:
            return inf if c.dim is None else c.dim * c.per_coordinate
