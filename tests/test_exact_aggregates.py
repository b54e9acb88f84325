"""Means by who came and by size, turns, and noise in two places, against their exact laws."""

from dataclasses import replace
from itertools import combinations, product
from random import Random

import numpy as np
import pytest

from confide.aggregates import Mean, MeanOfPresent, WeightedMean
from confide.channels import Each, Sum
from confide.cohorts import All, Epoch, Fixed, Poisson, Spaced
from confide.engine.rounds import Local, Round, Sizes
from confide.local import SGD
from confide.stages import Clip, Gaussian, Stage
from confide.statements import state
from exact_laws import PLACES, Law, delta, draws, placed, plus, point, through, total
from test_exact_laws import DELTA, FAR, WRONG, some_stages, worst

Who = tuple[int, ...]

RECORDS = (5, 1, 3)
"""How many records the clients have, the unit's first: public numbers, and their weights."""


def weights(r: Round, units: int) -> list[float]:
    """What the server multiplies each upload by; an absent unit is the first."""
    if isinstance(r.aggregate, WeightedMean):
        return [min(n, r.aggregate.cap) / r.aggregate.by for n in RECORDS[-units:]]
    return [1.0] * units


def summed(r: Round, values: list[float], who: Who) -> Law:
    """The law of what the aggregate makes of these clients' uploads."""
    law, by = point(0.0), weights(r, len(values))
    for client in who:
        own = through(r.uploads["update"].stages, point(values[client]))
        law = plus(law, placed(PLACES * by[client], own))
    if isinstance(r.aggregate, MeanOfPresent):
        return placed(PLACES / max(len(who), 1), law)
    return law


def seen_by_world(r: Round, values: list[float]) -> Law:
    """What is published; with public turns, in the unit's own."""
    units = len(values)
    if isinstance(r.cohort, Spaced):
        return through(r.published("update"), summed(r, values, tuple(range(0, units, r.cohort.b))))
    return sum(
        (
            chance * through(r.published("update"), summed(r, values, who))
            for chance, who in draws(r.cohort, units)
        ),
        start=0 * point(0.0),
    )


def seen_by_server(r: Round, values: list[float]) -> Law:
    """The unit's upload, or the plain sum over a cohort with it."""
    if isinstance(r.channel, Each):
        return through(r.uploads["update"].stages, point(values[0]))
    who = range(0, len(values), getattr(r.cohort, "b", 1))
    return summed(replace(r, aggregate=Mean(1.0)), values, tuple(who)[: r.cohort.size(len(values))])


@pytest.mark.parametrize("seed", range(60))
def test_no_mean_and_no_turns_bring_a_statement_below_the_truth(seed: int) -> None:
    pick = Random(5000 + seed)
    units, rounds = pick.choice([2, 2, 3]), pick.choice([1, 1, 2])
    cap = pick.choice([1.0, 2.0, 4.0])
    r = Round(
        cohort=pick.choice([All(), Poisson(0.4), Poisson(0.8), Fixed(1), Fixed(2), Spaced(2)]),
        upload=some_stages(pick, 3, publish=False),
        channel=pick.choice([Each(), Sum()]),
        aggregate=pick.choice([MeanOfPresent(), WeightedMean(cap, pick.choice([1.0, 2.0]))]),
        publish=some_stages(pick, 2, publish=True),
    )
    # With turns, two rounds of b = 2 hold one participation, as one round does.
    s = state([(r, rounds)], Sizes(units, 1, (1,), 5), delta=DELTA)
    times = 1 if isinstance(r.cohort, Spaced) else rounds
    for unit, (observer, law) in product(
        ("client", "record"), (("server", seen_by_server), ("world", seen_by_world))
    ):
        cell = s.cell(unit, observer)
        if cell.status == "proved":
            seen = worst(cell, lambda v, law=law: law(r, v), pick, units, times)
            assert seen <= WRONG, (cell, r)


def drawn_below(cap: int, cohort: Fixed | Poisson, units: int) -> list[tuple[float, Who, Who]]:
    """The cohorts of two rounds, where a client takes part so often at the most."""
    base = Fixed(cohort.m) if isinstance(cohort, Fixed) else Poisson(cohort.q)
    found: list[tuple[float, Who, Who]] = []
    for chance, first in draws(base, units):
        free = [k for k in range(units) if cap > 1 or k not in first]
        for another, places in draws(base, len(free)) if free else [(1.0, ())]:
            found.append((chance * another, first, tuple(free[i] for i in places)))
    return found


@pytest.mark.parametrize("seed", range(24))
def test_a_cap_on_participations_brings_no_statement_below_the_truth(seed: int) -> None:
    pick = Random(7000 + seed)
    units, cap = pick.choice([2, 3]), pick.choice([1, 1, 2])
    cohort = pick.choice([Fixed(1, cap), Poisson(0.5, cap), Poisson(0.8, cap)])
    r = Round(
        cohort=cohort,
        upload=some_stages(pick, 2, publish=False),
        channel=pick.choice([Each(), Sum()]),
        aggregate=Mean(by=1.0),
        publish=some_stages(pick, 1, publish=True),
    )

    def law(values: list[float]) -> Law:
        out = {
            who: through(r.published("update"), summed(r, values, who))
            for n in range(len(values) + 1)
            for who in combinations(range(len(values)), n)
        }
        rounds = drawn_below(cap, cohort, len(values))
        return sum((c * np.outer(out[a], out[b]) for c, a, b in rounds), start=np.zeros(1))

    cell = state([(r, 2)], Sizes(units, 5, (1,)), delta=DELTA).cell("client", "world")
    if cell.status == "proved":
        assert worst(cell, law, pick, units, 1) <= WRONG, (cell, r)


@pytest.mark.parametrize("seed", range(40))
def test_no_mean_of_a_batch_brings_a_record_below_the_truth(seed: int) -> None:
    pick = Random(8000 + seed)
    records = pick.choice([2, 3])
    draw = [All(), Poisson(0.3), Poisson(0.7), Fixed(1), Fixed(records), Epoch(1), Epoch(2, True)]
    example, batch = some_stages(pick, 3, publish=False), some_stages(pick, 2, publish=True)
    sampler, average = pick.choice(draw), pick.choice([MeanOfPresent(), Mean(2.0), None])
    local = Local(SGD(1.0), 1, sampler, example, batch, average)
    cell = state([(Round(All(), local), 1)], Sizes(1, records, (1,)), delta=DELTA)
    row = cell.cell("record", "server")

    def law(values: list[float]) -> Law:
        """The noisy sum; of an epoch, the batch with the record, which comes first here."""
        chosen = [(1.0, tuple(range(min(len(values), getattr(sampler, "m", 1)))))]
        if not isinstance(sampler, Epoch):
            chosen = draws(sampler, len(values))
        out = 0 * point(0.0)
        for chance, who in chosen:
            sent = through(batch, total(example, [values[i] for i in who]))
            present = max(len(who), 1) if isinstance(average, MeanOfPresent) else 1
            out = out + chance * placed(PLACES / present, sent)
        return out

    if row.status == "proved":
        assert worst(row, law, pick, records, 1) <= WRONG, (row, local)


# Noise in the local steps and on the upload -----------------------------------------------------


def report(r: Round, value: float | None) -> Law:
    """What a client of one record uploads; None: its contribution is zero."""
    made = (*r.local.example, *r.local.batch)
    law = point(0.0) if value is None else through(made, point(value))
    return through(r.uploads["update"].stages, law)


def both_noises(pick: Random) -> Round:
    upload: list[tuple[Stage, ...]] = [
        (Gaussian(pick.choice([0.25, 1.0])),),
        (Clip(1.0), Gaussian(pick.choice([0.25, 0.5, 1.0, 2.0]))),
        some_stages(pick, 2, publish=False),
    ]
    local = Local(
        SGD(1.0),
        example=(Clip(pick.choice([0.5, 1.0])),),
        batch=(Gaussian(pick.choice([0.5, 1.0, 2.0, 4.0])),),
        average=Mean(1.0),
    )
    return Round(All(), local, pick.choice(upload), Sum(), Mean(1.0))


def found_by(r: Round, relation: str, epsilon: float) -> float:
    """The largest delta of a client alone to the server, under this relation."""
    pairs = [(FAR, -FAR), (FAR, 0.5)] if relation == "replace-one" else [(FAR, None), (0.5, None)]
    return max(delta(report(r, own), report(r, other), epsilon) for own, other in pairs)


@pytest.mark.parametrize("seed", range(40))
def test_noise_in_two_places_is_stated_under_the_relation_that_the_row_names(seed: int) -> None:
    r = both_noises(Random(seed))
    cell = state([(r, 1)], Sizes(1, 1, (1,)), delta=DELTA).cell("client", "server")
    assert cell.status == "proved"
    assert found_by(r, cell.relation, cell.epsilon) <= WRONG, (cell, r)


def test_a_replace_one_row_says_nothing_about_a_contribution_of_zero() -> None:
    """Noise in local steps is there for any data, but a zero contribution has none of it."""
    local = Local(SGD(1.0), example=(Clip(1.0),), batch=(Gaussian(4.0),), average=Mean(1.0))
    r = Round(All(), local, (Clip(4.0), Gaussian(0.25)), Sum(), Mean(1.0))
    cell = state([(r, 1)], Sizes(1, 1, (1,)), delta=DELTA).cell("client", "server")
    assert cell.relation == "replace-one" and cell.epsilon < 2
    assert found_by(r, "zero-out", cell.epsilon) > 0.5
