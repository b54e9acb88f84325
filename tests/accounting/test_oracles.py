"""Ours beside two independent accountants: autodp's Renyi curves and prv-accountant's intervals.

autodp gives a Renyi curve per mechanism, Zhu and Wang's formula for Poisson samples (exact at
whole orders for these three noises) and its own conversion; none of it shares code with ours.
prv-accountant gives an interval that holds the true epsilon.
"""

import math
import warnings

import dp_accounting as dp
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # both packages warn about the numpy they are used with
    import prv_accountant as prv
    from autodp import mechanism_zoo, transformer_zoo

from confide.accounting import account, renyi
from confide.accounting.events import PureDpEvent

DELTA = 1e-5
ORDERS = (2, 3, 5, 8, 16, 32, 64)
TRUE_SHARE = 0.8  # of answers that are true in randomised response

NOISES = {
    "gaussian": (dp.GaussianDpEvent(1.3), lambda: mechanism_zoo.GaussianMechanism(1.3)),
    "little gaussian": (dp.GaussianDpEvent(9.0), lambda: mechanism_zoo.GaussianMechanism(9.0)),
    "laplace": (dp.LaplaceDpEvent(1.3), lambda: mechanism_zoo.LaplaceMechanism(1.3)),
    "little laplace": (dp.LaplaceDpEvent(9.0), lambda: mechanism_zoo.LaplaceMechanism(9.0)),
    "randomised response": (
        PureDpEvent(math.log(TRUE_SHARE / (1 - TRUE_SHARE))),
        lambda: mechanism_zoo.RandresponseMechanism(TRUE_SHARE),
    ),
}
RATES = (1.0, 0.2, 0.01)
noises = pytest.mark.parametrize("noise", NOISES)
rates = pytest.mark.parametrize("rate", RATES)


def ours(noise, rate=1.0):
    event = NOISES[noise][0]
    return event if rate == 1 else dp.PoissonSampledDpEvent(rate, event)


def autodp(noise, rate=1.0, tight=True):
    """The mechanism of autodp; its curve is the exact one where `tight`, else a general bound."""
    mechanism = NOISES[noise][1]()
    if rate == 1:
        return mechanism
    sampling = transformer_zoo.AmplificationBySampling(PoissonSampling=True)
    return sampling(mechanism, rate, improved_bound_flag=tight)


@pytest.fixture(autouse=True)
def their_warnings():
    """autodp overflows and divides by zero on its way to the right number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@noises
@rates
def test_renyi_curves_at_whole_orders(noise, rate):
    """Theirs is exact, so it is the truth: never below it, and no more than rounding above it."""
    mechanism = autodp(noise, rate)
    mine = renyi.curve(ours(noise, rate), ORDERS)
    for order, value in zip(ORDERS, mine, strict=True):
        exact = float(mechanism.RenyiDP(order))
        # Their sums start from 1 and take its logarithm: 1e-13 of the sum's logarithm is lost.
        slack = 1e-13 / (order - 1)
        assert exact * (1 - 1e-9) - slack <= value <= exact * (1 + 1e-9) + slack


@noises
@pytest.mark.parametrize("rate", RATES[1:])
def test_the_bound_for_any_mechanism_is_above_ours(noise, rate):
    """Theirs knows nothing of the noise but its curve, so it is the upper side."""
    general = autodp(noise, rate, tight=False)
    mine = renyi.curve(ours(noise, rate), ORDERS)
    for order, value in zip(ORDERS, mine, strict=True):
        assert value <= float(general.RenyiDP(order)) * (1 + 1e-9) + 1e-13


@noises
@rates
@pytest.mark.parametrize("steps", [30, 1000])
def test_final_epsilons(noise, rate, steps):
    """Theirs is Renyi's bound at the best order: the upper side for both of ours.

    Each of ours may be 0.1 % above what it approximates: the grid of losses and the grid of orders.
    (For few releases the best order can be larger than any of ours, which the losses do not mind.)
    """
    composed = transformer_zoo.Composition()([autodp(noise, rate)], [steps])
    theirs = float(composed.get_approxDP(DELTA)) * (1 + 1e-3)
    event = dp.SelfComposedDpEvent(ours(noise, rate), steps)
    by_renyi = account.epsilon(event, DELTA, accountant="rdp").epsilon
    best = account.epsilon(event, DELTA).epsilon
    assert best <= by_renyi * (1 + 1e-3)
    assert by_renyi <= theirs


@pytest.mark.parametrize("sigma", [0.7, 1.3, 9.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8])
def test_one_gaussian_release_against_the_exact_mechanism(sigma, delta):
    """Both are exact; theirs is found by a search with a tolerance of its own."""
    theirs = float(mechanism_zoo.ExactGaussianMechanism(sigma).get_approxDP(delta))
    mine = account.epsilon(dp.GaussianDpEvent(sigma), delta).epsilon
    assert mine == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("rate", RATES[1:])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_one_sampled_release_against_its_exact_curve(noise, rate):
    """One sampled release has epsilon log(1 + q (e^e - 1)), where e is the noise's at delta / q."""
    if noise == "gaussian":
        inner = float(mechanism_zoo.ExactGaussianMechanism(1.3).get_approxDP(DELTA / rate))
    else:
        inner = 1 / 1.3 + 2 * math.log1p(-DELTA / rate)  # delta = 1 - e^{(e - 1/b) / 2}
    exact = math.log1p(rate * math.expm1(inner))
    mine = account.epsilon(ours(noise, rate), DELTA).epsilon
    assert exact * (1 - 1e-6) <= mine <= exact * (1 + 1e-3)


DP_SGD = [(1.0, 0.01, 1000), (0.7, 0.004, 3000), (2.0, 0.05, 500), (4.0, 0.2, 100), (1.1, 1.0, 5)]


@pytest.mark.parametrize(("sigma", "rate", "steps"), DP_SGD)
def test_dp_sgd_lies_within_the_intervals_of_prv_accountant(sigma, rate, steps):
    """Their interval holds the truth; its lower end bounds ours from below, its upper above."""
    mechanism = prv.PoissonSubsampledGaussianMechanism(
        noise_multiplier=sigma, sampling_probability=rate
    )
    low, high = interval(mechanism, steps)
    event = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma))
    assert low <= account.epsilon(dp.SelfComposedDpEvent(event, steps), DELTA).epsilon <= high


@pytest.mark.parametrize(("scale", "steps"), [(2.0, 5), (10.0, 100), (30.0, 1000)])
def test_laplace_lies_within_the_intervals_of_prv_accountant(scale, steps):
    """As above, for composed Laplace noise."""
    low, high = interval(prv.LaplaceMechanism(mu=1 / scale), steps)
    event = dp.SelfComposedDpEvent(dp.LaplaceDpEvent(scale), steps)
    assert low <= account.epsilon(event, DELTA).epsilon <= high


def interval(mechanism, steps):
    accountant = prv.PRVAccountant(
        prvs=[mechanism], max_self_compositions=[steps], eps_error=0.01, delta_error=1e-9
    )
    low, _, high = accountant.compute_epsilon(DELTA, [steps])
    return low, high
