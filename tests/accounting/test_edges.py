"""At the edges of floating point: tiny and huge numbers, other types of number, long sums."""

from __future__ import annotations

import math
from fractions import Fraction

import dp_accounting as dp
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.accounting import account, conversion, events, filters, gdp, renyi, sampling
from confide.accounting.losses import LossAccountant
from confide.accounting.relations import Refused, Relation
from confide.published.value import Published

GAUSSIAN, POISSON = dp.GaussianDpEvent, dp.PoissonSampledDpEvent


@given(st.floats(-7, 4), st.floats(0, 30))
def test_no_gaussian_delta_is_below_the_truth(log_mu: float, deviations: float) -> None:
    mu = 10**log_mu
    epsilon = mu * deviations + mu * mu / 2
    with mp.workdps(60 + int(mu * mu)) if mu < 20 else mp.workdps(60):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        # Phi(a) - e^epsilon Phi(a - mu), the second by its logarithm: it cannot overflow
        a = m / 2 - e / m
        second = mp.e ** (e + mp.log(mp.ncdf(a - m)))
        truth = mp.log(mp.ncdf(a) - second)
        found = gdp.log_delta(mu, epsilon)
        assert found >= truth
        assert found <= truth + 1e-8 * (1 + abs(truth))


@pytest.mark.parametrize("mu", [1e-300, 1e-140, 1e-20, 1e20, 1e150, math.inf])
@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-12, 1.0, 1e12])
def test_delta_stays_a_probability_that_falls_with_epsilon(mu: float, epsilon: float) -> None:
    here, further = gdp.delta(mu, epsilon), gdp.delta(mu, 2 * epsilon + 1e-12)
    assert 0 < further <= here <= 1
    assert here == 1 or mu < 1e19
    assert here < 1e-8 or mu > 1e-9 or epsilon < 1e-8


@pytest.mark.parametrize(
    "event",
    [
        GAUSSIAN(3.0),
        dp.LaplaceDpEvent(3.0),
        events.LaplaceL2DpEvent(3.0, 7),
        events.StaircaseDpEvent(0.7, 0.4),
        events.PureDpEvent(0.7),
        POISSON(0.01, GAUSSIAN(3.0)),
        POISSON(0.01, dp.LaplaceDpEvent(3.0)),
        dp.SampledWithoutReplacementDpEvent(100, 5, GAUSSIAN(3.0)),
    ],
)
def test_orders_next_to_one_are_answered_by_a_higher_one(event: dp.DpEvent) -> None:
    near = [1 + 1e-15, 1 + 1e-9, 1 + 1e-6, 1 + 1e-4]
    curve = renyi.curve(event, near)
    assert np.all(curve == curve[-1]) and curve[-1] > 0
    assert curve[-1] <= renyi.curve(event, [1.001])[0]


@pytest.mark.parametrize("size", [1e-160, 1e-120, 1e-60, 1e60, 1e120, 1e160])
@pytest.mark.parametrize(
    "event_of",
    [
        GAUSSIAN,
        dp.LaplaceDpEvent,
        lambda z: events.LaplaceL2DpEvent(z, 1000),
        lambda z: events.DiscreteGaussianDpEvent(z, 1.0),
        lambda z: events.SkellamDpEvent(z, 1.0),
        lambda z: POISSON(0.01, GAUSSIAN(z)),
        lambda z: POISSON(0.01, dp.LaplaceDpEvent(z)),
        lambda z: POISSON(1e-300, GAUSSIAN(z)),
        lambda z: dp.SampledWithoutReplacementDpEvent(100, 5, GAUSSIAN(z)),
        lambda z: dp.SelfComposedDpEvent(GAUSSIAN(z), 2**62),
    ],
)
def test_huge_and_tiny_noise_gives_a_number_or_infinity(size: float, event_of) -> None:
    curve = renyi.curve(event_of(size))
    assert not np.any(np.isnan(curve)) and np.all(curve >= 0)
    assert np.all(curve > 0), "something is released, so no order may say nothing is"
    assert np.all(np.diff(curve[np.isfinite(curve)]) >= -1e-9 * curve[np.isfinite(curve)][:-1])


@pytest.mark.parametrize(
    "value",
    [np.float32(0.1), np.float16(0.1), np.float64(0.1), np.int8(3), Fraction(1, 10), 3],
)
def test_any_number_is_priced_as_its_exact_double(value) -> None:
    plain = events.plain(GAUSSIAN(value))
    assert type(plain.noise_multiplier) is float
    assert account.epsilon(GAUSSIAN(value), 1e-5) == account.epsilon(GAUSSIAN(float(value)), 1e-5)


def test_counts_of_narrow_types_do_not_overflow() -> None:
    narrow = dp.SelfComposedDpEvent(
        dp.SelfComposedDpEvent(GAUSSIAN(100.0), np.int8(100)), np.int8(100)
    )
    wide = dp.SelfComposedDpEvent(GAUSSIAN(100.0), 10_000)
    narrow_epsilon = account.epsilon(narrow, 1e-5).epsilon
    assert narrow_epsilon == pytest.approx(account.epsilon(wide, 1e-5).epsilon, rel=1e-9)
    assert np.allclose(renyi.curve(narrow), renyi.curve(wide))


@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        -1.0,
        "3",
        True,
        None,
        10**400,
        Fraction(1, 10**400),
        Published(1.0, "epsilon", "a paper, eq. (1)", "1", "record"),
    ],
)
def test_what_is_not_a_number_is_refused_in_a_sentence(bad: object) -> None:
    with pytest.raises((Refused, TypeError), match="number"):
        renyi.curve(GAUSSIAN(bad))  # type: ignore[arg-type]
    with pytest.raises((Refused, TypeError), match="number"):
        account.epsilon(events.PureDpEvent(bad), 1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [1.5, -1, True, "2", 2**63 + 1, math.inf])
def test_what_is_not_a_count_is_refused_in_a_sentence(bad: object) -> None:
    for event in (
        dp.SelfComposedDpEvent(GAUSSIAN(1.0), bad),  # type: ignore[arg-type]
        dp.SampledWithoutReplacementDpEvent(bad, 1, GAUSSIAN(1.0)),  # type: ignore[arg-type]
    ):
        with pytest.raises(Refused, match="whole number"):
            renyi.curve(event)


def enumerated(lie: float, k: int, order: float) -> float:
    """The divergence of two answers of randomised response, by adding up all of its outcomes."""
    with mp.workdps(60):
        p, a = mp.mpf(lie), mp.mpf(order)
        own, other = 1 - p + p / k, p / k
        total = own**a * other ** (1 - a) + other**a * own ** (1 - a) + (k - 2) * other
        return float(mp.log(total) / (a - 1))


@given(st.floats(0.01, 0.99), st.integers(2, 9), st.floats(1.01, 60))
def test_randomised_response_is_exact_under_replace_one(lie: float, k: int, order: float) -> None:
    event = dp.RandomizedResponseDpEvent(lie, k)
    priced = sampling.priced(event, Relation.REPLACE_ONE)
    found, truth = float(renyi.curve(priced, [order])[0]), enumerated(lie, k, order)
    assert truth <= found * (1 + 1e-15) and found <= truth * (1 + 1e-9)
    pure = renyi.curve(sampling.priced(event, Relation.ZERO_OUT), [order])[0]
    assert found <= pure * (1 + 1e-9)


@given(st.floats(0.05, 0.95), st.integers(2, 9), st.floats(0, 3))
def test_the_loss_of_randomised_response_is_exact(lie: float, k: int, epsilon: float) -> None:
    own, other = 1 - lie + lie / k, lie / k
    truth = max(0.0, own - math.exp(epsilon) * other)
    answer = account.delta(
        dp.RandomizedResponseDpEvent(lie, k), epsilon, Relation.REPLACE_ONE, "pld"
    )
    assert truth <= answer.delta * (1 + 1e-12) + 1e-16
    assert answer.delta <= truth * (1 + 1e-3) + 1e-4


def test_randomised_response_speaks_of_no_absent_unit() -> None:
    event = dp.RandomizedResponseDpEvent(0.5, 4)
    for asked in (
        lambda: account.epsilon(event, 1e-5, Relation.ADD_REMOVE),
        lambda: filters.RenyiFilter(1.0, 1e-5, Relation.ADD_REMOVE).spend(event),
    ):
        with pytest.raises(Refused, match="add-remove"):
            asked()
    accountant = LossAccountant(Relation.ADD_REMOVE)
    assert accountant._maybe_compose(event, 1, False) is not None


def test_answers_that_always_or_never_lie() -> None:
    orders = [2.0, 5.0]
    for relation in (Relation.REPLACE_ONE, Relation.ZERO_OUT):
        always = sampling.priced(dp.RandomizedResponseDpEvent(1.0, 4), relation)
        never = sampling.priced(dp.RandomizedResponseDpEvent(0.0, 4), relation)
        assert np.all(renyi.curve(always, orders) == 0)
        assert account.epsilon(never, 1e-5, relation).epsilon == math.inf


def test_a_delta_below_every_double_is_not_zero() -> None:
    delta, _ = conversion.delta_from_curve([2.0], [1e-3], 1e6)
    assert 0 < delta < 1e-300
    assert conversion.delta_from_curve([2.0], [0.0], 1e6)[0] == 0


def test_a_million_tiny_spends_are_not_lost() -> None:
    """Each cost is below half a rounding of the total, so that a plain sum would stand still."""
    meter = filters.GdpFilter(1.0, 1e-5)
    meter.spend(GAUSSIAN(10.0))
    before, tiny = meter.spent, GAUSSIAN(1e10)
    for _ in range(1000):
        meter.spend(tiny)
    assert meter.spent - before >= 1000 * 1e-20
    orders = filters.RenyiFilter(1.0, 1e-5, Relation.ADD_REMOVE)
    orders.spend(GAUSSIAN(10.0))
    there = orders.spent.copy()
    orders.spend(tiny)
    assert np.all(orders.spent > there)


@given(st.integers(2, 200), st.floats(1e-4, 0.9))
def test_the_schedule_of_participation_in_many_digits(rounds: int, q: float) -> None:
    event = events.RandomParticipationDpEvent(q, rounds, GAUSSIAN(20.0))
    found = account.delta(event, 1.0).delta
    with mp.workdps(40):
        truth = mp.mpf(0)
        for k in range(1, rounds + 1):
            chance = mp.binomial(rounds, k) * mp.mpf(q) ** k * (1 - mp.mpf(q)) ** (rounds - k)
            if chance > mp.mpf(10) ** -25:
                mu = mp.sqrt(k) / 20
                a = mu / 2 - 1 / mu
                truth += chance * (mp.ncdf(a) - mp.e * mp.ncdf(a - mu))
    assert float(truth) <= found <= float(truth) * (1 + 1e-6) + 3e-18
