import cmath
import math

import pytest

from confide.published import Published, udp_fl
from published.truths import laplace_divergence, staircase_divergence


def optimal_nu(lam: float) -> float:
    nu = udp_fl.lemma_1_nu(lam).value
    assert isinstance(nu, float)
    return nu


@pytest.mark.parametrize(
    ("lam", "printed", "truth"), [(0.1, 1.29787, 0.00994737), (1.0, 2.48004, 0.71057687)]
)
def test_theorems_1_and_2_print_the_moment_in_place_of_the_divergence(
    lam: float, printed: float, truth: float
) -> None:
    nu = optimal_nu(lam)
    assert udp_fl.theorem_1(2, lam, nu).value == pytest.approx(printed, abs=5e-6)
    assert udp_fl.theorem_2(2, lam, nu).value == udp_fl.theorem_1(2, lam, nu).value
    assert staircase_divergence(2, lam, nu) == pytest.approx(truth, abs=5e-9)
    assert truth < lam < printed  # the mechanism is lambda-DP, so no divergence exceeds lambda


@pytest.mark.parametrize(
    ("alpha", "lam", "printed", "truth"),
    [(2, 2.0, 1.751942, 1.875548), (8, 4.0, 3.969963, 3.997407)],
)
def test_with_its_logarithm_theorem_1_is_below_the_truth(
    alpha: int, lam: float, printed: float, truth: float
) -> None:
    repaired = math.log(udp_fl.theorem_1(alpha, lam, 0.5).value) / (alpha - 1)
    assert repaired == pytest.approx(printed, abs=5e-7)
    assert staircase_divergence(alpha, lam, 0.5) == pytest.approx(truth, abs=5e-7)
    assert repaired < truth


@pytest.mark.parametrize("nu", [0.2, 0.45, 0.5, 0.8])
@pytest.mark.parametrize(("alpha", "lam"), [(2, 0.5), (3.5, 2.0)])
def test_four_repairs_make_theorem_1_true(alpha: float, lam: float, nu: float) -> None:
    both = math.exp((alpha - 1) * lam) + math.exp(-alpha * lam)
    flat = abs(2 * nu - 1) * (math.exp(-lam) if nu < 0.5 else 1)
    factor = (1 - math.exp(-lam)) / (2 * (nu + math.exp(-lam) * (1 - nu)))
    moment = both / 2 + (both * min(nu, 1 - nu) + flat) * factor
    truth = staircase_divergence(alpha, lam, nu)
    assert math.log(moment) / (alpha - 1) == pytest.approx(truth, rel=1e-12)
    assert udp_fl.theorem_1(alpha, lam, nu).value != pytest.approx(moment, rel=1e-3)


def test_at_lambda_1_and_nu_a_half_the_printed_moment_is_right() -> None:
    moment = math.exp(staircase_divergence(2, 1.0, 0.5))
    assert udp_fl.theorem_1(2, 1.0, 0.5).value == pytest.approx(moment, rel=1e-12)


def test_sgn_attaches_the_factor_to_the_wrong_case() -> None:
    # Equation (12): e^(-lambda) appears for nu >= 1/2, where the truth has 1.
    low, high = (udp_fl.theorem_1(2, 3.0, nu).value for nu in (0.5 - 1e-12, 0.5))
    assert low == pytest.approx(high, rel=1e-9)  # |2 nu - 1| vanishes at the jump
    both = math.exp(3.0) + math.exp(-6.0)
    for nu, power in ((0.3, 0), (0.7, 1)):
        factor = (1 - math.exp(-1)) / (2 * (nu + math.exp(-3.0) * (1 - nu)))
        expected = both / 2 + (both * (1 - nu) + 0.4 * math.exp(-3.0 * power)) * factor
        assert udp_fl.theorem_1(2, 3.0, nu).value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("lam", "printed"), [(0.1, 1.956250), (1.0, 3.330695)])
def test_table_3_drops_the_braces_of_theorem_1(lam: float, printed: float) -> None:
    nu = optimal_nu(lam)
    table = udp_fl.table_3_staircase(2, lam, nu)
    assert table.value == pytest.approx(printed, abs=5e-7)
    assert printed > 1.3 * float(udp_fl.theorem_1(2, lam, nu).value)


def test_table_3_nu_is_complex_for_ordinary_values() -> None:
    assert udp_fl.table_3_staircase_nu(2, 1).value == pytest.approx(0.684 - 0.872j, abs=5e-4)
    large = udp_fl.table_3_staircase_nu(16, 1).value
    assert isinstance(large, complex)
    assert abs(large.imag) == pytest.approx(1.3e6, rel=1e-3)


def test_table_3_nu_minimises_nothing_where_it_is_real() -> None:
    printed = udp_fl.table_3_staircase_nu(2, 0.1).value
    assert isinstance(printed, float)
    assert printed == pytest.approx(0.4577, abs=5e-5)
    assert optimal_nu(0.1) == pytest.approx(0.4875, abs=5e-5)


def test_table_3_nu_beyond_a_float_is_refused() -> None:
    with pytest.raises(ValueError, match="exceeds a float"):
        udp_fl.table_3_staircase_nu(512, 4)


def test_table_3_nu_solves_a_quadratic_as_printed() -> None:
    # (2 nu - 1 - b)^2 = 1 + (b - 1)(e^(2(alpha-1)eps) - 1): the formula without its root.
    nu, b = udp_fl.table_3_staircase_nu(3, 0.7).value, math.exp(-0.7)
    right = 1 + (b - 1) * (math.exp(2.8) - 1)
    assert cmath.isclose((2 * nu - 1 - b) ** 2, right, rel_tol=1e-12)


@pytest.mark.parametrize("gamma", [0.5, 1.0])
def test_appendix_a4_has_no_value_for_a_small_budget(gamma: float) -> None:
    with pytest.raises(ValueError, match=r"gamma is .* exists only above 1"):
        udp_fl.appendix_a4_lambda(2, gamma)


def test_appendix_a4_inverts_something_else() -> None:
    assert udp_fl.appendix_a4_lambda(2, 1.5).value < 0
    lam = udp_fl.appendix_a4_lambda(2, 3.0).value
    assert isinstance(lam, float)
    assert lam == pytest.approx(0.6931, abs=5e-5)
    truth = staircase_divergence(2, lam, 0.5)  # the nu that the appendix sets
    assert truth == pytest.approx(0.405465, abs=5e-7)
    assert staircase_divergence(2, lam, optimal_nu(lam)) == pytest.approx(0.3953, abs=5e-5)
    assert 7 * truth < 3.0  # a seventh of the budget that it was inverted from


@pytest.mark.parametrize("Delta", [0.1, 2.0, 10.0])
def test_table_3_gaussian_lacks_a_square(Delta: float) -> None:
    alpha, sigma = 4, 1.7
    truth = alpha * Delta**2 / (2 * sigma**2)
    printed = udp_fl.table_3_gaussian(alpha, Delta, sigma).value
    assert truth / printed == pytest.approx(Delta, rel=1e-12)
    # Theorem 6 has the square: its sigma gives the budget back.
    least = udp_fl.theorem_6_sigma(alpha, Delta, truth).value
    assert least == pytest.approx(sigma, rel=1e-12)


def test_table_3_gaussian_sigma_falls_where_the_divergence_asks_for_more() -> None:
    at_2, at_8 = (udp_fl.table_3_gaussian_sigma(alpha, 1, 1e-5).value for alpha in (2, 8))
    assert at_2 == pytest.approx(math.sqrt(2 * math.log(1.25e5)) / 2)
    assert at_2 == pytest.approx(4 * at_8)  # a divergence grows with the order


@pytest.mark.parametrize("alpha", [1.5, 2, 8])
@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_table_3_laplace_is_right_for_a_scalar(alpha: float, scale: float) -> None:
    printed = udp_fl.table_3_laplace(alpha, 1.3, scale).value
    assert printed == pytest.approx(laplace_divergence(alpha, scale, 1.3), rel=1e-9)


def test_table_3_laplace_parameter_is_not_the_inverse() -> None:
    scale = udp_fl.table_3_laplace_lambda(2, 1, 0.1).value
    assert scale == pytest.approx(10)
    assert laplace_divergence(2, 10, 1) == pytest.approx(0.009644, abs=5e-7)  # a tenth of 0.1


def test_theorem_7_spends_four_budgets() -> None:
    scale = udp_fl.theorem_7_scale(2, 1, 0.1).value
    assert scale == pytest.approx(1.3003, abs=5e-5)
    assert laplace_divergence(2, float(scale), 1) == pytest.approx(0.41217, abs=5e-6)


def test_theorem_7_is_sound_with_the_other_sign() -> None:
    scale = 1 / math.log((3 * math.exp(0.1) - 1) / 2)
    assert scale == pytest.approx(6.8267, abs=5e-5)
    assert laplace_divergence(2, scale, 1) == pytest.approx(0.02031, abs=5e-6)


def test_section_4_1_of_the_gaussian_is_the_classic_conversion() -> None:
    sigma, T, delta = 20.0, 100, 1e-5
    printed = udp_fl.section_4_1_epsilon(
        lambda alpha: udp_fl.appendix_b_gaussian(alpha, 1, sigma), T, delta
    )
    rho = T / (2 * sigma**2)
    continuous = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert continuous <= printed.value <= 1.01 * continuous  # whole orders cost under 1 %


def test_section_4_1_makes_every_staircase_round_cost_more_than_1() -> None:
    # The printed moment tends to 1 as the leak vanishes, so T rounds are charged over T.
    def divergence(alpha: int) -> Published:
        return udp_fl.theorem_1(alpha, 0.1, 0.5)

    printed = udp_fl.section_4_1_epsilon(divergence, 150, 1e-5)
    assert printed.value > 150
    assert 150 * staircase_divergence(2, 0.1, 0.5) < 1.6


def test_section_4_1_needs_an_order_and_real_divergences() -> None:
    with pytest.raises(ValueError, match="orders is empty"):
        udp_fl.section_4_1_epsilon(lambda a: udp_fl.theorem_1(a, 1, 0.5), 1, 0.1, orders=[])
    with pytest.raises(TypeError, match="must be real"):
        udp_fl.section_4_1_epsilon(lambda a: udp_fl.table_3_staircase_nu(a, 1), 1, 0.1, orders=[2])


def test_huge_arguments_give_infinity_and_no_error() -> None:
    assert udp_fl.theorem_1(300, 4, 0.4).value == math.inf
    assert udp_fl.table_3_laplace(300, 4, 0.1).value == math.inf
