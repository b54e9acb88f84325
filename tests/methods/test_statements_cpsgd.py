"""What cpSGD proves over all rounds, beside the one round that is published."""

from math import inf, log, sqrt

import numpy as np
import pytest

from confide.engine.rounds import Past, Sizes, published_of
from confide.engine.spending import unrolled
from confide.methods import CATALOGUE
from confide.stages import Binomial, Quantize
from confide.statements import Statement, state

SIZES = Sizes(100, 600, (600, 300))
PADDED = 1024


def stated(name: str, **settings: float) -> Statement:
    method = CATALOGUE[name].load()(**settings)
    return state(unrolled(method, SIZES), SIZES, published=published_of(method, SIZES))


def theorem_1(trials: int, l1: float, l2: float, linf: float, delta: float) -> float:
    """For p = 1/2, with distances in steps."""
    near, ten, v = log(1.25 / delta), log(10 / delta), trials / 4
    if v < max(23 * log(10 * PADDED / delta), 2 * linf):
        return inf
    second = (l2 * sqrt(2) * 7 / 4 * sqrt(ten) + l1 / 3) / (v * (1 - delta / 10))
    third = linf * (2 / 3 * near + 2 / 3 * log(20 * PADDED / delta) * ten) / v
    return l2 * sqrt(2 * near / v) + second + third


def composed_delta(q: float, one: float, reveals: float, T: int, e: float) -> float:
    """T rounds of randomised response that reveals itself now and then, by coins of rate q."""
    width, half = 1e-4, 2**17
    losses = np.arange(-half, half) * width
    truth = (1 - reveals) / (1 + np.exp(-one))
    P, Q = np.array([truth, 1 - reveals - truth]), np.array([1 - reveals - truth, truth])
    M = q * P + (1 - q) * Q
    worst = 0.0
    for first, second, seen in ((M, Q, q * reveals), (Q, M, reveals if q == 1 else 0.0)):
        shown = 1 - (1 - seen) ** T
        law = np.zeros(len(losses))
        for p, loss in zip(first, np.log(first / second), strict=True):
            low = int(np.floor(loss / width))  # split between neighbours, the mean kept
            part = loss / width - low
            law[low + half] += p * (1 - part)
            law[low + 1 + half] += p * part
        total = np.fft.irfft(np.fft.rfft(np.fft.ifftshift(law)) ** T, len(law))
        gain = np.maximum(0, 1 - np.exp(np.minimum(0.0, e - losses)))
        worst = max(worst, shown + float((np.fft.fftshift(total) * gain).sum()))
    return worst


def noise_of(name: str, **settings: float) -> tuple[Quantize, Binomial]:
    r = CATALOGUE[name].load()(**settings).round(Past(0, SIZES))
    found = {type(stage): stage for _, _, stage in r.stages()}
    return found[Quantize], found[Binomial]


def distances(levels: Quantize, beta: float) -> tuple[float, float, float]:
    """The rounded vector's norms in steps: Hoeffding's bound on its l2 norm."""
    x, d = levels.norm / levels.step, PADDED
    l2 = sqrt(x**2 + d / 4 + sqrt(2 * log(1 / beta)) * (x + sqrt(d) / 2))
    return min(sqrt(d) * l2, l2**2), l2, (levels.k - 1) / 2


def test_one_round_as_printed_is_what_theorem_1_says() -> None:
    levels, share = noise_of("cpsgd", T=1)
    l1, l2, linf = distances(levels, 1e-100)
    found = theorem_1(10 * share.trials, l1, l2, linf, 0.001)
    assert found <= 0.5 == pytest.approx(found, rel=1e-5)
    cell = stated("cpsgd", T=1).cell("client", "server")
    assert (cell.relation, cell.delta) == ("zero-out", 0.001)
    assert cell.epsilon == pytest.approx(0.5, rel=2e-3)
    assert any("everyone in the cohort is honest" in a for a in cell.assumptions)


def test_what_is_published_is_one_round_of_many() -> None:
    statement = stated("cpsgd")
    claim = statement.published
    assert claim is not None
    assert (claim.value, claim.delta, claim.unit) == (0.5, 0.001, "client")
    assert "One of 200 rounds" in claim.note
    assert statement.cell("client", "server").epsilon > 100 * 0.5
    assert statement.cell("client", "world").epsilon > 20 * 0.5
    assert stated("cpsgd", scale=0.0).published is None


@pytest.mark.parametrize(("q", "T"), [(0.1, 50), (1.0, 3)])
def test_corrected_is_theorem_1_composed_over_all_rounds(q: float, T: int) -> None:
    cell = stated("cpsgd-c", q=q, T=T).cell("client", "world")
    assert (cell.relation, cell.delta) == ("add-remove", 0.001)
    levels, noise = noise_of("cpsgd-c", q=q, T=T)
    l1, l2, linf = distances(levels, np.exp(-0.5))
    # Each of these shares of delta goes to the certificates; the best one is what is stated.
    deltas = [
        composed_delta(q, theorem_1(noise.trials, l1, l2, linf, each), each, T, cell.epsilon)
        for each in (share * 0.001 / T for share in (0.1, 0.5, 0.9, 0.99))
    ]
    assert min(deltas) == pytest.approx(0.001, rel=5e-3)


def test_who_sees_single_rounded_sums_before_the_noise_is_promised_nothing() -> None:
    assert stated("cpsgd-c").cell("client", "server").epsilon == inf


def test_the_noise_on_the_sum_has_the_standard_deviation_that_is_asked_for() -> None:
    levels, noise = noise_of("cpsgd-c", sigma=3.0, C=2.0)
    std = noise.step * 10 * sqrt(noise.trials) / 2
    assert 6.0 <= std == pytest.approx(6.0, rel=1e-5)
    assert noise.step * 10 == pytest.approx(levels.step, rel=1e-12)
