"""Two vectors under one coin, and two rounds that are not alike, against their exact laws."""

from itertools import product
from random import Random

import numpy as np
import pytest

from confide.accounting.relations import Refused
from confide.aggregates import Mean, MeanOfPresent
from confide.channels import Each, Shuffle, Sum
from confide.cohorts import All, Cohort, Fixed, Poisson
from confide.engine.client import Outcome
from confide.engine.rounds import Round, Sizes, Upload
from confide.statements import state
from exact_laws import PLACES, Law, draws, placed, point, through, total
from test_exact_aggregates import seen_by_server, seen_by_world
from test_exact_laws import DELTA, WRONG, some_stages, worst


def beside(done: Outcome) -> object:
    """A second number of the client's."""
    return done.update[:1]


def some_cohort(pick: Random) -> Cohort:
    return pick.choice([All(), Fixed(1), Fixed(2), Poisson(0.3), Poisson(0.7)])


def one_vector(r: Round, name: str, values: list[float], who: tuple[int, ...]) -> Law:
    """What is published of this vector's sum or mean over the cohort."""
    law = total(r.uploads[name].stages, [values[k] for k in who])
    if isinstance(r.aggregate, MeanOfPresent):
        law = placed(PLACES / max(len(who), 1), law)
    return through(r.published(name), law)


def both_to_world(r: Round, values: list[float]) -> Law:
    """Whoever is drawn sends both vectors, or neither."""
    return sum(
        (
            chance * np.outer(*(one_vector(r, name, values, who) for name in r.uploads))
            for chance, who in draws(r.cohort, len(values))  # pyright: ignore[reportArgumentType]
        ),
        start=np.zeros(1),
    )


def both_to_server(r: Round, values: list[float]) -> Law:
    """Both of the unit's own uploads, or both sums over a cohort with it."""
    size = r.cohort.size(len(values)) if isinstance(r.channel, Sum) else 1
    return np.outer(*(total(u.stages, values[:size]) for u in r.uploads.values()))


@pytest.mark.parametrize("seed", range(40))
def test_two_vectors_of_one_client_share_its_coin(seed: int) -> None:
    pick = Random(seed)
    units = pick.choice([2, 3])
    cohort = some_cohort(pick)
    first, second = (some_stages(pick, 2, publish=False) for _ in range(2))
    r = Round(
        cohort,
        upload={"update": Upload(first), "bit": Upload(second, 1, "train", beside)},
        channel=pick.choice([Each(), Sum(), Shuffle()]),
        aggregate=pick.choice([Mean(by=1.0), MeanOfPresent()]),
        publish={name: some_stages(pick, 1, publish=True) for name in ("update", "bit")},
    )
    rows = state([(r, 1)], Sizes(units, 5, (1,)), delta=DELTA)
    for unit, (observer, law) in product(
        ("client", "record"), (("server", both_to_server), ("world", both_to_world))
    ):
        cell = rows.cell(unit, observer)
        if cell.status == "proved":
            seen = worst(cell, lambda v, law=law: law(r, v), pick, units, 1)
            assert seen <= WRONG, (cell, r)


@pytest.mark.parametrize("seed", range(40))
def test_two_rounds_that_are_not_alike_add_up(seed: int) -> None:
    pick = Random(3000 + seed)
    units, channel = pick.choice([2, 3]), pick.choice([Each(), Sum()])
    cohort = some_cohort(pick)
    pair = [
        Round(
            cohort=pick.choice([cohort, cohort, some_cohort(pick)]),
            upload=some_stages(pick, 2, publish=False),
            channel=channel,
            aggregate=pick.choice([Mean(by=1.0), MeanOfPresent()]),
            publish=some_stages(pick, 1, publish=True),
        )
        for _ in range(2)
    ]
    try:
        rows = state([(r, 1) for r in pair], Sizes(units, 5, (1,)), delta=DELTA)
    except Refused as why:
        assert "under one relation" in str(why)
        return
    for unit, (observer, law) in product(
        ("client", "record"), (("server", seen_by_server), ("world", seen_by_world))
    ):
        cell = rows.cell(unit, observer)
        if cell.status == "proved":
            seen = worst(
                cell, lambda v, law=law: np.outer(*(law(r, v) for r in pair)), pick, units, 1
            )
            assert seen <= WRONG, (cell, pair)


def test_the_laws_hold_all_of_their_mass() -> None:
    r = Round(Poisson(0.5), upload={"update": Upload(), "bit": Upload((), 1, "train", beside)})
    assert both_to_world(r, [1.0, -1.0]).sum() == pytest.approx(1)
    assert both_to_server(r, [1.0, -1.0]).sum() == pytest.approx(1)
    assert np.argmax(total((), [1.0])) == np.argmax(point(1.0))
