"""What UDP-FL proves at the paper's setting (150 rounds of 2 steps, q 0.05), beside its budget."""

from math import exp, inf, log, log1p, sqrt
from typing import Any

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp
from scipy.stats import binom, norm

from confide.engine.rounds import Past, Round, Sizes, published_of
from confide.engine.spending import unrolled
from confide.methods import CATALOGUE
from confide.stages import Gaussian, Laplace, RadialStaircase, Staircase
from confide.statements import Statement, state

SIZES = Sizes(10, 6000, (300, 200))
DELTA, STEPS, Q = 1e-5, 300, 0.05
ORDERS = range(2, 200)


def stated(name: str, sizes: Sizes = SIZES, **settings: Any) -> Statement:
    method = CATALOGUE[name].load()(**settings)
    return state(unrolled(method, sizes), sizes, delta=DELTA, published=published_of(method, sizes))


def first(name: str, **settings: Any) -> Round:
    r = CATALOGUE[name].load()(**settings).round(Past(sizes=SIZES))
    assert r is not None
    return r


def converted(rdp: dict[int, float]) -> float:
    """The improved conversion."""
    return min(r + log1p(-1 / a) - log(a * DELTA) / (a - 1) for a, r in rdp.items() if r < inf)


def poisson(curve: dict[int, float]) -> dict[int, float]:
    """The binomial sum over a mechanism's curve, for whole orders."""
    out: dict[int, float] = {}
    for a in curve:
        terms = [
            gammaln(a + 1) - gammaln(k + 1) - gammaln(a - k + 1)
            + (a - k) * log(1 - Q) + k * log(Q) + (k - 1) * curve.get(k, 0.0)
            for k in range(a + 1)
        ]  # fmt: skip
        out[a] = float(logsumexp(terms)) / (a - 1)
    return out


def test_corrected_gaussian_meets_its_budget_by_another_accountant() -> None:
    (noise,) = first("udp-fl-c").local.batch
    assert isinstance(noise, Gaussian) and isinstance(noise.std, float)
    other = PLDAccountant()
    event = dp.PoissonSampledDpEvent(Q, dp.GaussianDpEvent(noise.std))
    other.compose(event, STEPS)
    assert other.get_epsilon(DELTA) == pytest.approx(8.0, rel=1e-3)
    cell = stated("udp-fl-c").cell("record", "server")
    assert 8 * (1 - 2e-3) < cell.epsilon <= 8
    assert (cell.relation, cell.participations) == ("add-remove", 150)


def test_corrected_laplace_follows_the_l2_row() -> None:
    (noise,) = first("udp-fl-c", noise="laplace").local.batch
    assert isinstance(noise, Laplace) and isinstance(noise.scale, float)
    d, t = SIZES.dim, 1 / (noise.scale * sqrt(SIZES.dim))

    def g(a: int) -> float:
        up, down = exp((a - 1) * t), exp(-a * t)
        return log(a / (2 * a - 1) * up + (a - 1) / (2 * a - 1) * down) / (a - 1)

    sampled = poisson({a: d * g(a) for a in range(2, 60)})
    epsilon = converted({a: STEPS * r for a, r in sampled.items()})
    assert epsilon == pytest.approx(8.0, rel=2e-3)
    cell = stated("udp-fl-c", noise="laplace").cell("record", "server")
    assert 8 * (1 - 2e-3) < cell.epsilon <= 8


def test_corrected_staircase_is_randomised_response_on_one_bit() -> None:
    (noise,) = first("udp-fl-c", noise="staircase").local.batch
    assert isinstance(noise, RadialStaircase) and isinstance(noise.epsilon, float)
    lie = 1 / (1 + exp(noise.epsilon))
    k = np.arange(STEPS + 1)
    choose = gammaln(STEPS + 1) - gammaln(k + 1) - gammaln(STEPS - k + 1)
    truth = (1 - Q) * lie + Q * (1 - lie)  # the record's side, drawn with Q
    there = choose + k * log(truth) + (STEPS - k) * log(1 - truth)
    gone = choose + k * log(lie) + (STEPS - k) * log(1 - lie)

    def delta(e: float) -> float:
        return max(
            float(np.maximum(np.exp(a) - np.exp(e + b), 0).sum())
            for a, b in ((there, gone), (gone, there))
        )

    assert delta(8.0) < DELTA
    assert delta(8.0 * 0.996) > DELTA
    cell = stated("udp-fl-c", noise="staircase").cell("record", "server")
    assert 8 * (1 - 2e-3) < cell.epsilon <= 8


def test_as_printed_every_example_brings_its_gaussian_noise() -> None:
    """At distance 2 c, and behind a Poisson coin that replace-one cannot hide: k of 300 steps."""
    *_, noise = first("udp-fl").local.example
    assert isinstance(noise, Gaussian) and isinstance(noise.std, float)
    mu = 2 / noise.std
    chances = binom.pmf(np.arange(STEPS + 1), STEPS, Q)

    def excess(e: float) -> float:
        m = mu * np.sqrt(np.arange(1, STEPS + 1))
        deltas = norm.cdf(m / 2 - e / m) - np.exp(e) * norm.cdf(-m / 2 - e / m)
        return float(chances[1:] @ deltas) - DELTA

    cell = stated("udp-fl").cell("record", "server")
    assert cell.relation == "replace-one"
    assert cell.epsilon == pytest.approx(brentq(excess, 0.1, 20), rel=1e-3)


def test_as_printed_every_example_brings_its_laplace_noise() -> None:
    """The l2 row at distance 2 c, by joint convexity."""
    *_, noise = first("udp-fl", noise="laplace").local.example
    assert isinstance(noise, Laplace) and isinstance(noise.scale, float)
    d, t = SIZES.dim, 2 / (noise.scale * sqrt(SIZES.dim))

    def moment(a: int) -> float:
        up, down = exp((a - 1) * t), exp(-a * t)
        return (a / (2 * a - 1) * up + (a - 1) / (2 * a - 1) * down) ** d

    rdp = {a: STEPS * log(1 - Q + Q * moment(a)) / (a - 1) for a in ORDERS}
    cell = stated("udp-fl", noise="laplace").cell("record", "server")
    assert cell.relation == "replace-one"
    assert cell.epsilon == pytest.approx(converted(rdp), rel=5e-3)


def test_as_printed_the_staircase_proves_nothing() -> None:
    statement = stated("udp-fl", noise="staircase")
    assert isinstance(first("udp-fl", noise="staircase").local.example[-1], Staircase)
    assert {cell.epsilon for cell in statement.cells} == {inf}
    assert "within its step" in statement.cell("record", "server").reason
    claim = statement.published
    assert claim is not None and (claim.value, claim.delta) == (8.0, DELTA)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "staircase"])
def test_every_client_has_its_own_budget(noise: str) -> None:
    epsilons = (4.0, 8.0, 2.0, 8.0, 6.0, 6.0, 6.0, 6.0, 4.0, 4.0)
    statement = stated("udp-fl-c", epsilon=epsilons, noise=noise)
    cells = [c for c in statement.cells if (c.unit, c.observer) == ("record", "server")]
    found = sorted(c.epsilon for c in cells)
    assert len(found) == 4
    for epsilon, budget in zip(found, (2, 4, 6, 8), strict=True):
        assert budget * (1 - 2e-3) < epsilon <= budget


def test_a_model_that_is_passed_on_shows_the_world_who_took_part() -> None:
    many = Sizes(40, 600, (30, 20))
    plain = stated("udp-fl-c", many)
    unequal = stated("udp-fl-c", many, epsilon=(8.0,) * 39 + (4.0,))
    assert plain.cell("record", "world").epsilon < plain.cell("record", "server").epsilon
    told = unequal.cell("record", "server")
    assert unequal.cell("record", "world").epsilon == told.epsilon
    assert told.epsilon == plain.cell("record", "server").epsilon


def test_a_shuffler_buys_nothing_and_says_so() -> None:
    shuffled, plain = stated("udp-fl-c", shuffle=True), stated("udp-fl-c")
    for observer in ("server", "world"):
        cell = shuffled.cell("record", observer)
        assert cell.epsilon == plain.cell("record", observer).epsilon
        assert any("shuffling buys nothing here" in word for word in cell.assumptions)
    # As printed it lowers the noise by Lemma 2, so the true epsilon is larger.
    printed = stated("udp-fl").cell("record", "server").epsilon
    assert stated("udp-fl", shuffle=True).cell("record", "server").epsilon > 1.5 * printed


def test_mode_connectivity_costs_nothing() -> None:
    many = Sizes(40, 600, (30, 20))
    plain = stated("udp-fl-c", many)
    other = stated("udp-fl-c", many, aggregate="mode-connectivity")
    for observer in ("server", "world"):
        cell, same = other.cell("record", observer), plain.cell("record", observer)
        assert (cell.epsilon, cell.relation) == (same.epsilon, same.relation)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "staircase"])
def test_over_scaffold_the_budget_holds_without_credit_for_the_coin(noise: str) -> None:
    cell = stated("udp-fl-c", local="scaffold", noise=noise).cell("record", "server")
    assert 8 * (1 - 2e-3) < cell.epsilon <= 8
    assert "without credit" in cell.sampler


def test_a_cap_on_participations_takes_less_noise() -> None:
    few = first("udp-fl-c", at_most=15).local.batch[0]
    all_of_them = first("udp-fl-c").local.batch[0]
    assert isinstance(few, Gaussian) and isinstance(all_of_them, Gaussian)
    assert few.std < all_of_them.std  # type: ignore[operator]
    assert stated("udp-fl-c", at_most=15).cell("record", "server").epsilon <= 8
