"""Girgis et al.'s bounds for the shuffle model, as UDP-FL prints them (its Lemmas 2 and 3).

In the source gamma is the pure local epsilon of each client's randomiser, and the simple upper
bound needs alpha^4 e^(5 gamma) < N/9. UDP-FL feeds it any divergence, any order and any N.
"""

from __future__ import annotations

import math

from confide.published.value import Published, count, exp, real


def lemma_2_upper(alpha: int, gamma: float, N: int) -> Published:
    """UDP-FL's Lemma 2: gamma_u, said to bound the shuffled divergence from above."""
    alpha, gamma, clients = _arguments(alpha, gamma, N)
    excess = math.comb(alpha, 2) * 4 * (exp(gamma) - 1) * (exp(gamma) - 1) / clients
    text = "γ_u = 1/(α-1) log(1 + C(α,2) 4 (e^γ-1)² / N)"
    if alpha**4 * exp(5 * gamma) < clients / 9:
        note = "Holds only if γ is the pure local ε of every client's randomiser."
    else:
        note = "Outside the source's condition α⁴ e^(5γ) < N/9: no bound at all."
    return _published(math.log1p(excess) / (alpha - 1), "γ_u", "Lemma 2", text, note)


def lemma_3_lower(alpha: int, gamma: float, N: int) -> Published:
    """UDP-FL's Lemma 3: gamma_l, said to bound the shuffled divergence from below."""
    alpha, gamma, clients = _arguments(alpha, gamma, N)
    excess = math.comb(alpha, 2) * (exp(gamma) - 1) * (1 - exp(-gamma)) / clients
    text = "γ_l = 1/(α-1) log(1 + C(α,2) (e^γ-1)² / (N e^γ))"
    note = "For some randomiser of pure local ε = γ; a lower bound protects nobody."
    return _published(math.log1p(excess) / (alpha - 1), "γ_l", "Lemma 3", text, note)


def _arguments(alpha: int, gamma: float, N: int) -> tuple[int, float, int]:
    gamma = real("gamma", gamma)
    if gamma < 0:
        raise ValueError(f"gamma is {gamma}; it must be at least 0.")
    return count("alpha", alpha, least=2), gamma, count("N", N)


def _published(value: float, symbol: str, place: str, formula: str, note: str) -> Published:
    source = f"UDP-FL, {place} (after Girgis et al.)"
    return Published(value, symbol, source, formula, "record", note)
