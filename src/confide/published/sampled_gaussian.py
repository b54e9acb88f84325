"""The moment that three of the papers evaluate: E under N(0, s²) of (1-q+q N(1,s²)/N(0,s²))^alpha.

It is computed here by itself, so that a published value never shares an error with the accountant.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, special


def log_moment(q: float, sigma: float, alpha: float) -> float:
    """The logarithm of the moment: a binomial sum for a whole alpha, quadrature otherwise."""
    if float(alpha).is_integer():
        return _binomial_sum(q, sigma, int(alpha))
    return _quadrature(q, sigma, alpha)


def _binomial_sum(q: float, sigma: float, alpha: int) -> float:
    k = np.arange(alpha + 1)
    choose = special.gammaln(alpha + 1) - special.gammaln(k + 1) - special.gammaln(alpha - k + 1)
    weights = special.xlogy(k, q) + special.xlog1py(alpha - k, -q)
    log_moment: Any = special.logsumexp(choose + weights + k * (k - 1) / (2 * sigma**2))
    return float(log_moment)


def _quadrature(q: float, sigma: float, alpha: float) -> float:
    present, absent = math.log(q), float(special.xlog1py(1, -q))

    def log_integrand(z: NDArray[np.float64]) -> NDArray[np.float64]:
        mixture = np.logaddexp(absent, present + (2 * z - 1) / (2 * sigma**2))
        return alpha * mixture - z**2 / (2 * sigma**2)

    # The mass lies between the bells around 0 and alpha; dividing by the peak avoids overflow.
    low, high = -12 * sigma, alpha + 12 * sigma
    peak = float(np.max(log_integrand(np.linspace(low, high, 1001))))

    def scaled(z: float) -> float:
        return math.exp(float(log_integrand(np.array([z]))[0]) - peak)

    area, _ = integrate.quad(
        scaled, low, high, points=(0.0, alpha), limit=200, epsabs=1e-13, epsrel=1e-11
    )
    return peak + math.log(area) - math.log(sigma * math.sqrt(2 * math.pi))
