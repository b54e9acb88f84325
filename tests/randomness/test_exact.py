from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

from confide.randomness import Key, Stream, exact
from confide.randomness.exact import (
    LAPLACE_SLACK,
    LAPLACE_STEP,
    BinomialLaw,
    DiscreteGaussian,
    DiscreteLaplace,
    GriddedLaplace,
    Skellam,
)
from goodness import LEAST_P, chi_square_of_law, kolmogorov
from scripted import ScriptedWords

Ints = NDArray[np.int64]
Cdf = Callable[[Ints], NDArray[np.float64]]


def stream(purpose: str) -> Stream:
    return Key.from_seed(77).stream(0, None, purpose)


def from_pmf(pmf: Callable[[Ints], NDArray[np.float64]], reach: int) -> Cdf:
    support = np.arange(-reach, reach + 1)
    heights = np.cumsum(pmf(support))
    heights /= heights[-1]
    return lambda x: heights[np.clip(x + reach, 0, 2 * reach)]


def gaussian_cdf(sigma: float) -> Cdf:
    # Each probability is the integral of the density over its unit interval, but for a relative
    # 1 / (24 sigma**2), which a million draws cannot see.
    if sigma > 1000:
        return lambda x: special.ndtr((x + 0.5) / sigma)
    return from_pmf(lambda x: np.exp(-((x / sigma) ** 2) / 2), math.ceil(12 * sigma) + 5)


def laplace_cdf(scale: float) -> Cdf:
    b = math.exp(-1 / scale)

    def cdf(x: Ints) -> NDArray[np.float64]:
        tail = np.exp(-np.where(x < 0, -x, x + 1) / scale) / (1 + b)
        return np.where(x < 0, tail, 1 - tail)

    return cdf


CASES: dict[str, tuple[object, Cdf]] = {
    **{
        f"gaussian {s}": (DiscreteGaussian(s), gaussian_cdf(s))
        for s in (0.3, 1.0, 7.3, 250.0, 4000.0, 4097.0, 20_000.5, 1e9, 2.0**50)
    },
    **{
        f"laplace {t}": (DiscreteLaplace(t), laplace_cdf(t))
        for t in (0.2, 1.0, 33.3, 1000.0, 1025.0, 1e6, 1.3 * 2.0**40)
    },
    **{
        f"skellam {v}": (
            Skellam(v),
            from_pmf(lambda x, v=v: special.ive(np.abs(x), v), math.ceil(14 * v**0.5) + 40),
        )
        for v in (0.05, 1.0, 90.5, 1e5)
    },
    "skellam shares": (Skellam(3e8), lambda x: special.ndtr((x + 0.5) / math.sqrt(3e8))),
    **{
        f"binomial {n} {p}": (
            BinomialLaw(n, p),
            lambda x, n=n, p=p: stats.binom.cdf(x + round(n * p), n, p),
        )
        for n, p in ((1, 0.5), (7, 0.3), (500, 0.5), (10_000, 0.01), (2**20, 0.7))
    },
}


@pytest.mark.parametrize("name", CASES)
def test_the_law(name: str) -> None:
    law, cdf = CASES[name]
    draws = law.draw(stream(name), 1_000_000)
    assert draws.dtype == np.int64
    assert chi_square_of_law(draws, cdf) > LEAST_P


@pytest.mark.parametrize("name", ["gaussian 7.3", "gaussian 1000000000.0", "laplace 1000000.0"])
def test_draws_are_independent(name: str) -> None:
    draws = CASES[name][0].draw(stream("independence"), 200_000).astype(np.float64)
    draws /= draws.std()
    scores = [
        float((draws[:-lag] * draws[lag:]).mean() * math.sqrt(len(draws) - lag))
        for lag in (1, 2, 3, 10, 100)
    ]
    assert stats.chi2.sf(np.sum(np.square(scores)), len(scores)) > LEAST_P


@pytest.mark.parametrize("name", CASES)
def test_draws_are_a_function_of_the_stream(name: str) -> None:
    law, _ = CASES[name]
    one = law.draw(stream("again"), (50, 20))
    assert one.shape == (50, 20)
    np.testing.assert_array_equal(one, law.draw(stream("again"), 1000).reshape(50, 20))
    assert law.draw(stream("again"), 0).shape == (0,)


@pytest.mark.parametrize(
    ("rate", "power", "shift", "cdf"),
    [
        (Fraction(1, 2 * 80**2), 2, 1, gaussian_cdf(80.0)),
        (Fraction(1, 2 * 150**2), 2, 2, gaussian_cdf(150.0)),
        (Fraction(1, 9), 1, 3, laplace_cdf(9.0)),
        (Fraction(2, 9), 1, 2, laplace_cdf(4.5)),
    ],
)
def test_blocks_far_coarser_than_those_in_use(
    rate: Fraction, power: int, shift: int, cdf: Cdf
) -> None:
    """With few blocks the exact comparison decides often, so an error in it would show."""
    draws = exact._draw_blocks(stream("coarse"), 150_000, rate, power, shift)
    assert chi_square_of_law(draws, cdf) > LEAST_P


@pytest.mark.parametrize("power", [1, 2])
def test_the_quick_acceptance_is_never_wrong(power: int) -> None:
    """Drive the trial word to the border of each draw and compare with the exponential itself."""
    shift = 11
    rate = Fraction(1, 2**20) if power == 1 else Fraction(1, 2 * (2**21) ** 2)
    for base in range(40):
        seeded = Key.from_seed(base).stream(0, None, "words")
        block_word, place_word = (int(w) for w in seeded.uint64(2))
        place_word &= 2**63 - 1  # positive
        value = int(_first_draw(rate, power, shift, block_word, place_word, 0)[0])
        corner = value >> shift << shift
        chance = math.exp(-float(rate * (value**power - corner**power)))
        border = int(chance * 2.0**53) << 11
        # A double knows the border to some 2**13 words of 2**64.
        for word, kept in ((border - 2**15, True), (border + 2**15, False)):
            if 0 <= word < 2**64:
                drawn, taken = _first_draw(rate, power, shift, block_word, place_word, word)
                assert (drawn == value and taken == 3) == kept


def _first_draw(
    rate: Fraction, power: int, shift: int, block: int, place: int, trial: int
) -> tuple[int, int]:
    source = ScriptedWords(block, place, trial)
    drawn = exact._draw_blocks(source, 1, rate, power, shift)
    return int(drawn[0]), source.taken


def test_negative_zero_is_drawn_again() -> None:
    source = ScriptedWords(2, 2**63, 0)  # block 0, place 0, negative, kept
    exact._draw_blocks(source, 1, Fraction(1, 2**20), 1, 10)
    assert source.taken > 3


def test_a_draw_beyond_64_bits_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "_FARTHEST", 3)
    with pytest.raises(OverflowError, match="64 bits"):
        DiscreteLaplace(1e6).draw(stream("far"), 100)


def test_a_mean_that_is_no_integer_is_told() -> None:
    law = BinomialLaw(7, 0.3)
    assert law.centre == 2
    assert law.bias == pytest.approx(0.1)
    draws = law.draw(stream("bias"), 400_000)
    assert abs(draws.mean() - law.bias) < 5 * math.sqrt(7 * 0.3 * 0.7 / 400_000)
    assert draws.min() == -2
    assert draws.max() == 5
    assert BinomialLaw(2**20).bias == 0.0


NOT_POSITIVE = [0.0, -1.0, float("nan"), float("inf"), -float("inf"), True]


@pytest.mark.parametrize("value", NOT_POSITIVE)
def test_bad_parameters_are_refused(value: float) -> None:
    for law, name in (
        (DiscreteGaussian, "sigma"),
        (DiscreteLaplace, "scale"),
        (Skellam, "variance"),
        (GriddedLaplace, "scale"),
    ):
        if law is GriddedLaplace and value is True:
            continue  # a scale of 1 is a scale
        with pytest.raises(ValueError, match=f"{law.__name__}: {name}="):
            law(value)
    with pytest.raises(ValueError, match="BinomialLaw: p="):
        BinomialLaw(10, value)


@pytest.mark.parametrize("law", [DiscreteGaussian, DiscreteLaplace])
def test_what_is_too_wide_is_refused(law: type) -> None:
    with pytest.raises(ValueError, match="at most"):
        law(2.0**50 * 1.001)


@pytest.mark.parametrize("trials", [0, -1, True, 2**53 + 1])
def test_bad_trials_are_refused(trials: int) -> None:
    with pytest.raises(ValueError, match="trials="):
        BinomialLaw(trials, 0.5)


def test_wide_sums_are_refused() -> None:
    with pytest.raises(ValueError, match="variance="):
        Skellam(2.0**36 * 1.001)
    with pytest.raises(ValueError, match="variance="):
        BinomialLaw(2**33, 0.5)


# The Laplace noise on a grid -------------------------------------------------------------------


def discrete_hockey_stick(t: float, shift: int, epsilon: float) -> float:
    """Sum of (P - e**epsilon Q)+ for discrete Laplace noise, by enumeration."""
    reach = math.ceil(45 * t) + shift
    x = np.arange(-reach, reach + shift + 1)
    p = np.exp(-np.abs(x) / t) * math.tanh(1 / (2 * t))
    q = np.exp(-np.abs(x - shift) / t) * math.tanh(1 / (2 * t))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def laplace_hockey_stick(distance: float, epsilon: float) -> float:
    if epsilon >= distance:
        return 0.0
    if epsilon <= -distance:
        return 1 - math.exp(epsilon)
    return 1 - math.exp((epsilon - distance) / 2)


LEMMA = [(t, shift) for t in (1.0, 1.7, 2.0, 5.0) for shift in (1, 2, 3, 7)]


@pytest.mark.parametrize(("t", "shift"), LEMMA)
def test_the_lattice_points_agree_with_the_continuous_law(t: float, shift: int) -> None:
    for k in range(shift + 1):
        epsilon = (shift - 2 * k) / t
        assert discrete_hockey_stick(t, shift, epsilon) == pytest.approx(
            laplace_hockey_stick(shift / t, epsilon), abs=1e-13
        )


@pytest.mark.parametrize(("t", "shift"), LEMMA)
def test_the_slack_dominates_everywhere_and_is_needed(t: float, shift: int) -> None:
    s = shift / t
    wider = s + 2 * math.log(math.cosh(1 / (2 * t)))
    assert wider <= s + 1 / (4 * t * t) <= s * (1 + 1 / (4 * t))
    gaps = []
    near_ends = [e + d for e in (-s, s, -wider, wider) for d in (-1e-3, -1e-9, 0, 1e-9, 1e-3)]
    for epsilon in [*np.linspace(-2 * wider - 1, 2 * wider + 1, 801), *near_ends]:
        exactly = discrete_hockey_stick(t, shift, float(epsilon))
        assert exactly <= laplace_hockey_stick(wider, float(epsilon)) + 1e-13
        gaps.append(exactly - laplace_hockey_stick(s, float(epsilon)))
    assert max(gaps) > 1e-4  # without the slack the claim would be false
    touching = [(shift - 2 * k + 1) / t for k in range(1, shift + 1)]
    for point in touching:  # the middle of a chord, e**point = sqrt of the product of its ends
        assert discrete_hockey_stick(t, shift, point) == pytest.approx(
            laplace_hockey_stick(wider, point), abs=1e-13
        )


@pytest.mark.parametrize("scale", [1.0, 0.7, 1.999999, 2.0, 3e-5, 1e12, 2.0**-900, 2.0**900])
def test_the_grid_is_a_power_of_two_as_fine_as_the_slack_needs(scale: float) -> None:
    grid = GriddedLaplace(scale).grid
    assert math.frexp(grid)[0] == 0.5
    t = Fraction(scale) / Fraction(grid)
    assert 2**40 <= t < 2**41
    assert Fraction(LAPLACE_SLACK) >= 1 + 1 / (4 * t)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(FLOATS, st.sampled_from([1.0, 0.7, 1e-9, 1e9, 2.0**-900, 2.0**900]))
def test_rounding_goes_towards_zero_by_less_than_a_step(x: float, scale: float) -> None:
    noise = GriddedLaplace(scale)
    steps = int(noise.to_grid(np.array([x]))[0])
    exactly = Fraction(x) / Fraction(noise.grid)
    assert abs(steps) <= abs(exactly)
    assert steps * exactly >= 0
    assert abs(exactly) - abs(steps) < 1 or abs(steps) == 2**62


def test_rounding_takes_float32() -> None:
    x = np.array([0.1, -3.0, 1e30], np.float32)
    noise = GriddedLaplace(1.0)
    np.testing.assert_array_equal(noise.to_grid(x), noise.to_grid(x.astype(np.float64)))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        GriddedLaplace(1.0).to_grid(np.array([0.0, bad]))


def test_a_sum_must_be_rounded_term_by_term() -> None:
    """The warning in the docstring: rounding a sum can move it by more than its term."""
    noise = GriddedLaplace(1.0)
    tiny = np.array([0.25 * noise.grid])
    rest = np.array([0.875 * noise.grid])
    assert noise.to_grid(tiny) == 0
    assert noise.to_grid(rest + tiny) - noise.to_grid(rest) == 1


SMALL = st.floats(-1e3, 1e3)


@given(SMALL, SMALL | st.floats(-1e-11, 1e-11), st.sampled_from([1.0, 0.7, 30.0]))
def test_rounding_adds_less_than_a_step_to_any_distance(x: float, d: float, scale: float) -> None:
    noise = GriddedLaplace(scale)
    y = x + d
    steps = noise.to_grid(np.array([x, y]))
    distance = abs(Fraction(x) - Fraction(y))
    raised = abs(int(steps[0]) - int(steps[1])) * Fraction(noise.grid) - distance
    assert raised < Fraction(noise.grid) <= Fraction(scale) * Fraction(LAPLACE_STEP)


@pytest.mark.parametrize("scale", [0.8, 1000.0])
def test_gridded_laplace_follows_the_continuous_law(scale: float) -> None:
    noise = GriddedLaplace(scale)
    # A grid of 2**-40 scales is invisible to a test of 1e6 draws.
    drawn = noise.add(stream(f"gridded {scale}"), np.full(1_000_000, 3.25))
    assert kolmogorov(drawn, stats.laplace(3.25, scale).cdf) > LEAST_P


def test_the_output_is_a_function_of_the_integers() -> None:
    noise = GriddedLaplace(0.3)
    steps = np.array([0, 1, -1, 2**53 + 1, -(2**62), 2**62])
    values = noise.from_grid(steps)
    assert [Fraction(v) / Fraction(noise.grid) for v in values] == [
        Fraction(float(s)) for s in steps.tolist()
    ]
