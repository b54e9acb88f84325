from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats

from confide.randomness import Key, Stream
from confide.randomness.floating import l1_sphere, radial_staircase, sphere, staircase
from goodness import LEAST_P, chi_square, kolmogorov

Floats = NDArray[np.float64]


def stream(purpose: str) -> Stream:
    return Key.from_seed(78).stream(0, None, purpose)


def drops(size: Floats, step: float, gamma: float) -> Floats:
    """How often the density has dropped before this distance from 0, from its definition."""
    return np.where(size < gamma * step, 0, np.floor(size / step - gamma) + 1)


def staircase_cdf(epsilon: float, step: float, gamma: float) -> object:
    """Interpolate the integral of the density, which is linear between its drops."""
    levels = np.arange(math.ceil(40 / epsilon) + 2)
    edges = np.concatenate([[0.0], (levels + gamma) * step])
    masses = np.exp(-epsilon * levels) * np.diff(edges)
    heights = np.concatenate([[0.0], np.cumsum(masses)]) / masses.sum()

    def cdf(x: Floats) -> Floats:
        inside = np.interp(np.abs(x), edges, heights)
        return 0.5 + np.sign(x) * inside / 2

    return cdf


SCALARS = [
    (0.1, 1.0, 0.48),
    (1.0, 2.5, 0.3775),
    (1.0, 1.0, 0.0),
    (1.0, 1.0, 1.0),
    (4.0, 1.0, 0.12),
    (6.0, 0.01, 0.9),
    (1e-3, 1.0, 0.5),
]


@pytest.mark.parametrize(("epsilon", "step", "gamma"), SCALARS)
def test_the_scalar_law(epsilon: float, step: float, gamma: float) -> None:
    draws = staircase(stream("scalar"), 400_000, epsilon, step, gamma)
    assert kolmogorov(draws, staircase_cdf(epsilon, step, gamma)) > LEAST_P


@pytest.mark.parametrize(("epsilon", "step", "gamma"), SCALARS[1:2] + SCALARS[4:5])
def test_the_scalar_law_level_by_level(epsilon: float, step: float, gamma: float) -> None:
    """Far levels are invisible to a Kolmogorov test: count them, and the density's flatness too."""
    n = 1_000_000
    draws = np.abs(staircase(stream("levels"), n, epsilon, step, gamma))
    level = drops(draws, step, gamma).astype(int)
    last = int(math.log(n / 100) / epsilon)
    lengths = np.where(np.arange(last) == 0, gamma, 1.0)
    masses = np.exp(-epsilon * np.arange(last)) * lengths
    masses /= gamma + math.exp(-epsilon) / (1 - math.exp(-epsilon))
    counts = np.bincount(np.minimum(level, last), minlength=last + 1)
    assert chi_square(counts, np.append(masses, 1 - masses.sum())) > LEAST_P
    within = (draws[level >= 1] / step - gamma) % 1
    assert kolmogorov(within, stats.uniform.cdf) > LEAST_P


def test_coordinates_of_the_product_are_independent() -> None:
    pair = staircase(stream("product"), (200_000, 2), 1.0, 1.0, 0.3775)
    cdf = staircase_cdf(1.0, 1.0, 0.3775)
    cells = np.minimum((cdf(pair) * 6).astype(int), 5)
    counts = np.bincount(cells[:, 0] * 6 + cells[:, 1], minlength=36)
    assert chi_square(counts, np.full(36, 1 / 36)) > LEAST_P


RADIAL = [
    (1, 1.0, 1.0, 0.3775),
    (2, 1.0, 2.0, 0.3775),
    (3, 0.3, 1.0, 0.0),
    (3, 5.0, 1.0, 1.0),
    (5, 3.0, 0.1, 0.182),
    (40, 2.0, 1.0, 0.27),
    (1000, 0.5, 1.0, 0.44),
    (2, 30.0, 1.0, 0.5),
]


@pytest.mark.parametrize(("dim", "epsilon", "step", "gamma"), RADIAL)
def test_the_norm_of_the_radial_law(dim: int, epsilon: float, step: float, gamma: float) -> None:
    count = max(1000, 200_000 // dim)
    norms = np.abs(radial_staircase(stream("radial"), (count, dim), epsilon, step, gamma)).sum(-1)
    # Integrate the density r**(dim - 1) exp(-epsilon drops(r)) numerically, piece by piece.
    top = (dim + 12 * math.sqrt(dim) + 40) / epsilon + 3
    edges = np.concatenate([[0.0], np.arange(math.ceil(top)) + gamma])
    points = (edges[:-1, None] + np.diff(edges)[:, None] * np.linspace(0, 1, 65)[None, :-1]).ravel()
    middle = np.append((points[1:] + points[:-1]) / 2, points[-1])
    log_density = (dim - 1) * np.log(np.maximum(middle, 1e-300)) - epsilon * drops(
        middle, 1.0, gamma
    )
    density = np.exp(log_density - log_density.max())
    mass = np.append(0.0, np.cumsum(density[:-1] * np.diff(points)))
    # The midpoint rule on 64 points a step is right to 1e-4, a tenth of what the test resolves.
    assert kolmogorov(norms / step, lambda r: np.interp(r, points, mass / mass[-1])) > LEAST_P


def test_one_dimension_is_the_scalar_law() -> None:
    draws = radial_staircase(stream("line"), (200_000, 1), 1.5, 2.0, 0.4)[:, 0]
    assert kolmogorov(draws, staircase_cdf(1.5, 2.0, 0.4)) > LEAST_P


def test_the_radial_law_jointly() -> None:
    """Cells of the plane against a double integral of the joint density."""
    epsilon, gamma = 1.0, 0.3775
    draws = radial_staircase(stream("joint"), (200_000, 2), epsilon, 1.0, gamma)
    edges = np.array([-np.inf, -2.0, -0.7, 0.0, 0.4, 1.1, 2.5, np.inf])
    cells = [np.searchsorted(edges[1:-1], draws[:, i]) for i in (0, 1)]
    counts = np.bincount(cells[0] * 7 + cells[1], minlength=49)
    grid = (np.arange(-1800, 1800) + 0.5) / 100  # to +-18; outside is a mass below 1e-6
    density = np.exp(-epsilon * drops(np.abs(grid)[:, None] + np.abs(grid)[None, :], 1.0, gamma))
    which = np.searchsorted(edges[1:-1], grid)
    split = np.searchsorted(which, np.arange(7))
    mass = np.add.reduceat(np.add.reduceat(density, split, 0), split, 1)
    assert chi_square(counts, (mass / mass.sum()).ravel()) > LEAST_P


def test_a_huge_dimension_works() -> None:
    dim = 300_000
    x = radial_staircase(stream("huge"), dim, 0.5, 1.0, 0.4)
    assert x.shape == (dim,)
    # The norm is Gamma(dim) / epsilon to within a step: mean dim / epsilon, deviation sqrt(dim).
    assert abs(np.abs(x).sum() * 0.5 - dim) < 5 * math.sqrt(dim)


def test_steps_that_vanish_are_refused() -> None:
    with pytest.raises(ValueError, match="epsilon=1e-06 is too small for dim=10000"):
        radial_staircase(stream("x"), 10_000, 1e-6, 1.0, 0.5)


@pytest.mark.parametrize("dim", [1, 2, 3, 10])
def test_sphere(dim: int) -> None:
    points = sphere(stream("sphere"), (100_000, dim))
    np.testing.assert_allclose((points**2).sum(-1), 1, rtol=1e-12)
    if dim == 1:
        assert stats.binomtest(int((points > 0).sum()), len(points)).pvalue > LEAST_P
        return
    # One coordinate of a uniform direction, squared, is Beta(1/2, (dim - 1)/2).
    law = stats.beta(0.5, (dim - 1) / 2)
    for axis in range(dim):
        assert kolmogorov(points[:, axis] ** 2, law.cdf) > LEAST_P
    oblique = points @ np.full(dim, dim**-0.5)
    assert kolmogorov(oblique**2, law.cdf) > LEAST_P
    assert stats.binomtest(int((oblique > 0).sum()), len(oblique)).pvalue > LEAST_P


@pytest.mark.parametrize("dim", [2, 5])
def test_l1_sphere(dim: int) -> None:
    points = l1_sphere(stream("l1"), (100_000, dim))
    np.testing.assert_allclose(np.abs(points).sum(-1), 1, rtol=1e-12)
    for axis in range(dim):
        assert kolmogorov(np.abs(points[:, axis]), stats.beta(1, dim - 1).cdf) > LEAST_P
    octants = ((points > 0) @ (1 << np.arange(dim))).astype(int)
    counts = np.bincount(octants, minlength=1 << dim)
    assert chi_square(counts, np.full(1 << dim, 0.5**dim)) > LEAST_P


@given(
    st.floats(0.05, 20),
    st.floats(0, 1),
    st.integers(1, 50),
)
def test_every_draw_is_finite(epsilon: float, gamma: float, dim: int) -> None:
    assert np.all(np.isfinite(staircase(stream("finite"), dim, epsilon, 1.0, gamma)))
    assert np.all(np.isfinite(radial_staircase(stream("finite"), dim, epsilon, 1.0, gamma)))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_parameters_are_refused(bad: float) -> None:
    for draw in (staircase, radial_staircase):
        with pytest.raises(ValueError, match="epsilon="):
            draw(stream("x"), 3, bad, 1.0, 0.5)
        with pytest.raises(ValueError, match="step="):
            draw(stream("x"), 3, 1.0, bad, 0.5)
    for gamma in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="gamma="):
            staircase(stream("x"), 3, 1.0, 1.0, gamma)


@pytest.mark.parametrize("shape", [0, (), (3, 0)])
def test_vectors_without_a_dimension_are_refused(shape: int | tuple[int, ...]) -> None:
    for draw in (sphere, l1_sphere):
        with pytest.raises(ValueError, match="must end with a dimension"):
            draw(stream("x"), shape)


def test_the_reference_agrees_with_quadrature() -> None:
    """The cdf that the tests rely on, against an integral of the density."""
    epsilon, gamma = 1.3, 0.4
    breaks = [k + gamma for k in range(30)]
    density = lambda x: math.exp(-epsilon * float(drops(np.array(x), 1.0, gamma)))  # noqa: E731
    total = integrate.quad(density, 0, 30, points=breaks[:-1], limit=200)[0]
    for x in (0.1, 0.4, 1.7, 3.0):
        inside = [b for b in breaks if b < x]
        part = integrate.quad(density, 0, x, points=inside or None)[0]
        cdf = staircase_cdf(epsilon, 1.0, gamma)
        assert cdf(np.array(x)) == pytest.approx(0.5 + part / total / 2, rel=1e-9)
