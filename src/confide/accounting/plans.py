"""The plan of an event: which pairs it releases, how often, and behind which public coins."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dp_accounting import NonPrivateDpEvent, NoOpDpEvent

from confide.accounting import sampling, shuffle
from confide.accounting.dominating import Unproved, sampled
from confide.accounting.events import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    MixedDpEvent,
    PoissonSampledDpEvent,
    RandomParticipationDpEvent,
    SelfComposedDpEvent,
    ShuffledDpEvent,
)
from confide.accounting.laws import Law, Mixture, Single, Sum
from confide.accounting.pairs import NormalLoss, Pair, atoms, continuous
from confide.accounting.relations import Refused, Relation


@dataclass(frozen=True)
class Release:
    """One release with a proved pair."""

    pair: Pair

    def pairs(self) -> Iterator[Pair]:
        """Every pair in the plan."""
        yield self.pair

    def law(self, width: float, removal: bool) -> Law:
        """The law of the loss on a grid, in one direction."""
        side = self.pair.remove if removal else self.pair.add
        return Single(side.on_grid(width))


@dataclass(frozen=True)
class Several:
    """Independent releases, each a number of times."""

    parts: tuple[tuple[Plan, int], ...]

    def pairs(self) -> Iterator[Pair]:
        """Every pair in the plan."""
        for plan, _ in self.parts:
            yield from plan.pairs()

    def law(self, width: float, removal: bool) -> Law:
        """The law of the loss on a grid, in one direction."""
        return Sum(tuple((plan.law(width, removal), count) for plan, count in self.parts))


@dataclass(frozen=True)
class Coin:
    """With this probability the inner plan, else a release that says nothing; the coin is shown."""

    probability: float
    inner: Plan

    def pairs(self) -> Iterator[Pair]:
        """Every pair in the plan."""
        return self.inner.pairs()

    def law(self, width: float, removal: bool) -> Law:
        """The law of the loss on a grid, in one direction."""
        return Mixture(self.probability, self.inner.law(width, removal))


Plan = Release | Several | Coin

SILENT = Several(())
REVEALED = Release(Pair(atoms([1.0, 0.0], [0.0, 1.0]), atoms([1.0, 0.0], [0.0, 1.0])))


def plan_of(event: DpEvent, relation: Relation) -> Plan:
    """Return the plan of an event, or raise Unproved with the reason."""
    match event:
        case NoOpDpEvent():
            return SILENT
        case NonPrivateDpEvent():
            return REVEALED
        case SelfComposedDpEvent() | ComposedDpEvent():
            return _several(event, relation)
        case MixedDpEvent():
            return _coin(event.probability, plan_of(event.event, relation))
        case RandomParticipationDpEvent():
            # The same as an independent public coin in every round.
            inner = _coin(event.probability, plan_of(event.event, relation))
            return Several(((inner, event.rounds),))
        case PoissonSampledDpEvent():
            if relation is Relation.REPLACE_ONE:
                raise Unproved("Poisson sampling has a proved pair under add-remove and zero-out")
            return Release(sampled(event.event, event.sampling_probability))
        case ShuffledDpEvent():
            found = shuffle.clones(event.epsilon, event.users)
            return Release(Pair(found, found))
        case _:
            return Release(sampled(event, 1.0))


def _coin(probability: float, inner: Plan) -> Plan:
    if not 0 <= probability <= 1:
        raise Refused(f"probability = {probability}: must lie in [0, 1]")
    if probability in (0.0, 1.0):
        return inner if probability else SILENT
    return Coin(probability, inner)


def _several(event: DpEvent, relation: Relation) -> Plan:
    """Group equal releases; all un-sampled Gaussian ones are a single one."""
    counts: dict[str, tuple[DpEvent, int]] = {}
    ratios: list[float] = []
    for part, count in _flat(event, 1):
        if isinstance(part, GaussianDpEvent) and part.noise_multiplier > 0:
            ratios.append(math.sqrt(count) / part.noise_multiplier)
        else:
            key = repr(part)
            counts[key] = part, counts.get(key, (part, 0))[1] + count
    parts = [(plan_of(part, relation), count) for part, count in counts.values()]
    if ratios:  # no squares, which overflow or vanish
        parts.append((Release(continuous(NormalLoss(math.hypot(*ratios)))), 1))
    return Several(tuple(parts))


def _flat(event: DpEvent, count: int) -> Iterator[tuple[DpEvent, int]]:
    if isinstance(event, SelfComposedDpEvent):
        yield from _flat(event.event, count * sampling.check_count(event.count))
    elif isinstance(event, ComposedDpEvent):
        for part in event.events:
            yield from _flat(part, count)
    elif count:
        yield event, count
