"""NbAFL (Wei et al. 2020), the Gaussian baseline of UDP-FL: noise before and after aggregation.

Symbols of the paper: C the clip of a local *model*, m the size of the smallest local data set, L
how often a client's upload is exposed, T the rounds, N the clients, c = sqrt(2 ln(1.25/delta)).
"""

from __future__ import annotations

import math

from confide.published.value import Published, count, positive, probability

SENSITIVITY_NOTE = (
    "Clipping a trained model does not give the sensitivity 2C/m: one record can move it by 2C."
)


def sigma_U(C: float, m: int, L: int, epsilon: float, delta: float) -> Published:
    """The standard deviation of a client's uplink noise."""
    value = _c(delta) * count("L", L) * 2 * positive("C", C) / count("m", m)
    value /= positive("epsilon", epsilon)
    return _published(value, "σ_U", "σ_U = c L (2C/m) / ε", SENSITIVITY_NOTE)


def sigma_D(C: float, m: int, L: int, T: int, N: int, epsilon: float, delta: float) -> Published:
    """The standard deviation of the server's downlink noise; zero up to T = L sqrt(N)."""
    clients = count("N", N)
    scale = 2 * _c(delta) * positive("C", C) / (count("m", m) * clients)
    beyond = count("T", T) ** 2 - count("L", L) ** 2 * clients
    value = scale * math.sqrt(max(0, beyond)) / positive("epsilon", epsilon)
    text = "σ_D = 2cC sqrt(T² - L² N) / (m N ε) if T > L sqrt(N), else 0"
    note = "Protects the downlink only, not from the server. " + SENSITIVITY_NOTE
    return _published(value, "σ_D", text, note)


def _c(delta: float) -> float:
    return math.sqrt(2 * math.log(1.25 / probability("delta", delta)))


def _published(value: float, symbol: str, formula: str, note: str) -> Published:
    formula = f"{formula}, c = sqrt(2 ln(1.25/δ))"
    return Published(value, symbol, "NbAFL, Theorem 1", formula, "record", note)
