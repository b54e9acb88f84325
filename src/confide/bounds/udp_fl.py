"""UDP-FL: its error bounds, the extra rounds of its convergence, and the bend of Theorem 5.

Symbols of the paper: lambda (`lam`) the staircase's step in the log density, nu where in a step the
density falls, Delta the sensitivity, m the number of values that get noise, T the rounds, sigma and
b the Gaussian's and the Laplace noise's scales, L the smoothness. None of it is about privacy.
"""

from __future__ import annotations

from math import exp, expm1, pi, sqrt

import numpy as np
import numpy.typing as npt

from confide.accounting import staircase
from confide.bounds.value import Bound
from confide.published.value import count, positive, probability

THEOREM_3 = "mT / (1 - e^-λ) · (ν²Δ² + e^-λ Δ² - e^-λ ν²Δ² + Δ e^-λ)"
ADDS_UP = "The errors of T rounds are added: the expected sum of T noises is at most that. "
MIXED_UNITS = (
    "Δ² stands beside Δ, the density's height is missing, and the true amplitude is Lemma 1's law."
)
NO_ROUNDS = (
    "Up to a constant that the O() hides: here it is 1. The proof assumes strong convexity, and "
    "adds one round's variance where the variances of all rounds add up."
)


def lemma_1(lam: float, Delta: float) -> Bound:
    """Lemma 1: the least expected amplitude of staircase noise, at nu = 1 / (1 + e^(lambda/2))."""
    lam = positive("lambda", lam)
    value = positive("Delta", Delta) * exp(-lam / 2) / -expm1(-lam)
    return _bound(value, "E|x|", "Lemma 1", "Δ e^(λ/2) / (e^λ - 1)", "")


def theorem_3(lam: float, Delta: float, nu: float, m: int, T: int) -> Bound:
    """Theorem 3: the expected l1 error of T rounds of staircase noise; beside it the true sum."""
    lam, Delta, nu = positive("lambda", lam), positive("Delta", Delta), probability("nu", nu)
    values, b = count("m", m) * count("T", T), exp(-lam)
    inner = nu**2 * Delta**2 + b * Delta**2 - b * nu**2 * Delta**2 + Delta * b
    true = values * staircase.mean_absolute(lam, nu, Delta)
    note = ADDS_UP + MIXED_UNITS
    return _bound(values / (1 - b) * inner, "E‖w* - w‖_1", "Theorem 3", THEOREM_3, note, true)


def theorem_8(sigma: float, m: int, T: int) -> Bound:
    """Theorem 8: the expected l1 error of Gaussian noise; beside it that of T rounds in truth."""
    sigma, m = positive("sigma", sigma), count("m", m)
    value = sqrt(2 * m**2 * sigma**2 / pi)
    note = "One round's error: it should grow with the square root of T, and does not have T."
    true = value * sqrt(count("T", T))
    return _bound(value, "E‖w* - w‖_1", "Theorem 8", "sqrt(2 m² σ² / π)", note, true)


def theorem_9(b: float, m: int, T: int) -> Bound:
    """Theorem 9: the expected l1 error of T rounds of Laplace noise of scale b."""
    value = count("T", T) * count("m", m) * positive("b", b)
    return _bound(value, "E‖w* - w‖_1", "Theorem 9", "T m b", ADDS_UP.strip(), value)


def theorem_4(Delta: float, epsilon: float) -> Bound:
    """Theorem 4: how many more rounds the staircase's noise costs."""
    epsilon = positive("epsilon", epsilon)
    # e^eps / (e^eps - 1)^2, written so that it cannot overflow
    value = positive("Delta", Delta) ** 2 * exp(-epsilon) / expm1(-epsilon) ** 2
    return _bound(value, "rounds", "Theorem 4", "O(Δ² e^ε / (e^ε - 1)²)", NO_ROUNDS)


Vector = npt.NDArray[np.float64]


def theorem_5(L: float, w: npt.ArrayLike, v: npt.ArrayLike) -> Vector:
    """Theorem 5, eq. (5): the bend 1.2/L + 1.1 w_t - 0.1 v_(t+1) of a Bezier curve.

    w is the model before, v the one after a step of descent. The proof solves for the mean step and
    not for the least loss, and adds 1/L, the length of a step, to every coordinate.
    """
    before, after = np.asarray(w, np.float64), np.asarray(v, np.float64)
    return 1.2 / positive("L", L) + 1.1 * before - 0.1 * after


def eq_6(r: float, theta: npt.ArrayLike, w: npt.ArrayLike, v: npt.ArrayLike) -> Vector:
    """Eq. (6): the point r of the Bezier curve from v_(t+1), bending at theta, to w_t."""
    if not 0 <= r <= 1:
        raise ValueError(f"r is {r}; it must lie between 0 and 1.")
    bend, before, after = (np.asarray(part, np.float64) for part in (theta, w, v))
    return (1 - r) ** 2 * after + 2 * (r - r**2) * bend + r**2 * before


def _bound(
    value: float, symbol: str, place: str, text: str, note: str, true: float | None = None
) -> Bound:
    terms = {} if true is None else {"in truth at most": true}
    return Bound(value, symbol, f"UDP-FL, {place}", text, note, terms)
