"""A coin amplifies only while nothing that leaves under it shows how it fell."""

import math

import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm

from confide.accounting.relations import Relation
from confide.cells import Cell
from confide.channels import Sum
from confide.cohorts import Fixed, Poisson
from confide.derive import derive
from confide.engine import Round, Sizes, Upload
from confide.stages import Clip, Gaussian, Laplace, Stage
from confide.statements import state

SIZES = Sizes(clients=1000, records=50, layers=(8,))
T, DELTA = 50, 1e-5
RAW_LOSS = Upload((), 1, data="test")


def cell(r: Round, unit: str = "record", of: str = "update") -> Cell:
    return state([(r, T)], SIZES, delta=DELTA).cell(unit, "world", of)


def seen_schedule(mu: float, q: float) -> float:
    """Epsilon for an observer who sees who takes part: the exact mixture over the schedule."""

    def excess(e: float) -> float:
        delta = 0.0
        for k in range(1, T + 1):
            m = math.sqrt(k) * mu
            one = norm.cdf(-e / m + m / 2) - math.exp(e) * norm.cdf(-e / m - m / 2)
            delta += binom.pmf(k, T, q) * one
        return delta - DELTA

    return float(brentq(excess, 0.0, 100.0))


def with_loss(cohort: Poisson | Fixed, loss: Upload, *noise: Stage) -> Round:
    """The sum of 10 clients' updates, noise of twice the clip once, and their test losses."""
    return Round(
        cohort=cohort,
        upload={"update": Upload((Clip(1.0),)), "loss": loss},
        channel=Sum(),
        publish={"update": (Gaussian(0.2),), "loss": noise},
    )


@pytest.mark.parametrize("cohort", [Poisson(0.01), Fixed(10)])
def test_a_raw_test_loss_shows_the_coin(cohort: Poisson | Fixed) -> None:
    """Who knows all losses reads from their sum who took part: the record's row has no secret."""
    silent = Round(cohort, upload=(Clip(1.0),), channel=Sum(), publish=(Gaussian(0.2),))
    loud = cell(with_loss(cohort, RAW_LOSS))
    # One record moves its client's clipped update by 2 against noise of 2 on the sum: mu = 1.
    truth = seen_schedule(1.0, 0.01)
    assert truth > 2 * cell(silent).epsilon
    assert loud.status == "proved"
    assert truth <= loud.epsilon < truth * 1.01


@pytest.mark.parametrize("cohort", [Poisson(0.01), Fixed(10)])
def test_noise_on_the_test_loss_is_part_of_what_hides_the_coin(cohort: Poisson | Fixed) -> None:
    loss = Upload((Clip(1.0, p=1),), 1, data="test")
    both = with_loss(cohort, loss, Gaussian(0.2))
    # Together mu = sqrt(2): as one update under noise that is smaller by that factor.
    alone = Round(
        cohort, upload=(Clip(1.0),), channel=Sum(), publish=(Gaussian(0.2 / math.sqrt(2)),)
    )
    for of in ("update", "loss"):
        assert cell(both, of=of).epsilon <= cell(alone).epsilon * (1 + 1e-6)
    for of in ("update", "loss"):
        (joint, *_) = derive(both, SIZES)["client", "world", of]
        (single, *_) = derive(alone, SIZES)["client", "world", "update"]
        z, expected = (way.event.event.noise_multiplier for way in (joint, single))  # pyright: ignore
        assert z == pytest.approx(expected, rel=2e-9)


@pytest.mark.parametrize("cohort", [Poisson(0.01), Fixed(10)])
def test_a_raw_update_shows_the_coin_of_a_noisy_loss(cohort: Poisson | Fixed) -> None:
    r = Round(
        cohort,
        upload={"update": Upload(()), "loss": Upload((Clip(1.0, p=1),), 1, data="test")},
        channel=Sum(),
        publish={"loss": (Gaussian(0.2),)},
    )
    row = cell(r, "record", "loss")
    # Test data that are zeroed out and put back twice, or replaced once: at least mu = 1.
    assert row.status == "proved"
    assert row.epsilon >= seen_schedule(1.0, 0.01)
    assert cell(r, "client").epsilon == math.inf


def test_dropouts_give_away_who_was_drawn() -> None:
    """Nine of ten always drop out and each round needs one: it happens when the tenth is drawn."""
    sizes = Sizes(clients=10, records=50, layers=(8,))
    r = Round(Fixed(1), upload=(Clip(1.0), Gaussian(4.0)), channel=Sum(survivors=1))
    truth = seen_schedule(2 / 4.0, 0.1)
    stated = state([(r, T)], sizes, delta=DELTA).cell("client", "world")
    assert truth <= stated.epsilon < truth * 1.01
    nobody = Round(Fixed(1), upload=(Clip(1.0), Gaussian(4.0)), channel=Sum())
    assert state([(nobody, T)], sizes, delta=DELTA).cell("client", "world").epsilon < truth


def test_laplace_on_a_sum_says_that_the_sum_is_rounded() -> None:
    on_sum = Round(Poisson(0.1), upload=(Clip(1.0),), channel=Sum(), publish=(Laplace(0.2),))
    by_itself = Round(Poisson(0.1), upload=(Clip(1.0), Laplace(2.0)))
    assert any("summed up in floating point" in a for a in cell(on_sum).assumptions)
    (way, *_) = derive(by_itself, SIZES)["client", "server", "update"]
    assert way.assumptions == ()


@pytest.mark.parametrize("publish", [(Gaussian(4.0),), (Clip(1.0), Gaussian(4.0))])
def test_an_aborted_round_shows_who_was_missing_whatever_noise_is_published(
    publish: tuple[Stage, ...],
) -> None:
    """Two of two must come, and always do: without one of them no round ever happens."""
    sizes = Sizes(clients=2, records=50, layers=(8,))
    r = Round(Poisson(1.0), upload=(Clip(1.0),), channel=Sum(survivors=2), publish=publish)
    rows = state([(r, T)], sizes, delta=DELTA)
    for way in derive(r, sizes)["client", "world", "update"]:
        assert way.open or way.relation is not Relation.ADD_REMOVE
    assert rows.cell("client", "world").relation == "zero-out"
    for way in derive(r, sizes)["record", "world", "update"]:
        assert way.open or "add-remove" not in way.way
