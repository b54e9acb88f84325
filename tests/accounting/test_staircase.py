"""The staircase against its density, integrated piece by piece, and against published numbers."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from confide.accounting import staircase
from confide.accounting.relations import Refused

EPSILONS = st.floats(0.02, 6)
GAMMAS = st.floats(0, 1)
SHIFTS = st.floats(0.01, 1)
ORDERS = st.floats(1.01, 60)


def stairs(epsilon: float, gamma: float, reach: float) -> list[float]:
    """Every place where the density falls, up to where nothing is left of it."""
    last = math.ceil(80 / epsilon + reach) + 2
    return [gamma + k for k in range(last)]


def pieces(epsilon: float, gamma: float, shift: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Widths and both densities on every interval where both are constant."""
    own = np.array(stairs(epsilon, gamma, shift))
    edges = np.unique(np.concatenate([own, -own, own + shift, shift - own]))
    # Edges that are equal but for rounding leave slivers with the densities of no real interval.
    edges = edges[np.append(True, np.diff(edges) > 1e-12)]
    middle = (edges[1:] + edges[:-1]) / 2
    here = staircase.density(middle, epsilon, gamma)
    there = staircase.density(middle - shift, epsilon, gamma)
    return np.diff(edges), here, there


def renyi_by_pieces(order: float, epsilon: float, gamma: float, shift: float) -> float:
    widths, here, there = pieces(epsilon, gamma, shift)
    power = order * np.log(here) + (1 - order) * np.log(there)
    return float(np.log(np.sum(widths * np.exp(power))) / (order - 1))


@given(EPSILONS, GAMMAS, SHIFTS)
def test_the_loss_has_three_atoms(epsilon: float, gamma: float, shift: float) -> None:
    plus, zero, minus = staircase.atoms(epsilon, gamma, shift)
    widths, here, there = pieces(epsilon, gamma, shift)
    steps = np.round(np.log(here / there) / epsilon)
    for value, mass in ((1, plus), (0, zero), (-1, minus)):
        assert np.sum((widths * here)[steps == value]) == pytest.approx(mass, abs=1e-9)
    assert plus + zero + minus == pytest.approx(1, abs=1e-15)
    assert min(plus, zero, minus) >= 0


@given(EPSILONS, GAMMAS, st.floats(0.01, 6))
def test_any_shift_agrees_with_the_pieces(epsilon: float, gamma: float, shift: float) -> None:
    losses, masses = staircase.shift_losses(epsilon, gamma, shift)
    widths, here, there = pieces(epsilon, gamma, shift)
    steps = np.round(np.log(here / there) / epsilon)
    for loss, mass in zip(losses, masses, strict=True):
        assert np.sum((widths * here)[steps == round(loss / epsilon)]) == pytest.approx(
            mass, abs=1e-9
        )
    assert masses.sum() == pytest.approx(1, abs=1e-14)


@given(EPSILONS, GAMMAS, SHIFTS)
def test_a_small_shift_is_the_three_atoms(epsilon: float, gamma: float, shift: float) -> None:
    losses, masses = staircase.shift_losses(epsilon, gamma, shift)
    assert losses / epsilon == pytest.approx([-1, 0, 1])
    assert masses[::-1] == pytest.approx(staircase.atoms(epsilon, gamma, shift), abs=1e-12)


@given(EPSILONS, GAMMAS, st.floats(0.01, 8))
def test_reflection_swaps_the_two_worlds(epsilon: float, gamma: float, shift: float) -> None:
    losses, masses = staircase.shift_losses(epsilon, gamma, shift)
    assert masses * np.exp(-losses) == pytest.approx(masses[::-1], abs=1e-11)


@given(st.floats(0.02, 4), GAMMAS, st.integers(1, 6), st.floats(1.01, 25))
def test_whole_groups_have_a_closed_form(
    epsilon: float, gamma: float, size: int, order: float
) -> None:
    b, least = math.exp(-epsilon), min(gamma, 1 - gamma)
    height = (1 - b) / (2 * (gamma + b * (1 - gamma)))
    inner = least * (b ** (1 - order) + b**order)
    inner += abs(2 * gamma - 1) * (b if gamma < 0.5 else 1)
    powers = [b ** (i * order + (size - 1 - i) * (1 - order)) for i in range(size)]
    moment = (b ** ((1 - order) * size) + b ** (order * size)) / 2 + height * inner * sum(powers)
    losses, masses = staircase.shift_losses(epsilon, gamma, size)
    assert np.sum(masses * np.exp((order - 1) * losses)) == pytest.approx(moment, rel=1e-9)


@given(EPSILONS, GAMMAS, SHIFTS, ORDERS)
def test_scalar_renyi_agrees_with_the_pieces(
    epsilon: float, gamma: float, shift: float, order: float
) -> None:
    got = staircase.renyi([order], epsilon, gamma, shift)[0]
    assert got == pytest.approx(renyi_by_pieces(order, epsilon, gamma, shift), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("order", [1.0001, 1.5, 8.0, 300.0, 5000.0])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 4.0, 40.0])
def test_scalar_renyi_keeps_its_digits(order: float, epsilon: float) -> None:
    with mpmath.workdps(60):
        e, a, g = mpmath.mpf(epsilon), mpmath.mpf(order), mpmath.mpf(0.3)
        b = mpmath.exp(-e)
        u = (g + min(g, 1 - g) - (g + min(g, 1 - g)) * b + b) / (2 * (g + b * (1 - g)))
        moment = 1 + u * mpmath.expm1((a - 1) * e) * (1 - mpmath.exp(-a * e))
        truth = float(mpmath.log(moment) / (a - 1))
    assert staircase.renyi([order], epsilon, 0.3)[0] == pytest.approx(truth, rel=1e-12)


@given(EPSILONS, GAMMAS, ORDERS, st.integers(2, 12), st.data())
def test_no_direction_exceeds_the_stated_curve(
    epsilon: float, gamma: float, order: float, dim: int, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.floats(0.01, 1), min_size=dim, max_size=dim))
    for norm, power in (("l1", 1), ("l2", 2)):
        size = np.linalg.norm(weights, power)
        shifts = np.array(weights) / size
        actual = sum(float(staircase.renyi([order], epsilon, gamma, s)[0]) for s in shifts)
        stated = staircase.renyi([order], epsilon, gamma, 1.0, norm, dim)[0]
        assert actual <= stated * (1 + 1e-12)
        assert stated <= staircase.renyi([order], epsilon, gamma, 1.0, norm, None)[0]


@given(EPSILONS, GAMMAS, st.floats(0.01, 0.5), st.floats(0.01, 0.5))
def test_the_upper_atom_is_concave_and_rising(
    epsilon: float, gamma: float, left: float, gap: float
) -> None:
    low, middle, high = (
        staircase.atoms(epsilon, gamma, s)[0] for s in (left, left + gap / 2, left + gap)
    )
    assert low <= middle <= high
    assert middle >= (low + high) / 2 - 1e-15


@given(EPSILONS, GAMMAS, SHIFTS, ORDERS, st.sampled_from([1, 3, 1000]))
def test_the_curve_rises_with_shift_and_epsilon(
    epsilon: float, gamma: float, shift: float, order: float, dim: int
) -> None:
    def curve(epsilon: float, shift: float) -> float:
        return float(staircase.renyi([order], epsilon, gamma, shift, "l1", dim)[0])

    assert curve(epsilon, shift / 2) <= curve(epsilon, shift)
    # At a fixed gamma and a small shift a larger epsilon may hide more; at a full step it cannot.
    assert curve(epsilon, 1.0) <= curve(1.1 * epsilon, 1.0) * (1 + 1e-12) or dim > 1


@pytest.mark.parametrize(
    ("order", "epsilon", "dim", "expected"),
    [
        (2, 1, 1, 0.71057687),
        (2, 0.1, 1, 0.00994737),
        (2, 1, 2, 0.955437),
        (2, 1, 10, 1.155391),
        (2, 1, None, 1.224784),
        (32, 0.1, 1, 0.079239),
        (32, 0.1, None, 0.344781),
        (2, 4, 1, 3.9309),
        (2, 4, None, 197.95),
    ],
)
def test_numbers_of_the_l1_ball(
    order: float, epsilon: float, dim: int | None, expected: float
) -> None:
    gamma = staircase.optimal_gamma(epsilon, "l1")
    got = staircase.renyi([order], epsilon, gamma, 1.0, "l1", dim)[0]
    assert got == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize(
    ("epsilon", "dim", "expected"), [(0.1, 10**6, 41.9), (0.1, 11 * 10**6, 139), (1, 10**6, 9.19e4)]
)
def test_numbers_of_the_l2_ball(epsilon: float, dim: int, expected: float) -> None:
    gamma = staircase.optimal_gamma(epsilon, "l1")
    assert staircase.renyi([8], epsilon, gamma, 1.0, "l2", dim)[0] == pytest.approx(
        expected, rel=2e-3
    )


@pytest.mark.parametrize(
    ("order", "epsilon", "truth", "printed"),
    [(2, 2, 1.875548, 1.751942), (8, 4, 3.997407, 3.969963)],
)
def test_a_published_formula_is_below_the_truth(
    order: float, epsilon: float, truth: float, printed: float
) -> None:
    got = staircase.renyi([order], epsilon, 0.5)[0]
    assert got == pytest.approx(truth, abs=1e-6)
    assert got > printed


def test_a_published_inversion_overshoots() -> None:
    epsilon = math.log(2)
    got = staircase.renyi([2], epsilon, staircase.optimal_gamma(epsilon, "l1"))[0]
    assert got == pytest.approx(0.3953, abs=5e-5)


def test_no_scalar_pair_stands_for_the_vector() -> None:
    """Hockey sticks of one full shift and of several equal parts cross, so neither dominates."""
    gamma = staircase.optimal_gamma(1.0, "l1")

    def stick(shift: float, times: int, epsilon: float) -> float:
        losses, masses = np.array([1.0, 0.0, -1.0]), np.array(staircase.atoms(1.0, gamma, shift))
        sums, weights = np.zeros(1), np.ones(1)
        for _ in range(times):
            sums = (sums[:, None] + losses).ravel()
            weights = (weights[:, None] * masses).ravel()
            sums, back = np.unique(np.round(sums), return_inverse=True)
            weights = np.bincount(back, weights)
        return float(np.sum(weights * np.maximum(-np.expm1(epsilon - sums), 0)))

    assert [stick(1.0, 1, e) for e in (0, 0.9, 1.5)] == pytest.approx([0.4404, 0.0663, 0], abs=5e-5)
    assert [stick(0.5, 2, e) for e in (0, 0.9)] == pytest.approx([0.3742, 0.1476], abs=5e-5)
    assert stick(0.1, 10, 1.5) == pytest.approx(0.0773, abs=5e-5)


@given(EPSILONS, GAMMAS, st.floats(0.1, 10))
@settings(max_examples=25)
def test_moments_and_cdf_agree_with_the_density(epsilon: float, gamma: float, step: float) -> None:
    edges = step * np.array([0.0, *stairs(epsilon, gamma, 0)])
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    masses = 2 * widths * staircase.density(middles, epsilon, gamma, step)
    squares = masses * (middles**2 + widths**2 / 12)
    assert masses.sum() == pytest.approx(1, rel=1e-12)
    assert (masses * middles).sum() == pytest.approx(
        staircase.mean_absolute(epsilon, gamma, step), rel=1e-10
    )
    assert squares.sum() == pytest.approx(staircase.variance(epsilon, gamma, step), rel=1e-10)
    assert staircase.cdf(-edges, epsilon, gamma, step) == pytest.approx(
        0.5 - np.concatenate([[0], np.cumsum(masses)]) / 2, abs=1e-12
    )
    assert staircase.cdf(edges, epsilon, gamma, step) == pytest.approx(
        1 - staircase.cdf(-edges, epsilon, gamma, step), abs=1e-15
    )


def test_the_cdf_is_the_integral_of_the_density() -> None:
    width = 1e-3
    middles = np.arange(-30, 3.5, width) + width / 2
    area = np.cumsum(width * staircase.density(middles, 1.0, 0.3, 0.7))
    # A cell that holds an edge of a stair is off by at most its width times the highest density.
    assert area == pytest.approx(staircase.cdf(middles + width / 2, 1.0, 0.3, 0.7), abs=2e-3)


@pytest.mark.parametrize(
    ("epsilon", "expected"), [(0.1, 199.917), (1, 1.918), (2, 0.4227), (4, 0.0650)]
)
def test_the_least_variance(epsilon: float, expected: float) -> None:
    gamma = staircase.optimal_gamma(epsilon)
    assert staircase.variance(epsilon, gamma) == pytest.approx(expected, rel=5e-4)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1, 2, 4, 12])
def test_optimal_gammas_minimise_their_cost(epsilon: float) -> None:
    for cost, name in ((staircase.mean_absolute, "l1"), (staircase.variance, "l2")):
        best = optimize.minimize_scalar(
            lambda g, cost=cost: cost(epsilon, g),
            bounds=(0, 1),
            method="bounded",
            options={"xatol": 1e-10},
        )
        gamma = staircase.optimal_gamma(epsilon, name)
        assert gamma < 0.5
        assert cost(epsilon, gamma) <= best.fun * (1 + 1e-12)
    exact = math.exp(epsilon / 2) / math.expm1(epsilon)
    got = staircase.mean_absolute(epsilon, staircase.optimal_gamma(epsilon, "l1"))
    assert got == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 701])
def test_a_bad_epsilon_is_refused(bad: float) -> None:
    for call in (
        lambda: staircase.atoms(bad, 0.5),
        lambda: staircase.shift_losses(bad, 0.5, 1.0),
        lambda: staircase.renyi([2], bad, 0.5),
        lambda: staircase.density(0.0, bad, 0.5),
        lambda: staircase.optimal_gamma(bad),
    ):
        with pytest.raises(Refused, match="epsilon"):
            call()


def test_other_bad_inputs_are_refused() -> None:
    with pytest.raises(Refused, match="gamma"):
        staircase.atoms(1.0, math.nan)
    for shift in (0.0, 1.01, math.nan, math.inf):
        with pytest.raises(Refused, match="shift"):
            staircase.atoms(1.0, 0.5, shift)
        with pytest.raises(Refused, match="shift"):
            staircase.renyi([2], 1.0, 0.5, shift)
    for shift in (0.0, math.inf, math.nan):
        with pytest.raises(Refused, match="shift"):
            staircase.shift_losses(1.0, 0.5, shift)
    with pytest.raises(Refused, match="norm"):
        staircase.renyi([2], 1.0, 0.5, 1.0, "linf")
    with pytest.raises(Refused, match="dim"):
        staircase.renyi([2], 1.0, 0.5, 1.0, "l1", 0)
    for order in (1.0, 0.5, math.nan):
        with pytest.raises(Refused, match="orders"):
            staircase.renyi([2, order], 1.0, 0.5)
    with pytest.raises(Refused, match="cost"):
        staircase.optimal_gamma(1.0, "l3")  # type: ignore[arg-type]


def test_whole_numbers_serve_as_parameters() -> None:
    assert staircase.renyi([2], 1, 0, 1)[0] == staircase.renyi([2.0], 1.0, 0.0, 1.0)[0]
    assert staircase.atoms(1, 1, 1) == staircase.atoms(1.0, 1.0, 1.0)
