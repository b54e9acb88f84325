"""The claim's own rules, on which every stage rests."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.accounting.events import OPEN, GaussianDpEvent, PureDpEvent
from confide.accounting.relations import Relation
from confide.claims import Claim, Noise, rounded_down
from confide.published import udp_crd

positive = st.floats(1e-6, 1e6)


@given(positive, st.integers(1, 10**6))
def test_a_bound_in_one_norm_gives_the_others(bound: float, dim: int) -> None:
    c = Claim(Relation.REPLACE_ONE, length=dim, l2=bound)
    assert c.linf == bound
    assert c.l1 == pytest.approx(math.sqrt(dim) * bound)
    assert Claim(Relation.REPLACE_ONE, length=dim, linf=bound).l2 == pytest.approx(
        math.sqrt(dim) * bound
    )
    assert Claim(Relation.REPLACE_ONE, l1=bound).l2 == bound


@pytest.mark.parametrize("bad", [math.nan, -1.0])
def test_what_is_not_a_bound_is_no_bound(bad: float) -> None:
    assert Claim(Relation.ZERO_OUT, l2=bad).l2 == math.inf


def test_an_event_once_set_is_never_replaced() -> None:
    c = Claim(Relation.ZERO_OUT).released(PureDpEvent(3.0)).released(PureDpEvent(0.1))
    assert c.event == PureDpEvent(3.0)


def test_a_nonlinear_map_forgets_noise_and_noisy_bounds() -> None:
    c = Claim(Relation.REPLACE_ONE, l2=1.0).noised(Noise("gaussian", 4.0))
    after = c.mapped(linf=3.0, shrinks=True)
    assert after.noise is None
    assert not after.noisy
    assert (after.l2, after.linf) == (math.inf, 3.0)


def test_behind_the_channel_a_length_is_half_a_distance() -> None:
    pooled = Claim(Relation.ADD_REMOVE, l2=1.0).pool()
    assert pooled.distance(pooled.l2) == 1.0
    assert pooled.mapped(l2=0.3, shrinks=True).l2 == 0.6


def test_pooling_turns_lengths_into_distances() -> None:
    assert Claim(Relation.REPLACE_ONE, l2=1.0).pool().l2 == 2.0
    assert Claim(Relation.ZERO_OUT, l2=1.0).pool().l2 == 1.0


@given(positive, positive, positive)
def test_scaling_leaves_the_release_alone(bound: float, variance: float, by: float) -> None:
    c = Claim(Relation.REPLACE_ONE, l2=bound).noised(Noise("gaussian", variance))
    scaled = c.scaled(by)
    assert c.noise is not None
    assert scaled.noise is not None
    before, after = c.event_of(c.noise), scaled.event_of(scaled.noise)
    assert isinstance(before, GaussianDpEvent)
    assert isinstance(after, GaussianDpEvent)
    assert after.noise_multiplier == pytest.approx(before.noise_multiplier, rel=1e-8)


@pytest.mark.parametrize("z", [0.1, 1.0, 10.0, 0.5, 2.0, 1.25, 3.7])
def test_a_clip_that_follows_the_answers_leaves_the_multiplier(z: float) -> None:
    """C and noise in proportion: whatever rounding does on the way, the event is the same."""
    found: set[float] = set()
    for C in np.exp(np.random.default_rng(0).normal(size=300)):
        for clients in (8, 10, 60, 3400):
            c = Claim(Relation.ADD_REMOVE, length=3).mapped(l2=C).pool().scaled(1 / clients)
            event = c.event_of(Noise("gaussian", (z * C / clients) ** 2))
            assert isinstance(event, GaussianDpEvent)
            found.add(event.noise_multiplier)
    assert len(found) == 1
    assert z * (1 - 2e-9) <= found.pop() <= z


@given(st.floats(1e-12, 1e12))
def test_a_multiplier_is_rounded_down_and_barely(z: float) -> None:
    assert z * (1 - 2e-9) <= rounded_down(z) <= z


def test_noises_of_different_laws_do_not_add() -> None:
    assert Noise("gaussian", 1.0).plus(Noise("skellam", 1.0)) is None
    assert Noise("binomial", 10, 0.5).plus(Noise("binomial", 10, 0.3)) is None
    assert Noise("skellam", 1.0).plus(Noise("skellam", 2.0)) == Noise("skellam", 3.0)


def test_noise_of_another_law_keeps_what_is_known() -> None:
    c = Claim(Relation.ZERO_OUT, l2=1.0).noised(Noise("gaussian", 4.0)).noised(None)
    assert c.noise == Noise("gaussian", 4.0)


def test_a_refused_claim_keeps_nothing() -> None:
    c = Claim(Relation.ADD_REMOVE, l2=1.0).released(PureDpEvent(1.0)).refused("no")
    assert c.event == OPEN
    assert c.l2 == math.inf
    assert c.reason == "no"


@pytest.mark.parametrize("amount", [0.0, math.inf])
def test_no_event_without_a_finite_positive_noise(amount: float) -> None:
    c = Claim(Relation.ZERO_OUT, length=4, l2=1.0, grid=1.0)
    assert all(c.event_of(Noise(law, amount)) is None for law in ("gaussian", "skellam"))


def test_failures_are_remembered_while_anything_rests_on_them() -> None:
    failing = Claim(Relation.REPLACE_ONE, l2=1.0, fails=0.01)
    assert failing.released(PureDpEvent(1.0)).mapped(l2=1.0).fails == 0.01
    assert failing.mapped(l2=1.0).fails == 0.0


def test_a_published_number_is_not_a_bound() -> None:
    printed = udp_crd.eq_10_sigma(0.1, 1.0, 10, 1.0, 1e-3)
    for field in ("l1", "l2", "linf", "fails", "per_coordinate", "event"):
        with pytest.raises(TypeError):
            Claim(Relation.ZERO_OUT, **{field: printed})  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError):
        PureDpEvent(printed)  # pyright: ignore[reportArgumentType]
