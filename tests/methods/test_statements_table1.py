"""Statements of the systems of UDP-FL's Table 1, beside computations of their own."""

from math import exp, inf, isfinite, lgamma, log, sqrt

import dp_accounting as dp
import pytest
from dp_accounting.pld import PLDAccountant

from confide.accounting import gdp
from confide.engine.adapting import planned
from confide.engine.rounds import Sizes
from confide.engine.spending import unrolled
from confide.methods.making import make
from confide.statements import Statement

SIZES = Sizes(clients=200, records=40, layers=(60, 40))


def statement(name: str, **settings: object) -> Statement:
    method = make(name, settings)
    return planned(method, unrolled(method, SIZES), SIZES, delta=1e-5)


def hockey_stick(p: list[float], q: list[float], epsilon: float) -> float:
    return max(
        sum(max(0.0, a - exp(epsilon) * b) for a, b in zip(x, y, strict=True))
        for x, y in ((p, q), (q, p))
    )


def epsilon_of_coins(each: float, times: int, delta: float) -> float:
    """Binary randomised response this often, by the two binomial laws."""
    up = exp(each) / (1 + exp(each))

    def law(heads: float) -> list[float]:
        out: list[float] = []
        for k in range(times + 1):
            ways = lgamma(times + 1) - lgamma(k + 1) - lgamma(times - k + 1)
            out.append(exp(ways + k * log(heads) + (times - k) * log(1 - heads)))
        return out

    p, q, low, high = law(up), law(1 - up), 0.0, each * times
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if hockey_stick(p, q, middle) > delta else (low, middle)
    return high


def test_ldp_fed_composes_over_entries_and_rounds() -> None:
    cell = statement("ldp-fed", T=3, k=50, p=0.1, epsilon=0.5).cell("client", "server")
    # 10 of 100 entries in each of 3 rounds; no two inputs are worse than randomised response.
    assert cell.epsilon == pytest.approx(epsilon_of_coins(0.5, 30, 1e-5), rel=2e-3)
    assert (cell.relation, cell.participations) == ("replace-one", 3)


def test_ldp_fed_c_shares_its_budget() -> None:
    cell = statement("ldp-fed-c", T=1, k=50, p=0.1, epsilon=2.0).cell("client", "server")
    assert cell.epsilon == pytest.approx(epsilon_of_coins(0.2, 10, 1e-5), rel=2e-3)
    assert cell.epsilon <= 2.0001


def test_ldp_fl_claims_one_weight_and_releases_them_all() -> None:
    found = statement("ldp-fl", T=2, m=50, epsilon=1.0)
    server = found.cell("client", "server")
    assert server.epsilon > 10, "100 shuffled weights, twice, where 1 is printed"
    assert server.epsilon < epsilon_of_coins(1.0, 200, 1e-5), "shuffling is worth something"
    # The world sees less than the server, and so is never told a larger number.
    assert found.cell("client", "world").epsilon <= server.epsilon


def test_cldp_sgd_is_hidden_among_the_clones_and_sound_as_printed() -> None:
    found = statement("cldp-sgd", T=5, k=100, epsilon_0=1.0)
    server, world = found.cell("client", "server"), found.cell("client", "world")
    assert server.epsilon < 5 * 1.0, "shuffling is worth something"
    assert world.epsilon < server.epsilon, "half of the clients take part"
    for cell in (server, world):
        assert cell.relation == "replace-one" and isfinite(cell.epsilon)
    alone = statement("cldp-sgd", T=5, k=1, epsilon_0=1.0).cell("client", "server")
    assert alone.epsilon == pytest.approx(5.0, rel=1e-2), "nobody to hide among"


def test_cofel_avg_is_infinite_for_the_choice_and_its_sibling_is_laplace_noise() -> None:
    for cell in statement("cofel-avg", T=2, k=1).cells:
        assert cell.epsilon == inf
    assert "choose the layers" in statement("cofel-avg", T=2, k=1).cell("client", "world").reason
    cell = statement("cofel-avg-c", T=8, k=1, C=3.0, epsilon=0.5).cell("client", "server")
    oracle = PLDAccountant(dp.NeighboringRelation.ADD_OR_REMOVE_ONE)
    oracle.compose(dp.SelfComposedDpEvent(dp.LaplaceDpEvent(2.0), 8))
    assert cell.epsilon == pytest.approx(oracle.get_epsilon(1e-5), rel=2e-3)


def test_rdp_pfl_pays_for_both_gradients_and_its_sibling_half_the_distance() -> None:
    printed = statement("rdp-pfl", T=4, L=3, B=40, sigma=2.0, m=200).cell("record", "server")
    # Whole batches: 4 x 3 x 2 Gaussian releases at distance 2 C.
    assert printed.epsilon == pytest.approx(gdp.epsilon(sqrt(24) * 2 / 2.0, 1e-5), rel=1e-4)
    half = statement("rdp-pfl-c", T=4, L=3, B=40, sigma=2.0, m=200).cell("record", "server")
    assert half.epsilon == pytest.approx(gdp.epsilon(sqrt(24) * 1 / 2.0, 1e-5), rel=1e-4)
    assert half.relation == "add-remove"
    plain = statement("rdp-pfl", T=4, L=3, B=40, sigma=2.0, m=200, alpha=0.0)
    assert plain.cell("record", "server").epsilon < printed.epsilon


def test_als_dpfl_leaks_its_losses_and_its_sibling_composes_its_steps() -> None:
    printed = statement("als-dpfl", T=3, R_c=12, m=10)
    assert all(cell.epsilon == inf for cell in printed.cells)
    assert "loss" in printed.cell("record", "world").reason
    method = make("als-dpfl-c", {"T": 9, "R_c": 12, "m": 10, "q": 0.2, "C": 2.0, "mu": 0.5})
    plan = unrolled(method, SIZES)
    steps = sum(r.local.steps * n for r, n in plan)
    assert steps == 12 and len(plan) > 1, "the steps fall and are known beforehand"
    cell = planned(method, plan, SIZES, delta=1e-5).cell("record", "server")
    oracle = PLDAccountant(dp.NeighboringRelation.ADD_OR_REMOVE_ONE)
    oracle.compose(dp.PoissonSampledDpEvent(0.2, dp.GaussianDpEvent(1.0)), 12)
    assert cell.epsilon == pytest.approx(oracle.get_epsilon(1e-5), rel=2e-3)
