"""Bugs in how releases are added up and in who is drawn: no single release shows them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from math import exp
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import confide.derive as derivation
from audit.mutants.kinds import Mutant, accounted, drawn, told_another
from audit.mutants.rounds import ALONE, CENTRAL, RECORDS, SHARES, STD, TWO, local
from confide import cells, statements
from confide.accounting.events import DpEvent
from confide.accounting.relations import Relation
from confide.aggregates import Mean
from confide.channels import Sum
from confide.claims import Claim
from confide.cohorts import All, Epoch, Fixed, Poisson
from confide.derive import Release, outside
from confide.engine.rounds import Round, Sizes
from confide.local import SAM, Scaffold
from confide.randomness import Stream
from confide.stages import Clip, Gaussian
from confide.stages.stage import PerClient

Patch = pytest.MonkeyPatch
FIXED = local(sampler=Fixed(4))
OWN = Round(cohort=All(), upload=(Clip(1.0), Gaussian(PerClient((2.0, *[8.0] * 19)))))


def composition_dropped(patch: Patch) -> None:
    whole = cells.over_rounds

    def once(ways: list[tuple[Release, int]]) -> Any:
        return whole([(ways[0][0], 1)])

    patch.setattr(cells, "over_rounds", once)


def delta_of_epsilon(patch: Patch) -> None:
    """Delta = e^-epsilon at epsilon 1."""
    right = cells.account

    def wrong(event: DpEvent, delta: float, relation: Relation) -> Any:
        return right(event, exp(-1), relation)

    patch.setattr(cells, "account", wrong)


def delta_above_one_unit(patch: Patch) -> None:
    """Everything about one unit in ten may be told to all."""
    patch.setattr(statements, "default_delta", lambda unit, sizes: 0.1)


def one_world_only(patch: Patch) -> None:
    """Replacing one unit is accounted as adding one."""
    patch.setattr(Claim, "distance", lambda self, bound: bound)


def first_vector_only(patch: Patch) -> None:
    whole = outside.together

    def wrong(claims: dict[str, Claim]) -> Any:
        name = next(iter(claims))
        return whole({name: claims[name]})

    patch.setattr(outside, "together", wrong)


def one_local_step(patch: Patch) -> None:
    inside = sys.modules["confide.derive.inside"]
    patch.setattr(inside, "repeated", lambda event, times: event)


def coin_twice(patch: Patch) -> None:
    right = Poisson.amplify

    def wrong(self: Poisson, event: DpEvent, units: int) -> DpEvent:
        return right(Poisson(self.q**2), event, units)

    patch.setattr(Poisson, "amplify", wrong)


def coin_for_the_server(patch: Patch) -> None:
    """Credit for a draw that the server makes itself."""
    right = derivation.at_server

    def wrong(r: Round, train: Any, sizes: Sizes, unit: str) -> Release:
        way = right(r, train, sizes, unit)
        if unit == "record":
            return way
        return replace(way, event=Poisson(0.5).amplify(way.event, sizes.clients))

    patch.setattr(derivation, "at_server", wrong)


def best_group(patch: Patch) -> None:
    """Clients with own numbers are stated by the one who has most noise."""
    right = statements.groups
    patch.setattr(statements, "groups", lambda plan, sizes: right(plan, sizes)[-1:])


def every_round_apart(patch: Patch) -> None:
    """Clients are said to come once in four rounds."""
    right = derivation.finished

    def wrong(r: Round, sizes: Sizes, key: Any, way: Release) -> Release:
        return replace(right(r, sizes, key, way), spaced=4)

    patch.setattr(derivation, "finished", wrong)


def noise_counted_twice(patch: Patch) -> None:
    """The shares of a sum are added to a noise that holds them already."""
    right = Claim.event_of

    def wrong(self: Claim, noise: Any) -> DpEvent | None:
        return right(self, noise.plus(noise) or noise)

    patch.setattr(Claim, "event_of", wrong)


@dataclass(frozen=True)
class TwiceTheRate(Poisson):
    """Draws at twice its rate."""

    def draw(self, stream: Stream, units: int) -> NDArray[np.int64]:
        return Poisson(2 * self.q).draw(stream, units)


@dataclass(frozen=True)
class AlwaysAsMany(Poisson):
    """A fixed number without replacement."""

    def draw(self, stream: Stream, units: int) -> NDArray[np.int64]:
        return Fixed(round(self.q * units)).draw(stream, units)


@dataclass(frozen=True)
class SameAgain(Poisson):
    """Nothing is drawn after the first time."""

    def draw(self, stream: Stream, units: int) -> NDArray[np.int64]:
        return np.arange(0, units, round(1 / self.q))


@dataclass(frozen=True)
class OneFavourite(Fixed):
    """Unit 3 is always there."""

    def draw(self, stream: Stream, units: int) -> NDArray[np.int64]:
        others = np.setdiff1d(super().draw(stream, units), [3])[: self.m - 1]
        return np.sort(np.append(others, 3))


@dataclass(frozen=True)
class OneMore(Fixed):
    """An interval that is closed at both ends."""

    def draw(self, stream: Stream, units: int) -> NDArray[np.int64]:
        return Fixed(self.m + 1).draw(stream, units)


@dataclass(frozen=True)
class AllOrNothing(Poisson):
    """One coin for everybody."""

    def draw(self, stream: Stream, units: int) -> NDArray[np.int64]:
        return np.arange(units) if bool(stream.bernoulli(self.q, 1)[0]) else np.arange(0)


MUTANTS: list[Mutant] = [
    told_another("Poisson accounted, fixed batches drawn", FIXED, RECORDS),
    told_another("Poisson accounted, shuffled epochs run", local(sampler=Epoch(4)), RECORDS),
    told_another("wrong q", CENTRAL, replace(CENTRAL, cohort=Poisson(0.25), aggregate=Mean(by=10))),
    told_another("wrong T", [(CENTRAL, 10)], [(CENTRAL, 5)]),
    told_another(
        "the first round's noise for all",
        [(CENTRAL, 5), (replace(CENTRAL, publish=(Gaussian(STD / 3),)), 5)],
        CENTRAL,
    ),
    told_another("one gradient accounted, two taken", local(step=SAM()), RECORDS),
    told_another(
        "shares of everybody accounted, five survive", replace(SHARES, channel=Sum(5)), SHARES
    ),
    told_another("memory not accounted", local(step=Scaffold(), remembers=True), RECORDS),
    told_another("sigma in another unit", CENTRAL, replace(CENTRAL, publish=(Gaussian(STD * 2),))),
    accounted("dropped composition", CENTRAL, composition_dropped),
    accounted("delta = e^-epsilon", CENTRAL, delta_of_epsilon),
    accounted("a delta above one unit", CENTRAL, delta_above_one_unit),
    accounted("replace-one accounted as add-remove", ALONE, one_world_only),
    accounted("only the first vector charged", TWO, first_vector_only),
    accounted("only one local step charged", local(steps=5), one_local_step),
    accounted("the coin counted twice", CENTRAL, coin_twice),
    accounted("the coin's credit for who sees the draw", SHARES, coin_for_the_server),
    accounted("turns that nobody keeps", SHARES, every_round_apart),
    accounted("shares of noise counted twice", SHARES, noise_counted_twice),
    accounted("the best client's budget for all", OWN, best_group),
    drawn("drawn at twice the rate", Poisson(0.1), TwiceTheRate(0.1)),
    drawn("a fixed number drawn, coins accounted", Poisson(0.25), AlwaysAsMany(0.25)),
    drawn("the same cohort in every round", Poisson(0.25), SameAgain(0.25)),
    drawn("one coin for everybody", Poisson(0.25), AllOrNothing(0.25)),
    drawn("a unit that always comes", Fixed(8), OneFavourite(8)),
    drawn("one unit more than accounted", Fixed(8), OneMore(8)),
]
