"""UDP and CRD: user-level differential privacy with communication-rounds discounting.

Symbols of the paper: Delta_l (`sensitivity`) what one sample changes in a client's model, q = K/U
the share of clients per round, T the rounds, (epsilon, delta) the client's budget, lambda (`lam`)
the order of a moment. "User-level" is the paper's word; its proof changes one sample (eq. (12)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from confide.published import sampled_gaussian
from confide.published.value import Published, count, exp, positive, probability, rate

EQ_10_NOTE = (
    "Drops a positive term of its own tail bound (19): at q = 1 too little noise above ε of about "
    "7 (δ = 0.001); for q < 1 it credits a sampling that the server sees."
)


def eq_13_sensitivity(eta: float, C: float, samples: int) -> Published:
    """Eq. (13): Delta_l of one full-batch step with per-sample clipping (right for that step)."""
    value = 2 * positive("eta", eta) * positive("C", C) / count("samples", samples)
    note = "Wrong as soon as a client takes more than one local step."
    return _published(value, "Δl", "eq. (13)", "Δl <= 2ηC / |D_i|", note)


def eq_10_sigma(sensitivity: float, q: float, T: int, epsilon: float, delta: float) -> Published:
    """Eq. (10), Theorem 1: the noise of every round for (epsilon, delta) after T rounds."""
    root = math.sqrt(2 * rate("q", q) * count("T", T) * _log_1_over(delta))
    value = positive("sensitivity", sensitivity) * root / positive("epsilon", epsilon)
    return _published(value, "σ_i", "eq. (10)", "σ_i = Δl sqrt(2 q T ln(1/δ_i)) / ε_i", EQ_10_NOTE)


def eq_25_sigma(
    sensitivity: float, q: float, T: int, epsilon: float, delta: float, past: Sequence[float]
) -> Published:
    """Eq. (25), Theorem 4: the noise of round t = len(past) when T may have been discounted.

    `past` holds the sigma of every earlier round in which this client added noise.
    """
    budget = positive("epsilon", epsilon) ** 2 / (
        2 * rate("q", q) * positive("sensitivity", sensitivity) ** 2 * _log_1_over(delta)
    )
    spent = math.fsum(1 / positive("past sigma", sigma) ** 2 for sigma in past)
    left = count("T", T) - len(past)
    if left <= 0:
        raise ValueError(f"T is {T} and {len(past)} rounds are past; CRD stops at t = T.")
    if budget <= spent:
        raise ValueError(
            f"past has spent {spent} of a budget of {budget}; eq. (25) has no value beyond it."
        )
    text = "σ_i^t = ( (T-t) / (ε_i² / (2 q Δl² ln(1/δ_i)) - sum over τ < t of 1/(σ_i^τ)²) )^(1/2)"
    value = math.sqrt(left / (budget - spent))
    return _published(value, "σ_i^t", "eq. (25)", text, EQ_10_NOTE)


def eq_14_moment(sensitivity: float, q: float, sigma: float, lam: int) -> Published:
    """Eq. (14), third line: the exact moment D of one round, the "real value" of Fig. 2."""
    scale = positive("sigma", sigma) / positive("sensitivity", sensitivity)
    log_value = sampled_gaussian.log_moment(rate("q", q), scale, count("lambda", lam) + 1)
    text = "sum over l of C(λ+1,l) (1-q)^(λ+1-l) q^l e^(l(l-1)Δl²/(2σ²))"
    note = "Right as a moment; its neighbour is an absent client, not a changed sample."
    return _published(exp(log_value), "D", "eq. (14)", text, note)


def eq_15_moment(sensitivity: float, q: float, sigma: float, lam: int) -> Published:
    """Eq. (15): what the paper uses for the moment, the "bound" of Fig. 2."""
    log_value = _eq_16(sensitivity, q, 1, sigma, count("lambda", lam))
    note = "An approximation (e^x - 1 by x), not a bound."
    return _published(exp(log_value), "D", "eq. (15)", "e^(qλ(λ+1)Δl²/(2σ²))", note)


def eq_16_log_moment(sensitivity: float, q: float, T: int, sigma: float, lam: int) -> Published:
    """Eq. (16): the logarithm of the moment after T rounds."""
    value = _eq_16(sensitivity, q, count("T", T), sigma, count("lambda", lam))
    note = "Rests on the approximation (15); exact at q = 1."
    return _published(value, "α_T(λ)", "eq. (16)", "T q λ(λ+1) Δl² / (2σ²)", note)


def eq_19_delta(sensitivity: float, q: float, T: int, sigma: float, epsilon: float) -> Published:
    """Eq. (17) at the lambda of (18): the delta of the paper's whole tail bound (19).

    A valid, loose bound at q = 1; the paper goes on to drop two of its three terms.
    """
    spent = _spent(sensitivity, q, T, sigma)
    epsilon = positive("epsilon", epsilon)
    if epsilon / spent <= 1 / 2:
        raise ValueError(
            f"epsilon is {epsilon}; eq. (18) then sets lambda = {epsilon / spent - 1 / 2}, which "
            "must be above 0."
        )
    value = math.exp(-(spent / 8 - epsilon / 2 + epsilon**2 / (2 * spent)))
    text = "ln(1/δ) <= T q Δl²/(8σ²) - ε/2 + ε²σ²/(2 T q Δl²)"
    note = "Sound at q = 1 only; the paper replaces it by (21)."
    return _published(value, "δ_i", "eq. (19)", text, note)


def eq_21_delta(sensitivity: float, q: float, T: int, sigma: float, epsilon: float) -> Published:
    """Eq. (21), last form: the delta that eq. (10) inverts."""
    spent = _spent(sensitivity, q, T, sigma)
    value = math.exp(-(positive("epsilon", epsilon) ** 2) / (2 * spent))
    return _published(value, "δ_i", "eq. (21)", "ln(1/δ) < ε²σ²/(2 T q Δl²)", EQ_10_NOTE)


def _spent(sensitivity: float, q: float, T: int, sigma: float) -> float:
    """T q Delta_l² / sigma²."""
    ratio = positive("sensitivity", sensitivity) / positive("sigma", sigma)
    return count("T", T) * rate("q", q) * ratio**2


def _eq_16(sensitivity: float, q: float, T: int, sigma: float, lam: int) -> float:
    return _spent(sensitivity, q, T, sigma) * lam * (lam + 1) / 2


def _log_1_over(delta: float) -> float:
    return math.log(1 / probability("delta", delta))


def _published(value: float, symbol: str, place: str, formula: str, note: str) -> Published:
    return Published(value, symbol, f"UDP-CRD, {place}", formula, "record", note)
