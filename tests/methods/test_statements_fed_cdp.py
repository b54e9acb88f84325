"""What Fed-CDP, Fed-SDP and their baselines prove at the paper's setting, beside its Table VI."""

from dataclasses import replace
from itertools import pairwise
from math import comb, inf, log, sqrt
from typing import Any

import dp_accounting as dp
import mpmath as mp
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from confide.cohorts import Epoch
from confide.engine.rounds import Sizes, published_of
from confide.engine.spending import Plan, unrolled
from confide.methods import CATALOGUE
from confide.statements import Statement, state
from published.truths import gdp_epsilon

# MNIST: 1,000 clients of 500 records; three layers, whose lengths do not matter to the statements.
SIZES = Sizes(1000, 500, (60, 40, 20))
M, DELTA = 3, 1e-5
# Table VI's columns: records of a client, batch, rounds, and clients of whom a tenth take part.
COLUMNS = {
    "mnist": (500, 5, 100),
    "cifar10": (400, 4, 100),
    "lfw": (300, 3, 60),
    "adult": (300, 3, 10),
    "cancer": (400, 4, 3),
}


def planned(name: str, sizes: Sizes = SIZES, **settings: Any) -> tuple[Any, Plan]:
    method = CATALOGUE[name].load()(**settings)
    return method, unrolled(method, sizes)


def stated(name: str, sizes: Sizes = SIZES, **settings: Any) -> Statement:
    method, plan = planned(name, sizes, **settings)
    return state(plan, sizes, delta=DELTA, published=published_of(method, sizes))


def cells(name: str, **settings: Any) -> dict[tuple[str, str], float]:
    return {(c.unit, c.observer): c.epsilon for c in stated(name, **settings).cells}


def gaussian_epsilon(mu: float) -> float:
    return gdp_epsilon(mu, DELTA)


def without_replacement(z: float, of: int, drawn: int, steps: int) -> float:
    """The Renyi bound of sampling without replacement under replace-one, by another library."""
    accountant = RdpAccountant(None, neighboring_relation=dp.NeighboringRelation.REPLACE_ONE)
    event = dp.SampledWithoutReplacementDpEvent(of, drawn, dp.GaussianDpEvent(z))
    return float(accountant.compose(event, steps).get_epsilon(DELTA))


@pytest.mark.parametrize(("name", "L"), [("fed-cdp", 100), ("fed-cdp", 1), ("fed-sdp", 100)])
@pytest.mark.parametrize("data", COLUMNS)
def test_table_6_is_what_the_methods_publish(name: str, L: int, data: str) -> None:
    printed = {
        ("fed-cdp", 100): (0.8227, 0.8227, 0.6356, 0.2761, 0.1469),
        ("fed-cdp", 1): (0.0845, 0.0845, 0.0689, 0.0494, 0.0467),
        ("fed-sdp", 100): (0.8536, 0.8536, 0.6677, 0.3025, 0.2065),
    }[name, L][list(COLUMNS).index(data)]
    records, B, T = COLUMNS[data]
    method = CATALOGUE[name].load()(T=T, L=L, B=B)
    claim = published_of(method, replace(SIZES, records=records))
    assert claim is not None and claim.value == pytest.approx(printed, abs=1e-4)


# docs/papers/fed-cdp.md: for a record to the server, and for a client to the world under Fed-SDP.
SOUND = {"mnist": 2.3026, "cifar10": 2.6214, "lfw": 2.3380, "adult": 0.8868, "cancer": 0.3973}
SUMMED = {"mnist": 0.4557, "cifar10": 0.4557, "lfw": 0.3471, "adult": 0.1242, "cancer": 0.0471}


# Fed-CDP ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", COLUMNS)
def test_the_sound_values_beside_table_6(data: str) -> None:
    # A batch's noise has std sigma C sqrt(B); one record replaced moves its sum by 2 C sqrt(M).
    records, B, T = COLUMNS[data]
    z = 6 * sqrt(B / M) / 2
    cell = stated("fed-cdp", replace(SIZES, records=records), T=T, B=B).cell("record", "server")
    assert cell.relation == "replace-one"
    assert cell.sampler == f"{B} of {records} without replacement"
    assert cell.epsilon == pytest.approx(without_replacement(z, records, B, 100 * T), rel=1e-4)
    assert cell.epsilon == pytest.approx(SOUND[data], abs=1e-4)
    if data == "mnist":
        assert z == pytest.approx(3.873, abs=5e-4)
        assert cell.epsilon == pytest.approx(2.302615, abs=5e-6)


def test_batches_of_a_shuffled_epoch_are_not_amplified() -> None:
    (r, T), *_ = planned("fed-cdp")[1]
    epoch = replace(r, local=replace(r.local, sampler=Epoch(5), steps=1))  # 100 batches of 5
    cell = state([(epoch, T)], SIZES, delta=DELTA).cell("record", "server")
    assert cell.epsilon == pytest.approx(13.757824, abs=2e-5)
    assert cell.epsilon == pytest.approx(gaussian_epsilon(10 / (6 * sqrt(5 / M) / 2)), rel=1e-5)


def test_a_single_noisy_gradient_inside_of_the_client() -> None:
    # Type 2: multiplier sigma / (2 sqrt(M)) for each, and no sampling hides a record from there.
    z = 6 / (2 * sqrt(M))
    assert z == pytest.approx(1.732, abs=5e-4)
    cell = stated("fed-cdp").cell("record", "device")
    assert cell.sampler == ""
    assert cell.epsilon == pytest.approx(gaussian_epsilon(sqrt(100 * 100) / z), rel=1e-5)
    once = stated("fed-cdp", T=1, L=1).cell("record", "device")
    assert once.epsilon == pytest.approx(gaussian_epsilon(1 / z), rel=1e-5)


def test_nothing_is_left_for_a_whole_client() -> None:
    # Every record of every batch changes: the paper's client row repeats the record's value.
    mu = sqrt(100 * 100) * 2 * sqrt(5 * M) / 6
    assert mu == pytest.approx(129.1, abs=0.01)
    cell = stated("fed-cdp").cell("client", "server")
    assert cell.epsilon == pytest.approx(8882.9445, rel=1e-5)
    assert cell.epsilon == pytest.approx(gaussian_epsilon(mu), rel=1e-5)


def test_the_world_gets_no_product_of_two_rates() -> None:
    # Clients are drawn, then their records: rounds joined count, the steps keep their own rate.
    world, server = (stated("fed-cdp").cell("record", o).epsilon for o in ("world", "server"))
    z = 6 * sqrt(5 / M) / 2
    assert without_replacement(z, 5000, 5, 100 * 100) < world < server
    assert world >= without_replacement(z, 500, 5, 100 * 10) * 0.9  # ten rounds are the mean


@pytest.mark.parametrize("name", ["fed-cdp", "fed-cdp-c"])
def test_decay_states_what_a_constant_bound_states(name: str) -> None:
    decay, constant = stated(f"fed-cdp-decay{name[7:]}"), stated(name)
    for cell in decay.cells:
        other = constant.cell(cell.unit, cell.observer)
        assert cell.epsilon == pytest.approx(other.epsilon, rel=1e-6)
    method, plan = planned(f"fed-cdp-decay{name[7:]}")
    bounds = [r.local.example[0].C for r, _ in plan]  # type: ignore[attr-defined]
    assert (bounds[0], bounds[-1]) == (method.C, method.C_last)
    steps = {round(a - b, 9) for a, b in pairwise(bounds)}
    assert len(steps) == 1  # a line


def test_the_printed_decay_falls_from_6_to_2_over_100_rounds() -> None:
    method = CATALOGUE["fed-cdp-decay"].load()()
    assert (method.T, method.bound(0), method.bound(99)) == (100, 6.0, 2.0)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_corrected_is_a_sampled_gaussian_of_the_stated_sensitivity(C: float) -> None:
    # Noise of sigma S, S = C sqrt(M), once on a Poisson batch of 60 of 500 on average, 100 times.
    cell = stated("fed-cdp-c", C=C, sigma=2.0).cell("record", "server")
    assert (cell.relation, cell.sampler) == ("add-remove", "Poisson, rate 0.12")
    event = dp.PoissonSampledDpEvent(0.12, dp.GaussianDpEvent(2.0))
    exact = PLDAccountant(value_discretization_interval=1e-3).compose(event, 100)
    assert cell.epsilon == pytest.approx(exact.get_epsilon(DELTA), rel=1e-2)
    (r, _), *_ = planned("fed-cdp-c", C=C, sigma=2.0)[1]
    (noise,) = r.local.batch
    assert noise.std == pytest.approx(2.0 * C * sqrt(M))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["fed-cdp-c", "fed-cdp-decay-c"])
def test_corrected_with_batches_of_a_fixed_size(name: str) -> None:
    cell = stated(name, sigma=4.0, batches="fixed").cell("record", "server")
    assert (cell.relation, cell.sampler) == ("replace-one", "60 of 500 without replacement")
    assert cell.epsilon == pytest.approx(without_replacement(4.0, 500, 60, 100), rel=1e-4)
    method, plan = planned(name, sigma=4.0, batches="fixed")
    (noise,) = plan[0][0].local.batch
    assert noise.std == pytest.approx(4.0 * 2 * method.C * sqrt(M))  # type: ignore[attr-defined]


# Fed-SDP ----------------------------------------------------------------------------------------


def test_noise_at_the_server_shows_it_every_raw_update() -> None:
    statement = stated("fed-sdp")
    for unit in ("record", "client"):
        assert statement.cell(unit, "server").epsilon == inf
        assert statement.cell(unit, "device").epsilon == inf


@pytest.mark.parametrize("noise", ["server", "client"])
def test_the_sum_of_a_fixed_cohort(noise: str) -> None:
    # sigma C sqrt(K_t) against 2 C sqrt(M): 17.32, not the 34.64 of removing a client.
    z = 6 * sqrt(100 / M) / 2
    assert z == pytest.approx(17.32, abs=1e-3)
    cell = stated("fed-sdp", noise=noise).cell("client", "world")
    assert (cell.relation, cell.sampler) == ("replace-one", "100 of 1000 without replacement")
    assert cell.epsilon == pytest.approx(without_replacement(z, 1000, 100, 100), rel=1e-4)
    assert cell.epsilon == pytest.approx(fixed_size_bound(z, 0.1, 100), rel=1e-6)


@pytest.mark.parametrize("data", COLUMNS)
def test_the_sound_values_beside_table_6_of_fed_sdp(data: str) -> None:
    T = COLUMNS[data][2]
    at_server, at_client = (stated("fed-sdp", T=T, noise=noise) for noise in ("server", "client"))
    for statement in (at_server, at_client):
        assert statement.cell("client", "world").epsilon == pytest.approx(SUMMED[data], abs=1e-4)
    mu = sqrt(T) * 2 * sqrt(M) / 6
    server = at_client.cell("client", "server")
    assert server.epsilon == pytest.approx(gaussian_epsilon(mu), rel=1e-5)


def fixed_size_bound(z: float, q: float, T: int) -> float:
    """Wang, Balle, Kasiviswanathan 2019, Theorem 27, written out at whole orders."""

    def moment(j: int) -> Any:
        return mp.exp(mp.mpf(j) * (j - 1) / (2 * mp.mpf(z) ** 2))

    def even(n: int) -> Any:
        return mp.fsum((-1) ** i * comb(n, i) * moment(i) for i in range(n + 1))

    def term(j: int) -> Any:
        if j == 2:
            return min(4 * (moment(2) - 1), 2 * moment(2))
        return min(4 * mp.sqrt(even(j // 2 * 2) * even((j + 1) // 2 * 2)), 2 * moment(j))

    def epsilon(a: int) -> float:
        total = mp.fsum(mp.mpf(q) ** j * comb(a, j) * term(j) for j in range(2, a + 1))
        return float(T * mp.log1p(total) / (a - 1)) + log(1 - 1 / a) - log(a * DELTA) / (a - 1)

    with mp.workdps(60):
        return min(epsilon(a) for a in range(30, 40))


def test_noise_at_the_client_protects_each_report_by_itself() -> None:
    _, plan = planned("fed-sdp", noise="client")
    for rounds, mu in ((1, 2 * sqrt(M) / 6), (10, sqrt(10) * 2 * sqrt(M) / 6)):
        cell = state([(plan[0][0], rounds)], SIZES, delta=DELTA).cell("client", "server")
        assert cell.relation == "replace-one"
        assert cell.epsilon == pytest.approx(gaussian_epsilon(mu), rel=1e-5)
    assert cell.epsilon == pytest.approx(8.940, abs=5e-4)


def test_corrected_with_noise_at_the_server() -> None:
    statement = stated("fed-sdp-c")
    cell = statement.cell("client", "world")
    assert (cell.relation, cell.sampler) == ("add-remove", "Poisson, rate 0.1")
    event = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(1.0))
    exact = PLDAccountant(value_discretization_interval=1e-3).compose(event, 100)
    assert cell.epsilon == pytest.approx(exact.get_epsilon(DELTA), rel=1e-2)
    assert statement.cell("client", "server").epsilon == inf
    assert statement.cell("client", "device").epsilon == inf


def test_corrected_with_noise_at_the_client() -> None:
    statement = stated("fed-sdp-c", noise="client", sigma=4.0)
    server, world = (statement.cell("client", o) for o in ("server", "world"))
    assert server.epsilon == pytest.approx(gaussian_epsilon(sqrt(100) * 2 / 4), rel=1e-5)
    assert world.epsilon == pytest.approx(
        without_replacement(4 * sqrt(100) / 2, 1000, 100, 100), rel=1e-4
    )
    assert statement.cell("client", "device").epsilon == inf


# Selective sharing and pruning ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings"),
    [("dssgd", {}), ("dssgd", {"select": "random"}), ("fed-pruned", {})],
)
def test_leaving_entries_out_protects_nobody(name: str, settings: dict[str, Any]) -> None:
    statement = stated(name, **settings)
    assert {cell.epsilon for cell in statement.cells} == {inf}
    assert statement.published is None
    assert "after noise" not in statement.cell("client", "server").reason


def test_pruning_a_noisy_report_changes_nothing_for_who_sees_the_report() -> None:
    pruned = cells("fed-pruned", privacy="fed-cdp")
    plain = cells("fed-cdp")
    assert {key: pruned[key] for key in plain} == plain
    pruned, plain = cells("fed-pruned", privacy="fed-sdp"), cells("fed-sdp", noise="client")
    assert pruned["client", "server"] == plain["client", "server"]
    # But the sum of pruned reports is no function of the sum of reports: its credit is gone.
    assert pruned["client", "world"] > 10 * plain["client", "world"]


def test_pruning_under_decay_states_what_decay_states() -> None:
    assert cells("fed-pruned", privacy="fed-cdp-decay", C=6.0) == cells("fed-cdp-decay")
