"""Clipping: the norms that are claimed, on every kind of vector."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from catalogue import DIM, fold, inputs, own, run, shared
from confide.accounting.relations import Relation
from confide.claims import Claim
from confide.stages import Assume, Clip, ClipLayers, Gaussian, PerClient, Scale

NORMS = (1.0, 2.0, math.inf)


def length(x: torch.Tensor, p: float) -> float:
    return float(torch.linalg.vector_norm(x.double(), p))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("p", NORMS)
def test_no_vector_leaves_the_ball(p: float, dtype: torch.dtype) -> None:
    for x in inputs():
        y = Clip(0.7, p)(x.to(dtype), shared, own(0))
        assert length(y, p) <= 0.7
        assert torch.isfinite(y).all()


@given(
    st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=1, max_size=40),
    st.floats(1e-6, 1e6),
    st.sampled_from(NORMS),
)
def test_the_ball_holds_for_any_vector(values: list[float], C: float, p: float) -> None:
    assert length(Clip(C, p)(torch.tensor(values), shared, own(0)), p) <= C


@pytest.mark.parametrize("size", [1_000_000, 11_000_000])
def test_a_long_float32_vector_is_not_underestimated(size: int) -> None:
    # torch's float32 norm of this vector is low by 4e-4, so clipping with it would exceed C.
    x = torch.full((size,), 0.1, dtype=torch.float32)
    y = Clip(1.0)(x, shared, own(0))
    assert 1 - 2e-6 <= length(y, 2) <= 1.0


def test_short_vectors_are_left_alone() -> None:
    x = torch.tensor([0.3, -0.4])
    assert torch.equal(Clip(1.0)(x, shared, own(0)), x)


def test_nan_and_infinity_become_zero_before_the_norm() -> None:
    x = torch.tensor([float("nan"), 3.0, float("inf"), 4.0])
    y = Clip(1.0)(x, shared, own(0))
    assert y.tolist() == pytest.approx([0.0, 0.6, 0.0, 0.8], rel=1e-6)


@pytest.mark.parametrize("p", NORMS)
def test_layers_are_clipped_one_by_one(p: float) -> None:
    stage = ClipLayers((0.5, 2.0), (3, 5), p)
    for x in inputs():
        y = stage(x, shared, own(0))
        assert length(y[:3], p) <= 0.5
        assert length(y[3:], p) <= 2.0
        c = stage.claim(Claim(Relation.REPLACE_ONE, length=DIM))
        assert length(y, 1) <= c.l1 * (1 + 1e-12)
        assert length(y, 2) <= c.l2 * (1 + 1e-12)


def test_layer_norms_add_up_in_each_norm() -> None:
    """Review A5: sqrt(M) C is the l2 row; l1 layers give M C; l2 layers C sum sqrt(d_l) in l1."""
    start = Claim(Relation.ZERO_OUT, length=8)
    assert ClipLayers(1.0, (4, 4)).claim(start).l2 == pytest.approx(math.sqrt(2))
    assert ClipLayers(1.0, (4, 4), p=1).claim(start).l1 == 2.0
    assert ClipLayers(1.0, (4, 4)).claim(start).l1 == pytest.approx(min(4.0, 8**0.5 * 2**0.5))


def test_layers_that_do_not_match_are_named() -> None:
    with pytest.raises(ValueError, match="sizes add up to 7, but the vector has 8"):
        ClipLayers(1.0, (3, 4))(torch.zeros(8), shared, own(0))
    c = ClipLayers(1.0, (3, 4)).claim(Claim(Relation.ZERO_OUT, length=8))
    assert c.l2 == math.inf


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True, "1"])
def test_a_clipping_norm_is_positive(bad: float) -> None:
    with pytest.raises(ValueError, match=r"Clip: C = .*allowed is a finite number above 0"):
        Clip(bad)


def test_integers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"torch.int64, allowed are floating-point"):
        Clip(1.0)(torch.tensor([1, 2]), shared, own(0))


def test_an_assumption_is_printed_downstream() -> None:
    c = fold((Assume("eq. (13)", l2=0.5), Gaussian(1.0)), Claim(Relation.ZERO_OUT, length=4))
    assert not c.open
    assert "eq. (13)" in c.assumptions
    with pytest.raises(ValueError, match="why is empty"):
        Assume(" ", l2=1.0)
    with pytest.raises(ValueError, match="all are infinite"):
        Assume("eq. (1)")


def test_a_column_must_be_resolved() -> None:
    stage = Clip(PerClient((1.0, 2.0)))
    assert stage.for_client(1) == Clip(2.0)
    with pytest.raises(TypeError, match="resolved with for_client"):
        stage.claim(Claim(Relation.ZERO_OUT))
    with pytest.raises(ValueError, match=r"C = -2\.0"):
        Clip(PerClient((1.0, -2.0)))


def test_clipping_twice_in_different_norms_keeps_both() -> None:
    stages = (Clip(1.0), Clip(1.0, p=1))
    c = fold(stages, Claim(Relation.ZERO_OUT, length=DIM))
    assert (c.l1, c.l2) == (1.0, 1.0)
    for x in inputs():
        assert length(run(stages, x), 1) <= 1.0


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("size", [1e-38, 1.0, 3.4e38])
def test_the_ball_holds_at_the_ends_of_float32(C: float, size: float) -> None:
    y = Clip(C)(torch.full((5,), size), shared, own(0))
    assert length(y, 2) <= C


def test_bounds_outside_of_what_single_precision_holds_are_none() -> None:
    c = Claim(Relation.ZERO_OUT, length=4, l2=1.0)
    assert c.scaled(1e31).l2 == math.inf
    assert c.scaled(1e-40).l2 == 1e-30
    huge = fold((Clip(1.0), Scale(1e30), Scale(1e30), Gaussian(1e60)), c)
    assert huge.open
