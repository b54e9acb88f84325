"""What is true, by routes that share nothing with the printed formulas: densities and integrals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import mpmath as mp
from mpmath import mpf
from scipy import optimize

Density = Callable[[mpf], mpf]


def gdp_delta(mu: float, epsilon: float) -> float:
    """The delta of telling N(mu, 1) from N(0, 1), integrated over the hockey stick."""

    def excess(z: mpf) -> mpf:
        return mp.npdf(z, mu, 1) - mp.e**epsilon * mp.npdf(z)

    edge = epsilon / mu + mu / 2  # where the likelihood ratio is e^epsilon
    peak = max(edge, mu)
    return float(mp.quad(excess, [edge, peak, peak + 3, peak + 8, peak + 20]))


def gdp_epsilon(mu: float, delta: float) -> float:
    """The epsilon at which that delta is reached."""
    return float(optimize.brentq(lambda e: gdp_delta(mu, e) - delta, 1e-6, mu**2 / 2 + 8 * mu))


def staircase(lam: float, nu: float, delta: float = 1.0) -> Density:
    """The staircase density, normalised by its own sum rather than by a formula."""
    b = mp.e ** (-lam)
    height = 1 / (2 * delta * mp.nsum(lambda k: b**k * (nu + b * (1 - nu)), [0, mp.inf]))

    def density(x: mpf) -> mpf:
        step = mp.floor(abs(x) / delta)
        within = abs(x) / delta - step
        return height * b ** (step if within < nu else step + 1)

    return density


def staircase_divergence(alpha: float, lam: float, nu: float, shift: float = 1.0) -> float:
    """D_alpha of staircase noise (step 1) and its shift: exact, piece by piece."""
    density = staircase(lam, nu)
    reach = int(60 / lam) + 4  # the tail beyond carries e^-60 of the sum
    edges = {mpf(k + f) for k in range(-reach, reach) for f in (0, nu, 1 - nu)}
    edges |= {edge + shift for edge in edges}
    ordered = sorted(edges)
    moment = mpf(0)
    for low, high in pairwise(ordered):
        middle = (low + high) / 2
        moment += (high - low) * density(middle) ** alpha * density(middle - shift) ** (1 - alpha)
    return float(mp.log(moment) / (alpha - 1))


def laplace_divergence(alpha: float, scale: float, shift: float) -> float:
    """D_alpha of Laplace noise and its shift, by quadrature."""

    def integrand(x: mpf) -> mpf:
        return mp.exp((-alpha * abs(x) + (alpha - 1) * abs(x - shift)) / scale) / (2 * scale)

    return float(mp.log(mp.quad(integrand, [-mp.inf, 0, shift, mp.inf])) / (alpha - 1))


def sampled_gaussian_moment(q: float, sigma: float, alpha: float) -> float:
    """E under N(0, sigma²) of (1-q+q ratio)^alpha, by quadrature."""

    def integrand(z: mpf) -> mpf:
        ratio = mp.exp((2 * z - 1) / (2 * mpf(sigma) ** 2))
        return mp.npdf(z, 0, sigma) * (1 - q + q * ratio) ** alpha

    return float(mp.quad(integrand, mp.linspace(-12 * sigma, alpha + 12 * sigma, 25)))


def shuffled_response_divergence(alpha: int, epsilon: float, users: int) -> float:
    """D_alpha of shuffled binary randomised response when one of the users changes its bit.

    The others all hold 0, and the larger of the two directions is taken: a lower bound on what
    any correct upper bound must exceed.
    """
    lie = 1 / (1 + mp.exp(epsilon))

    def ones(n: int, k: int) -> mpf:
        return mp.binomial(n, k) * lie**k * (1 - lie) ** (n - k) if 0 <= k <= n else mpf(0)

    before = [ones(users, k) for k in range(users + 1)]
    after = [
        (1 - lie) * ones(users - 1, k - 1) + lie * ones(users - 1, k) for k in range(users + 1)
    ]

    def divergence(p: list[mpf], q: list[mpf]) -> mpf:
        terms = (a**alpha * b ** (1 - alpha) for a, b in zip(p, q, strict=True))
        return mp.log(mp.fsum(terms)) / (alpha - 1)

    return float(max(divergence(before, after), divergence(after, before)))
