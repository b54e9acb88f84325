"""Who takes part: clients of a round, or records of a batch.

A sampler has two faces, like a stage: `draw` picks the participants, and `relation` with `amplify`
says for which neighbouring relation that choice hides a unit, and how well. They come from one
object, so a sampler cannot be accounted as another one, nor with another's relation. No sampler
sees data: a cohort that depends on data would be a release of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide.accounting.events import (
    DpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
)
from confide.accounting.relations import Relation
from confide.randomness import Stream

Units = NDArray[np.int64]


@dataclass(frozen=True)
class All:
    """Everyone, every time: nothing is hidden by sampling; the number of units is public."""

    at_most: int | None = None
    relation = Relation.REPLACE_ONE

    def __post_init__(self) -> None:
        """A sensible cap."""
        check_cap(self)

    def draw(self, stream: Stream, units: int) -> Units:
        """All of them."""
        return np.arange(units)

    def amplify(self, event: DpEvent, units: int) -> DpEvent:
        """No amplification."""
        return event

    def rate(self, units: int) -> float:
        """Everyone takes part."""
        return 1.0

    def expected(self, units: int) -> float:
        """The size of a draw."""
        return float(units)

    def size(self, units: int) -> int | None:
        """The size of every draw."""
        return units

    def words(self, units: int) -> str:
        """For the statement."""
        return "everyone"


@dataclass(frozen=True)
class Poisson:
    """Each unit by its own coin of a public rate: hides presence, so it goes with add-remove.

    The size of a draw stays secret, an empty draw still releases noise, and whatever is divided is
    divided by the expected size.
    """

    q: float
    at_most: int | None = None
    relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        """A probability."""
        if not 0 < self.q <= 1:
            raise ValueError(f"Poisson: q = {self.q!r}, allowed is above 0 and at most 1.")
        check_cap(self)

    def draw(self, stream: Stream, units: int) -> Units:
        """A coin for each unit."""
        return np.flatnonzero(stream.bernoulli(self.q, units)).astype(np.int64)

    def amplify(self, event: DpEvent, units: int) -> DpEvent:
        """Amplification by Poisson sampling."""
        return event if self.q == 1 else PoissonSampledDpEvent(self.q, event)

    def rate(self, units: int) -> float:
        """The probability of taking part."""
        return self.q

    def expected(self, units: int) -> float:
        """The mean size of a draw."""
        return self.q * units

    def size(self, units: int) -> int | None:
        """Not fixed."""
        return None

    def words(self, units: int) -> str:
        """For the statement."""
        return f"Poisson, rate {self.q:g}"


@dataclass(frozen=True)
class Fixed:
    """A uniformly random subset of this size: the size is public, so it goes with replace-one.

    With `at_most`, a run ends when fewer than m units may still take part; it never draws fewer.
    """

    m: int
    at_most: int | None = None
    relation = Relation.REPLACE_ONE

    def __post_init__(self) -> None:
        """At least one."""
        whole("Fixed", "m", self.m)
        check_cap(self)

    def draw(self, stream: Stream, units: int) -> Units:
        """A subset without replacement."""
        self.rate(units)
        return np.sort(stream.choose(units, self.m))

    def amplify(self, event: DpEvent, units: int) -> DpEvent:
        """Amplification by sampling without replacement."""
        if self.rate(units) == 1:
            return event
        return SampledWithoutReplacementDpEvent(units, self.m, event)

    def rate(self, units: int) -> float:
        """The probability of taking part."""
        if self.m > units:
            raise ValueError(
                f"Fixed: m = {self.m}, allowed is at most the number of units, {units}."
            )
        return self.m / units

    def expected(self, units: int) -> float:
        """The size of a draw."""
        return float(self.m)

    def size(self, units: int) -> int | None:
        """The size of every draw."""
        return self.m

    def words(self, units: int) -> str:
        """For the statement."""
        return f"{self.m} of {units} without replacement"


@dataclass(frozen=True)
class Spaced:
    """Clients dealt into b groups once, by a public order; the groups take turns.

    So b - 1 rounds lie between two of a client's own, which noise that is correlated over rounds
    rests on. The turns are public: nothing is hidden by sampling.
    """

    b: int
    at_most = None
    relation = Relation.REPLACE_ONE

    def __post_init__(self) -> None:
        """At least one group."""
        whole("Spaced", "b", self.b)

    def draw(self, stream: Stream, units: int, t: int = 0) -> Units:
        """The group whose turn round t is; `stream` gives every round the same order."""
        self.rate(units)
        return np.sort(stream.permutation(units)[t % self.b :: self.b]).astype(np.int64)

    def amplify(self, event: DpEvent, units: int) -> DpEvent:
        """No amplification."""
        return event

    def rate(self, units: int) -> float:
        """No coin is thrown: a client takes part whenever it is its turn."""
        if self.b > units:
            raise ValueError(
                f"Spaced: b = {self.b}, allowed is at most the number of units, {units}."
            )
        return 1.0

    def expected(self, units: int) -> float:
        """The mean size of a group."""
        return units / self.b

    def size(self, units: int) -> int | None:
        """The size of every group, if they have one."""
        return None if units % self.b else units // self.b

    def words(self, units: int) -> str:
        """For the statement."""
        return f"each client once in {self.b} rounds, by public turns"


@dataclass(frozen=True)
class Epoch:
    """Records in a fresh random order, in batches of this size: each is used once in an epoch.

    The order hides nothing that the accountant may use. Under add-remove the batches would be
    packed anew and their number could change, so only replace-one is spoken of. The last, smaller
    batch is left out, so that all batches have one size; `partial` keeps it, and then no fixed
    number of noise shares is in a batch.
    """

    m: int
    partial: bool = False
    relation = Relation.REPLACE_ONE

    def __post_init__(self) -> None:
        """At least one record in a batch."""
        whole("Epoch", "m", self.m)

    def batches(self, units: int) -> int:
        """How many batches an epoch has."""
        if self.partial:
            return -(-units // self.m)
        if self.m > units:
            raise ValueError(
                f"Epoch: m = {self.m}, allowed is at most the number of units, {units}; "
                "partial = True keeps smaller batches."
            )
        return units // self.m

    def draw(self, stream: Stream, units: int) -> Units:
        """One epoch's order; batch b is entries b m to (b+1) m."""
        return stream.permutation(units)[: self.batches(units) * self.m].astype(np.int64)

    def amplify(self, event: DpEvent, units: int) -> DpEvent:
        """No amplification."""
        return event

    def rate(self, units: int) -> float:
        """A record is used once in an epoch."""
        return 1.0

    def expected(self, units: int) -> float:
        """The size of a batch."""
        return float(self.m)

    def size(self, units: int) -> int | None:
        """The size of every batch, if they have one."""
        return None if self.partial else self.m

    def words(self, units: int) -> str:
        """For the statement."""
        return f"epochs of batches of {self.m}, in random order"


def check_cap(cohort: All | Poisson | Fixed) -> None:
    """Refuse a cap on participations that nobody can keep."""
    if cohort.at_most is not None:
        whole(type(cohort).__name__, "at_most", cohort.at_most)


def whole(owner: str, field: str, value: object) -> None:
    """Refuse anything but a whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{owner}: {field} = {value!r}, allowed is a whole number of at least 1.")


Cohort = All | Poisson | Fixed | Spaced
Sampler = All | Poisson | Fixed | Epoch
