import math

import pytest

from confide.published import dp_fedags
from published.truths import gdp_delta, gdp_epsilon


@pytest.mark.parametrize(
    ("epsilon", "sigma", "delta", "once", "after_200"),
    [
        (0.1, 8.0392, 0.0156, 0.2571, 6.41),
        (0.2, 4.5997, 0.0232, 0.5014, 13.54),
        (0.5, 2.4052, 0.0294, 1.0846, 34.65),
    ],
)
def test_eq_2_would_not_protect_even_where_it_adds_noise(
    epsilon: float, sigma: float, delta: float, once: float, after_200: float
) -> None:
    printed = dp_fedags.eq_2_sigma(1, epsilon).value
    assert printed == pytest.approx(sigma, abs=5e-5)
    assert gdp_delta(1 / float(printed), epsilon) == pytest.approx(delta, abs=5e-5)
    assert gdp_epsilon(1 / float(printed), 1e-3) == pytest.approx(once, abs=5e-5)
    mu = math.sqrt(200) / float(printed)
    assert gdp_epsilon(mu, 1e-3) == pytest.approx(after_200, abs=5e-3)


@pytest.mark.parametrize(("epsilon", "zeta"), [(0.1, 0.905), (0.2, 0.819), (0.5, 0.607)])
def test_zeta_is_no_delta(epsilon: float, zeta: float) -> None:
    printed = dp_fedags.eq_2_sigma(3, epsilon)
    assert f"{zeta:.3g} stands where a δ belongs" in printed.note
    assert printed.value == pytest.approx(3 / epsilon * math.sqrt(2 * math.log(1.25 / zeta)), 2e-3)


def test_the_budget_split() -> None:
    first, second, third = (part.value for part in dp_fedags.budget_split(0.5, 0.4, 8))
    assert first / second == pytest.approx(4)  # the cube root of 8 squared
    assert first + second + third == pytest.approx(0.5)
    assert third == 0.4


def test_a_third_part_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"epsilon_3 is 0\.5; it must be below epsilon"):
        dp_fedags.budget_split(0.5, 0.5, 8)


def test_the_text_and_the_algorithm_differ_by_q() -> None:
    text = dp_fedags.section_4_scale(1, 10, 0.05).value
    algorithm = dp_fedags.algorithm_1_scale(1, 0.05).value
    assert text == pytest.approx(200)
    assert algorithm == pytest.approx(20)
