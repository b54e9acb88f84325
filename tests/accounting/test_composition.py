"""The tilted transform against direct convolution and against sums with many digits."""

import math

import mpmath as mp
import numpy as np
import pytest

from confide.accounting.composition import Composition
from confide.accounting.laws import Mixture, Single, Sum
from confide.accounting.pairs import atoms


def response(epsilon):
    truth = 1 / (1 + math.exp(-epsilon))
    return atoms([truth, 1 - truth], [1 - truth, truth])


def composed(epsilon, rounds, unit=True):
    pair = response(epsilon)
    return Composition(
        lambda width: Sum(((Single(pair.on_grid(width)), rounds),)),
        pair.span,
        pair.unit if unit else None,
        lumpy=True,
    )


def exact_delta(epsilon, rounds, at):
    with mp.workdps(60):
        truth = 1 / (1 + mp.e ** (-mp.mpf(epsilon)))
        total = mp.mpf(0)
        for k in range(rounds + 1):
            loss = mp.mpf(epsilon) * (2 * k - rounds)
            if loss > at:
                mass = mp.binomial(rounds, k) * truth**k * (1 - truth) ** (rounds - k)
                total += mass * (1 - mp.e ** (at - loss))
        return float(total)


@pytest.mark.parametrize("rounds", [1, 10, 1000, 5000])
@pytest.mark.parametrize("deviations", [1, 4, 9])
def test_every_digit_of_a_small_delta(rounds, deviations):
    epsilon = 0.1
    at = rounds * epsilon * math.tanh(epsilon / 2) + deviations * epsilon * math.sqrt(rounds)
    exact = exact_delta(epsilon, rounds, at)
    found = composed(epsilon, rounds).delta(at)
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-4) + 1e-17
    if exact > 0:
        reached = composed(epsilon, rounds).epsilon(exact)
        assert at * (1 - 1e-9) <= reached <= at * (1 + 1e-4)


def test_a_coarser_grid_is_still_above_the_truth():
    for at in (0.35, 1.0, 2.1):
        exact = exact_delta(0.1, 100, at)
        assert exact <= composed(0.1, 100, unit=False).delta(at) <= exact * 1.05


def test_transform_is_that_of_the_direct_convolution():
    width, theta, size = 0.05, 1.3, 64
    first, second = (response(e).on_grid(width) for e in (0.2, 0.35))
    law = Sum(((Single(first), 2), (Mixture(0.3, Sum(((Single(second), 3),))), 1)))
    inner = np.convolve(np.convolve(second.mass, second.mass), second.mass)
    inner_first = 3 * second.first
    mixed = 0.3 * inner
    mixed[-inner_first] += 0.7
    direct = np.convolve(np.convolve(first.mass, first.mass), mixed)
    start = 2 * first.first + inner_first
    losses = width * (start + np.arange(len(direct)))
    moment = float((direct * np.exp(theta * losses)).sum())
    assert law.log_moment(theta) == pytest.approx(math.log(moment), rel=1e-12)
    assert law.bounds[0] <= start
    wrapped = np.zeros(size)
    np.add.at(wrapped, (start + np.arange(len(direct))) % size, direct * np.exp(theta * losses))
    back = np.fft.irfft(law.transform(theta, size).values, size)
    assert back == pytest.approx(wrapped / moment, abs=1e-14)


def test_infinite_mass_composes_and_is_thinned_by_a_coin():
    pair = atoms([0.01, 0.59, 0.4], [0.0, 0.4, 0.6])
    grid = pair.on_grid(0.01)
    law = Sum(((Single(grid), 5), (Mixture(0.1, Single(grid)), 2)))
    assert math.exp(law.log_finite) == pytest.approx(0.99**5 * (1 - 0.001) ** 2, rel=1e-12)
    composition = Composition(lambda width: Single(pair.on_grid(width)), pair.span)
    assert composition.epsilon(0.009) == math.inf
    assert composition.delta(50.0) == pytest.approx(0.01, rel=1e-6)
