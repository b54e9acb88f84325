import math

import attrs
import mpmath as mp
import pytest

from confide.accounting import binomial
from confide.accounting.events import BinomialDpEvent, SelfComposedDpEvent
from confide.accounting.losses import LossAccountant
from confide.accounting.relations import Refused


def enumerated(trials, p, shift, epsilon):
    """Both directions and both signs, with 40 digits; mass outside the common support included."""
    with mp.workdps(40):
        p, grown = mp.mpf(p), mp.e ** mp.mpf(epsilon)
        pmf = [mp.binomial(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
        law = lambda k: pmf[k] if 0 <= k <= trials else mp.mpf(0)  # noqa: E731
        support = range(-shift, trials + shift + 1)
        return float(
            max(sum(max(law(k) - grown * law(k - s), 0) for k in support) for s in (shift, -shift))
        )


def scalar(trials, p, shift):
    return BinomialDpEvent(trials, p, shift, shift, shift, 1)


@pytest.mark.parametrize("trials", [5, 40, 200])
@pytest.mark.parametrize("p", [0.5, 0.3, 0.9])
@pytest.mark.parametrize("shift", [1, 3])
def test_delta_is_exact(trials, p, shift):
    for epsilon in (0.0, 0.3, 2.0):
        exact = enumerated(trials, p, shift, epsilon)
        assert binomial.delta(scalar(trials, p, shift), epsilon) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("p", [0.5, 0.2])
def test_smaller_shifts_are_easier(p):
    for epsilon in (0.0, 0.5, 1.5):
        deltas = [enumerated(30, p, shift, epsilon) for shift in (1, 2, 3, 4)]
        assert deltas == sorted(deltas)


def test_epsilon_is_the_inverse_and_infinite_below_the_loose_mass():
    event = scalar(200, 0.3, 2)
    epsilon = binomial.epsilon(event, 1e-4)
    assert enumerated(200, 0.3, 2, epsilon) <= 1e-4
    assert enumerated(200, 0.3, 2, epsilon * (1 - 1e-6)) > 1e-4
    assert binomial.epsilon(scalar(5, 0.5, 1), 1 / 64) == math.inf  # 2^-5 is seen with certainty
    assert binomial.epsilon(scalar(10_000, 0.5, 1), 0.5) == 0


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize("p", [0.5, 0.3, 0.7])
def test_the_theorem_is_above_the_truth_in_one_dimension(delta, p):
    event = scalar(4000, p, 2)
    certified = binomial.certificate(event, delta)
    assert binomial.delta(event, certified.epsilon) <= delta
    assert certified.delta == delta


def test_the_theorem_by_hand():
    # p = 1/2: b = 1/3, c = sqrt(2) 7/4, d = 2/3; written out for d = 100, variance 1000.
    event = BinomialDpEvent(4000, 0.5, 5.0, 2.0, 1.0, 100)
    delta = 1e-4
    first = 2 * math.sqrt(2 * math.log(12_500)) / math.sqrt(1000)
    second = (2 * math.sqrt(2) * 1.75 * math.sqrt(math.log(1e5)) + 5 / 3) / (1000 * (1 - 1e-5))
    third = 2 / 3 * (math.log(12_500) + math.log(2e7) * math.log(1e5)) / 1000
    assert binomial.certificate(event, delta).epsilon == pytest.approx(first + second + third)


def test_the_theorem_refuses_outside_its_conditions():
    with pytest.raises(Refused, match="variance"):
        binomial.certificate(scalar(1000, 0.5, 1), 1e-9)
    with pytest.raises(Refused, match="variance"):
        binomial.certificate(BinomialDpEvent(4000, 0.5, 900, 900, 900, 1), 1e-3)


def test_composition_by_pairs_needs_a_symmetric_law():
    assert LossAccountant().supports(SelfComposedDpEvent(scalar(100, 0.5, 1), 5))
    assert not LossAccountant().supports(SelfComposedDpEvent(scalar(100, 0.4, 1), 5))


@pytest.mark.parametrize(
    ("change", "word"),
    [({"p": 0.0}, "p"), ({"p": 1.0}, "p"), ({"l2": math.inf}, "l2"), ({"linf": 0.0}, "linf")],
)
def test_fails_closed(change, word):
    event = attrs.evolve(scalar(100, 0.5, 1), **change)
    for ask in (binomial.pair, lambda event: binomial.certificate(event, 1e-3)):
        with pytest.raises(Refused, match=word):
            ask(event)
    with pytest.raises(Refused, match="dim"):
        binomial.pair(attrs.evolve(scalar(100, 0.5, 1), dim=2))
