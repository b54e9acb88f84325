"""A pair on a grid keeps both laws' mass and is never harder to tell apart than it was."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from confide.accounting import gdp
from confide.accounting.pairs import LaplaceLoss, NormalLoss, atoms, continuous


def hockey_stick(grid, epsilon):
    losses = grid.width * (grid.first + np.arange(len(grid.mass)))
    return grid.infinite + float((grid.mass * np.maximum(-np.expm1(epsilon - losses), 0)).sum())


def totals(grid):
    losses = grid.width * (grid.first + np.arange(len(grid.mass)))
    return float(grid.mass.sum()) + grid.infinite, float((grid.mass * np.exp(-losses)).sum())


laws = st.lists(st.floats(1e-6, 1), min_size=2, max_size=6)


@given(laws, laws, st.floats(1e-3, 2), st.floats(-3, 3))
def test_atoms_on_a_grid_dominate_and_keep_their_mass(upper, lower, width, epsilon):
    size = min(len(upper), len(lower))
    p, q = (np.array(law[:size]) / sum(law[:size]) for law in (upper, lower))
    pair = atoms(p, q)
    grid = pair.on_grid(width)
    assert totals(grid) == pytest.approx((1, 1), rel=1e-9)
    exact = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
    assert pair.hockey_stick(epsilon) == pytest.approx(exact, abs=1e-12)
    assert hockey_stick(grid, epsilon) >= exact - 1e-12
    assert hockey_stick(pair.on_grid(1e-4), epsilon) <= exact + 1e-4


@given(laws, st.floats(0.01, 1), st.floats(-2, 2))
def test_a_coin_over_atoms_is_the_mixture(law, rate, epsilon):
    p = np.array(law) / sum(law)
    q = p[::-1]
    both = atoms(p, q).sampled(rate)
    mixed = (1 - rate) * q + rate * p
    for pair, top, low in ((both.remove, mixed, q), (both.add, q, mixed)):
        if rate == 1 and pair is both.add:
            low = p
        exact = float(np.maximum(top - math.exp(epsilon) * low, 0).sum())
        assert pair.hockey_stick(epsilon) == pytest.approx(exact, abs=1e-12)


def test_mass_that_only_one_law_has():
    pair = atoms([0.25, 0.75, 0.0], [0.0, 0.5, 0.5])
    assert pair.on_grid(0.1).infinite == 0.25
    assert pair.hockey_stick(50.0) == 0.25
    assert pair.reverse.hockey_stick(50.0) == 0.5


def test_a_lattice_of_losses_is_found():
    e = math.exp(-0.3)
    assert atoms([0.5, 0.5 - 0.5 * e, 0.5 * e], [0.5 * e, 0.5 - 0.5 * e, 0.5]).unit == (
        pytest.approx(0.3)
    )
    assert atoms([0.5, 0.3, 0.2], [0.2, 0.35, 0.45]).unit is None
    assert atoms([1.0], [1.0]).unit is None


def exact_mixture(curve, rate, removal, epsilon):
    """The hockey stick of a sampled continuous pair by quadrature over the line."""
    if isinstance(curve, NormalLoss):
        f, g = stats.norm(curve.mu).pdf, stats.norm(0).pdf
        line, kinks = (-12, 12 + curve.mu), None
    else:
        f, g = stats.laplace(curve.t).pdf, stats.laplace(0).pdf
        line, kinks = (-60, 60 + curve.t), [0, curve.t]
    mixed = lambda x: (1 - rate) * g(x) + rate * f(x)  # noqa: E731
    top, low = (mixed, g) if removal else (g, mixed)
    value, _ = integrate.quad(
        lambda x: max(top(x) - math.exp(epsilon) * low(x), 0), *line, points=kinks, limit=2000
    )
    return value


@pytest.mark.parametrize("curve", [NormalLoss(0.5), NormalLoss(2.0), LaplaceLoss(0.8)])
@pytest.mark.parametrize("rate", [0.05, 0.6, 1.0])
@pytest.mark.parametrize("removal", [True, False])
def test_continuous_pairs_against_quadrature(curve, rate, removal):
    pair = continuous(curve, rate)
    side = pair.remove if removal else pair.add
    for epsilon in (-0.4, 0.0, 0.02, 0.3):
        exact = exact_mixture(curve, rate, removal, epsilon)
        fine = hockey_stick(side.on_grid(1e-4), epsilon)
        # 1e-7: what quadrature gets right across the kink of the maximum.
        assert exact - 1e-7 <= fine <= exact + 1e-6
        assert hockey_stick(side.on_grid(0.1), epsilon) >= exact - 1e-7


def test_a_normal_loss_far_out_keeps_its_digits():
    grid = continuous(NormalLoss(0.1)).remove.on_grid(1e-4)
    for epsilon in (0.5, 0.8):
        assert hockey_stick(grid, epsilon) == pytest.approx(gdp.delta(0.1, epsilon), rel=1e-3)


@settings(max_examples=300)
@given(st.floats(1e-3, 30), st.integers(1, 400), st.sampled_from([1.0, 0.5, 0.01]))
def test_a_laplace_atom_never_rounds_off_the_grid(t, cells, rate):
    # Widths that divide the largest loss are where a last edge could fall just short of it.
    pair = continuous(LaplaceLoss(t), rate)
    for side in (pair.remove, pair.add):
        grid = side.on_grid(t / cells)
        assert grid.infinite == 0
        assert totals(grid)[0] == pytest.approx(1, rel=1e-12)
