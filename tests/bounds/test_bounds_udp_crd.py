"""Theorems 2 and 3 and Fig. 2 of UDP-CRD beside search, quadrature and a small experiment."""

from dataclasses import replace
from math import log

import mpmath as mp
import numpy as np
import pytest

from confide.bounds.udp_crd import Analysis, figure_2, theorem_2, theorem_3

ALL = Analysis(
    mu=0.1, L=2.0, eta=0.3, gap=2.3, sensitivity=1e-3, K=5, epsilon=(8.0,) * 5, delta=(1e-3,) * 5
)
SOME = replace(ALL, K=3, divergence=0.4, epsilon=(4.0, 8.0, 8.0, 12.0, 2.0))


def by_hand(a: Analysis, T: int) -> float:
    """Eq. (22) in high precision, from the constants as the paper names them."""
    mu, L, eta = mp.mpf(a.mu), mp.mpf(a.L), mp.mpf(a.eta)
    A = 1 - 2 * mu * eta + mu * eta * eta * L
    kappa0 = L * L * mp.mpf(a.sensitivity) ** 2 / mu
    kappa1 = eta * eta * L * L * mp.mpf(a.divergence) / (2 * mu)
    U, K = len(a.epsilon), a.K
    budget = sum(
        mp.log(1 / mp.mpf(d)) / mp.mpf(e) ** 2 for e, d in zip(a.epsilon, a.delta, strict=True)
    )
    inner = kappa0 * T * K / mp.mpf(U) ** 2 * budget + kappa1 * U * (U - K) / (K * (mp.mpf(U) - 1))
    return float(A**T * mp.mpf(a.gap) + (1 - A**T) * inner)


@pytest.mark.parametrize("analysis", [ALL, SOME])
@pytest.mark.parametrize("T", [1, 7, 200, 5000])
def test_theorem_2_in_high_precision(analysis: Analysis, T: int) -> None:
    bound = theorem_2(analysis, T)
    assert bound.value == pytest.approx(by_hand(analysis, T), rel=1e-11)
    assert bound.value == pytest.approx(sum(bound.terms.values()))
    assert (bound.terms["choice"] > 0) == (analysis is SOME)
    assert str(bound).endswith("not a privacy statement)")


@pytest.mark.parametrize(
    "analysis",
    [
        ALL,
        SOME,
        replace(ALL, sensitivity=0.1),
        replace(ALL, sensitivity=5.0),  # the noise outweighs everything: one round
        replace(ALL, gap=100.0, eta=0.01),
        replace(SOME, divergence=40.0),
    ],
)
def test_theorem_3_beside_every_number_of_rounds(analysis: Analysis) -> None:
    found = theorem_3(analysis)
    values = [theorem_2(analysis, T).value for T in range(1, 6000)]
    assert found.value == 1 + int(np.argmin(values))
    assert found.terms["bound"] == min(values)


def test_a_larger_budget_prefers_more_rounds() -> None:
    chosen = [
        theorem_3(replace(ALL, sensitivity=0.05, epsilon=(e,) * 5)).value for e in (2, 4, 8, 16)
    ]
    assert chosen == sorted(chosen)
    assert len(set(chosen)) == 4


def test_theorem_2_forgets_the_dimension_of_the_noise() -> None:
    # F = |w|^2 / 2 and eta = 1: the first step ends at the noise itself, whatever the start.
    one = Analysis(1.0, 1.0, 1.0, 5.0, 0.1, 1, (4.0,), (1e-3,))
    sigma2 = 2 * 0.1**2 * log(1e3) / 4.0**2  # eq. (10) with q = T = 1
    random = np.random.default_rng(1)
    for d in (1, 30):
        reached = np.square(random.normal(scale=sigma2**0.5, size=(20_000, d))).sum(1).mean() / 2
        assert reached == pytest.approx(d * theorem_2(one, 1).value, rel=0.05)
    assert "d times as large" in theorem_2(one, 1).note


def true_log_moment(ratio: float, q: float, lam: int) -> float:
    """ln E over N(0, 1) of (1 - q + q e^(z r - r^2/2))^(lambda + 1), by quadrature."""
    r = mp.mpf(ratio)

    def density(z: mp.mpf) -> mp.mpf:
        return mp.npdf(z) * (1 - q + q * mp.exp(z * r - r * r / 2)) ** (lam + 1)

    return float(mp.log(mp.quad(density, [-20, -5, 0, 5, 10, 20, 40])))


@pytest.mark.parametrize("q", [0.9, 0.1])
@pytest.mark.parametrize("lam", [1, 10, 100])
@pytest.mark.parametrize("ratio", [0.05, 0.2])
def test_figure_2_beside_quadrature(q: float, lam: int, ratio: float) -> None:
    bound, truth = figure_2(ratio * 0.01, q, 0.01, lam)
    assert truth.value == pytest.approx(true_log_moment(ratio, q, lam), rel=1e-8)
    assert bound.value == pytest.approx(q * lam * (lam + 1) * ratio**2 / 2)
    assert bool(bound.note) == (truth.value > bound.value)


def test_figure_2_shows_a_case_in_which_the_bound_holds_and_there_are_others() -> None:
    # sigma = 0.01 and |D_i| = 800 as in the figure, 2 eta C = 0.4: Delta_l is a twentieth of sigma.
    for lam in range(1, 101):
        bound, truth = figure_2(0.4 / 800, 0.9, 0.01, lam)
        assert truth.value <= bound.value
    bound, truth = figure_2(0.01, 0.1, 0.01, 20)
    assert truth.value > 6 * bound.value
    assert "approximation" in bound.note


def test_what_assumption_1_does_not_allow() -> None:
    with pytest.raises(ValueError, match="at most 1/L"):
        replace(ALL, eta=0.6)
    with pytest.raises(ValueError, match="at most L"):
        replace(ALL, mu=3.0)
    with pytest.raises(ValueError, match="one for each client"):
        replace(ALL, delta=(1e-3,))
    with pytest.raises(ValueError, match="at most U"):
        replace(ALL, K=6)
    with pytest.raises(ValueError, match="at least 0"):
        replace(ALL, divergence=-1.0)
