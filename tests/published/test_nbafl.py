import math

import pytest

from confide.published import nbafl
from published.truths import gdp_epsilon

C_CONSTANT = math.sqrt(2 * math.log(125))


def test_sigma_U_with_its_own_sensitivity_is_loose() -> None:
    C, m, L, epsilon, delta = 20.0, 1200, 25, 50.0, 0.01
    sigma = float(nbafl.sigma_U(C, m, L, epsilon, delta).value)
    assert sigma == pytest.approx(C_CONSTANT * 25 * (2 * C / m) / 50)
    mu = math.sqrt(L) * (2 * C / m) / sigma
    assert gdp_epsilon(mu, delta) == pytest.approx(11.918, abs=5e-4)
    # One record can move a clipped model by 2C: m times the sensitivity that is claimed.
    assert math.sqrt(L) * 2 * C / sigma == pytest.approx(1200 * mu)


def test_sigma_D_starts_where_the_uplink_no_longer_suffices() -> None:
    def sigma_D(T: int) -> float:
        return float(nbafl.sigma_D(1, 100, 5, T, 16, 10, 0.01).value)

    assert sigma_D(19) == sigma_D(20) == 0  # L sqrt(N) = 20
    assert sigma_D(21) == pytest.approx(2 * C_CONSTANT * math.sqrt(41) / (100 * 16 * 10))
    assert sigma_D(30) > sigma_D(21)
