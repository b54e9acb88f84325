"""Each answer is compared with a route that shares no code with it."""

import math
import warnings

import dp_accounting as dp
import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from confide.accounting import gdp
from confide.accounting.events import (
    NOTHING,
    OPEN,
    ApproximateDpEvent,
    BinomialDpEvent,
    ComposedDpEvent,
    DiscreteGaussianDpEvent,
    GaussianDpEvent,
    LaplaceBothDpEvent,
    LaplaceDpEvent,
    LaplaceL2DpEvent,
    MixedDpEvent,
    PoissonSampledDpEvent,
    PureDpEvent,
    RandomParticipationDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    ShuffledDpEvent,
    SkellamDpEvent,
    StaircaseDpEvent,
)
from confide.accounting.losses import LossAccountant
from confide.accounting.relations import Relation

FINE = 1e-3  # what an epsilon may be above the truth, relative


def spent(event, delta, relation=Relation.ADD_REMOVE):
    return LossAccountant(relation).compose(event).get_epsilon(delta)


def lost(event, epsilon, relation=Relation.ADD_REMOVE):
    return LossAccountant(relation).compose(event).get_delta(epsilon)


def run(event, steps, rate=1.0):
    return SelfComposedDpEvent(PoissonSampledDpEvent(rate, event) if rate < 1 else event, steps)


def enumerated_delta(upper, lower, rounds, epsilon):
    """delta of `rounds` releases of one finite pair, by walking through every type of outcome."""
    with mp.workdps(40):
        total = mp.mpf(0)

        def walk(index, left, log_count, up, down):
            nonlocal total
            if index == len(upper) - 1:
                up, down = up * mp.mpf(upper[index]) ** left, down * mp.mpf(lower[index]) ** left
                ways = log_count
                total += max(ways * (up - mp.e ** mp.mpf(epsilon) * down), 0)
                return
            for k in range(left + 1):
                walk(
                    index + 1,
                    left - k,
                    log_count * mp.binomial(left, k),
                    up * mp.mpf(upper[index]) ** k,
                    down * mp.mpf(lower[index]) ** k,
                )

        walk(0, rounds, mp.mpf(1), mp.mpf(1), mp.mpf(1))
        return float(total)


def close_above(found, exact, fine=FINE):
    assert exact * (1 - 1e-9) <= found <= exact * (1 + fine) + 1e-300


@pytest.mark.parametrize(
    ("multiplier", "rate", "steps", "delta", "expected"),
    [
        (4, 0.01, 10_000, 1e-5, 0.946867),
        (1, 0.05, 200, 1e-5, 4.7659),
        (0.95, 0.1, 300, 1 / 500, 9.372458),
        (0.95, 0.1, 200, 1 / 500, 7.301241),
        (0.95, 0.1, 300, 1e-5, 13.663601),
        (6, 0.01, 10_001, 1e-5, 0.600853),
    ],
)
def test_known_sampled_gaussians(multiplier, rate, steps, delta, expected):
    event = run(GaussianDpEvent(multiplier), steps, rate)
    # The expected values are themselves upper bounds on a fixed grid, good to a few 1e-5.
    assert spent(event, delta) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12, 1e-25])
def test_gaussian_against_its_closed_form(mu, delta):
    # A mixture with probability 1 keeps the releases apart, so they are really convolved.
    event = ComposedDpEvent(
        [
            PoissonSampledDpEvent(1.0, GaussianDpEvent(1 / mu)),
            MixedDpEvent(1.0, GaussianDpEvent(2 / mu)),
            GaussianDpEvent(0.7 / mu),
        ]
    )
    close_above(spent(event, delta), gdp.epsilon(mu * math.sqrt(1 + 0.25 + 1 / 0.49), delta))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
@pytest.mark.parametrize("rounds", [1, 7, 40])
def test_staircase_against_enumeration(epsilon, rounds):
    event = StaircaseDpEvent(epsilon, 0.3)
    b = math.exp(-epsilon)
    plus = 0.5 + 0.3 * (1 - b) / (2 * (0.3 + b * 0.7))
    upper = [plus, 1 - plus * (1 + b), b * plus]
    for share in (0.1, 0.5, 0.9):
        # Around the mean of the loss, where neither delta nor 1 - delta is negligible.
        at = rounds * epsilon * plus * (1 - b) + 2 * share * epsilon * math.sqrt(rounds)
        exact = enumerated_delta(upper, upper[::-1], rounds, at)
        # delta moves by its logarithmic slope times the 0.1 % allowed to epsilon.
        found = lost(run(event, rounds), at)
        assert exact * (1 - 1e-9) <= found <= exact * 1.02 + 1e-15
        if exact > 0:
            close_above(spent(run(event, rounds), exact), at)


@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_sampled_response_against_enumeration(rate):
    truth = 1 / (1 + math.exp(-1.0))
    upper, lower = [truth, 1 - truth], [1 - truth, truth]
    mixed = [(1 - rate) * q + rate * p for p, q in zip(upper, lower, strict=True)]
    at = 4 * rate
    exact = max(
        enumerated_delta(mixed, lower, 30, at),
        enumerated_delta(lower, mixed, 30, at),
    )
    close_above(spent(run(PureDpEvent(1.0), 30, rate), exact), at)


def test_approximate_release_loses_its_delta_every_round():
    event = run(ApproximateDpEvent(0.5, 1e-6), 20)
    assert spent(event, 1e-5) == math.inf  # 20 x 1e-6 is more than that
    truth = 1 / (1 + math.exp(-0.5))
    kept = (1 - 1e-6) ** 20
    exact = 1 - kept + kept * enumerated_delta([truth, 1 - truth], [1 - truth, truth], 20, 3.0)
    close_above(lost(event, 3.0), exact, 0.02)
    assert lost(ApproximateDpEvent(0.5, 1e-6), 0.5) == pytest.approx(1e-6, rel=2e-3)


def integer_pair(noise, shift, reach):
    support = np.arange(-reach, reach + 1)
    return noise(support), noise(support - shift)


def by_integers(upper, lower, epsilon):
    return float(np.maximum(upper - math.exp(epsilon) * lower, 0).sum())


def discrete_gaussian_pmf(sigma):
    total = float(
        mp.nsum(lambda k: mp.e ** (-(k**2) / (2 * mp.mpf(sigma) ** 2)), [-mp.inf, mp.inf])
    )
    return lambda x: np.exp(-(x.astype(float) ** 2) / (2 * sigma**2)) / total


@pytest.mark.parametrize("shift", [1, 2, 5])
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_integer_noises_against_their_laws(shift, spread):
    cases = [
        (DiscreteGaussianDpEvent(spread, shift, 1), discrete_gaussian_pmf(spread)),
        (
            SkellamDpEvent(spread**2, shift, shift, 1),
            lambda x: stats.skellam.pmf(x, spread**2 / 2, spread**2 / 2),
        ),
    ]
    for event, pmf in cases:
        pair = integer_pair(pmf, shift, 60)
        for at in (0.5 * shift / spread, 2 * shift / spread):
            exact = by_integers(*pair, at)
            close_above(spent(event, exact), at, 2e-3)  # the oracle's pmf has ten digits


@pytest.mark.parametrize("smaller", [1, 2, 3])
def test_the_largest_integer_shift_is_the_worst(smaller):
    for pmf in (
        discrete_gaussian_pmf(2.0),
        lambda x: stats.skellam.pmf(x, 2, 2),
        lambda x: stats.binom.pmf(x + 20, 40, 0.5),
    ):
        for at in np.linspace(-2, 2, 9):
            worst = by_integers(*integer_pair(pmf, 4, 60), at)
            assert by_integers(*integer_pair(pmf, smaller, 60), at) <= worst + 1e-9
            assert by_integers(*integer_pair(pmf, -smaller, 60), at) <= worst + 1e-9


def test_an_integer_bound_lost_to_rounding_is_kept():
    exact = spent(DiscreteGaussianDpEvent(5.0, 3.0, 1), 1e-5)
    assert spent(DiscreteGaussianDpEvent(5.0, 3.0 - 1e-12, 1), 1e-5) == exact


@pytest.mark.parametrize("rate", [1.0, 0.2, 0.01])
@pytest.mark.parametrize("scale", [0.05, 0.7, 3.0, 50.0])
def test_laplace_against_its_density(scale, rate):
    def hockey_stick(at, removal):
        with mp.workdps(30):
            f = lambda x: mp.e ** (-abs(x) / scale) / (2 * scale)  # noqa: E731
            mix = lambda x: (1 - rate) * f(x) + rate * f(x - 1)  # noqa: E731
            top, low = (mix, f) if removal else (f, mix)
            points = [mp.mpf(k) / 8 for k in range(-16, 25)]
            grown = mp.e ** mp.mpf(at)
            far = [points[0] - 40 * mp.mpf(scale), *points, points[-1] + 40 * mp.mpf(scale)]
            return mp.quad(lambda x: max(top(x) - grown * low(x), 0), far)

    event = PoissonSampledDpEvent(rate, LaplaceDpEvent(scale))
    at = 0.6 * math.log1p(rate * math.expm1(1 / scale))
    exact = float(max(hockey_stick(at, True), hockey_stick(at, False)))
    # The quadrature's kinks leave it about four digits.
    close_above(spent(event, exact), at, 2e-3)


@pytest.mark.parametrize(
    "event",
    [
        run(LaplaceDpEvent(8.0), 50),
        run(LaplaceDpEvent(2.0), 100, 0.05),
        run(GaussianDpEvent(1.5), 100, 0.2),
        ComposedDpEvent([run(GaussianDpEvent(2.0), 20, 0.1), LaplaceDpEvent(2.0)]),
    ],
)
def test_against_dp_accounting(event):
    theirs = PLDAccountant(dp.NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-4).compose(event)
    for delta in (1e-3, 1e-6):
        assert spent(event, delta) == pytest.approx(theirs.get_epsilon(delta), rel=5e-4)


def test_within_the_bounds_of_prv_accountant():
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prv = PoissonSubsampledGaussianMechanism(noise_multiplier=1.0, sampling_probability=0.05)
        low, _, high = PRVAccountant(
            prvs=[prv], max_self_compositions=[200], eps_error=0.005, delta_error=1e-9
        ).compute_epsilon(1e-5, [200])
    assert low < spent(run(GaussianDpEvent(1.0), 200, 0.05), 1e-5) < high


def test_a_public_coin_scales_delta():
    inner = run(GaussianDpEvent(2.0), 5)
    mixed = MixedDpEvent(0.1, inner)
    for at in (0.5, 2.0):
        exact = 0.1 * gdp.delta(math.sqrt(5) / 2, at)
        close_above(lost(mixed, at), exact, 0.02)
        close_above(spent(mixed, exact), at)


def test_coins_over_composed_and_repeated_releases():
    rounds, rate = 12, 0.3
    participating = RandomParticipationDpEvent(rate, rounds, run(LaplaceDpEvent(3.0), 2))
    at = 2.0
    exact = sum(
        stats.binom.pmf(k, rounds, rate) * lost(run(LaplaceDpEvent(3.0), 2 * k), at)
        for k in range(1, rounds + 1)
    )
    assert lost(participating, at) == pytest.approx(exact, rel=0.02)


def test_a_coin_over_an_open_release():
    assert spent(MixedDpEvent(1e-6, OPEN), 1e-5) == 0
    assert lost(run(MixedDpEvent(1e-6, OPEN), 100), 5.0) == pytest.approx(1e-4, rel=1e-3)
    assert spent(OPEN, 1e-5) == math.inf
    assert lost(OPEN, 10.0) == 1


@settings(max_examples=4, deadline=None)
@given(
    st.floats(0.5, 20),
    st.sampled_from([1.0, 0.3, 0.01]),
    st.integers(1, 3000),
    st.floats(-9, -2),
)
def test_monotone_in_noise_rounds_rate_and_delta(multiplier, rate, steps, exponent):
    delta = 10**exponent
    for noise in (GaussianDpEvent, LaplaceDpEvent):
        here = spent(run(noise(multiplier), steps, rate), delta)
        slack = here * FINE + 1e-6
        assert spent(run(noise(multiplier * 1.1), steps, rate), delta) <= here + slack
        assert spent(run(noise(multiplier), steps + 1 + steps // 10, rate), delta) >= here - slack
        assert spent(run(noise(multiplier), steps, rate), delta * 1.5) <= here + slack
        if rate < 1:
            assert spent(run(noise(multiplier), steps, rate * 1.2), delta) >= here - slack


def test_delta_and_epsilon_are_inverse():
    for event in (
        run(StaircaseDpEvent(0.2, 0.4), 500, 0.02),
        run(SkellamDpEvent(400.0, 3.0, 3.0, 1), 200, 0.1),
        run(BinomialDpEvent(1000, 0.5, 2, 2, 2, 1), 50),
        run(ShuffledDpEvent(0.7, 200), 5),
    ):
        relation = Relation.ZERO_OUT
        epsilon = spent(event, 1e-6, relation)
        assert lost(event, epsilon, relation) == pytest.approx(1e-6, rel=0.01)


def test_un_sampled_pairs_do_not_depend_on_the_relation():
    event = ComposedDpEvent([run(GaussianDpEvent(3.0), 10), LaplaceDpEvent(2.0), PureDpEvent(0.1)])
    answers = {spent(event, 1e-5, relation) for relation in Relation}
    assert len(answers) == 1


def test_two_norms_use_the_l1_row_only():
    both = LaplaceBothDpEvent(2.0, 5.0, 10)
    assert spent(both, 1e-5) == spent(LaplaceDpEvent(2.0), 1e-5)


def test_order_and_grouping_do_not_matter():
    parts = [run(GaussianDpEvent(1.0), 10, 0.1), run(LaplaceDpEvent(4.0), 3), GaussianDpEvent(9.0)]
    one = spent(ComposedDpEvent(parts), 1e-5)
    other = LossAccountant(Relation.ADD_REMOVE)
    for part in reversed([*parts, NOTHING]):
        other.compose(part)
    assert other.get_epsilon(1e-5) == pytest.approx(one, rel=1e-9)
    assert spent(run(ComposedDpEvent(parts), 2), 1e-5) > one


@pytest.mark.parametrize(
    "event",
    [
        LaplaceL2DpEvent(1.0, 3),
        StaircaseDpEvent(1.0, 0.4, dim=2),
        DiscreteGaussianDpEvent(3.0, 1.0, 2),
        SkellamDpEvent(9.0, 1.0, 1.0, None),
        BinomialDpEvent(100, 0.3, 1, 1, 1, 1),
        BinomialDpEvent(100, 0.5, 1, 1, 1, 2),
        SampledWithoutReplacementDpEvent(10, 5, GaussianDpEvent(1.0)),
        PoissonSampledDpEvent(0.1, ComposedDpEvent([GaussianDpEvent(1.0), LaplaceDpEvent(1.0)])),
        PoissonSampledDpEvent(0.1, ShuffledDpEvent(1.0, 10)),
        ShuffledDpEvent(1.0, 10),  # the number of messages shows who is absent
        PoissonSampledDpEvent(1.5, GaussianDpEvent(1.0)),
        LaplaceDpEvent(-1.0),
        LaplaceDpEvent(math.nan),
        PureDpEvent(math.inf),
        ApproximateDpEvent(1.0, 1.0),
        DiscreteGaussianDpEvent(0.0, 1.0, 1),
        DiscreteGaussianDpEvent(3.0, 0.5, 1),
        DiscreteGaussianDpEvent(1e9, 1.0, 1),
        ShuffledDpEvent(math.inf, 10),
        dp.UnsupportedDpEvent(),
    ],
)
def test_what_is_not_proved_is_not_supported(event):
    accountant = LossAccountant(Relation.ADD_REMOVE)
    assert not accountant.supports(event)
    with pytest.raises(dp.UnsupportedEventError):
        accountant.compose(event)


def test_poisson_under_replace_one_is_not_supported():
    event = PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))
    assert not LossAccountant(Relation.REPLACE_ONE).supports(event)
    assert LossAccountant(Relation.ZERO_OUT).supports(event)


def test_nothing_composed_has_no_epsilon():
    with pytest.raises(ValueError, match="nothing"):
        LossAccountant().compose(NOTHING).get_epsilon(1e-5)
