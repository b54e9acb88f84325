"""Two vectors of one coin, rounds that are not alike, all of a client's records: exact laws."""

from itertools import product
from random import Random

import numpy as np
import pytest

import exact_laws
from confide.accounting.relations import Refused
from confide.aggregates import Mean, MeanOfPresent
from confide.channels import Each, Shuffle, Sum
from confide.cohorts import All, Cohort, Epoch, Fixed, Poisson
from confide.engine.client import Outcome
from confide.engine.rounds import Local, Round, Sizes, Upload
from confide.local import SGD
from confide.statements import state
from exact_laws import PLACES, Law, draws, placed, point, through, total
from test_exact_aggregates import seen_by_server, seen_by_world
from test_exact_laws import DELTA, FAR, WRONG, some_stages, worst


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


def all_batches(local: Local, values: list[float]) -> Law:
    """The noisy batches of one client, each told apart."""
    m = local.sampler.m if isinstance(local.sampler, Epoch) else 0
    if m:
        ends = range(m, len(values) + 1, m)
        chosen = [[(1.0, tuple(range(end - m, end)))] for end in ends]
    else:
        chosen = [draws(local.sampler, len(values))]  # pyright: ignore[reportArgumentType]
    out = np.ones(1)
    for ways in chosen:
        law = 0 * point(0.0)
        for chance, who in ways:
            sent = through(local.batch, total(local.example, [values[k] for k in who]))
            by = max(len(who), 1) if isinstance(local.average, MeanOfPresent) else 1
            law = law + chance * placed(PLACES / by, sent)
        out = np.outer(out, law).ravel()
    return out


@pytest.mark.parametrize("seed", range(60))
def test_a_client_all_of_whose_records_change_is_covered(seed: int) -> None:
    pick = Random(4000 + seed)
    least = pick.choice([1, 2])
    most = pick.choice([least, 3])
    sampler = pick.choice([All(), Poisson(0.3), Poisson(1.0), Fixed(1), Fixed(least), Epoch(1)])
    local = Local(
        SGD(1.0), 1, sampler,
        example=some_stages(pick, 3, publish=False), batch=some_stages(pick, 2, publish=True),
        average=pick.choice([MeanOfPresent(), Mean(1.0)]),
    )  # fmt: skip
    sizes = Sizes(1, least, (1,), most)
    cell = state([(Round(All(), local), 1)], sizes, delta=DELTA).cell("client", "server")
    if cell.epsilon > 300 or (isinstance(sampler, Epoch) and most > 2):
        return  # more than the grid of these laws holds
    for n, value in product({least, most}, (FAR, 0.5)):
        # Poisson batches hide how many records there are; any others need it to be public.
        for others in {least, most} if isinstance(sampler, Poisson) else {n}:
            for other in (-FAR, 0.0):
                p, q = (all_batches(local, v) for v in ([value] * n, [other] * others))
                assert exact_laws.delta(p, q, cell.epsilon) <= WRONG, (cell, local)


def test_the_laws_hold_all_of_their_mass() -> None:
    r = Round(Poisson(0.5), upload={"update": Upload(), "bit": Upload((), 1, "train", beside)})
    assert both_to_world(r, [1.0, -1.0]).sum() == pytest.approx(1)
    assert both_to_server(r, [1.0, -1.0]).sum() == pytest.approx(1)
    assert np.argmax(total((), [1.0])) == np.argmax(point(1.0))
