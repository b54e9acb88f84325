"""Canaries inside a real run: units that exist only to be recognised, each in by a coin of its own.

A canary client holds no records; when it takes part, its local steps end one long step away along a
coordinate of its own. A canary record is a dummy among a client's records, and its gradient points
along a coordinate of its own. Everything after that is what every other unit goes through: stages,
draws of cohorts and batches, channel, publish stages, ledger. Their sign changes from round to
round, so that what goes on from one round to the next cancels, and noise that repeats does too.

Which coordinate is whose is fixed before a coin is thrown, and no coin is used for anything else:
that is all the one-run tests need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from confide.accounting.relations import Relation

Places = NDArray[np.int64]

LEAST = 50
"""Fewer canaries refute nothing that anybody claims."""


@dataclass(frozen=True)
class Planting:
    """What is asked for: how many, of which unit, and whose view they are made for.

    Without a `unit` or a `view` it is the row with the smallest epsilon that canaries can test.
    """

    canaries: int
    unit: str | None = None
    view: str | None = None

    def __post_init__(self) -> None:
        """Enough of them to say anything, and known words."""
        if isinstance(self.canaries, bool) or self.canaries < LEAST:
            raise ValueError(
                f"audit: canaries = {self.canaries!r}, allowed is a whole number of at least "
                f"{LEAST}."
            )
        for name, allowed in (("unit", ("client", "record")), ("view", ("world", "server"))):
            if getattr(self, name) not in (None, *allowed):
                raise ValueError(
                    f"audit: {name} = {getattr(self, name)!r}, allowed are {' and '.join(allowed)}."
                )


@dataclass(frozen=True, eq=False)
class Canaries:
    """The canaries of a run: `first` is the number of the first, as a client or as a record.

    What the other world has in place of one that is out is what the relation says: its opposite
    (replace-one), nothing in its vector (zero-out), or no unit at all (add-remove).
    """

    unit: str  # "client" or "record"
    relation: Relation
    first: int
    owners: Places  # the client that each canary is, or is a record of
    places: Places  # each one's coordinate
    length: float
    coins: NDArray[np.bool_]

    @property
    def count(self) -> int:
        """How many there are, in or out."""
        return len(self.places)

    def value(self, canary: int, t: int) -> float:
        """How far its vector reaches in this round."""
        if not self.coins[canary] and self.relation is not Relation.REPLACE_ONE:
            return 0.0
        return sign(t) * (self.length if self.coins[canary] else -self.length)

    def present(self, cohort: Places) -> Places:
        """Of the clients that were drawn, those that are there."""
        if self.unit != "client" or self.relation is not Relation.ADD_REMOVE:
            return cohort
        return cohort[~np.isin(cohort, self.first + np.flatnonzero(~self.coins))]

    def weighed(self, sizes: Places) -> Places:
        """Each client's number of records; a canary client counts as the largest."""
        if self.unit != "client":
            return sizes
        return np.where(np.arange(len(sizes)) < self.first, sizes, sizes.max())

    def move(self, end: Tensor, client: int, t: int) -> None:
        """Put where the local steps of a canary client end; others stay where they are."""
        if self.unit == "client" and client >= self.first:
            canary = client - self.first
            end[int(self.places[canary])] += self.value(canary, t)

    def split(self, records: Places, t: int) -> tuple[Places, list[tuple[int, float]]]:
        """The real records of a batch, and the gradients of its canaries that are there.

        A step goes against the gradient, so each points the other way.
        """
        if self.unit != "record":
            return records, []
        found = records[records >= self.first] - self.first
        if self.relation is Relation.ADD_REMOVE:
            found = found[self.coins[found]]
        gradients = [(int(self.places[one]), -self.value(int(one), t)) for one in found]
        return records[records < self.first], gradients


def sign(t: int) -> float:
    """One way in even rounds, the other way in odd ones."""
    return -1.0 if t % 2 else 1.0
