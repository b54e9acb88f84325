"""Many coins guessed at once: how seldom a true claim is doubted, and when a false one is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.accounting import account, gdp
from confide.accounting.events import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from confide.accounting.relations import Relation
from confide.audit.bounds import gaussian, of_pairs
from confide.audit.ceilings import ceiling
from confide.audit.onerun import Coins, Scores, caught, counted, crossing, examined, fitted, guessed

MU = gdp.mu(2.0, 1e-5)


def drawn(mu: float, m: int, seed: int) -> tuple[dict[str, Scores], Coins]:
    """Scores of m canaries of which about half are in."""
    random = np.random.default_rng(seed)
    coins = random.random(m) < 0.5
    return {"sum": random.normal(size=m) + mu * coins}, coins


def test_a_tight_claim_is_almost_never_doubted() -> None:
    levels = {1.0: 0, 0.05: 0, 0.001: 0}
    above = 0
    for seed in range(50):  # of 400 once, none was refuted at 0.05
        scores, coins = drawn(MU, 400, seed)
        found = examined(scores, coins, gaussian(MU), 1e-5, counted(scores))
        levels[found.refuted] += 1
        above += found.lower_bound > 2.0 or found.estimate_low > 2.0
    assert levels[0.001] == 0 and levels[0.05] <= 3
    assert above <= 3, "5 % of 50, rounded up"


@pytest.mark.parametrize(("m", "factor"), [(1000, 4.0), (4000, 2.5)])
def test_noise_that_is_missing_is_refuted_where_the_power_says_so(m: int, factor: float) -> None:
    tests = counted(drawn(1.0, 4, 0)[0])
    share = caught(gaussian(MU), MU, m, tests)
    assert share is not None and 1 - share >= 1 / factor - 0.1
    for seed in range(10):
        scores, coins = drawn(factor * MU, m, seed)
        assert examined(scores, coins, gaussian(MU), 1e-5, tests).refuted == 0.001


def test_the_estimate_comes_near_the_truth() -> None:
    fits = [
        fitted(scores["sum"], coins) for scores, coins in (drawn(MU, 2000, s) for s in range(30))
    ]
    assert np.mean([one.mu for one in fits]) == pytest.approx(MU, abs=0.03)
    assert sum(one.low > MU for one in fits) == 0


def test_scores_that_never_vary_among_the_absent_are_told_at_once() -> None:
    coins = np.arange(400) % 2 == 0
    found = examined({"exact": coins.astype(float)}, coins, gaussian(MU), 1e-5, 8)
    assert found.refuted == 0.001 and found.estimate == np.inf
    nothing = examined({"constant": np.zeros(400)}, coins, gaussian(MU), 1e-5, 8)
    assert (nothing.refuted, nothing.estimate, nothing.lower_bound) == (1.0, 0.0, 0.0)


def test_a_guess_counts_both_ends() -> None:
    scores, coins = np.arange(100.0), np.arange(100) >= 60
    both = guessed(scores, coins, (0.5, 0.5))
    assert (both.canaries, both.made, both.right) == (100, 100, 90)
    assert guessed(scores, coins, (0.1, 0.0)).right == 10


@given(st.floats(0.01, 8))
def test_the_crossing_of_a_normal_curve_is_its_own_mu(mu: float) -> None:
    assert crossing(gaussian(mu)) == pytest.approx(mu, abs=1e-6)


def test_no_curve_is_harder_than_the_claim() -> None:
    assert crossing(of_pairs([(0.0, 0.0)])) == 0
    assert caught(of_pairs([(0.0, 0.0)]), 0.0, 1000, 8) is None


@pytest.mark.parametrize("fpr", [1e-4, 0.01, 0.1, 0.4])
def test_the_ceiling_of_sampled_rounds_lies_between_their_two_numbers_and_the_truth(
    fpr: float,
) -> None:
    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.25, GaussianDpEvent(2.0)), 12)
    epsilon = account.epsilon(event, 1e-5, Relation.ADD_REMOVE).epsilon
    curve = ceiling(event, Relation.ADD_REMOVE, epsilon, 1e-5)
    assert of_pairs([(epsilon, 1e-5)])(fpr) <= curve(fpr) <= 1 - fpr
    for e in (0.1, 0.7, 2.5):
        delta = account.delta(event, e, Relation.ADD_REMOVE).delta
        assert curve(fpr) >= of_pairs([(e, delta)])(fpr) - 0.02
    exact = ceiling(SelfComposedDpEvent(GaussianDpEvent(2.0), 4), Relation.ADD_REMOVE, 1.0, 1e-5)
    assert exact(fpr) == pytest.approx(gaussian(1.0)(fpr))
