"""What a channel, an aggregate and a sampler prove."""

import math

import pytest

from confide.accounting.events import (
    OPEN,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    PureDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    ShuffledDpEvent,
)
from confide.accounting.relations import Relation
from confide.aggregates import Mean, MeanOfPresent, WeightedMean
from confide.channels import EVERYONE, SHARES, Each, Shuffle, Sum
from confide.claims import Claim, Noise
from confide.cohorts import All, Epoch, Fixed, Poisson
from confide.randomness import Key
from confide.stages import BallRandomizer, Clip, Gaussian, Laplace, Stage, TopK, TwoPoint
from confide.stages.randomizers import ROUNDING


def claim(relation: Relation, *stages: Stage, length: int = 4) -> Claim:
    c = Claim(relation, length=length)
    for stage in stages:
        c = stage.claim(c)
    return c


def multiplier(c: Claim) -> float:
    assert isinstance(c.event, GaussianDpEvent)
    return c.event.noise_multiplier


def test_each_speaks_only_of_replacement() -> None:
    assert multiplier(Each().claim(claim(Relation.REPLACE_ONE, Clip(1.0), Gaussian(2.0)), 10)) == (
        pytest.approx(1.0, rel=2e-9)
    )
    assert Each().claim(claim(Relation.ZERO_OUT, Clip(1.0), Gaussian(2.0)), 10).open


@pytest.mark.parametrize(("relation", "z"), [(Relation.ZERO_OUT, 6.0), (Relation.REPLACE_ONE, 3.0)])
def test_a_sum_adds_noise_shares(relation: Relation, z: float) -> None:
    c = Sum().claim(claim(relation, Clip(1.0), Gaussian(2.0)), 9)
    assert multiplier(c) == pytest.approx(z, rel=2e-9)
    assert EVERYONE in c.assumptions


def test_a_sum_counts_only_guaranteed_survivors() -> None:
    """Review C6: z sqrt(h) at the enforced minimum."""
    c = Sum(survivors=4).claim(claim(Relation.ZERO_OUT, Clip(1.0), Gaussian(2.0)), 9)
    assert multiplier(c) == pytest.approx(4.0, rel=2e-9)
    assert any("4 members" in a for a in c.assumptions)
    with pytest.raises(ValueError, match="survivors = 0"):
        Sum(survivors=0)


def test_noise_shares_under_add_remove_are_refused() -> None:
    """Review A1: the removed client takes its noise along."""
    c = Sum().claim(claim(Relation.ADD_REMOVE, Clip(1.0), Gaussian(2.0)), None)
    assert c.open
    assert c.reason == SHARES
    # and no later noise mends it: the two worlds' noise differs in law
    assert Gaussian(100.0).claim(c).open


def test_a_sum_of_signals_is_bounded_under_add_remove() -> None:
    c = Sum().claim(claim(Relation.ADD_REMOVE, Clip(1.0)), None)
    assert multiplier(Gaussian(3.0).claim(c)) == pytest.approx(3.0, rel=2e-9)


def test_a_step_after_the_noise_voids_the_shares() -> None:
    """Review C7: top-k of a noisy report is not a function of the noisy sum."""
    own = claim(Relation.ZERO_OUT, Clip(1.0), Gaussian(2.0), TopK(2))
    assert multiplier(Sum().claim(own, 9)) == pytest.approx(2.0, rel=2e-9)


def test_an_aborted_round_tells_how_many_came() -> None:
    c = Sum(survivors=4).claim(claim(Relation.ADD_REMOVE, Clip(1.0)), None)
    assert c.open
    assert "aborted" in c.reason


def test_a_zero_contribution_behind_noise_is_not_zero() -> None:
    """Clip(x + n) and Clip(0 + n) are up to 2 C apart; so are a randomised x and 0."""
    for stages in ((Gaussian(9.0), Clip(1.0)), (TwoPoint(1.0, 8.0), Clip(1.0))):
        c = claim(Relation.ZERO_OUT, *stages)
        assert c.distance(c.l2) == 2.0
        removed = claim(Relation.ADD_REMOVE, *stages)
        assert removed.distance(removed.l2) == 1.0


def test_noise_without_a_bound_stays_open_through_a_sum() -> None:
    assert Sum().claim(claim(Relation.ZERO_OUT, Gaussian(2.0)), 9).open


def test_shares_of_laplace_do_not_add() -> None:
    one = claim(Relation.ZERO_OUT, Clip(1.0, p=1), Laplace(2.0))
    assert Sum().claim(one, 9).event == one.event


def test_clipping_a_sum_bounds_half_the_distance() -> None:
    """Batch clip for example clip: two sums of norm C can be 2 C apart, also under add-remove."""
    c = Clip(1.0).claim(Sum().claim(claim(Relation.ADD_REMOVE), None))
    assert multiplier(Gaussian(3.0).claim(c)) == pytest.approx(1.5, rel=2e-9)


def test_shuffling_amplifies_only_pure_randomisers() -> None:
    ball = claim(Relation.REPLACE_ONE, BallRandomizer(1.0, 1.0))
    assert Shuffle().claim(ball, 1000).event == ShuffledDpEvent(1.0 + ROUNDING, 1000)
    gaussian = claim(Relation.REPLACE_ONE, Clip(1.0), Gaussian(2.0))
    after = Shuffle().claim(gaussian, 1000)
    assert after.event == gaussian.event
    assert any("buys nothing" in a for a in after.assumptions)
    assert Shuffle().claim(ball, None).event == PureDpEvent(1.0 + ROUNDING)
    assert Shuffle().claim(ball, 1).event == PureDpEvent(1.0 + ROUNDING)


def test_shuffling_each_coordinate_composes_over_coordinates() -> None:
    bits = claim(Relation.REPLACE_ONE, TwoPoint(1.0, 0.5), length=6)
    whole = Shuffle().claim(bits, 1000)
    each = Shuffle("coordinate").claim(bits, 1000)
    assert whole.event == ShuffledDpEvent(6 * (0.5 + ROUNDING), 1000)
    assert each.event == SelfComposedDpEvent(ShuffledDpEvent(0.5 + ROUNDING, 1000), 6)
    mixed = claim(Relation.REPLACE_ONE, BallRandomizer(1.0, 1.0))
    assert Shuffle("coordinate").claim(mixed, 1000).event == PureDpEvent(1.0 + ROUNDING)
    laplace = claim(Relation.REPLACE_ONE, Clip(1.0, p=1), Laplace(4.0))
    shuffled = Shuffle().claim(laplace, 100).event
    assert isinstance(shuffled, ShuffledDpEvent)
    assert shuffled.epsilon == pytest.approx(0.5)
    with pytest.raises(ValueError, match="per = 'layer'"):
        Shuffle("layer")


@pytest.mark.parametrize("relation", list(Relation))
def test_division_by_who_came_is_refused_under_add_remove(relation: Relation) -> None:
    """Review C1."""
    c = MeanOfPresent().claim(claim(relation, Clip(1.0)).pool(), 10.0)
    if relation is Relation.ADD_REMOVE:
        assert c.open
        assert "divide by the expected size" in c.reason
        assert Gaussian(5.0).claim(c).open
    else:
        assert multiplier(Gaussian(4.0).claim(c)) == pytest.approx(4.0 / relation.factor, rel=2e-9)


def test_division_by_a_public_number_scales() -> None:
    c = Mean().claim(claim(Relation.ADD_REMOVE, Clip(1.0)).pool(), 50.0)
    assert c.l2 == pytest.approx(0.02)
    with pytest.raises(ValueError, match="by = 0"):
        Mean(0)


def test_weights_need_a_cap_and_keep_shares_apart() -> None:
    """Review C2."""
    c = WeightedMean(cap=3.0, by=30.0).claim(claim(Relation.ZERO_OUT, Clip(1.0)).pool(), 10.0)
    assert c.l2 == pytest.approx(0.1)
    assert "data sizes are public" in c.assumptions
    with pytest.raises(ValueError, match="without a public cap"):
        WeightedMean(cap=math.inf, by=1.0)


STREAM = Key.from_seed(3)


@pytest.mark.parametrize("sampler", [All(), Poisson(0.2), Fixed(7), Epoch(7)])
def test_a_sampler_draws_what_it_accounts_for(sampler: All | Poisson | Fixed | Epoch) -> None:
    draws = [sampler.draw(STREAM.stream(t, None, "cohort"), 50) for t in range(400)]
    assert all(
        len(set(d.tolist())) == len(d) and d.min() >= 0 and d.max() < 50 for d in draws if len(d)
    )
    sizes = {len(d) for d in draws}
    hits = sum((d == 11).any() for d in draws)
    if isinstance(sampler, Poisson):
        assert len(sizes) > 5
        assert abs(hits - 80) < 4.5 * math.sqrt(400 * 0.2 * 0.8)
    elif isinstance(sampler, Fixed):
        assert sizes == {7}
        assert abs(hits - 56) < 4.5 * math.sqrt(400 * 0.14 * 0.86)
    else:
        assert sizes == {50 if isinstance(sampler, All) else 49}


def test_sampler_and_relation_are_one_object() -> None:
    event = GaussianDpEvent(1.0)
    assert Poisson(0.1).relation is Relation.ADD_REMOVE
    assert Poisson(0.1).amplify(event, 50) == PoissonSampledDpEvent(0.1, event)
    assert Fixed(5).relation is Relation.REPLACE_ONE
    assert Fixed(5).amplify(event, 50) == SampledWithoutReplacementDpEvent(50, 5, event)
    for plain in (All(), Epoch(5)):
        assert plain.relation is Relation.REPLACE_ONE
        assert plain.amplify(event, 50) == event


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Poisson(0.0), "q = 0.0"),
        (lambda: Poisson(1.5), "q = 1.5"),
        (lambda: Poisson(math.nan), "q = nan"),
        (lambda: Fixed(0), "m = 0"),
        (lambda: Fixed(True), "m = True"),
        (lambda: Epoch(0), "m = 0"),
        (lambda: Fixed(60).rate(50), "m = 60, allowed is at most the number of units, 50"),
        (lambda: Epoch(60).batches(50), "m = 60"),
        (lambda: All(at_most=0), "at_most = 0"),
    ],
)
def test_a_sampler_that_cannot_be_is_named(build: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()  # pyright: ignore


def test_tracked_noise_is_scaled_with_the_sum() -> None:
    c = Mean(3.0).claim(Sum().claim(claim(Relation.ZERO_OUT, Gaussian(2.0)), 9), 1.0)
    assert c.event == OPEN
    assert c.noise == Noise("gaussian", pytest.approx(4.0))
