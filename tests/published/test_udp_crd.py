import math

import pytest
from scipy import optimize, stats

from confide.published import udp_crd
from published.truths import gdp_delta, gdp_epsilon, sampled_gaussian_moment

DELTA = 1e-3


def mu_of_the_run(epsilon: float, T: int = 200) -> float:
    """What T rounds at q = 1 with the noise of eq. (10) amount to: sqrt(T) Delta_l / sigma."""
    sigma = udp_crd.eq_10_sigma(0.02, 1, T, epsilon, DELTA).value
    return math.sqrt(T) * 0.02 / float(sigma)


@pytest.mark.parametrize(
    ("claimed", "truth"),
    [(4, 3.437745), (8, 8.352719), (12, 14.491446), (16, 21.817465), (20, 30.317443)],
)
def test_eq_10_against_the_exact_gaussian(claimed: float, truth: float) -> None:
    mu = mu_of_the_run(claimed)
    assert mu == pytest.approx(mu_of_the_run(claimed, T=7), rel=1e-12)  # whatever T
    assert gdp_epsilon(mu, DELTA) == pytest.approx(truth, abs=5e-6)


def test_the_true_delta_at_a_claim_of_20() -> None:
    assert gdp_delta(mu_of_the_run(20), 20) == pytest.approx(0.1164, abs=5e-5)


def test_eq_10_is_sound_only_up_to_6_978() -> None:
    crossing = optimize.brentq(lambda e: gdp_delta(mu_of_the_run(e), e) - DELTA, 4, 12)
    assert crossing == pytest.approx(6.978, abs=5e-4)


@pytest.mark.parametrize(
    ("claimed", "factor"), [(4, 0.8858), (8, 1.0331), (12, 1.1463), (16, 1.2423), (20, 1.3276)]
)
def test_the_factor_that_repairs_eq_10(claimed: float, factor: float) -> None:
    mu = mu_of_the_run(claimed) / factor
    # Four digits are printed, so delta is met to their precision.
    assert gdp_delta(mu, claimed) == pytest.approx(DELTA, rel=2e-3)


@pytest.mark.parametrize(
    ("claimed", "averaged", "always"),
    [(4, 3.453452, 4.7372), (8, 8.411211, 11.7797), (20, 30.746269, 44.769)],
)
def test_eq_10_with_30_of_50_clients_a_round(
    claimed: float, averaged: float, always: float
) -> None:
    T, q = 200, 0.6
    sigma = float(udp_crd.eq_10_sigma(1, q, T, claimed, DELTA).value)
    # The schedule is free of data: condition on how often the client takes part. Six standard
    # deviations around qT leave out less than 1e-8 of the schedules.
    delta = sum(
        float(stats.binom.pmf(k, T, q)) * gdp_delta(math.sqrt(k) / sigma, averaged)
        for k in range(78, 163)
    )
    assert delta == pytest.approx(DELTA, rel=2e-6)
    assert gdp_epsilon(math.sqrt(T) / sigma, DELTA) == pytest.approx(always, abs=5e-4)


@pytest.mark.parametrize("q", [1, 0.6])
def test_eq_25_spends_the_budget_of_eq_10_whatever_is_discounted(q: float) -> None:
    sensitivity, epsilon, T = 0.05, 8.0, 200
    past: list[float] = []
    while len(past) < T:
        past.append(float(udp_crd.eq_25_sigma(sensitivity, q, T, epsilon, DELTA, past).value))
        if len(past) in (50, 120):
            T = math.floor(0.7 * (T - len(past))) + len(past)
    cap = epsilon**2 / (2 * q * sensitivity**2 * math.log(1 / DELTA))
    assert len(past) < 200
    assert sum(1 / sigma**2 for sigma in past) == pytest.approx(cap, rel=1e-9)
    assert past[0] > past[60] > past[-1]


def test_eq_25_with_nothing_past_is_eq_10() -> None:
    constant = udp_crd.eq_10_sigma(0.05, 0.6, 150, 4, DELTA).value
    first = udp_crd.eq_25_sigma(0.05, 0.6, 150, 4, DELTA, []).value
    second = udp_crd.eq_25_sigma(0.05, 0.6, 150, 4, DELTA, [float(first)]).value
    assert first == pytest.approx(constant, rel=1e-12)
    assert second == pytest.approx(constant, rel=1e-12)


def test_eq_25_stops_at_its_end() -> None:
    with pytest.raises(ValueError, match="stops at t = T"):
        udp_crd.eq_25_sigma(1, 1, 2, 4, DELTA, [9.0, 9.0])
    with pytest.raises(ValueError, match="no value beyond"):
        udp_crd.eq_25_sigma(1, 1, 2, 4, DELTA, [0.01])
    with pytest.raises(ValueError, match=r"past sigma is 0\.0"):
        udp_crd.eq_25_sigma(1, 1, 2, 4, DELTA, [0.0])


def test_eq_13() -> None:
    assert udp_crd.eq_13_sensitivity(0.1, 2, 800).value == pytest.approx(0.0005)


@pytest.mark.parametrize("q", [0.3, 1])
def test_eq_14_is_the_integral_that_eq_15_approximates(q: float) -> None:
    moment = float(udp_crd.eq_14_moment(0.5, q, 1, 4).value)
    assert moment == pytest.approx(sampled_gaussian_moment(q, 2.0, 5), rel=1e-10)
    bound = float(udp_crd.eq_15_moment(0.5, q, 1, 4).value)
    if q == 1:
        assert bound == pytest.approx(moment, rel=1e-12)
    else:
        assert bound > moment  # it covers the moment at small orders only: see below
    total = udp_crd.eq_16_log_moment(0.5, q, 30, 1, 4).value
    assert total == pytest.approx(30 * math.log(bound), rel=1e-12)


def test_eq_15_falls_far_below_the_moment_at_a_large_order() -> None:
    moment = udp_crd.eq_14_moment(1, 0.1, 1, 20).value
    assert math.log(moment) > 6 * math.log(udp_crd.eq_15_moment(1, 0.1, 1, 20).value)


@pytest.mark.parametrize("epsilon", [4, 8, 20])
def test_the_tail_bound_is_sound_until_its_terms_are_dropped(epsilon: float) -> None:
    sigma = float(udp_crd.eq_10_sigma(1, 1, 200, epsilon, DELTA).value)
    whole = udp_crd.eq_19_delta(1, 1, 200, sigma, epsilon).value
    dropped = udp_crd.eq_21_delta(1, 1, 200, sigma, epsilon).value
    assert dropped == pytest.approx(DELTA, rel=1e-12)
    assert gdp_delta(mu_of_the_run(epsilon), epsilon) < whole
    assert whole > 5 * DELTA


def test_eq_19_is_the_least_over_lambda() -> None:
    sigma, epsilon = 15.0, 6.0
    best = min(
        math.exp(100 * 0.5 * lam * (lam + 1) / (2 * sigma**2) - lam * epsilon)
        for lam in (k / 100 for k in range(1, 10_000))
    )
    assert udp_crd.eq_19_delta(1, 0.5, 100, sigma, epsilon).value == pytest.approx(best, rel=1e-4)


def test_eq_19_needs_a_positive_order() -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        udp_crd.eq_19_delta(1, 1, 200, 1.0, 1.0)
