"""Conversions against exact hockey sticks and dp-accounting; groups against exact mechanisms."""

from __future__ import annotations

import math

import dp_accounting as dp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.accounting import conversion, renyi
from confide.accounting.relations import Refused

ORDERS = renyi.ORDERS
LOG_DELTAS = st.floats(-25, -1)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """In 40 digits: in doubles the two terms cancel far out in the tail."""
    with mpmath.workdps(40):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return float(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))


@given(st.floats(0.05, 8), LOG_DELTAS)
def test_the_epsilon_of_a_gaussian_is_above_the_truth(mu: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    epsilon, _ = conversion.epsilon_from_curve(ORDERS, mu**2 / 2 * ORDERS, delta)
    assert gaussian_delta(mu, epsilon) <= delta


@given(st.floats(0.05, 8), st.floats(0, 40))
def test_the_delta_of_a_gaussian_is_above_the_truth(mu: float, epsilon: float) -> None:
    delta, _ = conversion.delta_from_curve(ORDERS, mu**2 / 2 * ORDERS, epsilon)
    assert gaussian_delta(mu, epsilon) <= delta <= 1


@given(st.floats(0, 4), st.floats(0.51, 0.999), LOG_DELTAS)
def test_randomised_response_is_above_the_truth(
    scale: float, truth: float, log_delta: float
) -> None:
    """Two answers: the exact delta(epsilon) is truth - e^epsilon (1 - truth)."""
    odds = math.log(truth) - math.log1p(-truth)
    up, down = ORDERS * odds + math.log1p(-truth), -ORDERS * odds + math.log(truth)
    curve = np.logaddexp(up, down) / (ORDERS - 1)
    delta = math.exp(log_delta)
    epsilon, _ = conversion.epsilon_from_curve(ORDERS, curve, delta)
    assert truth - math.exp(epsilon) * (1 - truth) <= delta
    delta, _ = conversion.delta_from_curve(ORDERS, curve, scale)
    assert truth - math.exp(scale) * (1 - truth) <= delta


@given(st.floats(0.001, 20), LOG_DELTAS)
def test_it_agrees_with_dp_accounting(scale: float, log_delta: float) -> None:
    curve = scale * np.sqrt(ORDERS)
    got = conversion.epsilon_from_curve(ORDERS, curve, math.exp(log_delta))
    other = dp.rdp.compute_epsilon(ORDERS, curve, math.exp(log_delta))
    assert got[0] <= other[0] * (1 + 1e-12)  # they leave out orders up to 1.01
    if other[0] > 0 and other[1] > 1.02:
        assert got == pytest.approx(other, rel=1e-12, abs=1e-12)


@given(st.floats(0.001, 20), LOG_DELTAS)
def test_the_two_directions_are_inverse(scale: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    epsilon, _ = conversion.epsilon_from_curve(ORDERS, scale * ORDERS, delta)
    if epsilon > 0:
        back, _ = conversion.delta_from_curve(ORDERS, scale * ORDERS, epsilon)
        assert back <= delta * (1 + 1e-9)


@given(st.floats(0.001, 20), LOG_DELTAS)
def test_the_classic_rule_is_never_better(scale: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    better, _ = conversion.epsilon_from_curve(ORDERS, scale * ORDERS, delta)
    classic, _ = conversion.classic_epsilon(ORDERS, scale * ORDERS, delta)
    assert better <= classic
    assert conversion.zcdp_epsilon(scale, delta) <= classic * (1 + 1e-12)


def test_the_bound_behind_the_conversion_holds_everywhere() -> None:
    y = np.linspace(-3, 40, 4001)
    for t in (0.01, 0.5, 1.0, 7.0, 500.0):
        log_bound = t * y + t * math.log(t) - (t + 1) * math.log(t + 1)
        assert np.all(np.maximum(0, -np.expm1(-y)) <= np.exp(np.minimum(log_bound, 5)) + 1e-15)


def test_tiny_divergences_cost_no_epsilon() -> None:
    assert conversion.epsilon_from_curve([2.0], [1e-12], 1e-5)[0] == 0
    assert conversion.delta_from_curve([2.0], [0.0], 0.0)[0] == 0


def test_what_is_not_a_number_is_infinite() -> None:
    assert conversion.epsilon_from_curve([2, 3], [math.nan, -0.1], 1e-5)[0] == math.inf
    assert conversion.delta_from_curve([2, 3], [math.nan, math.inf], 1.0)[0] == 1
    assert conversion.epsilon_from_curve([2, 3], [math.nan, 0.5], 1e-5)[1] == 3
    assert conversion.epsilon_from_curve([2], [0.5], 0)[0] == math.inf
    assert conversion.epsilon_from_curve([2], [0], 0)[0] == 0


@pytest.mark.parametrize("delta", [-0.1, 1.0, 2, math.nan])
def test_a_bad_delta_is_refused(delta: float) -> None:
    with pytest.raises(Refused, match="delta"):
        conversion.epsilon_from_curve([2.0], [1.0], delta)
    with pytest.raises(Refused, match="delta"):
        conversion.classic_epsilon([2.0], [1.0], delta)
    with pytest.raises(Refused, match="delta"):
        conversion.zcdp_epsilon(1.0, delta)


def test_other_bad_inputs_are_refused() -> None:
    for epsilon in (-1.0, math.inf, math.nan):
        with pytest.raises(Refused, match="epsilon"):
            conversion.delta_from_curve([2.0], [1.0], epsilon)
    for orders in ([], [2, 3], [1.0], [math.nan]):
        with pytest.raises(Refused, match="orders"):
            conversion.epsilon_from_curve(orders, [1.0] * min(len(orders), 1), 0.1)
    for size in (0, -1, 1.5):
        with pytest.raises(Refused, match="group size"):
            conversion.group_pure(1.0, size)  # type: ignore[arg-type]
    for value in (-1.0, math.nan):
        for call in (
            lambda value=value: conversion.group_pure(value, 2),
            lambda value=value: conversion.group_approximate(value, 0.1, 2),
            lambda value=value: conversion.group_approximate(1.0, value, 2),
            lambda value=value: conversion.group_zcdp(value, 2),
            lambda value=value: conversion.group_gdp(value, 2),
            lambda value=value: conversion.zcdp_epsilon(value, 0.1),
        ):
            with pytest.raises(Refused):
                call()


@given(st.floats(0.05, 3), st.floats(0, 2), st.integers(1, 6))
def test_group_rules_are_above_the_exact_gaussian(mu: float, epsilon: float, size: int) -> None:
    delta = gaussian_delta(mu, epsilon)
    big_epsilon, big_delta = conversion.group_approximate(epsilon, delta, size)
    assert gaussian_delta(conversion.group_gdp(mu, size), big_epsilon) <= big_delta * (1 + 1e-9)
    assert conversion.group_zcdp(mu**2 / 2, size) == pytest.approx((mu * size) ** 2 / 2)


@given(st.floats(0.01, 3), st.floats(1e-9, 0.01), st.integers(2, 30))
def test_the_group_delta_is_the_geometric_sum(epsilon: float, delta: float, size: int) -> None:
    total = delta * sum(math.exp(i * epsilon) for i in range(size))
    got = conversion.group_approximate(epsilon, delta, size)
    assert got == pytest.approx((size * epsilon, min(total, 1)), rel=1e-12)


def test_groups_at_the_edges() -> None:
    assert conversion.group_pure(0.5, 4) == 2
    assert conversion.group_approximate(0.0, 0.1, 4) == pytest.approx((0, 0.4))
    assert conversion.group_approximate(1.0, 0.0, 4) == (4, 0)
    assert conversion.group_approximate(300.0, 1e-9, 9)[1] == 1
    assert conversion.group_approximate(1, 0.25, 1) == (1, 0.25)
