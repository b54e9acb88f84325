"""What UDP, CRD and what they are compared with prove at the paper's setting."""

from math import exp, inf, log, sqrt
from typing import Any

import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm

from confide.cells import Cell
from confide.engine.adapting import planned
from confide.engine.rounds import Sizes, published_of
from confide.engine.spending import unrolled
from confide.methods import CATALOGUE
from confide.statements import Statement

# The layers do not matter to these statements: a small model has the same.
SIZES = Sizes(50, 800, (60, 40))
DELTA = 0.001
PRINTED = ("udp", "udp-crd", "udp-lei", "udp-optimal")
CORRECTED = ("udp-c", "udp-crd-c", "udp-lei-c", "udp-optimal-c")


def stated(name: str, at: float = DELTA, **settings: Any) -> Statement:
    method = CATALOGUE[name].load()(**{"T": 20, **settings})
    plan = unrolled(method, SIZES)
    return planned(method, plan, SIZES, at, published_of(method, SIZES))


def delta_of(mu: float, epsilon: float) -> float:
    """Of N(0, 1) against N(mu, 1)."""
    second = exp(epsilon + float(norm.logcdf(-mu / 2 - epsilon / mu)))
    return float(norm.cdf(mu / 2 - epsilon / mu)) - second


def epsilon_of(mu: float, delta: float = DELTA) -> float:
    return float(brentq(lambda e: delta_of(mu, e) - delta, 0, 500, xtol=1e-12))


def printed_mu(epsilon: float, q: float = 1.0) -> float:
    """Of T rounds with the noise of eq. (10): T cancels."""
    return epsilon / sqrt(2 * q * log(1 / DELTA))


CLAIMED = {4.0: 3.437745, 8.0: 8.352719, 12.0: 14.491446, 16.0: 21.817465, 20.0: 30.317443}


@pytest.mark.parametrize("claimed", CLAIMED)
@pytest.mark.parametrize("name", ["udp", "udp-crd"])
def test_what_a_claimed_epsilon_is_at_the_server(name: str, claimed: float) -> None:
    statement = stated(name, epsilon=claimed)
    cell = statement.cell("record", "server")
    assert cell.epsilon == pytest.approx(CLAIMED[claimed], rel=1e-5)
    assert cell.epsilon >= epsilon_of(printed_mu(claimed))
    assert cell.relation == "replace-one"
    assert cell.accountant == ("gdp" if name == "udp" else "GDP filter")
    assert statement.published is not None
    assert (statement.published.value, statement.published.delta) == (claimed, DELTA)


def test_the_number_of_rounds_makes_no_difference() -> None:
    few, many = (stated("udp", T=T).cell("record", "server").epsilon for T in (3, 200))
    assert few == pytest.approx(many, rel=1e-9) == pytest.approx(8.353, abs=0.0005)


@pytest.mark.parametrize("name", PRINTED)
def test_raw_test_losses_have_rows_of_their_own_and_are_infinite(name: str) -> None:
    statement = stated(name)
    assert statement.cell("record", "server").epsilon < inf
    for observer in ("server", "world"):
        cell = statement.cell("record", observer, "loss")
        assert (cell.epsilon, cell.status) == (inf, "infinite")
        assert "nothing has been done to hide it" in cell.reason


@pytest.mark.parametrize("name", CORRECTED)
def test_corrected_keeps_to_its_budget_for_training_and_for_test_records(name: str) -> None:
    statement = stated(name)
    assert statement.published is None
    for of in ("update", "loss"):
        for observer in ("server", "world"):
            cell = statement.cell("record", observer, of)
            assert cell.epsilon <= 8.0
            assert cell.delta == DELTA
            # The last round of a falling line does not fit; its losses are equally noisy.
            least = 7.0 if (name, of) == ("udp-lei-c", "update") else 8 * (1 - 2e-5)
            assert cell.epsilon > least


@pytest.mark.parametrize("name", [*PRINTED, *CORRECTED])
def test_inside_a_client_nothing_is_hidden(name: str) -> None:
    cell = stated(name).cell("record", "device")
    assert (cell.epsilon, cell.reason) == (inf, "nothing has been done to hide it")
    assert stated(name).cell("client", "server").epsilon > 1e5  # "user-level" is not the unit


def test_fewer_clients_than_all() -> None:
    # q = 0.6, T = 200: at worst a client takes part in every round; the world's row is averaged
    # over the random schedule.
    statement = stated("udp", K=30, T=200)
    worst = epsilon_of(printed_mu(8.0, 0.6))
    assert worst == pytest.approx(11.7797, abs=5e-5)
    assert statement.cell("record", "server").epsilon == pytest.approx(worst, rel=1e-5)
    mu = printed_mu(8.0, 0.6) / sqrt(200)

    def mean_delta(epsilon: float) -> float:
        shares = binom.pmf(range(1, 201), 200, 0.6)
        return sum(p * delta_of(mu * sqrt(k), epsilon) for k, p in enumerate(shares, 1))

    mean = float(brentq(lambda e: mean_delta(e) - DELTA, 1, 20, xtol=1e-10))
    assert mean == pytest.approx(8.411211, abs=1e-6)
    assert statement.cell("record", "world").epsilon == pytest.approx(mean, rel=1e-4)
    # What chooses its noise from what it saw is counted as in every round.
    assert stated("udp-crd", K=30).cell("record", "world").epsilon == pytest.approx(worst, rel=1e-5)


def test_a_cap_on_participations_is_all_that_is_paid_for() -> None:
    free, capped = stated("udp-c", K=30), stated("udp-c", K=30, at_most=12)
    for statement, rounds in ((free, 20), (capped, 12)):
        cell = statement.cell("record", "server")
        assert cell.epsilon == pytest.approx(8.0, rel=2e-5)
        assert cell.participations == rounds


@pytest.mark.parametrize("name", ["udp-c", "udp-crd-c", "udp-optimal-c"])
def test_clients_with_budgets_of_their_own(name: str) -> None:
    few: dict[str, Any] = {"T": 4, "tries": 2} if name == "udp-optimal-c" else {"T": 5}
    few |= {"epsilon": (4.0,) * 20 + (8.0,) * 30, "delta": (1e-3,) * 40 + (1e-4,) * 10}

    def server_row(at: float) -> list[Cell]:
        cells = stated(name, at, **few).cells
        return [c for c in cells if (c.unit, c.observer, c.of) == ("record", "server", "update")]

    cells = server_row(1e-3)
    assert [c.group.partition(" ")[0] for c in cells] == ["20", "20", "10"]
    assert [c.epsilon for c in cells[:2]] == pytest.approx([4, 8], rel=2e-5)
    assert cells[0].epsilon <= 4
    assert cells[1].epsilon <= 8
    # The last group asked for (8, 1e-4): it has that, and less than 8 at a larger delta.
    assert cells[2].epsilon < 7.5
    assert 8 * (1 - 2e-5) < server_row(1e-4)[2].epsilon <= 8


def test_the_whole_search_for_the_best_number_of_rounds_is_paid_for() -> None:
    # Five runs, each with the noise of eq. (10): sqrt(5) times the mu that is claimed for one.
    statement = stated("udp-optimal", tries=5)
    cell = statement.cell("record", "server")
    assert cell.epsilon == pytest.approx(epsilon_of(sqrt(5) * printed_mu(8.0)), rel=1e-5)
    assert cell.epsilon == pytest.approx(25.685, abs=0.0005)
    assert cell.participations == 4 + 8 + 12 + 16 + 20
    assert statement.published is not None
    assert statement.published.value == 8.0
    assert stated("udp-optimal", tries=1).cell("record", "server").epsilon == pytest.approx(
        8.352719
    )


@pytest.mark.parametrize(
    ("T", "first", "last"), [(20, 2.0, 0.5), (200, 2.0, 0.5), (30, 1.0, 1.0), (10, 4.0, 1.0)]
)
def test_falling_noise_ends_where_the_budget_does(T: int, first: float, last: float) -> None:
    statement = stated("udp-lei", T=T, first=first, last=last)
    factors = [first + (last - first) * min(1, t / (T - 1)) for t in range(3 * T)]
    shares = [sum(factor**-2 for factor in factors[: n + 1]) / T for n in range(3 * T)]
    rounds = sum(share <= 1 + 1e-12 for share in shares)
    assert statement.rounds == rounds
    spent = shares[rounds - 1]
    expected = epsilon_of(sqrt(spent) * printed_mu(8.0))
    assert statement.cell("record", "server").epsilon == pytest.approx(expected, rel=1e-5)


def test_a_factor_on_the_noise_is_a_factor_on_what_is_published() -> None:
    assert published_of(CATALOGUE["udp"].load()(scale=0.0), SIZES) is None
    claim = published_of(CATALOGUE["udp"].load()(scale=2.0), SIZES)
    assert claim is not None
    assert claim.value == 4.0
