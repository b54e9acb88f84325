"""DP-FedAGS: noise on significant gradients only.

Symbols of the paper: Delta_S (`sensitivity`), epsilon = epsilon_1 + epsilon_2 + epsilon_3 the
budget of alpha noise, beta noise and perturbation, zeta = e^-epsilon the "noise level", and q,
which the paper uses in three places and defines nowhere.
"""

from __future__ import annotations

import math

from confide.published.value import Published, positive

RAW_GRADIENTS = (
    "Gradients below the threshold are uploaded without noise, so no budget describes this release."
)


def eq_2_sigma(sensitivity: float, epsilon: float) -> Published:
    """Eq. (2): the standard deviation of the noise on a significant gradient."""
    epsilon = positive("epsilon", epsilon)
    zeta = math.exp(-epsilon)
    log = math.log(1.25) + epsilon  # of 1.25/ζ, also where ζ underflows
    value = positive("sensitivity", sensitivity) / epsilon * math.sqrt(2 * log)
    text = "σ = ΔS/ε sqrt(2 ln(1.25/ζ)), ζ = e^-ε"
    note = f"ζ = {zeta:.3g} stands where a δ belongs. " + RAW_GRADIENTS
    return _published(value, "σ", "eq. (2)", text, note)


def budget_split(
    epsilon: float, epsilon_3: float, q: float
) -> tuple[Published, Published, Published]:
    """Section IV.A: epsilon_1 : epsilon_2 = cbrt(q²) : 1, and epsilon_3 the rest (Theorem 2).

    How large epsilon_3 is, the paper only says as "much larger than epsilon_1 + epsilon_2".
    """
    epsilon, epsilon_3 = positive("epsilon", epsilon), positive("epsilon_3", epsilon_3)
    if epsilon_3 >= epsilon:
        raise ValueError(f"epsilon_3 is {epsilon_3}; it must be below epsilon, which is {epsilon}.")
    ratio = math.cbrt(positive("q", q) ** 2)
    epsilon_2 = (epsilon - epsilon_3) / (1 + ratio)
    text = "ε1 : ε2 = cbrt(q²) : 1, ε = ε1 + ε2 + ε3"
    values = {"ε1": ratio * epsilon_2, "ε2": epsilon_2, "ε3": epsilon_3}
    first, second, third = (
        _published(value, symbol, "Theorem 2 and section IV.A", text, RAW_GRADIENTS)
        for symbol, value in values.items()
    )
    return first, second, third


def theorem_2_epsilon(epsilon: float) -> Published:
    """Theorem 2: the whole budget, at the delta of section V.A."""
    note = "One round, with ζ in place of δ in eq. (2). " + RAW_GRADIENTS
    return Published(
        positive("epsilon", epsilon), "ε", "DP-FedAGS, Theorem 2 and section V.A",
        "ε = ε1 + ε2 + ε3", "client", note, 0.001,
    )  # fmt: skip


def section_4_scale(sensitivity: float, q: float, epsilon_part: float) -> Published:
    """Section IV.A: the Laplace scale of alpha, beta or N for its part of the budget."""
    value = positive("q", q) * positive("sensitivity", sensitivity)
    value /= positive("epsilon_part", epsilon_part)
    return _published(value, "scale", "section IV.A", "Lap(q ΔS/ε_j)", RAW_GRADIENTS)


def algorithm_1_scale(sensitivity: float, epsilon_part: float) -> Published:
    """Algorithm 1, line 23: the Laplace scale of alpha or beta, without the text's factor q."""
    value = positive("sensitivity", sensitivity) / positive("epsilon_part", epsilon_part)
    note = "Lacks the factor q of section IV.A. " + RAW_GRADIENTS
    return _published(value, "scale", "Algorithm 1, line 23", "Lap(ΔS/ε_j)", note)


def _published(value: float, symbol: str, place: str, formula: str, note: str) -> Published:
    return Published(value, symbol, f"DP-FedAGS, {place}", formula, "client", note)
