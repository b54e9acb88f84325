"""What NbAFL proves at 50 clients of 1,200 digits, T = L = 25, epsilon 50, delta 0.01."""

from math import exp, log, sqrt

import pytest
from scipy.stats import norm

from confide.engine.rounds import Sizes, published_of
from confide.engine.spending import unrolled
from confide.methods import CATALOGUE
from confide.statements import Statement, state

SIZES = Sizes(50, 1200, (300, 200))
DELTA = 0.01


def stated(name: str, **settings: object) -> Statement:
    method = CATALOGUE[name].load()(**settings)
    return state(unrolled(method, SIZES), SIZES, delta=DELTA, published=published_of(method, SIZES))


def delta_at(mu: float, e: float) -> float:
    """The exact delta of N(0, 1) against N(mu, 1)."""
    return float(norm.cdf(mu / 2 - e / mu) - exp(e) * norm.cdf(-mu / 2 - e / mu))


def test_were_the_sensitivity_right_the_budget_would_hold_with_room() -> None:
    """sqrt(L) releases at 2C/m against c L (2C/m) / 50."""
    mu = 50 / (sqrt(2 * log(1.25 / DELTA)) * sqrt(25))
    assert delta_at(mu, 11.918) == pytest.approx(DELTA, rel=1e-3)


def test_as_printed_a_record_can_move_the_model_by_2C() -> None:
    statement = stated("nbafl")
    claim = statement.published
    assert claim is not None and (claim.value, claim.delta) == (50.0, DELTA)
    one = 1200 * 50 / (sqrt(2 * log(1.25 / DELTA)) * sqrt(25))
    # The world sees the mean of 50 models, each with its noise.
    for observer, mu in (("server", one), ("world", one / sqrt(50))):
        cell = statement.cell("record", observer)
        assert cell.relation == "replace-one"
        # At so large a mu, epsilon is mu^2/2 and mu times the quantile of delta.
        assert cell.epsilon == pytest.approx(mu**2 / 2 - mu * norm.ppf(DELTA), rel=1e-3)


@pytest.mark.parametrize("at_most", [None, 5])
def test_corrected_a_record_has_the_budget_that_was_asked_for(at_most: int | None) -> None:
    cell = stated("nbafl-c", epsilon=8.0, at_most=at_most).cell("record", "server")
    assert cell.relation == "replace-one"
    assert 8 * (1 - 1e-3) < cell.epsilon <= 8


def test_without_noise_nothing_is_published() -> None:
    assert stated("nbafl", scale=0.0).published is None
