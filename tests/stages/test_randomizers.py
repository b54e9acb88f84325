"""Local randomisers: their laws, their expectations, and the ratio that is their epsilon."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from catalogue import own, shared
from confide.accounting.events import PureDpEvent, SelfComposedDpEvent
from confide.accounting.relations import Relation
from confide.claims import Claim
from confide.stages import BallRandomizer, Ordinal, RandomizedResponse, TwoPoint
from confide.stages.randomizers import MOST, ROUNDING

N = 40_000
LEAST_P = 1e-4


def ordinal_rows(k: int, epsilon: float) -> np.ndarray:
    i = np.arange(k)
    weight = np.exp(-epsilon / (k - 1) * np.abs(i[:, None] - i))
    return weight / weight.sum(1, keepdims=True)


@pytest.mark.parametrize("k", [2, 3, 5, 17])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_ordinal_mechanism_is_exactly_its_epsilon(k: int, epsilon: float) -> None:
    rows = ordinal_rows(k, epsilon)
    worst = np.log(rows[:, None, :] / rows[None, :, :]).max()
    assert worst == pytest.approx(epsilon, rel=1e-12)


def test_the_ordinal_sampler_follows_its_rows() -> None:
    y = Ordinal(5, 1.0, 1.0)(torch.full((N,), 0.5), shared, own(0)).numpy()
    level = np.round((y + 1) * 2).astype(int)
    expected = ordinal_rows(5, 1.0)[3] * N
    assert stats.chisquare(np.bincount(level, minlength=5), expected).pvalue > LEAST_P


def test_randomised_response_follows_its_law() -> None:
    k, epsilon = 3, 0.8
    y = RandomizedResponse(k, 1.0, epsilon)(torch.full((N,), 0.9), shared, own(0)).numpy()
    stay = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    seen = np.bincount(np.round(y + 1).astype(int), minlength=k)
    expected = np.array([(1 - stay) / 2, (1 - stay) / 2, stay]) * N
    assert stats.chisquare(seen, expected).pvalue > LEAST_P
    assert stay / ((1 - stay) / (k - 1)) == pytest.approx(math.exp(epsilon))


@pytest.mark.parametrize(
    ("stage", "levels"),
    [
        (RandomizedResponse(3, 1.0, 0.8), 3),
        (TwoPoint(1.0, 0.8), 2),
        (Ordinal(5, 1.0, 0.8), 5),
    ],
    ids=lambda a: type(a).__name__,
)
def test_neighbouring_entries_are_jointly_independent(stage: object, levels: int) -> None:
    """Composition over entries needs every pair of outputs to follow the product of their laws."""
    y = stage(torch.full((N,), 0.3), shared, own(0)).numpy()  # pyright: ignore
    level = np.unique(np.round(y, 9), return_inverse=True)[1]
    one = np.bincount(level, minlength=levels) / N
    for pairs in (level.reshape(-1, 2), np.stack([level[: N // 2], level[N // 2 :]], 1)):
        table = np.bincount(pairs[:, 0] * levels + pairs[:, 1], minlength=levels**2)
        expected = np.outer(one, one).ravel() * len(pairs)
        drawn = stats.chisquare(table, expected, ddof=levels - 1)
        assert drawn.pvalue > LEAST_P


@pytest.mark.parametrize("x", [-1.0, -0.2, 0.7])
def test_the_two_point_bit_follows_its_law(x: float) -> None:
    stage = TwoPoint(1.0, 1.0)
    up = int((stage(torch.full((N,), x), shared, own(1)) > 0).sum())
    assert stats.binomtest(up, N, 0.5 + x / (2 * stage.A)).pvalue > LEAST_P


@pytest.mark.parametrize("x", [-1.0, -0.2, 0.0, 0.7, 1.0])
def test_the_two_point_bit_is_unbiased(x: float) -> None:
    stage = TwoPoint(1.0, 1.0)
    y = stage(torch.full((N,), x), shared, own(0))
    assert set(y.abs().unique().tolist()) == {stage.A}
    assert float(y.mean()) == pytest.approx(x, abs=4.5 * stage.A / math.sqrt(N))
    p = 0.5 + 1.0 / (2 * stage.A)
    assert p / (1 - p) == pytest.approx(math.exp(1.0))


@pytest.mark.parametrize("length", [0.0, 0.4, 1.0])
def test_the_ball_randomiser_is_unbiased(length: float) -> None:
    stage, d, n = BallRandomizer(1.0, 2.0), 4, 4000
    x = torch.zeros(d)
    x[1] = length
    y = torch.stack([stage(x, shared, own(i)) for i in range(n)])
    assert y.norm(dim=1).numpy() == pytest.approx(stage.radius(d), rel=1e-12)
    error = 4.5 * stage.radius(d) / math.sqrt(d * n)
    assert y.mean(0).numpy() == pytest.approx(x.numpy(), abs=error)


def test_the_ball_randomiser_reveals_only_a_half_sphere() -> None:
    """At the rim the facing half has probability e^eps/(1+e^eps), uniform within each half."""
    epsilon, n = 1.0, 4000
    stage = BallRandomizer(1.0, epsilon)
    y = torch.stack([stage(torch.tensor([1.0, 0.0, 0.0]), shared, own(i)) for i in range(n)])
    along = (y[:, 0] / stage.radius(3)).numpy()
    facing = int((along > 0).sum())
    p = 1 / (1 + math.exp(-epsilon))
    assert stats.binomtest(facing, n, p).pvalue > LEAST_P
    # On the sphere in three dimensions a coordinate is uniform (Archimedes).
    assert stats.kstest(np.abs(along), stats.uniform().cdf).pvalue > LEAST_P


@pytest.mark.parametrize(
    "stage", [RandomizedResponse(3, 1.0, 0.5), TwoPoint(1.0, 0.5), Ordinal(5, 1.0, 0.5)]
)
def test_entries_compose(stage: object) -> None:
    c = stage.claim(Claim(Relation.REPLACE_ONE, length=7))  # pyright: ignore
    assert isinstance(c.event, SelfComposedDpEvent)
    assert c.event.count == 7
    assert c.per_coordinate == 0.5 + ROUNDING
    unknown = stage.claim(Claim(Relation.REPLACE_ONE))  # pyright: ignore
    assert unknown.open
    assert "number of entries is unknown" in unknown.reason


def test_the_ball_is_one_release_of_any_dimension() -> None:
    c = BallRandomizer(1.0, 0.5).claim(Claim(Relation.REPLACE_ONE))
    assert c.event == PureDpEvent(0.5 + ROUNDING)


def test_coins_are_fine_enough_for_every_epsilon_allowed() -> None:
    """A coin of 53 bits moves the least probability by less than ROUNDING of itself."""
    least = 1 / (1 + math.exp(MOST))
    assert 2 * 2**-53 / least < ROUNDING
    for kind in (TwoPoint, BallRandomizer):
        with pytest.raises(ValueError, match="above 0 and at most 20"):
            kind(1.0, MOST + 1)


def test_randomised_response_is_pure_where_its_curve_is_another() -> None:
    """Zero against x is two levels; only replace-one has the k-ary curve."""
    stage = RandomizedResponse(3, 1.0, 1.0)
    zeroed = stage.claim(Claim(Relation.ZERO_OUT, length=1)).event
    assert zeroed == PureDpEvent(1.0 + ROUNDING)


@pytest.mark.parametrize("kind", [TwoPoint, BallRandomizer])
@pytest.mark.parametrize("bad", [(0.0, 1.0), (1.0, -1.0), (math.nan, 1.0)])
def test_bad_numbers_are_named(kind: type, bad: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="allowed is a finite number above 0"):
        kind(*bad)
