"""Maps without noise: what they do, and that their bounds hold."""

import math

import pytest
import torch

from catalogue import DIM, inputs, own, shared
from confide.accounting.relations import Relation
from confide.claims import Claim, Noise
from confide.stages import Mask, Places, Quantize, RandK, Rotate, Scale, TopK, Unrotate
from confide.stages.maps import hadamard

START = Claim(Relation.REPLACE_ONE, length=DIM, l2=1.0)


def test_top_k_keeps_the_largest() -> None:
    y = TopK(2)(torch.tensor([0.1, -3.0, 2.0, 0.2]), shared, own(0))
    assert y.tolist() == [0.0, -3.0, 2.0, 0.0]
    assert TopK(2).claim(START).l1 == pytest.approx(math.sqrt(2))
    with pytest.raises(ValueError, match="k = 5, allowed is at most the vector's 4"):
        TopK(5)(torch.zeros(4), shared, own(0))
    with pytest.raises(ValueError, match="k = 0"):
        TopK(0)


def test_top_k_after_noise_or_after_the_channel_proves_no_bound() -> None:
    assert TopK(2).claim(START.noised(Noise("gaussian", 1.0))).l2 == math.inf
    assert TopK(2).claim(START.pool()).l2 == math.inf


def test_top_k_is_not_a_contraction() -> None:
    """Why a pooled bound cannot survive it: two close vectors end far apart."""
    a, b = torch.tensor([1.0, 0.999]), torch.tensor([0.999, 1.0])
    far = torch.dist(TopK(1)(a, shared, own(0)), TopK(1)(b, shared, own(0)))
    assert float(far) > 500 * float(torch.dist(a, b))


def test_rand_k_is_one_public_mask() -> None:
    x = torch.arange(1.0, DIM + 1)
    y = RandK(3)(x, shared, own(0))
    assert torch.equal(y, RandK(3)(x, shared, own(99)))
    assert int((y != 0).sum()) == 3
    assert RandK(3).claim(START).dim == 3


def test_a_mask_keeps_its_places() -> None:
    y = Mask((0, 2))(torch.tensor([1.0, 2.0, 3.0]), shared, own(0))
    assert y.tolist() == [1.0, 0.0, 3.0]
    for bad in ((), (1, 1), (-1,)):
        with pytest.raises(ValueError, match="distinct positions"):
            Mask(bad)
    with pytest.raises(ValueError, match="names position 9"):
        Mask((9,))(torch.zeros(3), shared, own(0))


@pytest.mark.parametrize("n", [3, 8, 21])
def test_a_mask_of_bits_is_the_mask_of_its_places(n: int) -> None:
    chosen = torch.arange(n) % 3 == 2
    places = tuple(range(2, n, 3))
    bits, x = Places.of(chosen), torch.arange(1.0, n + 1)
    assert torch.equal(Mask(bits)(x, shared, own(0)), Mask(places)(x, shared, own(0)))
    assert Mask(bits).claim(START) == Mask(places).claim(START)
    assert (len(bits), bits) == (len(places), Places.of(chosen))
    assert repr(bits) != repr(Places.of(~chosen))
    with pytest.raises(ValueError, match="at least one"):
        Mask(Places.of(torch.zeros(n, dtype=torch.bool)))


@pytest.mark.parametrize("n", [1, 5, 8, 1000])
def test_rotation_keeps_lengths_and_is_undone(n: int) -> None:
    x = torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    y = Rotate()(x, shared, own(0))
    assert float(y.norm()) == pytest.approx(float(x.norm()), rel=1e-12)
    back = Unrotate(n)(y, shared, own(5))
    assert torch.allclose(back, x, rtol=0, atol=1e-12)


def test_rotation_spreads_a_spike() -> None:
    x = torch.zeros(1024)
    x[3] = 1.0
    assert float(Rotate()(x, shared, own(0)).abs().max()) == pytest.approx(1 / 32)


def test_rotation_is_the_walsh_hadamard_matrix() -> None:
    h = torch.stack([hadamard(row) for row in torch.eye(8, dtype=torch.float64)])
    assert torch.allclose(h @ h.T, torch.eye(8, dtype=torch.float64), atol=1e-15)
    assert torch.allclose(h.abs(), torch.full((8, 8), 8**-0.5, dtype=torch.float64))


def test_rotation_in_float32_stays_within_its_claim() -> None:
    x = torch.randn(1 << 16, generator=torch.Generator().manual_seed(1))
    start = Claim(Relation.ZERO_OUT, length=x.numel(), l2=float(x.double().norm()))
    c = Rotate().claim(start)
    assert float(Rotate()(x, shared, own(0)).double().norm()) <= c.l2


def test_rotation_keeps_only_gaussian_noise() -> None:
    gaussian = Rotate().claim(START.noised(Noise("gaussian", 1.0)))
    skellam = Rotate().claim(START.noised(Noise("skellam", 1.0)))
    assert gaussian.noise == Noise("gaussian", 1.0)
    assert skellam.noise is None
    assert skellam.noisy


def test_a_rotated_mask_is_dense_again() -> None:
    assert Rotate().claim(Mask((1,)).claim(START)).dim == DIM


def test_unrotate_names_a_wrong_length() -> None:
    with pytest.raises(ValueError, match="padded to 8"):
        Unrotate(5)(torch.zeros(4), shared, own(0))


@pytest.mark.parametrize("failure", [0.0, 0.05])
@pytest.mark.parametrize("norm", [1.0, math.inf])
def test_quantising_keeps_its_norm_and_grid(norm: float, failure: float) -> None:
    stage = Quantize(9, 1.0, norm=norm, failure=failure)
    for place, x in enumerate(inputs()):
        x = torch.nan_to_num(x, 0.0, 0.0, 0.0)
        x = x / max(1.0, float(x.double().norm())) * 0.999
        y = stage(x, shared, own(place))
        assert torch.equal(y, (y / stage.step).round() * stage.step)
        c = stage.claim(START)
        assert c.fails == (failure if norm < math.inf else 0.0)
        if not failure:
            assert float(y.norm()) <= c.l2
        assert float(y.abs().max()) <= c.linf


def test_quantising_is_unbiased() -> None:
    stage = Quantize(5, 1.0)
    x = torch.full((200_000,), 0.3)
    y = stage(x, shared, own(0))
    # 0.3 lies between 0 and 0.5; the standard error of the mean is 0.5 sqrt(.6 .4 / n) = 5.5e-4
    assert float(y.mean()) == pytest.approx(0.3, abs=5 * 5.5e-4)
    assert set(y.unique().tolist()) == {0.0, 0.5}


def test_conditional_rounding_bounds_what_plain_rounding_does_not() -> None:
    """With many coarse coordinates a plain rounding can be much longer than the vector."""
    x = torch.full((1000,), 0.01)
    plain = Quantize(3, 1.0).bound(1000)
    tight = Quantize(3, 1.0, norm=1.0).bound(1000)
    assert plain == math.inf
    assert tight < 1.0 + math.sqrt(1000)
    lengths = [float(Quantize(3, 1.0, norm=1.0)(x, shared, own(i)).norm()) for i in range(50)]
    assert max(lengths) <= tight


def test_unlikely_long_roundings_are_as_rare_as_claimed() -> None:
    stage = Quantize(3, 1.0, norm=1.0, failure=0.2)
    x = torch.full((100,), 0.1)
    long = sum(float(stage(x, shared, own(i)).norm()) > stage.bound(100) for i in range(500))
    assert long <= 0.2 * 500


def test_levels_are_odd() -> None:
    with pytest.raises(ValueError, match="k = 4, allowed are odd numbers"):
        Quantize(4, 1.0)


def test_quantising_what_is_longer_than_norm_only_clamps() -> None:
    c = Quantize(9, 1.0, norm=0.5).claim(START)
    assert c.l2 == pytest.approx(math.sqrt(DIM))


def test_scaling() -> None:
    assert Scale(3.0)(torch.ones(2), shared, own(0)).tolist() == [3.0, 3.0]
    assert Scale(3.0).claim(START).l2 == pytest.approx(3.0, rel=2**-22)
    assert Scale(3.0).claim(START).l2 > 3.0
    with pytest.raises(ValueError, match=r"Scale: by = 0, allowed is from 1e-30"):
        Scale(0)
