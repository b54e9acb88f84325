"""Bounds from counts: beside another library's, and as strong as they are known to be."""

from collections.abc import Callable
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from confide.accounting import gdp
from confide.audit.bounds import (
    Counts,
    Guesses,
    epsilon_if_gaussian,
    epsilon_of_counts,
    epsilon_of_guesses,
    epsilon_of_one_run,
    fitted_mu,
    gaussian,
    of_pairs,
    refutes,
    upper_limit,
)
from confide.audit.mechanism import doubts
from confide.audit.scores import chosen

# Recorded from jax-privacy 2.0.0: _epsilon_one_run at delta 1e-5 and 1e-3, and
# _epsilon_one_run_fdp at 1e-5, all from epsilon 0 at significance 0.05.
ORACLE = {
    (1000, 300, 290): (2.822829551, 1.901164944, 4.807254786),
    (1000, 100, 98): (2.710963134, 0.721849456, 4.227872934),
    (10000, 2000, 1700): (1.628275199, 0.732368329, 2.358008122),
    (200, 200, 150): (0.821112504, 0.789931416, 1.734801428),
}


@pytest.mark.parametrize("counted", ORACLE)
def test_one_run_as_in_jax_privacy(counted: tuple[int, int, int]) -> None:
    loose, looser, tight = ORACLE[counted]
    guesses = Guesses(*counted)
    assert epsilon_of_guesses(guesses, 1e-5, 0.05) == pytest.approx(loose, abs=2e-6)
    assert epsilon_of_guesses(guesses, 1e-3, 0.05) == pytest.approx(looser, abs=2e-6)
    assert epsilon_of_one_run(guesses, 1e-5, 0.05) == pytest.approx(tight, abs=2e-6)


def test_limits_as_in_jax_privacy() -> None:
    for args, value in (
        ((0, 100, 0.025), 0.03621669264517641),
        ((3, 1000, 0.05), 0.007735244718479458),
        ((17, 20, 0.001), 0.9900124190016104),
    ):
        assert upper_limit(*args) == pytest.approx(value, abs=1e-9)
    assert upper_limit(5, 5, 0.05) == 1.0


def drawn(mu: float, n: int, seed: int) -> Counts:
    """A Gaussian release, the threshold chosen on other draws: at the middle."""
    random = np.random.default_rng(seed)
    outs, ins = random.normal(size=n), random.normal(mu, size=n)
    return Counts(int((outs >= mu / 2).sum()), n, int((ins < mu / 2).sum()), n)


def at_tail(mu: float, n: int, seed: int) -> Counts:
    """The same with a threshold at which false alarms are rare."""
    random = np.random.default_rng(seed)
    outs, ins, threshold = random.normal(size=n), random.normal(mu, size=n), 2.9
    return Counts(int((outs >= threshold).sum()), n, int((ins < threshold).sum()), n)


@pytest.mark.parametrize(
    ("epsilon", "gaussian_least", "counts_least"), [(4, 3.3, 1.6), (1, 0.5, 0)]
)
def test_power_on_ten_thousand_draws(
    epsilon: float, gaussian_least: float, counts_least: float
) -> None:
    mu = gdp.mu(epsilon, 1e-5)
    middle = [epsilon_if_gaussian(drawn(mu, 5000, s), 1e-5, 0.05) for s in range(10)]
    tail = [epsilon_of_counts(at_tail(mu, 5000, s), 1e-5, 0.05) for s in range(10)]
    assert gaussian_least <= np.mean(middle) <= epsilon
    assert counts_least <= np.mean(tail) <= epsilon


@pytest.mark.parametrize(
    ("epsilon", "bound", "least"),
    [(4, epsilon_if_gaussian, 3.3), (4, epsilon_of_counts, 1.6), (1, epsilon_if_gaussian, 0.5)],
)
def test_power_where_half_of_the_draws_choose_the_test(
    epsilon: float, bound: Callable[..., float], least: float
) -> None:
    mu, found = gdp.mu(epsilon, 1e-5), []
    for seed in range(20):
        random = np.random.default_rng(seed)
        ins, outs = random.normal(mu, size=(10_000, 1)), random.normal(size=(10_000, 1))
        tests = chosen(ins[:5000], outs[:5000], np.ones(1), 1e-5)
        counts = [test.counts(ins[5000:], outs[5000:]) for test in tests]
        found.append(max(bound(one, 1e-5, 0.05 / len(counts)) for one in counts))
    assert least <= np.mean(found) <= epsilon


def test_a_true_claim_is_seldom_refuted_and_a_false_one_almost_always() -> None:
    mu = gdp.mu(4.0, 1e-5)
    right = sum(refutes(drawn(mu, 2000, s), gaussian(mu), 0.05) for s in range(400))
    assert right <= 35, "at most 5 % of 400, and two deviations"
    wrong = sum(refutes(drawn(2 * mu, 2000, s), gaussian(mu), 0.001) for s in range(50))
    assert wrong == 50


def test_an_estimate_is_nearer_to_the_truth_than_a_bound_and_seldom_above_it() -> None:
    mu, limits = gdp.mu(4.0, 1e-5), []
    for seed in range(300):
        random = np.random.default_rng(seed)
        limits.append(fitted_mu(random.normal(mu, size=5000), random.normal(size=5000), 0.01))
    assert sum(limit > mu for limit in limits) <= 10, "at most 1 % of 300, and four deviations"
    assert gdp.epsilon(float(np.median(limits)), 1e-5) > 3.7


def test_no_estimate_is_made_of_scores_that_are_not_normal() -> None:
    random = np.random.default_rng(1)
    coins = random.integers(0, 2, 1000).astype(float)
    assert fitted_mu(coins + 1, coins, 0.001) == 0.0
    assert fitted_mu(np.ones(50), np.zeros(50), 0.001) == 0.0
    flat = random.uniform(size=(2, 5000))
    assert fitted_mu(flat[0] + 1, flat[1], 0.001) == 0.0


def test_an_estimate_doubts_only_errors_that_could_be_seen() -> None:
    assert doubts(2.0, gaussian(1.5), 200) and not doubts(1.5, gaussian(2.0), 200)
    assert not doubts(40.0, gaussian(30.0), 200), "both make no error in 200 draws"
    assert not doubts(0.0, gaussian(1.0), 200) and not doubts(1.0, None, 200)


@given(st.floats(0.05, 6), st.floats(1e-6, 1 - 1e-6))
def test_a_curve_of_pairs_never_lies_above_the_true_one(mu: float, fpr: float) -> None:
    pairs = [(e, gdp.delta(mu, e)) for e in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0)]
    assert of_pairs(pairs)(fpr) <= gaussian(mu)(fpr) + 1e-12
    assert gaussian(mu)(float(ndtr(-mu / 2))) == pytest.approx(float(ndtr(-mu / 2)))


@given(st.integers(1, 300), st.floats(0, 8), st.integers(0, 10**6))
def test_what_is_bounded_from_truly_private_guesses_is_below_the_truth_most_often(
    made: int, epsilon: float, seed: int
) -> None:
    right = int(np.random.default_rng(seed).binomial(made, exp(epsilon) / (1 + exp(epsilon))))
    found = epsilon_of_guesses(Guesses(made, made, right), 0.0, 1e-9)
    assert found <= epsilon + 1e-6


@pytest.mark.parametrize("counted", [(10, 11, 5), (10, 5, 6), (0, 0, 0)])
def test_counts_in_disorder_are_refused(counted: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="allowed is"):
        Guesses(*counted)
    with pytest.raises(ValueError, match="allowed are 0 to 3"):
        upper_limit(4, 3, 0.05)
