"""The attack on floating-point Laplace noise (Mironov, CCS 2012), and noise that withstands it.

Textbook noise is sign * scale * log(U) with U on the grid of multiples of 2**-53. Only some doubles
can come out, and which ones depends on the input: an output that the other input cannot give
reveals the input, whatever epsilon was promised.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from confide.randomness import Key, Stream
from confide.randomness.exact import LAPLACE_SLACK, GriddedLaplace
from goodness import LEAST_P, chi_square

Floats = NDArray[np.float64]

RUNS = 20_000
LEVEL = 1e-6  # chance that one Clopper-Pearson bound is wrong
CASES = [(1.0, 0.1), (1.0, 1.0), (2.0**-20, 0.1), (3.7, 0.5)]  # other input, nominal epsilon


def stream(purpose: str) -> Stream:
    return Key.from_seed(2012).stream(0, None, purpose)


def textbook_laplace(source: Stream, at: float, scale: float, count: int) -> Floats:
    return at + source.signs(count) * scale * np.log(source.uniform(count))


def is_reachable(y: Floats, at: float, scale: float) -> NDArray[np.bool_]:
    """Try every U near the one that the output suggests: does textbook noise on `at` give y?"""
    offset = y - at
    guess = np.rint(np.exp(-np.abs(offset) / scale) * 2.0**53)
    nearby = np.clip(guess[:, None] + np.arange(-40, 41)[None, :], 1, 2.0**53)
    noise = scale * np.log(nearby * 2.0**-53)
    hit = (at + noise == y[:, None]) | (at - noise == y[:, None])
    return hit.any(axis=1)


def proved_epsilon(hits: int, other_hits: int, runs: int) -> float:
    """The log ratio that both rates of an event prove, each by its one-sided exact bound."""
    low = stats.beta.ppf(LEVEL, hits, runs - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - LEVEL, other_hits + 1, runs - other_hits) if other_hits < runs else 1
    return math.log(low / high) if low > 0 else -math.inf


@pytest.mark.parametrize(("other", "epsilon"), CASES)
def test_textbook_laplace_breaks(other: float, epsilon: float) -> None:
    scale = other / epsilon
    from_zero = textbook_laplace(stream("zero"), 0.0, scale, RUNS)
    from_other = textbook_laplace(stream("other"), other, scale, RUNS)
    # The attack knows its own input's outputs: the search misses none of them.
    assert is_reachable(from_zero, 0.0, scale).all()
    assert is_reachable(from_other, other, scale).all()
    betrayed = int((~is_reachable(from_zero, other, scale)).sum())
    # Noise on `other` never gives an output that the search cannot reach from it.
    assert proved_epsilon(betrayed, 0, RUNS) > max(6, 5 * epsilon)
    # Guess "zero" on those outputs and "other" on the rest, each input having been equally likely:
    # pure epsilon-DP lets nobody be right more often than 1 / (1 + exp(-epsilon)).
    right = 0.5 + stats.beta.ppf(LEVEL, betrayed, RUNS - betrayed + 1) / 2
    assert right > 0.8 > 1 / (1 + math.exp(-epsilon))


@pytest.mark.parametrize(("other", "epsilon"), CASES)
def test_the_same_attack_gains_nothing_on_the_grid(other: float, epsilon: float) -> None:
    noise = GriddedLaplace(other / epsilon)
    from_zero = noise.add(stream("zero grid"), np.zeros(RUNS))
    from_other = noise.add(stream("other grid"), np.full(RUNS, other))
    for candidate in (0.0, other):
        reached = [
            int(is_reachable(y, candidate, noise.scale).sum()) for y in (from_zero, from_other)
        ]
        for a, b in (reached, reached[::-1]):
            assert proved_epsilon(a, b, RUNS) < epsilon * LAPLACE_SLACK
            assert proved_epsilon(RUNS - a, RUNS - b, RUNS) < epsilon * LAPLACE_SLACK


@pytest.mark.parametrize(("other", "epsilon"), CASES)
def test_no_output_on_the_grid_betrays_its_input(other: float, epsilon: float) -> None:
    """Each output is a number of steps, which every input reaches with nearly equal probability."""
    noise = GriddedLaplace(other / epsilon)
    t = noise.scale / noise.grid
    shift = int(noise.to_grid(np.array([other]))[0])
    steps = noise.to_grid(np.zeros(RUNS)) + noise.noise(stream("ratio"), RUNS)
    np.testing.assert_array_equal(noise.from_grid(steps) / noise.grid, steps)
    # log P(steps | 0) - log P(steps | other), from the law that test_exact.py verifies.
    loss = (np.abs(steps - shift) - np.abs(steps)) / t
    assert np.abs(loss).max() <= epsilon


@pytest.mark.parametrize(("other", "epsilon"), CASES)
def test_thresholds_on_the_grid_keep_the_promise(other: float, epsilon: float) -> None:
    """The best honest test, a threshold, comes close to epsilon and does not pass it."""
    noise = GriddedLaplace(other / epsilon)
    runs = 1_000_000
    from_zero = noise.add(stream("zero threshold"), np.zeros(runs))
    from_other = noise.add(stream("other threshold"), np.full(runs, other))
    bounds = [
        proved_epsilon(int((from_zero < c).sum()), int((from_other < c).sum()), runs)
        for c in np.linspace(-1, 1, 9) * other
    ]
    assert max(bounds) < epsilon * LAPLACE_SLACK
    assert max(bounds) > epsilon - 0.05  # the noise is not merely too large


@pytest.mark.parametrize("modulus", [2, 16, 100])
def test_low_bits_on_the_grid_are_the_same_for_all_inputs(modulus: int) -> None:
    """The low bits, where textbook noise leaks, are uniform whatever the input was."""
    noise = GriddedLaplace(10.0)
    for at in (0.0, 1.0, math.pi):
        steps = noise.to_grid(np.full(200_000, at)) + noise.noise(stream(f"low {at}"), 200_000)
        counts = np.bincount(steps % modulus, minlength=modulus)
        assert chi_square(counts, np.full(modulus, 1 / modulus)) > LEAST_P
