"""UDP-FL's calculators beside integrals, draws and the algebra of their proofs."""

from itertools import pairwise
from math import exp, pi, sqrt

import numpy as np
import pytest
from scipy.integrate import quad

from confide.accounting import staircase
from confide.bounds import udp_fl
from confide.randomness import Key
from confide.randomness.floating import staircase as draw


def integral(lam: float, nu: float, Delta: float) -> float:
    """E|x| piece by piece."""
    edges = [0.0, *(Delta * (k + nu) for k in range(200))]

    def weighed(x: float) -> float:
        return 2 * x * float(staircase.density(x, lam, nu, Delta))

    return sum(quad(weighed, low, high)[0] for low, high in pairwise(edges))


@pytest.mark.parametrize(("lam", "Delta"), [(0.5, 1.0), (2.0, 0.3), (4.0, 2.0)])
def test_lemma_1_is_the_least_amplitude(lam: float, Delta: float) -> None:
    nu = 1 / (1 + exp(lam / 2))
    found = udp_fl.lemma_1(lam, Delta)
    assert found.value == pytest.approx(integral(lam, nu, Delta), rel=1e-6)
    for other in (0.8 * nu, 1.2 * nu):
        assert integral(lam, other, Delta) > found.value


def test_theorem_3_is_no_amplitude_and_says_so() -> None:
    found = udp_fl.theorem_3(2.0, 0.5, 0.2, m=10, T=7)
    b = exp(-2.0)
    inner = 0.04 * 0.25 + b * 0.25 - b * 0.04 * 0.25 + 0.5 * b
    assert found.value == pytest.approx(70 / (1 - b) * inner)
    assert found.terms["in truth at most"] == pytest.approx(70 * integral(2.0, 0.2, 0.5), rel=1e-6)
    assert "Δ² stands beside Δ" in found.note
    # Noise in other units must have an error in other units: the printed formula has not.
    scaled = udp_fl.theorem_3(2.0, 5.0, 0.2, m=10, T=7)
    assert scaled.value != pytest.approx(10 * found.value, rel=0.1)
    first, second = (one.terms["in truth at most"] for one in (found, scaled))
    assert second == pytest.approx(10 * first)


def test_theorems_8_and_9_beside_draws_of_all_rounds() -> None:
    stream, T, m = Key.from_seed(4).stream(0, None, "draws"), 9, 20_000
    walked = np.abs(0.7 * stream.normal((T, m)).sum(0)).sum()
    eighth = udp_fl.theorem_8(0.7, m, T)
    assert eighth.value == pytest.approx(m * 0.7 * sqrt(2 / pi))
    assert walked == pytest.approx(eighth.terms["in truth at most"], rel=0.02)
    assert walked > 2.9 * eighth.value
    laplace = np.log(stream.uniform((T, m)) / stream.uniform((T, m))) * 0.4
    ninth = udp_fl.theorem_9(0.4, m, T)
    assert ninth.value == pytest.approx(T * m * 0.4)
    assert np.abs(laplace).sum() == pytest.approx(ninth.value, rel=0.02)
    assert np.abs(laplace.sum(0)).sum() < ninth.value


def test_theorem_3s_truth_beside_draws() -> None:
    stream = Key.from_seed(5).stream(0, None, "draws")
    noise = draw(stream, (4, 20_000), 1.5, 0.5, 0.3)
    bound = udp_fl.theorem_3(1.5, 0.5, 0.3, m=20_000, T=4).terms["in truth at most"]
    assert np.abs(noise).sum() == pytest.approx(bound, rel=0.02)
    assert np.abs(noise.sum(0)).sum() < bound


def test_theorem_4_counts_rounds_up_to_a_constant() -> None:
    assert udp_fl.theorem_4(2.0, 1.0).value == pytest.approx(4 * exp(1) / (exp(1) - 1) ** 2)
    assert udp_fl.theorem_4(2.0, 800.0).value == pytest.approx(0, abs=1e-300)
    assert "O()" in udp_fl.theorem_4(1.0, 1.0).note


def test_theorem_5_solves_the_equation_that_its_proof_ends_with() -> None:
    w, v, L = np.array([1.0, -2.0]), np.array([0.5, 3.0]), 4.0
    theta = udp_fl.theorem_5(L, w, v)
    assert -1 / L + 5 / 6 * theta + v / 12 - 11 / 12 * w == pytest.approx(0, abs=1e-15)
    with pytest.raises(ValueError, match="L is 0"):
        udp_fl.theorem_5(0.0, w, v)


def test_eq_6_runs_from_the_new_model_to_the_old_one() -> None:
    w, v, theta = np.array([1.0]), np.array([3.0]), np.array([7.0])
    ends = [float(udp_fl.eq_6(r, theta, w, v)[0]) for r in (0.0, 0.5, 1.0)]
    assert ends == [3.0, (3 + 14 + 1) / 4, 1.0]
    with pytest.raises(ValueError, match="r is 2"):
        udp_fl.eq_6(2.0, theta, w, v)


def test_a_bound_is_never_a_privacy_statement() -> None:
    assert "not a privacy statement" in str(udp_fl.theorem_4(1.0, 1.0))
    for call in (
        lambda: udp_fl.lemma_1(0.0, 1.0),
        lambda: udp_fl.theorem_3(1.0, 1.0, 1.0, 1, 1),
        lambda: udp_fl.theorem_8(1.0, 0, 1),
        lambda: udp_fl.theorem_9(-1.0, 1, 1),
    ):
        with pytest.raises(ValueError, match="must be"):
            call()
