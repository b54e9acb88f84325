"""Random rounds against the exact laws of what they release: no statement is below the truth."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

import exact_laws
from confide.aggregates import Mean
from confide.cells import Cell
from confide.channels import Each, Sum
from confide.cohorts import All, Fixed, Poisson
from confide.engine.rounds import Local, Round, Sizes
from confide.local import SGD
from confide.stages import (
    Assume,
    Clip,
    Gaussian,
    Laplace,
    Quantize,
    RandomizedResponse,
    Scale,
    Skellam,
    Stage,
    Staircase,
)
from confide.statements import state
from exact_laws import Law, draws, point, through, total

DELTA, FAR = 0.02, 3.0
WRONG = DELTA * 1.01 + 1e-6  # rounding of noise upon noise


def some_stages(pick: Random, most: int, publish: bool) -> tuple[Stage, ...]:
    """Up to so many stages in any order; often what methods do, a clip here and noise there."""
    if pick.random() < 0.5:
        noise = pick.choice([Gaussian(0.5), Gaussian(1.0), Laplace(1.0), Staircase(1.0, 4.0)])
        return (noise,) if publish else (Clip(pick.choice([0.5, 1.0])),)
    stages: list[Stage] = []
    for _ in range(pick.randint(0 if publish else 1, most)):
        C = pick.choice([0.5, 1.0, 2.0])
        kinds: list[tuple[Stage, ...]] = [
            (Clip(C, pick.choice([1, 2, float("inf")])),),
            (Clip(C),),
            (Gaussian(pick.choice([0.5, 1.0, 2.0, 4.0])),),
            (Gaussian(2.0),),
            (Laplace(pick.choice([0.5, 1.0, 2.0])),),
            (Staircase(pick.choice([0.5, 1.0, 2.0]), pick.choice([1.0, 2.0, 4.0])),),
            (Scale(pick.choice([0.5, 2.0])),),
        ]
        if not publish:
            grid = Quantize(5, 2.0)
            kinds += [
                (grid,),
                (grid, Skellam(1.0, pick.choice([2.0, 8.0]))),
                (RandomizedResponse(pick.choice([2, 3]), 1.0, pick.choice([0.5, 1.0, 2.0])),),
            ]
        stages += pick.choice(kinds)
    return tuple(stages)


def worlds(pick: Random, cell: Cell, units: int) -> list[tuple[list[float], list[float]]]:
    """Values of all units in both worlds; the first one's differ."""
    absent = cell.relation == "add-remove"
    zero = cell.relation == "zero-out"
    found: list[tuple[list[float], list[float]]] = []
    for own, others in ((FAR, -FAR), (FAR, FAR), (FAR, 0.0), (pick.choice([-1.0, 0.5, 2.0]), 1.0)):
        rest = [others] * (units - 1)
        found.append(([own, *rest], rest if absent else [0.0 if zero else -own, *rest]))
    return found


def seen_by_server(r: Round, values: list[float]) -> Law:
    """The unit's upload, or the sum over a cohort with it."""
    stages = r.uploads["update"].stages
    if isinstance(r.channel, Each):
        return through(stages, point(values[0]))
    return total(stages, values[: r.cohort.size(len(values)) or 1])


def seen_by_world(r: Round, values: list[float]) -> Law:
    """What is published, whoever was drawn; the divisor is 1."""
    stages = r.uploads["update"].stages
    return sum(
        (
            chance * through(r.published("update"), total(stages, [values[k] for k in who]))
            for chance, who in draws(r.cohort, len(values))  # pyright: ignore[reportArgumentType]
        ),
        start=0 * point(0.0),
    )


def worst(cell: Cell, law: Any, pick: Random, units: int, rounds: int) -> float:
    """The largest delta at the epsilon that is stated."""
    found = 0.0
    for one, other in worlds(pick, cell, units):
        p, q = law(one), law(other)
        if rounds == 2:
            seen = (p > 1e-9) | (q > 1e-9)
            p, q = exact_laws.twice(p[seen]), exact_laws.twice(q[seen])
        found = max(found, exact_laws.delta(p, q, cell.epsilon))
    return found


@pytest.mark.parametrize("seed", range(90))
def test_no_statement_about_a_client_is_below_the_truth(seed: int) -> None:
    pick = Random(seed)
    units, rounds = pick.choice([2, 3]), pick.choice([1, 1, 2])
    r = Round(
        cohort=pick.choice([All(), Poisson(0.3), Poisson(0.7), Fixed(1), Fixed(units)]),
        upload=some_stages(pick, 4, publish=False),
        channel=pick.choice([Each(), Sum()]),
        aggregate=Mean(by=1.0),
        publish=some_stages(pick, 2, publish=True),
    )
    s = state([(r, rounds)], Sizes(units, 5, (1,)), delta=DELTA)
    for observer, law in (("server", seen_by_server), ("world", seen_by_world)):
        cell = s.cell("client", observer)
        if cell.status == "proved":
            seen = worst(cell, lambda v, law=law: law(r, v), pick, units, rounds)
            assert seen <= WRONG, (cell, r)


@pytest.mark.parametrize("seed", range(60))
def test_no_statement_about_a_record_is_below_the_truth(seed: int) -> None:
    pick = Random(1000 + seed)
    records = pick.choice([2, 3])
    sampler = pick.choice([All(), Poisson(0.3), Poisson(0.7), Fixed(1), Fixed(records)])
    example = some_stages(pick, 3, publish=False)
    batch = some_stages(pick, 2, publish=True)
    local = Local(SGD(1.0), 1, sampler, example, batch, Mean(by=1.0))
    r = Round(All(), local)
    cell = state([(r, 1)], Sizes(1, records, (1,)), delta=DELTA).cell("record", "server")
    # A batch is a cohort of records, and its noise stands where `publish` stands.
    same = Round(sampler, upload=example, channel=Sum(), aggregate=Mean(by=1.0), publish=batch)
    if cell.status == "proved":
        seen = worst(cell, lambda v: seen_by_world(same, v), pick, records, 1)
        assert seen <= WRONG, (cell, r)


def test_the_check_is_sharp_and_can_fail() -> None:
    pick = Random(0)
    r = Round(All(), upload=(Clip(1.0), Gaussian(1.0)), aggregate=Mean(by=1.0))
    cell = state([(r, 1)], Sizes(2, 5, (1,)), delta=DELTA).cell("client", "server")
    seen = worst(cell, lambda v: seen_by_server(r, v), pick, 2, 1)
    assert 0.99 * DELTA < seen <= WRONG
    lies = ((), (Clip(1.0),))
    for first in lies:
        lie = replace(r, upload=(*first, Assume("what does not hold", l2=0.8), Gaussian(1.0)))
        cell = state([(lie, 1)], Sizes(2, 5, (1,)), delta=DELTA).cell("client", "server")
        assert worst(cell, lambda v, lie=lie: seen_by_server(lie, v), pick, 2, 1) > WRONG
