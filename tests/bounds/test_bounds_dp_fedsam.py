"""Theorems 1, 3, 4, 5 of DP-FedSAM beside high-precision arithmetic and small experiments."""

import mpmath as mp
import numpy as np
import pytest

from confide.bounds import Bound, dp_fedsam

SMALL = {"L": 1.0, "rho": 0.5, "sigma": 0.95, "C": 0.2, "d": 3, "m": 50, "N": 500, "T": 300}


def test_theorem_1_by_hand() -> None:
    # eta 0.1, rho 0.5, K 2, L 1: 6 0.01 0.25 2 (12 4 0.01 + 10) / (1 - 0.04).
    assert dp_fedsam.theorem_1(0.1, 0.5, 2, 1.0).value == pytest.approx(0.03 * 10.48 / 0.96)
    # sigma_l 2: 6 0.01 4 2 / (1 - 0.06).
    assert dp_fedsam.theorem_1_sgd(0.1, 2.0, 2, 1.0).value == pytest.approx(0.48 / 0.94)
    with pytest.raises(ValueError, match="only below 1"):
        dp_fedsam.theorem_1(1.0, 0.5, 2, 1.0)


def test_theorem_1_is_0_where_the_sensitivity_is_not() -> None:
    # One step of plain descent on (w - x)^2 / 2, x = 0 or x = 1: the updates differ by eta.
    eta, w = 0.1, 0.3
    moved = [-eta * (w - x) for x in (0.0, 1.0)]
    bound = dp_fedsam.theorem_1(eta, 0.0, 1, 1.0)
    assert bound.value == 0 < (moved[0] - moved[1]) ** 2
    assert "cannot hold" in bound.note


def test_clipping_factors_by_hand() -> None:
    # Norms 1, 2, 4 at C = 2: factors 1, 1, 1/2.
    mean, away = dp_fedsam.clipping_factors([1.0, 2.0, 4.0], 2.0)
    assert mean == pytest.approx(5 / 6)
    assert away == pytest.approx((1 / 6 + 1 / 6 + 1 / 3) / 3)
    assert dp_fedsam.clipping_factors([0.0], 1.0) == (1.0, 0.0)
    with pytest.raises(ValueError, match="norms is empty"):
        dp_fedsam.clipping_factors([], 1.0)


def test_theorem_3_term_by_term() -> None:
    given = {"L": 2.0, "gap": 3.0, "sigma_l": 0.5, "sigma_g": 0.7, "K": 4, "sigma": 0.9, "C": 0.2}
    bound = dp_fedsam.theorem_3(**given, alphas=[0.5] * 9, alpha_tildes=[0.1] * 9, p=0.4, d=10, m=5)
    assert bound.terms["optimisation"] == pytest.approx(12 / 6 + 4 * 0.25 / (4 * 81))
    assert bound.terms["clipping"] == pytest.approx((0.5 * 0.49 + 0.1 * 4) * 9 / 81)
    assert bound.terms["noise"] == pytest.approx(4 * 3 * 0.81 * 0.04 * 4 / (25 * 2))
    assert bound.value == pytest.approx(sum(bound.terms.values()))
    assert "constants" in bound.note
    with pytest.raises(ValueError, match="both must have T"):
        dp_fedsam.theorem_3(**given, alphas=[0.5], alpha_tildes=[], p=0.4, d=10, m=5)


@pytest.mark.parametrize("d", [3, 100])
@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_theorem_4_in_high_precision(d: int, delta: float) -> None:
    epsilon, found = dp_fedsam.theorem_4(**{**SMALL, "d": d}, delta=delta)
    ratio = mp.mpf(1.0 * 0.5) / (mp.mpf(0.95) * mp.mpf(0.2) * d)
    tail = mp.log(1 / mp.mpf(delta))
    inner = ratio * mp.sqrt(2 * tail) + (mp.sqrt(2) * ratio) ** 2
    truth = mp.log(mp.mpf(450) / 500 + mp.mpf(50) / 500 * mp.exp(inner))
    assert epsilon.value == pytest.approx(float(truth), rel=1e-9)
    s = mp.mpf(2) * 0.5 / 50 * 0.95 * 0.2 * d / 50
    grid = [1 + mp.mpf(299) * i / 4000 for i in range(4001)]
    least = min(mp.exp(-mp.sqrt(2) * t * s * mp.sqrt(tail) + t**2 * s**2 / 2) for t in grid)
    assert found.value == pytest.approx(float(least), rel=1e-4)
    assert found.value >= delta * (1 - 1e-12)


def test_theorem_4_prefers_large_models() -> None:
    small, large = (dp_fedsam.theorem_4(**{**SMALL, "d": d}, delta=1e-3)[0] for d in (10, 10**6))
    assert large.value < small.value / 1000
    assert "more private" in large.note


def test_theorem_5_in_high_precision() -> None:
    e, delta, tilde, m, N, T = 0.001, 1e-6, 1e-3, 50, 500, 300
    bound = dp_fedsam.theorem_5(epsilon=e, delta=delta, tilde=tilde, m=m, N=N, T=T)
    mp.mp.dps, before = 60, mp.mp.dps
    try:
        x, d = mp.mpf(e), mp.mpf(delta)
        prime = mp.sqrt(2 * T * mp.log(1 / mp.mpf(tilde)) * x**2)
        prime += T * x * (mp.exp(x) - 1) / (mp.exp(x) + 1)
        head = mp.exp(-(prime + T * x) / 2) * (2 * T * x / (1 + mp.exp(x)) / (T * x - prime)) ** T
        head *= ((T * x + prime) / (T * x - prime)) ** (-(prime + T * x) / (2 * x))
        share = m * d / (N * (1 + mp.exp(x)))
        steps = mp.ceil(prime / x)
        rest = 2 - (1 - mp.exp(x) * share) ** steps * (1 - share) ** (T - steps) - (1 - share) ** T
        likely = 1 - 2 * mp.exp(-1.7 * prime) * (head + rest) / prime * mp.log(2 / prime)
        assert bound.value == pytest.approx(float(4 * prime), rel=1e-12)
        assert bound.terms["delta'"] == pytest.approx(float(head + rest), rel=1e-9)
        assert bound.terms["probability"] == pytest.approx(float(likely), rel=1e-9)
        least = 2 / prime**2 * mp.log(16 / (mp.exp(-prime) * (head + rest)))
        assert bound.terms["least N"] == pytest.approx(float(least), rel=1e-9)
    finally:
        mp.mp.dps = before


def test_theorem_5_has_no_value_for_few_rounds() -> None:
    with pytest.raises(ValueError, match="only below T epsilon~"):
        dp_fedsam.theorem_5(epsilon=0.1, delta=0.0, tilde=1e-5, m=1, N=10, T=2)
    vacuous = dp_fedsam.theorem_5(epsilon=0.5, delta=0.0, tilde=1e-3, m=1, N=10, T=300)
    assert vacuous.note.startswith("Vacuous")


def test_no_bound_can_be_taken_for_a_number() -> None:
    bound = dp_fedsam.theorem_1(0.1, 0.5, 2, 1.0)
    assert str(bound).endswith("not a privacy statement)")
    with pytest.raises(TypeError):
        float(bound)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no value here"):
        Bound(float(np.nan), "x", "a paper", "x = y")
