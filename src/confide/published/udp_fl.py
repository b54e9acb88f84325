"""UDP-FL: a universal differentially private federated learning framework.

Symbols of the paper: alpha the order, lambda (`lam`; epsilon in Table 3) the staircase's step in
the log density, nu where in a step the density falls, Delta the sensitivity, gamma or epsilon_alpha
the Renyi divergence. The shuffler's Lemmas 2 and 3 are in `girgis`.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterable

from confide.published.value import Published, count, exp, order, positive, probability

THEOREM_1 = (
    "1/2 e^((α-1)λ) + 1/2 e^(-αλ) + ((e^((α-1)λ) + e^(-αλ)) (1-nu) + |2nu-1| e^(-sgn(1/2-nu)λ)) "
    "(1-e^-1) / (2 (nu + e^-λ (1-nu)))"
)
NO_LOGARITHM = (
    "The exponential moment, not the divergence: 1/(α-1) log is missing; and 1-e^-1 should be "
    "1-e^-λ, 1-nu should be min(nu, 1-nu), and sgn has its two cases exchanged."
)


def theorem_1(alpha: float, lam: float, nu: float) -> Published:
    """Theorem 1: the staircase mechanism is said to be (alpha, epsilon_alpha)-RDP."""
    value = _staircase_moment(alpha, lam, nu)
    return _published(value, "ε_α", "Theorem 1", THEOREM_1, NO_LOGARITHM)


def theorem_2(alpha: float, lam: float, nu: float) -> Published:
    """Theorem 2 and eq. (4): the formula of Theorem 1 under the name gamma."""
    value = _staircase_moment(alpha, lam, nu)
    return _published(value, "γ", "Theorem 2, eq. (4)", THEOREM_1, NO_LOGARITHM)


def lemma_1_nu(lam: float) -> Published:
    """Lemma 1: the nu that minimises the expected amplitude of staircase noise (it does)."""
    value = 1 / (1 + exp(positive("lambda", lam) / 2))
    return _published(value, "nu", "Lemma 1", "nu = 1 / (1 + e^(λ/2))")


def appendix_a4_lambda(alpha: float, gamma: float) -> Published:
    """Appendix A.4: the lambda that is said to keep a divergence of gamma at nu = 1/2."""
    alpha, gamma = order("alpha", alpha), positive("gamma", gamma)
    if gamma <= 1:
        raise ValueError(
            f"gamma is {gamma}; UDP-FL's Appendix A.4 takes log(gamma - 1), which exists only "
            "above 1."
        )
    note = "Inverts the exponential moment, not the divergence; negative for γ below 2."
    value = math.log(gamma - 1) / (alpha - 1)
    return _published(value, "λ", "Appendix A.4", "λ = log(γ-1) / (α-1)", note)


def table_3_gaussian(alpha: float, Delta: float, sigma: float) -> Published:
    """Table 3: the divergence of the Gaussian mechanism."""
    value = order("alpha", alpha) * positive("Delta", Delta) / (2 * positive("sigma", sigma) ** 2)
    note = "Delta should be squared (Theorem 6 has the square)."
    return _published(value, "ε_α", "Table 3, Gaussian", "αΔ / (2σ²)", note)


def table_3_gaussian_sigma(alpha: float, Delta: float, delta: float) -> Published:
    """Table 3: the parameter of the Gaussian mechanism "for epsilon-RDP"."""
    root = math.sqrt(2 * math.log(1.25 / probability("delta", delta)))
    value = positive("Delta", Delta) / order("alpha", alpha) * root
    note = "The classic (ε, δ) calibration with the order α in place of ε: two notions mixed."
    return _published(value, "σ", "Table 3, Gaussian", "σ = (Δ/α) sqrt(2 ln(1.25/δ))", note)


def table_3_laplace(alpha: float, Delta: float, lam: float) -> Published:
    """Table 3 and eq. (13): the divergence of the Laplace mechanism of scale lambda (right)."""
    alpha, t = order("alpha", alpha), positive("Delta", Delta) / positive("lambda", lam)
    rising = alpha / (2 * alpha - 1) * exp(t * (alpha - 1))
    falling = (alpha - 1) / (2 * alpha - 1) * exp(-t * alpha)
    value = math.log(rising + falling) / (alpha - 1)
    text = "1/(α-1) log{ α/(2α-1) exp(Δ(α-1)/λ) + (α-1)/(2α-1) exp(-Δα/λ) }"
    note = "For a scalar, or an l1 bound of Δ; the paper uses it under an l2 clip, where it is low."
    return _published(value, "ε_α", "Table 3, Laplace, and eq. (13)", text, note)


def table_3_laplace_lambda(alpha: float, Delta: float, epsilon: float) -> Published:
    """Table 3: the scale of the Laplace mechanism for a divergence of epsilon."""
    value = positive("Delta", Delta) * (order("alpha", alpha) - 1) / positive("epsilon", epsilon)
    note = "Not the inverse of the row's own divergence."
    return _published(value, "λ", "Table 3, Laplace", "λ = Δ(α-1)/ε", note)


def table_3_staircase(alpha: float, epsilon: float, nu: float) -> Published:
    """Table 3: the divergence of the staircase mechanism, which is not that of Theorem 1.

    The table prints no braces, so the last factor belongs to the last term alone.
    """
    both, drop, factor = _staircase_parts(alpha, positive("epsilon", epsilon), nu)
    value = both / 2 + both * (1 - nu) + drop * factor
    text = (
        "1/2 e^((α-1)ε) + 1/2 e^(-αε) + (e^((α-1)ε) + e^(-αε)) (1-nu) + "
        "|2nu-1| e^(-sgn(1/2-nu)ε) (1-e^-1) / (2 (nu + e^-ε (1-nu)))"
    )
    note = "Theorem 1 without its braces. " + NO_LOGARITHM
    return _published(value, "ε_α", "Table 3, Staircase", text, note)


def table_3_staircase_nu(alpha: float, epsilon: float) -> Published:
    """Table 3: the staircase's nu, a complex number wherever the root's argument is negative."""
    alpha, epsilon = order("alpha", alpha), positive("epsilon", epsilon)
    below = exp(-epsilon)
    growth = exp(2 * (alpha - 1) * epsilon)
    if math.isinf(growth):
        raise ValueError(
            f"alpha is {alpha} and epsilon is {epsilon}; e^(2(alpha-1)epsilon) exceeds a float."
        )
    nu = (1 + below - cmath.sqrt(1 + (below - 1) * (growth - 1))) / 2
    text = "nu = 1/2 (1 + e^-ε - sqrt(1 + (e^-ε - 1)(e^(2(α-1)ε) - 1)))"
    note = "Complex for ordinary values, and the minimum of no cost where it is real."
    value = nu if nu.imag else nu.real
    return _published(value, "nu", "Table 3, Staircase", text, note)


def theorem_6_sigma(alpha: float, Delta: float, epsilon: float) -> Published:
    """Theorem 6: the least sigma of a Gaussian mechanism for a divergence of epsilon (right)."""
    alpha, Delta = order("alpha", alpha), positive("Delta", Delta)
    value = Delta * math.sqrt(alpha / (2 * positive("epsilon", epsilon)))
    return _published(value, "σ", "Theorem 6", "σ² >= αΔ² / (2ε)")


def theorem_7_scale(alpha: float, Delta: float, gamma: float) -> Published:
    """Theorem 7: the least scale 1/b of Laplace noise for a divergence of gamma."""
    alpha, gamma = order("alpha", alpha), positive("gamma", gamma)
    inner = ((2 * alpha - 1) * exp(gamma * (alpha - 1)) + alpha - 1) / alpha
    value = positive("Delta", Delta) * (alpha - 1) / math.log(inner)
    text = "1/b >= Δ(α-1) / log( ((2α-1) exp(γ(α-1)) + α-1) / α )"
    note = "A sign error, + (α-1) for - (α-1): the noise is too small, several times at small γ."
    return _published(value, "1/b", "Theorem 7", text, note)


def appendix_b_gaussian(alpha: float, T: int, sigma: float) -> Published:
    """Appendix B: the divergence of T Gaussian operations of sensitivity 1 (right)."""
    value = order("alpha", alpha) * count("T", T) / (2 * positive("sigma", sigma) ** 2)
    return _published(value, "ε(α,T)", "Appendix B", "αT / (2σ²)")


def section_4_1_epsilon(
    divergence: Callable[[int], Published],
    T: int,
    delta: float,
    orders: Iterable[int] = range(2, 257),
) -> Published:
    """Section 4.1 with Algorithm 3: epsilon after T rounds of one round's printed divergence.

    The paper sums the rounds (Algorithm 3, line 6) and minimises over orders from 2 on, without
    saying which; whole numbers are taken here. How its sampling rate q enters is not printed.
    """
    rounds, delta = count("T", T), probability("delta", delta)
    totals: list[float] = []
    for alpha in orders:
        gamma = divergence(count("alpha", alpha, least=2)).value
        if isinstance(gamma, complex):
            raise TypeError(f"divergence is {gamma} at order {alpha}; it must be real.")
        totals.append(rounds * gamma + math.log(1 / delta) / (alpha - 1))
    if not totals:
        raise ValueError("orders is empty; it must hold at least one whole number from 2 on.")
    text = "ε(δ,T) = min over α > 1 of { ε_α + log(1/δ)/(α-1) }, ε_α summed over T rounds"
    note = "The conversion is right; the value is as wrong as the divergence it is given."
    place = "section 4.1 and Algorithm 3"
    return _published(min(totals), "ε(δ,T)", place, text, note, delta)


def _staircase_moment(alpha: float, lam: float, nu: float) -> float:
    both, drop, factor = _staircase_parts(alpha, positive("lambda", lam), nu)
    return both / 2 + (both * (1 - nu) + drop) * factor


def _staircase_parts(alpha: float, lam: float, nu: float) -> tuple[float, float, float]:
    """The three groups of Theorem 1 that Table 3 combines in another way."""
    alpha, nu = order("alpha", alpha), probability("nu", nu)
    sgn = 0 if nu < 1 / 2 else 1  # eq. (12), which defines sgn(1/2 - nu) in this way round
    both = exp((alpha - 1) * lam) + exp(-alpha * lam)
    drop = abs(2 * nu - 1) * exp(-sgn * lam)
    factor = (1 - exp(-1)) / (2 * (nu + exp(-lam) * (1 - nu)))
    return both, drop, factor


def _published(
    value: float | complex,
    symbol: str,
    place: str,
    formula: str,
    note: str = "",
    delta: float | None = None,
) -> Published:
    return Published(value, symbol, f"UDP-FL, {place}", formula, "record", note, delta)
