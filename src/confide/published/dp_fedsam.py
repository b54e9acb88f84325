"""DP-FedSAM: client-level differential privacy with sharpness-aware minimisation.

Symbols of the paper: q the sampling rate of clients, sigma the noise multiplier (the standard
deviation of the sum is sigma C), T the rounds, alpha the order, delta the failure probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from confide.published import sampled_gaussian
from confide.published.value import Published, count, order, positive, probability, rate

INTEGER_ORDERS = range(2, 256)

EQ_16 = "ε = eps_bar + ((α-1) log(1-1/α) - log(α) - log(δ)) / (α-1)"
EQ_17 = "eps_bar = T/(α-1) ln E over z~μ0 of (1 - q + q μ1(z)/μ0(z))^α"
VIEW_NOTE = (
    "For Poisson cohorts, noise once on the sum, and an observer who sees only the sum; the "
    "algorithm draws fixed cohorts and adds one share of noise per client."
)


def eq_17_divergence(
    alpha: float, q: float, sigma: float, T: int, *, q_twice: bool = False
) -> Published:
    """Eq. (17): the divergence of T rounds, the first term of eq. (16).

    The text makes mu_1 the mixture q N(1,s) + (1-q) N(0,s), while (17) mixes with q once more: to
    the letter (`q_twice`) that samples clients at rate q². The analysis that it cites mixes once,
    so that is the default.
    """
    value = _eq_17(order("alpha", alpha), rate("q", q), sigma, count("T", T), q_twice)
    return _published(value, "eps_bar", "eq. (17)", EQ_17, _note(q_twice))


def eq_16_epsilon(
    q: float,
    sigma: float,
    T: int,
    delta: float,
    orders: Iterable[float] = INTEGER_ORDERS,
    *,
    q_twice: bool = False,
) -> Published:
    """Eq. (16), Theorem 2: the accumulated privacy budget, least over the tunable alpha.

    Whole orders by default, as in the authors' accounting; any real orders above 1 are accepted.
    """
    q, rounds, delta = rate("q", q), count("T", T), probability("delta", delta)
    values: list[float] = []
    for alpha in (order("alpha", alpha) for alpha in orders):
        tail = (alpha - 1) * math.log1p(-1 / alpha) - math.log(alpha) - math.log(delta)
        values.append(_eq_17(alpha, q, sigma, rounds, q_twice) + tail / (alpha - 1))
    if not values:
        raise ValueError("orders is empty; it must hold at least one number above 1.")
    return _published(min(values), "ε", "eq. (16)", f"{EQ_16}, {EQ_17}", _note(q_twice), delta)


def _eq_17(alpha: float, q: float, sigma: float, T: int, q_twice: bool) -> float:
    mixed = q**2 if q_twice else q
    return T / (alpha - 1) * sampled_gaussian.log_moment(mixed, positive("sigma", sigma), alpha)


def _note(q_twice: bool) -> str:
    return (
        "Mixes twice, as if clients were sampled at rate q². " + VIEW_NOTE if q_twice else VIEW_NOTE
    )


def _published(
    value: float, symbol: str, place: str, formula: str, note: str, delta: float | None = None
) -> Published:
    return Published(value, symbol, f"DP-FedSAM, {place}", formula, "client", note, delta)
