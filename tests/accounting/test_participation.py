import math

import numpy as np
import pytest
from scipy import stats

from confide.accounting import gdp, participation
from confide.accounting.events import (
    GaussianDpEvent,
    LaplaceDpEvent,
    RandomParticipationDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.losses import LossAccountant
from confide.accounting.relations import Refused


def joining(rate, rounds, multiplier):
    return RandomParticipationDpEvent(rate, rounds, GaussianDpEvent(multiplier))


@pytest.mark.parametrize(("claimed", "expected"), [(4, 3.453452), (8, 8.411211), (20, 30.746269)])
def test_averaged_over_the_schedule(claimed, expected):
    # sigma / sensitivity = sqrt(2 q T ln(1/delta)) / claimed, q = .6, T = 200, delta = 1e-3.
    multiplier = math.sqrt(2 * 0.6 * 200 * math.log(1000)) / claimed
    found = participation.epsilon(joining(0.6, 200, multiplier), 1e-3)
    assert found == pytest.approx(expected, abs=1.5e-6)


@pytest.mark.parametrize(("delta", "expected"), [(0.002, 35.95), (1e-5, 47.25)])
def test_when_the_cohort_is_seen(delta, expected):
    assert participation.epsilon(joining(0.1, 300, 0.95), delta) == pytest.approx(
        expected, abs=0.005
    )


@pytest.mark.parametrize("rate", [0.02, 0.5, 0.99])
def test_delta_is_the_binomial_mixture(rate):
    event = joining(rate, 60, 3.0)
    for epsilon in (0.0, 0.4, 3.0):
        exact = sum(
            stats.binom.pmf(k, 60, rate) * gdp.delta(math.sqrt(k) / 3, epsilon)
            for k in range(1, 61)
        )
        assert participation.delta(event, epsilon) == pytest.approx(exact, rel=1e-9, abs=2e-18)


def test_the_loss_accountant_finds_the_same():
    event = joining(0.1, 300, 0.95)
    found = LossAccountant().compose(event).get_epsilon(0.002)
    assert found == pytest.approx(participation.epsilon(event, 0.002), rel=1e-4)


def test_always_joining_is_composition():
    event = joining(1.0, 25, 5.0)
    assert participation.epsilon(event, 1e-5) == pytest.approx(gdp.epsilon(1.0, 1e-5), rel=1e-9)


def test_threshold_is_above_the_exact_sum_and_below_all_rounds():
    event = joining(0.1, 300, 0.95)

    def inner(release, count, delta):
        return gdp.epsilon(math.sqrt(count) / release.noise_multiplier, delta)

    exact = participation.epsilon(event, 1e-5)
    bound = participation.epsilon_by_threshold(event, 1e-5, inner)
    assert exact < bound < gdp.epsilon(math.sqrt(300) / 0.95, 1e-5)


def test_threshold_for_another_noise_covers_the_exact_mixture():
    event = RandomParticipationDpEvent(0.2, 40, LaplaceDpEvent(4.0))

    def accountant(release, count):
        return LossAccountant().compose(SelfComposedDpEvent(release, count))

    bound = participation.epsilon_by_threshold(
        event, 1e-4, lambda release, count, delta: accountant(release, count).get_epsilon(delta)
    )
    mixture = sum(
        stats.binom.pmf(k, 40, 0.2) * accountant(event.event, k).get_delta(bound)
        for k in range(1, 41)
    )
    assert mixture <= 1e-4


def test_rarely_joining_costs_nothing_at_a_large_delta():
    event = joining(1e-4, 10, 1.0)
    assert participation.epsilon(event, 0.01) == 0
    assert participation.epsilon_by_threshold(event, 0.01, lambda *_: math.inf) == 0


def test_rounds_and_rate_only_cost():
    deltas = [participation.delta(joining(0.3, rounds, 2.0), 1.0) for rounds in (1, 5, 30, 400)]
    assert deltas == sorted(deltas)
    deltas = [participation.delta(joining(q, 30, 2.0), 1.0) for q in np.linspace(0.05, 1, 8)]
    assert deltas == sorted(deltas)


@pytest.mark.parametrize("delta", [1.0001e-18, 1.5e-18, 3e-18])
def test_next_to_what_is_left_out_there_is_still_an_answer(delta):
    event = joining(0.3, 2, 0.7)
    found = participation.epsilon(event, delta)
    assert participation.delta(event, found) <= delta
    assert found >= participation.epsilon(event, 2 * delta)


def test_fails_closed():
    with pytest.raises(Refused, match="Gaussian"):
        participation.delta(RandomParticipationDpEvent(0.1, 3, LaplaceDpEvent(1.0)), 1.0)
    with pytest.raises(Refused, match="Gaussian"):
        participation.epsilon(joining(0.1, 3, 0.0), 1e-3)
    with pytest.raises(Refused, match="probability"):
        participation.delta(joining(0.0, 3, 1.0), 1.0)
    with pytest.raises(Refused, match="epsilon"):
        participation.delta(joining(0.1, 3, 1.0), -1.0)
    with pytest.raises(Refused, match="delta"):
        participation.epsilon(joining(0.1, 3, 1.0), math.nan)
