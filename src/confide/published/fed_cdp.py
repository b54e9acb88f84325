"""Fed-CDP: per-example client differential privacy against gradient leakage, and Fed-SDP.

Symbols of the paper: q the sampling rate, sigma the noise scale, T the rounds, L the local steps of
a round, B the batch, K_t of K clients in a round.
"""

from __future__ import annotations

import math
from typing import Literal

from confide.published import sampled_gaussian
from confide.published.value import Published, Unit, count, exp, positive, probability, rate

ORDERS = (1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 4.5, *range(5, 64), 128, 256, 512)
"""The default orders of the accounting library that reproduces Table VI."""

ROUNDS = {"mnist": 100, "cifar10": 100, "lfw": 60, "adult": 10, "cancer": 3}
"""T of Table VI."""

Method = Literal["fed-cdp", "fed-sdp"]
RATES: dict[Method, float] = {"fed-cdp": 0.01, "fed-sdp": 0.1}
"""q of Table VI: B K_t/N over records for Fed-CDP, K_t/K over clients for Fed-SDP."""

MOMENTS_TEXT = "ε = min over α of steps ln E[(1-q+q μ1/μ0)^α]/(α-1) + log(1/δ)/(α-1)"


def moments_epsilon(
    q: float, sigma: float, steps: int, delta: float, unit: Unit = "record"
) -> Published:
    """Definition 5: the moments accountant as implemented, for steps of one sampled Gaussian.

    Equation (2) itself has no value: its constant c_2 is only said to exist.
    """
    value = _moments(rate("q", q), positive("sigma", sigma), count("steps", steps), delta)
    note = "Needs Poisson batches, sensitivity C and one noise per batch; the algorithm has none."
    return _published(value, "ε", "Definition 5", MOMENTS_TEXT, unit, note, delta)


def table_6(
    method: Method,
    dataset: str,
    L: int,
    *,
    unit: Unit = "record",
    sigma: float = 6.0,
    delta: float = 1e-5,
) -> Published:
    """Table VI: epsilon of a data set's run; the table's steps are T L + 1 (Fed-SDP: T + 1)."""
    if method not in RATES:
        raise ValueError(f"method is {method!r}; Table VI has 'fed-cdp' and 'fed-sdp'.")
    if dataset not in ROUNDS:
        raise ValueError(f"dataset is {dataset!r}; Table VI has {', '.join(ROUNDS)}.")
    if method == "fed-sdp" and unit == "record":
        raise ValueError("unit is 'record'; Table VI says Fed-SDP does not support it.")
    rounds = ROUNDS[dataset] * (count("L", L) if method == "fed-cdp" else 1)
    value = _moments(RATES[method], positive("sigma", sigma), rounds + 1, delta)
    note = _table_6_note(method, unit)
    return _published(value, "ε", "Table VI", MOMENTS_TEXT, unit, note, delta)


def lemma_1_sigma(epsilon: float, delta: float) -> Published:
    """Lemma 1: the least noise scale of one Gaussian release, for epsilon below 1."""
    epsilon = probability("epsilon", epsilon)
    value = math.sqrt(2 * math.log(1.25 / probability("delta", delta))) / epsilon
    return _published(value, "σ", "Lemma 1", "σ² > 2 log(1.25/δ) / ε²", "record", "")


def definition_3(epsilon: float, delta: float, q: float) -> tuple[Published, Published]:
    """Definition 3: (epsilon, delta) of a mechanism on a subsample of rate q."""
    epsilon, q = positive("epsilon", epsilon), rate("q", q)
    text = "(log(1 + q (exp(ε) - 1)), q δ)"
    note = "Right for Poisson or without replacement; the paper states it for sampling with it."
    amplified, delta = math.log1p(q * (exp(epsilon) - 1)), q * probability("delta", delta)
    return (
        _published(amplified, "ε", "Definition 3", text, "record", note, delta),
        _published(delta, "δ", "Definition 3", text, "record", note),
    )


def _moments(q: float, sigma: float, steps: int, delta: float) -> float:
    tail = math.log(1 / probability("delta", delta))
    return min(
        (steps * sampled_gaussian.log_moment(q, sigma, alpha) + tail) / (alpha - 1)
        for alpha in ORDERS
    )


def _table_6_note(method: Method, unit: Unit) -> str:
    if method == "fed-sdp":
        return "M layer clips make the sensitivity C sqrt(M), not C; cohorts are not Poisson."
    if unit == "client":
        return "The record-level value repeated: it says nothing about a client's whole data."
    return (
        "Takes T L independent global batches of rate B K_t/N and sensitivity C; a client takes L "
        "batches in a row, and M layer clips make the sensitivity C sqrt(M)."
    )


def _published(
    value: float,
    symbol: str,
    place: str,
    formula: str,
    unit: Unit,
    note: str,
    delta: float | None = None,
) -> Published:
    return Published(value, symbol, f"Fed-CDP, {place}", formula, unit, note, delta)
