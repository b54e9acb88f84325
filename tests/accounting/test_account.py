import math

import dp_accounting as dp
import numpy as np
import pytest

from confide.accounting import account, binomial, gdp
from confide.accounting.events import (
    NOTHING,
    OPEN,
    ApproximateDpEvent,
    BinomialDpEvent,
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceBothDpEvent,
    LaplaceDpEvent,
    LaplaceL2DpEvent,
    MixedDpEvent,
    PoissonSampledDpEvent,
    RandomParticipationDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    ShuffledDpEvent,
    SkellamDpEvent,
    StaircaseDpEvent,
)
from confide.accounting.relations import Refused, Relation
from confide.accounting.renyi import RenyiAccountant


def repeat(event, count):
    return SelfComposedDpEvent(event, count)


def test_gaussian_is_exact():
    answer = account.epsilon(repeat(GaussianDpEvent(4.0), 100), 1e-5)
    assert answer.accountant == "gdp"
    assert answer.epsilon == gdp.epsilon(2.5, 1e-5)
    assert answer.order is None
    assert answer.reason is None
    back = account.delta(repeat(GaussianDpEvent(4.0), 100), answer.epsilon)
    assert back.delta == pytest.approx(1e-5, rel=1e-9)
    assert back.epsilon == answer.epsilon


def test_losses_before_renyi():
    event = repeat(PoissonSampledDpEvent(0.01, GaussianDpEvent(4.0)), 10_000)
    answer = account.epsilon(event, 1e-5)
    assert answer.accountant == "pld"
    assert answer.epsilon == pytest.approx(0.946867, rel=1e-4)
    renyi = account.epsilon(event, 1e-5, accountant="rdp")
    assert renyi.accountant == "rdp"
    assert renyi.order is not None
    assert renyi.epsilon == pytest.approx(1.035490, rel=1e-3)
    assert "every unit is drawn by its own coin" in answer.assumptions[0]


def test_published_dp_fedsam_numbers():
    event = repeat(PoissonSampledDpEvent(0.1, GaussianDpEvent(0.95)), 300)
    for delta, exact, renyi in ((1 / 500, 9.372458, 10.7948), (1e-5, 13.663601, None)):
        assert account.epsilon(event, delta).epsilon == pytest.approx(exact, rel=1e-4)
        if renyi is not None:
            found = account.epsilon(event, delta, accountant="rdp").epsilon
            assert found == pytest.approx(renyi, rel=1e-3)


@pytest.mark.parametrize(
    ("multiplier", "budget"), [(1.7050, 4), (1.3120, 6), (1.1450, 8), (0.9963, 10)]
)
def test_published_budgets_are_those_of_whole_renyi_orders(multiplier, budget):
    event = repeat(PoissonSampledDpEvent(0.1, GaussianDpEvent(multiplier)), 300)
    whole = RenyiAccountant(Relation.ADD_REMOVE, np.arange(2.0, 65.0)).compose(event)
    assert whole.get_epsilon(1 / 500) == pytest.approx(budget, rel=1e-3)


def test_two_bounds_for_one_noise_take_the_better():
    event = repeat(LaplaceBothDpEvent(1.0, 10.0, 10_000), 50)
    found = account.epsilon(event, 1e-5).epsilon
    l1 = account.epsilon(repeat(LaplaceDpEvent(1.0), 50), 1e-5).epsilon
    l2 = account.epsilon(repeat(LaplaceL2DpEvent(10.0, 10_000), 50), 1e-5).epsilon
    assert found == pytest.approx(l2, rel=1e-3)
    assert found < l1
    assert account.epsilon(LaplaceBothDpEvent(1.0, 1.0, 2), 1e-5).epsilon == pytest.approx(
        account.epsilon(LaplaceDpEvent(1.0), 1e-5).epsilon, rel=1e-3
    )


def test_renyi_for_what_has_no_pair():
    for event in (LaplaceL2DpEvent(3.0, 50), StaircaseDpEvent(0.3, 0.4, 1.0, "l1", 10)):
        answer = account.epsilon(repeat(event, 20), 1e-5)
        assert answer.accountant == "rdp"
        assert 0 < answer.epsilon < math.inf
        delta = account.delta(repeat(event, 20), answer.epsilon)
        assert delta.delta == pytest.approx(1e-5, rel=0.05)
    sampled = SampledWithoutReplacementDpEvent(1000, 50, GaussianDpEvent(2.0))
    answer = account.epsilon(repeat(sampled, 100), 1e-5, Relation.REPLACE_ONE)
    assert answer.accountant == "rdp"
    assert "fixed size" in answer.assumptions[0]


def test_random_participation_by_any_inner_release():
    exact = account.epsilon(RandomParticipationDpEvent(0.1, 300, GaussianDpEvent(0.95)), 0.002)
    assert exact.accountant == "gdp"
    assert exact.epsilon == pytest.approx(35.95, abs=0.005)
    without = RandomParticipationDpEvent(0.2, 20, LaplaceL2DpEvent(3.0, 50))
    worst = account.epsilon(repeat(LaplaceL2DpEvent(3.0, 50), 20), 1e-5)
    found = account.epsilon(without, 1e-5)
    assert found.accountant == "rdp"
    assert 0 < found.epsilon < worst.epsilon


def test_binomial_exact_alone_and_certified_together():
    one = BinomialDpEvent(4000, 0.3, 2, 2, 2, 1)
    assert account.epsilon(one, 1e-5).epsilon == binomial.epsilon(one, 1e-5)
    assert account.epsilon(repeat(one, 1), 1e-5).epsilon == binomial.epsilon(one, 1e-5)
    many = BinomialDpEvent(40_000, 0.5, 5.0, 2.0, 1.0, 100)
    single = account.epsilon(many, 1e-5).epsilon
    assert single <= binomial.certificate(many, 0.9e-5).epsilon * 1.001
    ten = account.epsilon(repeat(many, 10), 1e-5)
    # Summing the ten epsilons and deltas is the worst that composition can cost.
    assert single < ten.epsilon < 10.01 * binomial.certificate(many, 1e-6).epsilon
    back = account.delta(repeat(many, 10), ten.epsilon)
    assert back.delta <= 1e-5 * 1.001
    sampled = repeat(PoissonSampledDpEvent(0.1, many), 10)
    assert account.epsilon(sampled, 1e-5).epsilon < ten.epsilon
    weak = account.epsilon(BinomialDpEvent(100, 0.5, 5.0, 2.0, 1.0, 100), 1e-5)
    assert weak.epsilon == math.inf
    assert "variance" in weak.reason


@pytest.mark.parametrize(
    "event",
    [
        OPEN,
        GaussianDpEvent(0.0),
        repeat(LaplaceDpEvent(0.0), 3),
        ComposedDpEvent([GaussianDpEvent(1.0), OPEN]),
        StaircaseDpEvent(1.0, 0.4, 1.0, "l2", None),
        ApproximateDpEvent(0.1, 0.01),
        PoissonSampledDpEvent(0.1, OPEN),
        PoissonSampledDpEvent(2.0, GaussianDpEvent(1.0)),
        dp.DpEvent(),
        dp.UnsupportedDpEvent(),
        dp.SingleEpochTreeAggregationDpEvent(1.0, 3),
        ComposedDpEvent([GaussianDpEvent(1.0), repeat(dp.UnsupportedDpEvent(), 2)]),
    ],
)
@pytest.mark.parametrize("accountant", ["auto", "pld", "rdp"])
def test_infinite_with_a_reason(event, accountant):
    answer = account.epsilon(event, 1e-5, accountant=accountant)
    assert answer.epsilon == math.inf
    assert answer.reason
    assert answer.order is None


def test_delta_of_an_open_release_is_one():
    answer = account.delta(OPEN, 3.0)
    assert answer.delta == 1
    assert answer.reason


def test_an_open_release_behind_a_rare_coin_is_a_delta():
    assert account.epsilon(MixedDpEvent(1e-7, OPEN), 1e-5).epsilon == 0
    assert account.epsilon(repeat(MixedDpEvent(1e-7, OPEN), 1000), 1e-5).epsilon == math.inf


@pytest.mark.parametrize(
    "event",
    [
        NOTHING,
        ComposedDpEvent([]),
        ComposedDpEvent([NOTHING, NOTHING]),
        repeat(GaussianDpEvent(1.0), 0),
        repeat(GaussianDpEvent(1.0), -2),
        repeat(GaussianDpEvent(1.0), 2.0),
        repeat(GaussianDpEvent(1.0), True),
        GaussianDpEvent(math.nan),
        GaussianDpEvent(-1.0),
        GaussianDpEvent(math.inf),
        repeat(ComposedDpEvent([LaplaceDpEvent(math.nan)]), 2),
    ],
)
def test_refuses_what_cannot_be_meant(event):
    with pytest.raises(Refused):
        account.epsilon(event, 1e-5)
    with pytest.raises(Refused):
        account.delta(event, 1.0)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan, 1, 0])
def test_refuses_a_delta_that_is_none(delta):
    with pytest.raises(Refused, match="delta"):
        account.epsilon(GaussianDpEvent(1.0), delta)


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, math.inf])
def test_refuses_an_epsilon_that_is_none(epsilon):
    with pytest.raises(Refused, match="epsilon"):
        account.delta(GaussianDpEvent(1.0), epsilon)


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0)), Relation.REPLACE_ONE),
        (SampledWithoutReplacementDpEvent(10, 1, GaussianDpEvent(1.0)), Relation.ADD_REMOVE),
        (ShuffledDpEvent(1.0, 100), Relation.ADD_REMOVE),
    ],
)
@pytest.mark.parametrize("accountant", ["auto", "pld", "rdp"])
def test_refuses_a_sampling_of_another_relation(event, relation, accountant):
    with pytest.raises(Refused):
        account.epsilon(repeat(event, 3), 1e-5, relation, accountant)


def test_asked_accountant_is_used_or_refused():
    sampled = PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))
    assert account.epsilon(sampled, 1e-5, accountant="gdp").epsilon == math.inf
    assert account.epsilon(GaussianDpEvent(1.0), 1e-5, accountant="pld").accountant == "pld"
    with pytest.raises(Refused, match="accountant"):
        account.epsilon(sampled, 1e-5, accountant="prv")


@pytest.mark.parametrize("variance", [9.9e8, 1.1e9, 5e9, 2e10])
def test_skellam_noise_of_any_width_has_an_answer(variance: float) -> None:
    """Where its law cannot be written out any more, there is its Renyi curve."""
    shift = round(math.sqrt(variance))
    event = SkellamDpEvent(variance, shift, shift, 1)
    found = account.epsilon(SelfComposedDpEvent(event, 10), 1e-5)
    # So wide a noise is next to a Gaussian one.
    assert found.accountant == ("pld" if variance <= 1e9 else "rdp")
    exact = gdp.epsilon(math.sqrt(10), 1e-5)
    assert exact * (1 - 1e-3) <= found.epsilon <= exact * 1.2
