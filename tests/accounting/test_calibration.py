import itertools
import math
import time

import dp_accounting as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import confide.accounting as accounting
from confide.accounting import account, calibration, gdp, staircase
from confide.accounting.events import (
    OPEN,
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    RandomParticipationDpEvent,
    SelfComposedDpEvent,
    ShuffledDpEvent,
)
from confide.accounting.mechanisms import Given, read
from confide.accounting.relations import Refused, Relation


def reached(found, target):
    assert target * (1 - 1e-3) <= found.answer.epsilon <= target


# Fixed scalar sensitivity 1: standard deviations at delta = 1e-5, by rounds and epsilon.
@pytest.mark.parametrize(
    ("rounds", "epsilon", "gaussian", "laplace", "stairs"),
    [
        (1, 1, 3.7306, 1.4142, 1.3850),
        (1, 4, 1.0812, 0.35355, 0.25491),
        (10, 4, 3.4189, 3.5267, 3.5221),
        (100, 1, 37.306, 51.968, 52.260),
        (100, 4, 10.812, 14.829, 15.054),
        (100, 8, 6.002, 8.101, 8.319),
        (1000, 8, 18.981, 26.560, 26.789),
    ],
)
def test_which_noise_is_least(rounds, epsilon, gaussian, laplace, stairs):
    def scale(noise):
        found = accounting.calibrate(noise, epsilon=epsilon, delta=1e-5, steps=rounds)
        reached(found, epsilon)
        return found.scale

    # 1e-3 because epsilon may stay below the target by that much.
    assert scale("gaussian") == pytest.approx(gaussian, rel=1e-3)
    assert scale("laplace") * math.sqrt(2) == pytest.approx(laplace, rel=1e-3)
    b = math.exp(-1 / scale("staircase"))
    spread = (2 ** (-2 / 3) * b ** (2 / 3) * (1 + b) ** (2 / 3) + b) / (1 - b) ** 2
    assert math.sqrt(spread) == pytest.approx(stairs, rel=1e-3)


@pytest.mark.parametrize(
    "words",
    [
        {"noise": "laplace", "rate": 0.01, "steps": 1000},
        {"noise": "laplace", "norm": "l2", "dim": 1000, "rate": 0.01, "steps": 1000},
        {"noise": "laplace", "norm": "both", "dim": 3, "steps": 50},
        {"noise": "staircase", "rate": 0.05, "steps": 300},
        {"noise": "staircase", "dim": 10, "steps": 5},
        {"noise": "staircase", "norm": "l2", "dim": 10, "steps": 5},
        {"noise": "skellam", "dim": 1, "grid": 10, "steps": 20},
        {"noise": "skellam", "dim": 1000, "grid": 100, "rate": 0.1, "steps": 20},
        {"noise": "gaussian", "rate": "50/1000", "sampling": "fixed", "steps": 100},
        {"noise": "gaussian", "relation": "replace-one", "steps": 9},
    ],
)
@pytest.mark.parametrize("target", [0.3, 2.0, 15.0])
def test_every_mechanism_is_met_from_below(words, target):
    given_words = read(Given(**words))
    found = calibration.calibrate(given_words, target, 1e-5)
    reached(found, target)
    again = account.epsilon(given_words.event(found.scale), 1e-5, given_words.relation)
    assert again.epsilon == found.answer.epsilon


@settings(max_examples=15, deadline=None)
@given(st.floats(0.01, 50), st.floats(-12, -2), st.integers(1, 10_000))
def test_gaussian_is_the_closed_inverse(target, exponent, steps):
    found = accounting.calibrate("gaussian", epsilon=target, delta=10**exponent, steps=steps)
    reached(found, target)
    assert found.scale == pytest.approx(math.sqrt(steps) / gdp.mu(target, 10**exponent), rel=1e-3)


def test_agrees_with_dp_accounting():
    theirs = dp.calibrate_dp_mechanism(
        lambda: dp.pld.PLDAccountant(dp.NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-3),
        lambda z: SelfComposedDpEvent(PoissonSampledDpEvent(0.05, GaussianDpEvent(z)), 200),
        2.0,
        1e-5,
        tol=1e-4,
    )
    ours = accounting.calibrate("gaussian", epsilon=2.0, delta=1e-5, rate=0.05, steps=200)
    assert ours.scale == pytest.approx(theirs, rel=1e-3)
    assert ours.scale == pytest.approx(1.6721, rel=1e-3)


def test_a_plan_with_a_fixed_part():
    fixed = SelfComposedDpEvent(LaplaceDpEvent(20.0), 10)

    def plan(scale):
        round_ = PoissonSampledDpEvent(0.1, GaussianDpEvent(scale))
        return ComposedDpEvent([fixed, SelfComposedDpEvent(round_, 50)])

    found = calibration.calibrate_scale(plan, 2.0, 1e-5)
    reached(found, 2.0)
    alone = calibration.calibrate_scale(lambda z: plan(z).events[1], 2.0, 1e-5)
    assert found.scale > alone.scale


def test_a_poor_guess_costs_nothing_but_time():
    def plan(scale):
        return RandomParticipationDpEvent(0.2, 30, GaussianDpEvent(scale))

    scales = [calibration.calibrate_scale(plan, 1.0, 1e-5, guess=g).scale for g in (1e-3, 1, 1e4)]
    assert max(scales) / min(scales) - 1 < 2e-3


def test_a_jump_over_the_target_stays_on_the_noisy_side():
    def plan(scale):
        return GaussianDpEvent(float(math.floor(scale)))  # zero below 1: infinite

    found = calibration.calibrate_scale(plan, 4.0, 1e-5)
    assert found.answer.epsilon <= 4.0
    assert found.scale == pytest.approx(2.0, rel=1e-9)


def test_unreachable_targets_are_refused_in_one_sentence():
    with pytest.raises(Refused, match="cannot be reached"):
        calibration.calibrate_scale(
            lambda z: ComposedDpEvent([GaussianDpEvent(z), OPEN]), 1.0, 1e-5
        )
    spent = account.epsilon(LaplaceDpEvent(2.0), 1e-5).epsilon
    with pytest.raises(Refused, match="cannot be reached"):
        calibration.calibrate_scale(
            lambda z: ComposedDpEvent([GaussianDpEvent(z), LaplaceDpEvent(2.0)]), spent / 2, 1e-5
        )
    with pytest.raises(Refused, match=r"more than the mechanism ever spends|cannot be met"):
        # One of ten shuffled messages never costs more than its own epsilon.
        calibration.calibrate_scale(
            lambda z: ShuffledDpEvent(min(1 / z, 1.0), 10), 3.0, 1e-5, Relation.ZERO_OUT
        )


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 1e-5), (math.inf, 1e-5), (1.0, 0.0), (1.0, 1)]
)
def test_fails_closed(epsilon, delta):
    with pytest.raises(Refused):
        accounting.calibrate("gaussian", epsilon=epsilon, delta=delta)


def test_staircase_epsilon_falls_with_its_multiplier():
    words = read(Given("staircase", steps=20))
    scales = [0.15 * 1.25**k for k in range(25)]
    found = [account.epsilon(words.event(scale), 1e-5).epsilon for scale in scales]
    assert all(later < earlier for earlier, later in itertools.pairwise(found))
    assert staircase.optimal_gamma(1 / scales[0], "l2") < staircase.optimal_gamma(
        1 / scales[-1], "l2"
    )


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ({"noise": "gaussian"}, 0.3),
        ({"noise": "laplace"}, 0.3),
        ({"noise": "staircase"}, 0.3),
        ({"noise": "gaussian", "rate": 0.01}, 1.0),
        ({"noise": "laplace", "rate": 0.01}, 1.0),
        ({"noise": "staircase", "rate": 0.01}, 1.0),
    ],
)
def test_ten_thousand_rounds_are_calibrated_at_once(words, limit):
    given_words = read(Given(steps=10_000, **words))
    start = time.process_time()
    calibration.calibrate(given_words, 2.0, 1e-5)
    assert time.process_time() - start < limit
