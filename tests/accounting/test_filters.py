"""Filters: their budgets, their order of check and release, and adversaries that adapt."""

from __future__ import annotations

import itertools
import math
import time

import dp_accounting as dp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.accounting import conversion, events, filters, gdp, renyi
from confide.accounting.relations import Refused, Relation

GAUSSIAN = dp.GaussianDpEvent
POISSON = dp.PoissonSampledDpEvent
ADD_REMOVE = Relation.ADD_REMOVE


@given(st.floats(0.1, 20), st.floats(-20, -1), st.integers(1, 500))
def test_a_plan_that_uses_up_a_gdp_budget_fits(
    epsilon: float, log_delta: float, rounds: int
) -> None:
    delta = math.exp(log_delta)
    meter = filters.GdpFilter(epsilon, delta)
    for done in range(rounds):
        event = GAUSSIAN(math.sqrt((rounds - done) / meter.left))
        assert meter.fits(event)
        meter.spend(event)
    assert gdp.delta(math.sqrt(meter.spent), epsilon) <= delta
    assert meter.spent == pytest.approx(gdp.mu(epsilon, delta) ** 2, rel=1e-8)
    assert not meter.fits(GAUSSIAN(1e3 / math.sqrt(meter.budget)))


def test_a_release_that_does_not_fit_is_refused_and_not_spent() -> None:
    meter = filters.GdpFilter(1.0, 1e-5)
    big = GAUSSIAN(1.0)
    assert not meter.fits(big)
    with pytest.raises(Refused, match="squared mu"):
        meter.spend(big)
    assert meter.spent == 0
    several = dp.ComposedDpEvent([GAUSSIAN(20.0), dp.SelfComposedDpEvent(GAUSSIAN(30.0), 3)])
    meter.spend(several)
    assert meter.spent == pytest.approx(1 / 400 + 3 / 900)


@pytest.mark.parametrize(
    "event",
    [
        POISSON(0.1, GAUSSIAN(10.0)),
        dp.LaplaceDpEvent(10.0),
        dp.ComposedDpEvent([GAUSSIAN(10.0), events.OPEN]),
        GAUSSIAN(0.0),
        GAUSSIAN(math.nan),
        events.OPEN,
    ],
)
def test_a_gdp_filter_takes_unsampled_gaussians_only(event: dp.DpEvent) -> None:
    meter = filters.GdpFilter(1.0, 1e-5)
    with pytest.raises(Refused, match="Gaussian"):
        meter.fits(event)
    with pytest.raises(Refused, match="Gaussian"):
        meter.spend(event)


def test_an_adversary_who_adapts_gains_nothing_from_a_gdp_filter() -> None:
    """It picks the second noise from the first answer; delta is integrated over that answer."""
    epsilon, delta = 1.0, 0.05
    budget = gdp.mu(epsilon, delta) ** 2
    x = np.linspace(-12, 14, 20_001)
    for share, threshold in itertools.product((0.1, 0.5, 0.9), (-0.5, 0.0, 0.7)):
        first = math.sqrt(share * budget)
        p = np.exp(-((x - first) ** 2) / 2) / math.sqrt(2 * math.pi)
        loss = first * x - first**2 / 2
        second = np.where(x > threshold, math.sqrt((1 - share) * budget), 1e-6)
        rest = np.array([gdp.delta(m, epsilon - v) for m, v in zip(second, loss, strict=True)])
        assert np.trapezoid(p * rest, x) <= delta * (1 + 1e-6)


@given(st.floats(0.2, 20), st.floats(-25, -3))
def test_renyi_budgets_invert_the_conversion(epsilon: float, log_delta: float) -> None:
    delta, orders = math.exp(log_delta), np.array(filters.FILTER_ORDERS)
    budgets = filters.renyi_budgets(np.array([epsilon]), np.array([delta]), orders)[0]
    for order, budget in zip(orders, budgets, strict=True):
        if budget >= 0:
            back, _ = conversion.epsilon_from_curve([order], [budget], delta / orders.size)
            assert back <= epsilon
            assert back == pytest.approx(epsilon, rel=1e-7) or back == 0


def test_a_renyi_filter_tracks_every_order() -> None:
    meter = filters.RenyiFilter(4.0, 1e-5, ADD_REMOVE)
    rng = np.random.default_rng(1)
    total, rounds = np.zeros(len(meter.orders)), 0
    while True:
        event = POISSON(rng.uniform(0.001, 0.3), GAUSSIAN(rng.uniform(0.8, 6)))
        cost = renyi.curve(event, meter.orders)
        if not meter.fits(event):
            with pytest.raises(Refused, match="fits no order"):
                meter.spend(event)
            break
        meter.spend(event)
        total += cost
        rounds += 1
    assert rounds > 5
    assert meter.spent == pytest.approx(total)
    assert np.any(total <= meter.budgets * (1 + 5e-10))
    assert not np.any(total + cost <= meter.budgets)
    best, _ = conversion.epsilon_from_curve(meter.orders, total, 1e-5 / len(meter.orders))
    assert best <= 4.0


def test_one_order_gets_all_of_delta() -> None:
    event = POISSON(0.02, GAUSSIAN(1.2))
    single = filters.RenyiFilter(2.0, 1e-5, ADD_REMOVE, [12.0])
    several = filters.RenyiFilter(2.0, 1e-5, ADD_REMOVE, [6.0, 12.0, 24.0])
    counts = []
    for meter in (single, several):
        rounds = 0
        while meter.fits(event):
            meter.spend(event)
            rounds += 1
        counts.append(rounds)
    assert counts[0] > counts[1] > 0
    epsilon, _ = conversion.epsilon_from_curve([12.0], counts[0] * renyi.curve(event, [12.0]), 1e-5)
    assert epsilon <= 2.0


def test_a_renyi_filter_refuses_what_is_not_proved() -> None:
    meter = filters.RenyiFilter(4.0, 1e-5, Relation.REPLACE_ONE)
    with pytest.raises(Refused, match="Poisson"):
        meter.fits(POISSON(0.1, GAUSSIAN(2.0)))
    with pytest.raises(Refused, match="no Renyi curve"):
        meter.fits(events.ShuffledDpEvent(0.1, 1000))
    for event in (events.OPEN, events.ApproximateDpEvent(0.1, 1e-9)):
        assert not meter.fits(event)
    assert meter.fits(dp.SampledWithoutReplacementDpEvent(1000, 1, GAUSSIAN(2.0)))
    assert np.array_equal(meter.left, meter.budgets)


@pytest.mark.parametrize(
    ("epsilon", "delta", "orders"),
    [
        (math.nan, 1e-5, [2.0]),
        (-1.0, 1e-5, [2.0]),
        (math.inf, 1e-5, [2.0]),
        (1.0, 0.0, [2.0]),
        (1.0, 1.0, [2.0]),
        (1.0, math.nan, [2.0]),
        (1.0, 1e-5, []),
        (1.0, 1e-5, [1.0]),
        (1.0, 1e-5, [math.nan]),
        (1.0, 1e-5, [2.0, 2.0]),
    ],
)
def test_bad_filters_are_refused(epsilon: float, delta: float, orders: list[float]) -> None:
    with pytest.raises(Refused):
        filters.RenyiFilter(epsilon, delta, ADD_REMOVE, orders)
    with pytest.raises(Refused):
        filters.PersonalBudgets([1.0, epsilon], [1e-5, delta], ADD_REMOVE, orders)


def test_a_filter_with_no_room_admits_only_what_is_free() -> None:
    """At this epsilon and delta every order's budget would be below zero."""
    meter = filters.RenyiFilter(0.0, 1e-9, ADD_REMOVE)
    assert not meter.fits(GAUSSIAN(1e6))
    with pytest.raises(Refused, match="epsilons"):
        filters.PersonalBudgets([], [], ADD_REMOVE)
    with pytest.raises(Refused, match="equal length"):
        filters.PersonalBudgets([1.0], [1e-5, 1e-5], ADD_REMOVE)


def test_a_planned_meter_counts() -> None:
    event = POISSON(0.1, GAUSSIAN(1.0))
    meter = filters.PlannedMeter(event, 3)
    assert meter.total == dp.SelfComposedDpEvent(event, 3)
    other = POISSON(0.1, GAUSSIAN(1.1))
    assert not meter.fits(other)
    with pytest.raises(Refused, match="filter"):
        meter.spend(other)
    for left in (3, 2, 1):
        assert meter.left == left and meter.fits(event)
        meter.spend(event)
    assert not meter.fits(event)
    with pytest.raises(Refused, match="all 3"):
        meter.spend(event)
    for rounds in (0, -1, 1.5, math.nan):
        with pytest.raises(Refused, match="rounds"):
            filters.PlannedMeter(event, rounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("orders", [None, filters.FILTER_ORDERS])
def test_personal_budgets_match_single_filters(orders: tuple[float, ...] | None) -> None:
    epsilons, deltas = [0.5, 2.0, 8.0], [1e-5, 1e-6, 1e-5]
    everyone = filters.PersonalBudgets(epsilons, deltas, ADD_REMOVE, orders)
    event = GAUSSIAN(9.0)
    for client, (epsilon, delta) in enumerate(zip(epsilons, deltas, strict=True)):
        single = (
            filters.GdpFilter(epsilon, delta)
            if orders is None
            else filters.RenyiFilter(epsilon, delta, ADD_REMOVE, orders)
        )
        promised, rounds = everyone.left(client, event), 0
        while single.fits(event):
            assert everyone.fits([client], event)[0]
            single.spend(event)
            everyone.spend([client], event)
            rounds += 1
            assert everyone.left(client, event) == promised - rounds
        assert rounds == promised
        with pytest.raises(Refused, match=f"client {client}"):
            everyone.spend([client], event)
    assert np.all(everyone.left_each(event) == 0)
    assert everyone.statement() == (8.0, 1e-5)


def test_a_refused_round_is_charged_to_nobody() -> None:
    budgets = filters.PersonalBudgets([0.1, 8.0], [1e-5, 1e-5], ADD_REMOVE, None)
    before = budgets.spent.copy()
    assert list(budgets.fits([0, 1], GAUSSIAN(3.0))) == [False, True]
    with pytest.raises(Refused, match="client 0"):
        budgets.spend([1, 0], GAUSSIAN(3.0))
    assert np.array_equal(budgets.spent, before)


def test_personal_budgets_with_free_and_lost_releases() -> None:
    budgets = filters.PersonalBudgets([1.0], [1e-5], ADD_REMOVE)
    assert budgets.left(0, events.NOTHING) == 2**53
    assert budgets.left(0, events.OPEN) == 0
    with pytest.raises(Refused, match="Gaussian"):
        filters.PersonalBudgets([1.0], [1e-5], ADD_REMOVE, None).left(0, POISSON(0.1, GAUSSIAN(1)))
    with pytest.raises(Refused, match="Poisson"):
        filters.PersonalBudgets([1.0], [1e-5], Relation.REPLACE_ONE).left(
            0, POISSON(0.1, GAUSSIAN(1.0))
        )


@pytest.mark.parametrize("clients", [[-1], [3], [0, 0], [0.5], [[0, 1]], ["a"], [True]])
def test_bad_clients_are_refused(clients: list[object]) -> None:
    budgets = filters.PersonalBudgets([1.0] * 3, [1e-5] * 3, ADD_REMOVE)
    with pytest.raises(Refused, match="client"):
        budgets.spend(clients, GAUSSIAN(100.0))  # type: ignore[arg-type]
    assert np.all(budgets.spent == 0)


def test_a_round_without_clients_costs_nothing() -> None:
    budgets = filters.PersonalBudgets([1.0], [1e-5], ADD_REMOVE)
    budgets.spend([], GAUSSIAN(1.0))
    assert np.all(budgets.spent == 0)


def test_a_hundred_thousand_clients() -> None:
    epsilons = np.random.default_rng(2).choice([1.0, 2.0, 4.0], 100_000)
    budgets = filters.PersonalBudgets(epsilons, np.full(100_000, 1e-6), ADD_REMOVE)
    event = POISSON(0.01, GAUSSIAN(2.0))
    start = time.process_time()
    budgets.spend(None, event)
    one = budgets.left(7, event)
    assert time.process_time() - start < 0.1
    every = budgets.left_each(event)
    assert every[7] == one
    assert np.array_equal(np.unique(epsilons[every >= every.max() - 1]), [4.0])


@pytest.mark.parametrize("sampled", [False, True])
def test_round_ten_thousand_is_as_quick_as_the_first(sampled: bool) -> None:
    meter = filters.RenyiFilter(1e4, 1e-5, ADD_REMOVE)
    event = POISSON(0.001, GAUSSIAN(5.0))
    for _ in range(10_000):
        meter.spend(event)
    best = math.inf
    for sigma in 5.1 + 0.01 * np.arange(9):
        fresh = POISSON(0.01, GAUSSIAN(sigma)) if sampled else GAUSSIAN(sigma)
        start = time.perf_counter()
        assert meter.fits(fresh)
        meter.spend(fresh)
        best = min(best, time.perf_counter() - start)
    assert best < 0.01
