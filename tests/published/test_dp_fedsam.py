import math

import dp_accounting as dp
import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from scipy import optimize

from confide.published import dp_fedsam
from published.truths import sampled_gaussian_moment

DELTA = 1 / 500


@pytest.mark.parametrize(
    ("T", "delta", "printed"),
    [(300, DELTA, 10.852609), (200, DELTA, 8.844511), (300, 1e-5, 16.150927)],
)
def test_eq_16_with_whole_orders(T: int, delta: float, printed: float) -> None:
    assert dp_fedsam.eq_16_epsilon(0.1, 0.95, T, delta).value == pytest.approx(printed, abs=5e-7)


def test_eq_16_with_real_orders() -> None:
    orders = [float(alpha) for alpha in np.linspace(1.5, 4, 101)]
    printed = dp_fedsam.eq_16_epsilon(0.1, 0.95, 300, DELTA, orders).value
    assert printed == pytest.approx(10.7948, abs=1e-4)


def test_eq_16_is_eq_17_and_the_conversion_by_quadrature() -> None:
    def epsilon(alpha: int) -> float:
        divergence = 300 * mp.log(sampled_gaussian_moment(0.1, 0.95, alpha)) / (alpha - 1)
        tail = (alpha - 1) * mp.log(1 - mp.mpf(1) / alpha) - mp.log(alpha) - mp.log(DELTA)
        return float(divergence + tail / (alpha - 1))

    least = min(epsilon(alpha) for alpha in range(2, 9))
    assert dp_fedsam.eq_16_epsilon(0.1, 0.95, 300, DELTA).value == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize(
    ("T", "delta", "truth"),
    [(300, DELTA, 9.372458), (200, DELTA, 7.301241), (300, 1e-5, 13.663601)],
)
def test_the_loss_distribution_under_the_papers_own_assumptions_is_smaller(
    T: int, delta: float, truth: float
) -> None:
    event = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(0.95))
    exact = PLDAccountant().compose(event, T).get_epsilon(delta)
    assert exact == pytest.approx(truth, abs=1e-3)  # the accountant rounds losses up to a grid
    assert exact < dp_fedsam.eq_16_epsilon(0.1, 0.95, T, delta).value


@pytest.mark.parametrize(("budget", "T"), [(4, 47), (6, 98), (8, 157), (10, 257)])
def test_the_rounds_that_the_budgets_of_table_2_allow(budget: float, T: int) -> None:
    at_T, beyond = (
        dp_fedsam.eq_16_epsilon(0.1, 0.95, rounds, DELTA).value for rounds in (T, T + 1)
    )
    assert at_T <= budget < beyond


@pytest.mark.parametrize(("budget", "sigma"), [(4, 1.7050), (6, 1.3120), (8, 1.1450), (10, 0.9963)])
def test_the_noise_that_the_budgets_of_table_2_need_at_300_rounds(
    budget: float, sigma: float
) -> None:
    def excess(s: float) -> float:
        return float(dp_fedsam.eq_16_epsilon(0.1, s, 300, DELTA).value) - budget

    assert optimize.brentq(excess, 0.9, 2) == pytest.approx(sigma, abs=5e-4)


def test_the_letter_of_eq_17_samples_twice() -> None:
    twice = dp_fedsam.eq_16_epsilon(0.1, 0.95, 300, DELTA, q_twice=True)
    assert twice.value == pytest.approx(0.835932, abs=5e-7)
    at_q_squared = dp_fedsam.eq_16_epsilon(0.01, 0.95, 300, DELTA).value
    assert twice.value == pytest.approx(at_q_squared, rel=1e-12)
    assert "twice" in twice.note

    def integrand(z: float) -> mp.mpf:
        bell = mp.npdf(z, 0, 0.95)
        mixture = 0.1 * mp.npdf(z, 1, 0.95) + 0.9 * bell
        return bell * (1 - 0.1 + 0.1 * mixture / bell) ** 2

    literal = 300 * math.log(mp.quad(integrand, [-9, -3, 0, 1, 2, 5, 12]))
    printed = dp_fedsam.eq_17_divergence(2, 0.1, 0.95, 300, q_twice=True).value
    assert printed == pytest.approx(literal, rel=1e-9)


def test_no_orders_are_refused() -> None:
    with pytest.raises(ValueError, match="orders is empty"):
        dp_fedsam.eq_16_epsilon(0.1, 1, 10, DELTA, [])
    with pytest.raises(ValueError, match="alpha is 1"):
        dp_fedsam.eq_16_epsilon(0.1, 1, 10, DELTA, [1])
