"""Every noise follows the law that its event speaks of, in each coordinate and jointly."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from catalogue import STEP, own, shared
from confide.accounting import staircase
from confide.accounting.events import (
    BinomialDpEvent,
    DiscreteGaussianDpEvent,
    GaussianDpEvent,
    LaplaceBothDpEvent,
    LaplaceDpEvent,
    LaplaceL2DpEvent,
    PureDpEvent,
    SkellamDpEvent,
    StaircaseDpEvent,
)
from confide.accounting.relations import Relation
from confide.claims import Claim
from confide.randomness.exact import LAPLACE_SLACK
from confide.stages import (
    Binomial,
    Clip,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Quantize,
    RadialStaircase,
    Scale,
    Skellam,
    Stage,
    Staircase,
)

N = 40_000
# Each test draws once with a fixed key; 1e-4 keeps 40 true laws from failing by chance.
LEAST_P = 1e-4


def noise(stage: Stage, place: int = 0, n: int = N) -> NDArray[np.float64]:
    """The noise on a vector that is not zero, with the vector taken off again."""
    x = torch.full((n,), 3 * STEP, dtype=torch.float64)
    return (stage(x, shared, own(place)) - x).numpy()


LAWS = [
    (Gaussian(1.7), stats.norm(scale=1.7).cdf),
    (Laplace(0.6), stats.laplace(scale=0.6).cdf),
    (
        Staircase(1.5, 2.0),
        lambda v: np.asarray(staircase.cdf(v / 2.0, 1.5, staircase.optimal_gamma(1.5, "l2"))),
    ),
    (Staircase(0.5, 1.0, gamma=0.7), lambda v: np.asarray(staircase.cdf(v, 0.5, 0.7))),
]


@pytest.mark.parametrize(("stage", "cdf"), LAWS, ids=lambda a: getattr(a, "__class__", a).__name__)
def test_continuous_noise_has_its_law(stage: Stage, cdf: object) -> None:
    assert stats.kstest(noise(stage), cdf).pvalue > LEAST_P  # pyright: ignore


GRID_LAWS = [
    (DiscreteGaussian(STEP, 3.0), lambda k: np.exp(-(k**2) / 18.0)),
    (Skellam(STEP, 9.0), lambda k: stats.skellam(4.5, 4.5).pmf(k)),
    (Binomial(STEP, 40), lambda k: stats.binom(40, 0.5).pmf(k + 20)),
]


@pytest.mark.parametrize(("stage", "weight"), GRID_LAWS, ids=lambda a: type(a).__name__)
def test_grid_noise_has_its_law(stage: Stage, weight: object) -> None:
    steps = noise(stage) / STEP
    assert np.array_equal(steps, np.round(steps))
    support = np.arange(-60, 61)
    pmf = weight(support)  # pyright: ignore
    pmf = pmf / pmf.sum()
    common = pmf * N >= 10
    seen = np.array([np.sum(steps == k) for k in support])
    observed = np.append(seen[common], N - seen[common].sum())
    expected = np.append(pmf[common], 1 - pmf[common].sum()) * N
    keep = expected > 0
    assert stats.chisquare(observed[keep], expected[keep]).pvalue > LEAST_P


@pytest.mark.parametrize(
    "stage",
    [
        Gaussian(1.0),
        Laplace(1.0),
        Staircase(1.0, 1.0),
        Skellam(STEP, 9.0),
        DiscreteGaussian(STEP, 3),
        Binomial(STEP, 40),
    ],
    ids=lambda s: type(s).__name__,
)
def test_coordinates_are_independent(stage: Stage) -> None:
    """Jointly: no linear or quadratic correlation of neighbours, pairs fill the quadrants."""
    v = noise(stage)
    for lag in (1, 2, 7):
        for f in (np.sign, np.abs, np.square):
            r = np.corrcoef(f(v[:-lag]), f(v[lag:]))[0, 1]
            assert abs(r) < 4.5 / math.sqrt(N)
    pairs = v.reshape(-1, 2)
    pairs = pairs[(pairs != 0).all(1)]
    quadrants = np.bincount((pairs[:, 0] > 0) * 2 + (pairs[:, 1] > 0), minlength=4)
    assert stats.chisquare(quadrants).pvalue > LEAST_P


def test_radial_staircase_has_its_joint_law() -> None:
    """The l1 norm's level has probability proportional to b^k (t_{k+1}^d - t_k^d)."""
    d, epsilon, gamma, n = 3, 1.0, 0.4, 4000
    stage = RadialStaircase(epsilon, 2.0, gamma)
    draws = [(stage(torch.zeros(d, dtype=torch.float64), shared, own(i))) for i in range(n)]
    norms = torch.stack(draws).abs().sum(1).numpy() / 2.0
    edges = np.concatenate([[0.0], gamma + np.arange(60)])
    weight = np.exp(-epsilon * np.arange(60)) * np.diff(edges**d)
    p = weight / weight.sum()
    level = np.floor(norms - gamma).astype(int) + 1
    common = p * n >= 10
    seen = np.bincount(level, minlength=60)[:60]
    observed = np.append(seen[common], n - seen[common].sum())
    expected = np.append(p[common], 1 - p[common].sum()) * n
    assert stats.chisquare(observed, expected).pvalue > LEAST_P
    signs = torch.stack(draws).sign().numpy().astype(int)
    corners = np.bincount(((signs > 0) * [4, 2, 1]).sum(1), minlength=8)
    assert stats.chisquare(corners).pvalue > LEAST_P


@pytest.mark.parametrize("relation", list(Relation))
def test_the_gaussian_divides_by_the_distance(relation: Relation) -> None:
    c = Gaussian(3.0).claim(Clip(1.5).claim(Claim(relation, length=10)))
    assert c.event == GaussianDpEvent(pytest.approx(2.0 / relation.factor, rel=2e-9))
    assert c.event.noise_multiplier <= 2.0 / relation.factor  # pyright: ignore


def test_laplace_uses_the_norms_it_has() -> None:
    start = Claim(Relation.ZERO_OUT, length=10)
    l1 = Laplace(2.0).claim(Clip(1.0, p=1).claim(start))
    l2 = Laplace(2.0).claim(Clip(1.0).claim(start))
    both = Laplace(2.0).claim(Clip(1.0).claim(Clip(2.0, p=1).claim(start)))
    assert isinstance(l1.event, LaplaceDpEvent)
    assert l1.event.noise_multiplier == pytest.approx(2.0 / LAPLACE_SLACK, rel=1e-15)
    assert isinstance(l2.event, LaplaceL2DpEvent)
    assert l2.event.noise_multiplier == pytest.approx(2.0 / LAPLACE_SLACK, rel=1e-15)
    assert l2.event.dim == 10
    assert isinstance(both.event, LaplaceBothDpEvent)
    assert l1.per_coordinate == pytest.approx(0.5)


def test_the_staircase_needs_a_distance_within_its_step() -> None:
    start = Claim(Relation.REPLACE_ONE, length=10)
    near = Staircase(1.0, 2.0).claim(Clip(1.0, p=1).claim(start))
    far = Staircase(1.0, 1.9).claim(Clip(1.0, p=1).claim(start))
    assert isinstance(near.event, StaircaseDpEvent)
    assert (near.event.shift, near.event.norm, near.event.dim) == (1.0, "l1", 10)
    assert far.open
    assert "not within its step" in far.reason
    l2 = Staircase(1.0, 2.0).claim(Clip(1.0).claim(start))
    assert isinstance(l2.event, StaircaseDpEvent)
    assert l2.event.norm == "l2"
    unknown = Staircase(1.0, 2.0).claim(Clip(1.0).claim(Claim(Relation.REPLACE_ONE)))
    assert unknown.open


def test_the_radial_staircase_is_pure_in_l1_only() -> None:
    start = Claim(Relation.REPLACE_ONE, length=10)
    pure = RadialStaircase(0.7, 2.0).claim(Clip(1.0, p=1).claim(start))
    assert pure.event == PureDpEvent(0.7)
    assert RadialStaircase(0.7, 2.0).claim(Clip(1.0).claim(start)).open


def test_grid_noise_counts_in_grid_steps() -> None:
    stages = (Clip(1.0), Quantize(9, 1.0, norm=1.0))
    c = Claim(Relation.REPLACE_ONE, length=6)
    for stage in stages:
        c = stage.claim(c)
    gaussian = DiscreteGaussian(STEP, 4.0).claim(c)
    skellam = Skellam(STEP, 16.0).claim(c)
    binomial = Binomial(STEP, 64).claim(c)
    assert isinstance(gaussian.event, DiscreteGaussianDpEvent)
    assert gaussian.event.l2 == pytest.approx(2 * c.l2 / STEP)
    assert isinstance(skellam.event, SkellamDpEvent)
    assert skellam.event.l1 <= min(6**0.5 * skellam.event.l2, skellam.event.l2**2) * (1 + 1e-12)
    assert isinstance(binomial.event, BinomialDpEvent)
    assert binomial.event.linf == pytest.approx(8.0)


@pytest.mark.parametrize(
    "stage", [DiscreteGaussian(STEP, 4.0), Skellam(STEP, 9.0), Binomial(STEP, 4)]
)
def test_grid_noise_refuses_what_is_off_its_grid(stage: Stage) -> None:
    with pytest.raises(ValueError, match="not on its grid"):
        stage(torch.tensor([0.1]), shared, own(0))
    off = stage.claim(Clip(1.0).claim(Claim(Relation.ZERO_OUT, length=4)))
    assert off.open
    assert "not on its grid" in off.reason
    coarser = Quantize(5, 1.0).claim(Clip(1.0).claim(Claim(Relation.ZERO_OUT, length=4)))
    assert stage.claim(coarser).open


def test_scaling_a_grid_moves_it() -> None:
    c = Quantize(9, 1.0).claim(Claim(Relation.ZERO_OUT, length=4))
    assert not Skellam(2 * STEP, 9.0).claim(Scale(2.0).claim(c)).open
    assert Skellam(STEP, 9.0).claim(Scale(2.0).claim(c)).open


@pytest.mark.parametrize("noise_free", [Gaussian(0.0), Laplace(0.0)])
def test_no_noise_proves_nothing(noise_free: Stage) -> None:
    c = noise_free.claim(Clip(1.0).claim(Claim(Relation.ZERO_OUT, length=4)))
    assert c.open
    x = torch.ones(3)
    assert torch.equal(noise_free(x, shared, own(0)), x)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Gaussian(-1.0), r"Gaussian: std = -1.0"),
        (lambda: Gaussian(math.nan), r"Gaussian: std = nan"),
        (lambda: Laplace(math.inf), r"Laplace: scale = inf"),
        (lambda: Staircase(0.0, 1.0), r"Staircase: epsilon = 0.0"),
        (lambda: Staircase(1.0, 1.0, gamma=1.0), r"gamma = 1.0, allowed is between 0 and 1"),
        (lambda: Binomial(1.0, 3), r"trials = 3, allowed are even"),
        (lambda: Skellam(0.0, 1.0), r"Skellam: step = 0.0"),
    ],
)
def test_a_noise_that_does_not_exist_is_named(build: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()  # pyright: ignore


@pytest.mark.parametrize("stage", [Gaussian(1.0), Laplace(1.0), Staircase(1.0, 1.0)])
def test_integers_are_refused(stage: Stage) -> None:
    with pytest.raises(TypeError, match="floating-point"):
        stage(torch.tensor([1, 2]), shared, own(0))
