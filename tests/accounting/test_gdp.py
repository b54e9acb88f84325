import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.accounting import gdp
from confide.accounting.events import (
    NOTHING,
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.relations import Refused


def exact_log_delta(mu, epsilon):
    with mp.workdps(50):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        a = mu / 2 - epsilon / mu
        return float(mp.log(mp.ncdf(a) - mp.e**epsilon * mp.ncdf(a - mu)))


@pytest.mark.parametrize("mu", [1e-4, 0.01, 0.3, 1, 5, 30, 100])
@pytest.mark.parametrize("deviations", [0, 0.5, 2, 5, 9])
def test_delta_has_all_its_digits(mu, deviations):
    epsilon = mu * deviations + mu * mu / 2 * (deviations > 0)
    assert gdp.log_delta(mu, epsilon) == pytest.approx(
        exact_log_delta(mu, epsilon), rel=1e-10, abs=1e-10
    )


@given(st.floats(0.01, 20), st.floats(-10, 10))
def test_negative_epsilon_and_many_at_once_agree_with_mpmath(mu, epsilon):
    expected = math.exp(exact_log_delta(mu, epsilon))
    assert gdp.delta(mu, epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-300)
    if epsilon >= 0:
        assert gdp.deltas(np.array([mu]), epsilon)[0] == pytest.approx(
            expected, rel=1e-8, abs=1e-15
        )


@given(st.floats(1e-3, 50), st.floats(-30, -0.1))
def test_inverses_stand_on_the_safe_side(mu, log_delta):
    delta = 10**log_delta
    epsilon = gdp.epsilon(mu, delta)
    assert gdp.log_delta(mu, epsilon) <= math.log(delta)
    if epsilon > 0:
        # A shade less noise or a shade less epsilon would be too much.
        assert gdp.log_delta(mu, epsilon * (1 - 1e-9)) > math.log(delta)
        back = gdp.mu(epsilon, delta)
        assert gdp.log_delta(back, epsilon) <= math.log(delta)
        assert back == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize(
    ("claimed", "true"),
    [
        (4, 3.437745),
        (8, 8.352719),
        (12, 14.491446),
        (16, 21.817465),
        (20, 30.317443),
    ],
)
def test_true_epsilon_of_the_published_calibration(claimed, true):
    assert gdp.epsilon(claimed / math.sqrt(2 * math.log(1000)), 1e-3) == pytest.approx(
        true, abs=1e-6
    )


def test_other_published_numbers():
    assert gdp.delta(20 / math.sqrt(2 * math.log(1000)), 20) == pytest.approx(0.1164, abs=1e-4)
    assert gdp.epsilon(10 / 3.873, 1e-5) == pytest.approx(13.757824, rel=1e-5)
    assert gdp.epsilon(2 * math.sqrt(50) / 0.95, 1 / 500) == pytest.approx(152.73567, rel=1e-6)
    # The ratio at which the classic calibration stops being valid, delta = 1e-3.
    assert gdp.mu(6.97804, 1e-3) == pytest.approx(6.97804 / math.sqrt(2 * math.log(1000)), rel=1e-5)


def test_ratio_of_composed_gaussians():
    both = ComposedDpEvent([SelfComposedDpEvent(GaussianDpEvent(2.0), 4), GaussianDpEvent(1.0)])
    assert gdp.ratio(both) == pytest.approx(math.sqrt(2))
    assert gdp.ratio(NOTHING) == 0
    assert gdp.ratio(ComposedDpEvent([GaussianDpEvent(1.0), LaplaceDpEvent(1.0)])) is None
    assert gdp.ratio(GaussianDpEvent(0.0)) is None


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_fails_closed(bad):
    with pytest.raises(Refused, match="mu"):
        gdp.delta(bad, 1.0)
    with pytest.raises(Refused, match="delta"):
        gdp.epsilon(1.0, bad)
    with pytest.raises(Refused):
        gdp.delta(1.0, math.nan)
    with pytest.raises(Refused, match="epsilon"):
        gdp.mu(-1.0, 1e-5)
    assert gdp.epsilon(math.inf, 1e-5) == math.inf
    assert gdp.delta(math.inf, 3.0) == 1
