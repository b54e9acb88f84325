"""Sampled curves against quadrature, enumeration and dp-accounting."""

from __future__ import annotations

import itertools
import math

import dp_accounting as dp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from confide.accounting import events, moments, renyi, sampling, staircase
from confide.accounting.relations import Refused, Relation
from confide.accounting.sampled_moments import GaussianMoments, LaplaceMoments, StepMoments

GAUSSIAN = dp.GaussianDpEvent
POISSON = dp.PoissonSampledDpEvent
FIXED = dp.SampledWithoutReplacementDpEvent


def poisson_gaussian(rate: float, sigma: float, order: float) -> float:
    """The divergence by quadrature of the part of the moment above 1."""
    with mpmath.workdps(30):
        q, s, a = mpmath.mpf(rate), mpmath.mpf(sigma), mpmath.mpf(order)

        def above(t: mpmath.mpf) -> mpmath.mpf:
            x = q * mpmath.expm1(t / s - 1 / (2 * s * s))
            return mpmath.npdf(t) * ((1 + x) ** a - 1 - a * x)

        high = order / sigma + 16
        parts = mpmath.linspace(-16, high, max(6, int((high + 16) / 6)))
        return float(mpmath.log1p(mpmath.quad(above, parts, maxdegree=7)) / (a - 1))


def poisson_laplace(rate: float, distance: float, order: float) -> float:
    with mpmath.workdps(30):
        q, t, a = mpmath.mpf(rate), mpmath.mpf(distance), mpmath.mpf(order)

        def above(loss: mpmath.mpf) -> mpmath.mpf:
            x = q * mpmath.expm1(loss)
            return (1 + x) ** a - 1 - a * x

        middle = mpmath.quad(lambda v: mpmath.exp(-(t + v) / 2) / 4 * above(v), [-t, 0, t])
        return float(mpmath.log1p(mpmath.exp(-t) / 2 * above(t) + above(-t) / 2 + middle) / (a - 1))


@pytest.mark.parametrize(
    ("rate", "sigma", "order", "expected"),
    [(0.01, 4, 1.5, 4.8354932e-6), (0.5, 2, 3.7, 0.1424857)],
)
def test_known_fractional_orders(rate: float, sigma: float, order: float, expected: float) -> None:
    got = renyi.curve(POISSON(rate, GAUSSIAN(sigma)), [order])[0]
    assert got == pytest.approx(expected, rel=2e-7)


def assert_just_above(got: float, truth: float) -> None:
    assert truth <= got <= truth * (1 + 1e-10)


@pytest.mark.parametrize(
    ("rate", "sigma", "order"),
    [
        (1e-6, 100, 1.01),
        (1e-6, 0.3, 1.01),
        (0.999, 1, 1.01),
        (0.01, 0.3, 15.9),
        (0.3, 0.9, 2.4),
        (0.9, 30, 40.25),
    ],
)
def test_poisson_gaussian_at_the_corners(rate: float, sigma: float, order: float) -> None:
    got = renyi.curve(POISSON(rate, GAUSSIAN(sigma)), [order])[0]
    assert_just_above(got, poisson_gaussian(rate, sigma, order))


@pytest.mark.slow
def test_poisson_gaussian_everywhere() -> None:
    for rate, sigma, order in itertools.product(
        [1e-6, 1e-3, 0.1, 0.7, 0.999], [0.3, 1, 5, 100], [1.01, 1.5, 2.0, 9.3, 40.25, 200.5]
    ):
        got = renyi.curve(POISSON(rate, GAUSSIAN(sigma)), [order])[0]
        assert_just_above(got, poisson_gaussian(rate, sigma, order))


@given(
    st.floats(-6, -0.001),
    st.floats(-0.5, 2),
    st.sampled_from([2, 3, 5, 17, 64, 300, 1024]),
)
@settings(max_examples=60)
def test_whole_orders_agree_with_dp_accounting(
    log_rate: float, log_sigma: float, order: int
) -> None:
    rate, sigma = 10**log_rate, 10**log_sigma
    got = renyi.curve(POISSON(rate, GAUSSIAN(sigma)), [order])[0]
    other = dp.rdp.RdpAccountant([order]).compose(POISSON(rate, GAUSSIAN(sigma))).rdp[0]
    # dp-accounting adds 1 to the excess before its logarithm and loses what is below 1e-16 of it.
    assert got == pytest.approx(other, rel=1e-7, abs=1e-11)


def test_fractional_orders_are_below_dp_accounting_and_above_nothing() -> None:
    orders = renyi.ORDERS[renyi.ORDERS < 12]
    for rate, sigma in ((0.01, 4.0), (0.2, 1.3), (0.001, 0.7)):
        event = POISSON(rate, GAUSSIAN(sigma))
        other = dp.rdp.RdpAccountant(orders.tolist()).compose(event).rdp
        got = renyi.curve(event, orders)
        assert np.all(got <= other * (1 + 1e-7) + 1e-13)
        logs = (orders - 1) * got
        slopes = np.diff(logs) / np.diff(orders)
        assert np.all(np.diff(slopes) >= -1e-9 * slopes[1:])  # the log-moment is convex


@given(st.floats(0.001, 0.99), st.floats(0.3, 20), st.floats(257, 3000))
@settings(max_examples=20)
def test_far_fractional_orders_lie_on_a_chord(rate: float, sigma: float, order: float) -> None:
    low, high = math.floor(order), math.ceil(order)
    ends = renyi.curve(POISSON(rate, GAUSSIAN(sigma)), [low, high])
    got = renyi.curve(POISSON(rate, GAUSSIAN(sigma)), [order])[0]
    assert ends[0] * (1 - 1e-9) <= got <= ends[1] * (1 + 1e-9)


@given(st.floats(0.001, 0.99), st.floats(0.2, 20), st.floats(1.01, 500))
def test_more_noise_and_less_sampling_cost_less(rate: float, sigma: float, order: float) -> None:
    def cost(rate: float, sigma: float) -> float:
        return float(renyi.curve(POISSON(rate, GAUSSIAN(sigma)), [order])[0])

    tiny = 1e-9
    assert cost(rate, sigma) >= cost(rate, sigma * 1.3) * (1 - tiny)
    assert cost(rate, sigma) >= cost(rate / 2, sigma) * (1 - tiny)
    assert cost(rate, sigma) <= renyi.curve(GAUSSIAN(sigma), [order])[0] * (1 + tiny)


@pytest.mark.parametrize("rate", [1e-4, 0.3, 0.95])
@pytest.mark.parametrize("distance", [0.02, 0.7, 5.0])
@pytest.mark.parametrize("order", [1.01, 2.0, 3.3, 15.9, 22.0])
def test_poisson_laplace_is_exact(rate: float, distance: float, order: float) -> None:
    got = renyi.curve(POISSON(rate, dp.LaplaceDpEvent(1 / distance)), [order])[0]
    assert_just_above(got, poisson_laplace(rate, distance, order))


def three_atoms(epsilon: float, plus: float, rate: float, order: float) -> tuple[float, float]:
    """Both directions of the sampled three-atom pair, by enumeration."""
    p = np.array([plus, 1 - (1 + math.exp(-epsilon)) * plus, math.exp(-epsilon) * plus])
    q = p[::-1]
    with mpmath.workdps(40):
        p, q = (
            [mpmath.mpf(float(v)) for v in p],
            [mpmath.mpf(float(v)) for v in q],
        )
        m = [(1 - rate) * b + rate * a for a, b in zip(p, q, strict=True)]

        def divergence(x: list[mpmath.mpf], y: list[mpmath.mpf]) -> float:
            terms = [a**order * b ** (1 - order) for a, b in zip(x, y, strict=True) if a > 0]
            return float(mpmath.log(sum(terms)) / (order - 1))

        return divergence(m, q), divergence(q, m)


@given(
    st.floats(0.05, 5), st.floats(0.01, 0.99), st.floats(0.01, 1), st.floats(0.01, 0.99),
    st.floats(1.05, 80),
)  # fmt: skip
@settings(max_examples=40)
def test_poisson_staircase_is_exact_and_removal_is_worse(
    epsilon: float, gamma: float, shift: float, rate: float, order: float
) -> None:
    plus, _, _ = staircase.atoms(epsilon, gamma, shift)
    remove, add = three_atoms(epsilon, plus, rate, order)
    event = POISSON(rate, events.StaircaseDpEvent(epsilon, gamma, shift))
    got = renyi.curve(event, [order])[0]
    assert got == pytest.approx(remove, rel=1e-9, abs=1e-13)
    assert add <= remove * (1 + 1e-9) + 1e-13


def test_sampled_pure_dp_is_sampled_randomised_response() -> None:
    for order, rate in itertools.product((1.5, 2.0, 7.7, 900.0), (0.01, 0.6)):
        remove, _ = three_atoms(1.0, special.expit(1.0), rate, order)
        got = renyi.curve(POISSON(rate, events.PureDpEvent(1.0)), [order])[0]
        assert got == pytest.approx(remove, rel=1e-9)


@given(st.data(), st.integers(2, 12), st.floats(0.01, 0.99))
@settings(max_examples=60)
def test_the_binomial_formula_covers_both_directions_of_any_pair(
    data: st.DataObject, order: int, rate: float
) -> None:
    """Asymmetric pairs: the sums use the larger of both directions at every power."""
    size = data.draw(st.integers(2, 4))
    weights = st.lists(st.floats(0.02, 1), min_size=size, max_size=size)
    p, q = (np.array(data.draw(weights)) for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    m = (1 - rate) * q + rate * p

    def growth(ks: np.ndarray) -> np.ndarray:
        up = [np.log(np.sum(q * (p / q) ** k)) for k in ks]
        down = [np.log(np.sum(p * (q / p) ** k)) for k in ks]
        return np.maximum(0, np.maximum(up, down))

    bound = moments.log_poisson(np.array([float(order)]), rate, growth)[0] + 1e-12
    assert np.log(np.sum(q * (m / q) ** order)) <= bound
    assert np.log(np.sum(m * (q / m) ** order)) <= bound


@given(st.floats(0.001, 0.999), st.floats(2, 40), st.floats(-6, 6))
def test_the_inequality_behind_the_binomial_formula(
    rate: float, order: float, log_ratio: float
) -> None:
    """The pointwise claim of docs/proofs/sampling.md for pairs without symmetry."""
    r, stay = math.exp(log_ratio), 1 - rate
    m, n = stay + rate * r, stay + rate / r
    share = 3 * stay / (3 + 2 * (order - 2) * rate)
    slope = share * order * rate + (1 - share) * (1 - order * rate) + (order - 1) * rate
    right = share * m**order + (1 - share) * r * n**order + slope * (1 - r)
    assert m ** (1 - order) <= right + 1e-9 * (abs(right) + abs(slope * (1 - r)) + 1)


@pytest.mark.parametrize("rate", [0.02, 0.4])
def test_the_generic_formula_agrees_with_the_exact_ones(rate: float) -> None:
    orders = np.array([2.0, 3.0, 10.0, 70.0])
    for inner, exact in (
        (GAUSSIAN(1.5), GaussianMoments(1.5)),
        (dp.LaplaceDpEvent(2.0), LaplaceMoments(0.5)),
        (events.StaircaseDpEvent(1.0, 0.3), StepMoments(1.0, staircase.atoms(1.0, 0.3)[0])),
    ):
        generic = moments.log_poisson(
            orders, rate, lambda ks, inner=inner: (ks - 1) * renyi.curve(inner, ks)
        )
        assert exact.log_sampled(orders, rate) == pytest.approx(generic, rel=1e-10)


def test_one_coin_is_amplified_once() -> None:
    """Two unit releases under one coin, 1000 rounds, delta = 1e-5: 4.481 by exact losses."""
    pair = dp.ComposedDpEvent([GAUSSIAN(1.0), GAUSSIAN(1.0)])
    joint, apart = (
        renyi.RenyiAccountant(Relation.ADD_REMOVE),
        renyi.RenyiAccountant(Relation.ADD_REMOVE),
    )
    joint.compose(POISSON(0.01, pair), 1000)
    apart.compose(POISSON(0.01, GAUSSIAN(1.0)), 2000)
    assert joint.get_epsilon(1e-5) > 4.481 > apart.get_epsilon(1e-5)
    whitened = renyi.curve(POISSON(0.01, GAUSSIAN(math.sqrt(0.5))))
    assert renyi.curve(POISSON(0.01, pair)) == pytest.approx(whitened, rel=1e-12)
    ratio = renyi.curve(POISSON(0.01, pair), [2.0]) / renyi.curve(POISSON(0.01, GAUSSIAN(1)), [2.0])
    assert ratio[0] / 2 == pytest.approx(1.86, abs=5e-3)


def test_mixed_coins_cover_an_actual_mixture() -> None:
    """The release without the unit is far from both neighbours here."""
    p, q, r = np.array([0.6, 0.4, 0]), np.array([0.3, 0.7, 0]), np.array([0, 0, 1.0])
    for order, rate in itertools.product((1.3, 2.0, 9.0), (0.05, 0.7)):
        up, down = rate * p + (1 - rate) * r, rate * q + (1 - rate) * r
        actual = np.log(np.sum(up**order * down ** (1 - order))) / (order - 1)
        inner = np.log(np.sum(p[:2] ** order * q[:2] ** (1 - order))) / (order - 1)
        event = events.MixedDpEvent(rate, GAUSSIAN(math.sqrt(order / (2 * inner))))
        assert renyi.curve(event, [order])[0] == pytest.approx(actual, rel=1e-9)


def test_random_participation_is_that_many_mixed_rounds() -> None:
    event = events.RandomParticipationDpEvent(0.3, 20, GAUSSIAN(2.0))
    single = renyi.curve(events.MixedDpEvent(0.3, GAUSSIAN(2.0)))
    assert renyi.curve(event) == pytest.approx(20 * single)


WHOLE = np.arange(2.0, 257.0)


def test_fixed_size_numbers() -> None:
    local = renyi.RenyiAccountant(Relation.REPLACE_ONE, WHOLE)
    local.compose(FIXED(500, 5, GAUSSIAN(6 * math.sqrt(5 / 3) / 2)), 10_000)
    epsilon, order = local.get_epsilon_and_optimal_order(1e-5)
    assert (epsilon, order) == (pytest.approx(2.3026146, abs=1e-7), 9)
    clients = renyi.RenyiAccountant(Relation.REPLACE_ONE, WHOLE)
    clients.compose(FIXED(500, 50, GAUSSIAN(0.475)), 300)
    assert clients.get_epsilon(1 / 500) == pytest.approx(300.82, abs=5e-3)


@pytest.mark.parametrize(("size", "sigma"), [(10, 4.0), (50, 0.6), (5, 1.0), (300, 2.0)])
def test_fixed_size_gaussian_is_dp_accountings_bound_or_better(size: int, sigma: float) -> None:
    orders = [2.0, 3.0, 4.0, 8.0, 16.0, 20.0]
    event = FIXED(1000, size, GAUSSIAN(sigma))
    other = dp.rdp.RdpAccountant(orders, dp.NeighboringRelation.REPLACE_ONE).compose(event).rdp
    got = renyi.curve(event, orders)
    assert np.all(got <= other * (1 + 1e-6))
    whole = renyi.curve(GAUSSIAN(sigma), orders)
    assert got == pytest.approx(np.minimum(other, whole), rel=1e-6)


@pytest.mark.parametrize("power", [2, 4, 10, 40])
def test_even_moments_agree_with_quadrature(power: int) -> None:
    powers = np.array([power])
    with mpmath.workdps(60):
        for sigma in (0.5, 2.0, 30.0):
            s = mpmath.mpf(sigma)
            exact = sum(
                (-1) ** i
                * mpmath.binomial(power, i)
                * mpmath.exp(mpmath.mpf(i * (i - 1)) / (2 * s * s))
                for i in range(power + 1)
            )
            got = GaussianMoments(sigma).log_even(powers)[0]
            assert got == pytest.approx(float(mpmath.log(exact)), rel=1e-10, abs=1e-10)
        for distance in (0.05, 1.0, 6.0):
            t = mpmath.mpf(distance)
            middle = mpmath.quad(
                lambda v, t=t: mpmath.exp(-(t + v) / 2) / 4 * mpmath.expm1(v) ** power, [-t, 0, t]
            )
            exact = mpmath.exp(-t) / 2 * mpmath.expm1(t) ** power + mpmath.expm1(-t) ** power / 2
            truth = float(mpmath.log(exact + middle))
            got = LaplaceMoments(distance).log_even(powers)[0]
            assert truth - 1e-12 <= got <= truth + 2e-2  # chords lie above a convex curve
    epsilon, plus = 1.3, 0.6
    exact = math.exp(-epsilon) * plus * math.expm1(epsilon) ** power
    exact += plus * math.expm1(-epsilon) ** power
    got = StepMoments(epsilon, plus).log_even(powers)[0]
    assert got == pytest.approx(math.log(exact), rel=1e-12)


@pytest.mark.parametrize(
    "inner",
    [
        events.PureDpEvent(0.8),
        events.StaircaseDpEvent(2.0, 0.3),
        dp.ComposedDpEvent([events.PureDpEvent(0.4), events.PureDpEvent(0.3)]),
    ],
)
def test_fixed_size_is_above_an_enumerated_release(inner: dp.DpEvent) -> None:
    """Two of three records, randomised answers of the sum; the odd record is exchanged."""

    def answer(total: int, other: int) -> np.ndarray:
        far = np.abs(np.arange(3) - total - other)
        return np.exp(-0.35 * far) / np.exp(-0.35 * far).sum()

    # Its losses are within 0.7 at sums one apart: epsilon is at most 0.7.
    for records in itertools.product((0, 1), repeat=2):
        worlds = []
        for odd in (0, 1):
            data = (*records, odd)
            samples = itertools.combinations(range(3), 2)
            worlds.append(np.mean([answer(data[i], data[j]) for i, j in samples], axis=0))
        for order in (1.5, 2.0, 5.0, 30.0):
            p, q = worlds
            for x, y in ((p, q), (q, p)):
                actual = np.log(np.sum(x**order * y ** (1 - order))) / (order - 1)
                assert actual <= renyi.curve(FIXED(3, 2, inner), [order])[0]


def test_an_unattained_curve_gets_no_alternating_sum() -> None:
    """The better of two Laplace rows is a bound, no divergence: its alternating sums can be < 0."""
    both = events.LaplaceBothDpEvent(0.8, 1.5)
    powers = np.arange(7)
    curve = renyi.curve(both, np.arange(2.0, 7.0))
    growth = np.concatenate([[0, 0], np.arange(1, 6) * curve])
    signs = (-1.0) ** powers * special.comb(6, powers)
    assert np.sum(signs * np.exp(growth)) < 0
    assert sampling.exact_moments(both) is None
    curve = renyi.curve(FIXED(100, 10, both))
    assert np.all(np.isfinite(curve)) and np.all(curve > 0)


def test_the_edges_of_sampling() -> None:
    inner = GAUSSIAN(2.0)
    for nothing in (POISSON(0, inner), FIXED(10, 0, inner), events.MixedDpEvent(0.0, events.OPEN)):
        assert np.all(renyi.curve(nothing) == 0)
    for everything in (POISSON(1, inner), FIXED(10, 10, inner), events.MixedDpEvent(1.0, inner)):
        assert renyi.curve(everything) == pytest.approx(renyi.curve(inner))
    for lost in (
        POISSON(0.1, events.OPEN),
        FIXED(10, 1, events.OPEN),
        events.MixedDpEvent(0.1, events.OPEN),
        POISSON(0.1, GAUSSIAN(0.0)),
        POISSON(0.1, events.ApproximateDpEvent(1.0, 1e-9)),
    ):
        assert np.all(np.isinf(renyi.curve(lost)))


def test_extreme_noise_is_finite_or_infinite_never_a_number_error() -> None:
    for rate, sigma in itertools.product((1e-12, 1e-3, 1 - 1e-12), (1e-4, 0.02, 0.1, 1e3, 1e8)):
        curve = renyi.curve(POISSON(rate, GAUSSIAN(sigma)))
        assert np.all(curve >= 0) and not np.any(np.isnan(curve))
        assert np.all(curve <= renyi.curve(GAUSSIAN(sigma)) * (1 + 1e-9))
    assert np.isinf(renyi.curve(POISSON(0.1, GAUSSIAN(1.0)), [2e5])[0]) == np.False_
    assert renyi.curve(POISSON(0.1, GAUSSIAN(1.0)), [2e5])[0] >= 1e5 * 0.99


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_a_bad_rate_is_refused(rate: float) -> None:
    with pytest.raises(Refused, match="probability"):
        renyi.curve(POISSON(rate, GAUSSIAN(1.0)))


def test_a_bad_sample_is_refused() -> None:
    for size, total in ((11, 10), (-1, 10), (1.5, 10), (0, 0)):
        with pytest.raises(Refused, match="sample_size"):
            renyi.curve(FIXED(total, size, GAUSSIAN(1.0)))


SHUFFLED = events.ShuffledDpEvent(1.0, 100)


@pytest.mark.parametrize("relation", Relation)
def test_only_matching_relations_pass(relation: Relation) -> None:
    allowed = {
        POISSON(0.1, GAUSSIAN(1.0)): {Relation.ADD_REMOVE, Relation.ZERO_OUT},
        FIXED(10, 1, GAUSSIAN(1.0)): {Relation.REPLACE_ONE},
        SHUFFLED: {Relation.ZERO_OUT, Relation.REPLACE_ONE},
        events.MixedDpEvent(0.1, GAUSSIAN(1.0)): set(Relation),
        GAUSSIAN(1.0): set(Relation),
    }
    for event, relations in allowed.items():
        wrapped = (
            event,
            dp.SelfComposedDpEvent(event, 3),
            dp.ComposedDpEvent([GAUSSIAN(1.0), event]),
            events.MixedDpEvent(0.5, event),
            events.RandomParticipationDpEvent(0.5, 2, event),
            dp.dp_event.RepeatAndSelectDpEvent(event, 2.0, 1.0),
        )
        for whole in wrapped:
            if relation in relations:
                sampling.check_relation(whole, relation)
            else:
                with pytest.raises(Refused, match="not proved"):
                    sampling.check_relation(whole, relation)


def test_counts_are_whole() -> None:
    assert sampling.check_count(3) == 3
    for count in (-1, 1.5, math.nan):
        with pytest.raises(Refused, match="count"):
            sampling.check_count(count)  # type: ignore[arg-type]
