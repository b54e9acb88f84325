"""What DP-FedSAM and its baselines prove at the paper's setting, beside what is published."""

import pytest

from confide.engine.rounds import Sizes, published_of
from confide.engine.spending import first_rounds, unrolled
from confide.methods import CATALOGUE
from confide.statements import Statement, state
from published.truths import gdp_epsilon

# The layers do not matter to these statements: a small model has the same.
SIZES = Sizes(500, 100, (60, 40))
PRINTED = ("dp-fedavg", "dp-fedsam", "fed-smp-randk", "dp-fedavg-blur", "dp-fedavg-blurs")
CORRECTED = (
    *(f"{name}-c" for name in PRINTED),
    "dp-fedsam-topk-c",
    "fed-smp-topk-c",
)


def stated(name: str, delta: float | None = 1 / 500, rounds: int | None = None) -> Statement:
    method = CATALOGUE[name].load()()
    plan = unrolled(method, SIZES)
    plan = plan if rounds is None else first_rounds(plan, rounds)
    return state(plan, SIZES, delta=delta, published=published_of(method, SIZES))


@pytest.mark.parametrize("name", [*PRINTED, "dp-fedsam-topk", "fed-smp-topk"])
def test_all_rows_of_the_papers_table_1_publish_the_same(name: str) -> None:
    claim = stated(name, rounds=1).published
    assert claim is not None and (claim.unit, claim.delta) == ("client", 1 / 500)
    assert claim.value == pytest.approx(10.852609, abs=5e-7)


@pytest.mark.parametrize("name", [*PRINTED, "dp-fedsam-topk"])
def test_a_server_that_sees_each_upload_once(name: str) -> None:
    # A share of std sigma C / sqrt(50) on a vector that may change by 2C.
    mu = 2 * 50**0.5 / 0.95
    assert mu == pytest.approx(14.88646, abs=1e-5)
    cell = stated(name, rounds=1).cell("client", "server")
    assert cell.relation == "replace-one"
    assert cell.epsilon == pytest.approx(152.7, abs=0.05)
    assert cell.epsilon == pytest.approx(gdp_epsilon(mu, 1 / 500), rel=1e-5)


@pytest.mark.parametrize("name", PRINTED)
def test_the_world_as_printed_without_replacement(name: str) -> None:
    cell = stated(name).cell("client", "world")
    assert (cell.relation, cell.sampler) == ("replace-one", "50 of 500 without replacement")
    assert cell.epsilon == pytest.approx(300.82, rel=1e-4)
    assert any("nobody drops out" in assumption for assumption in cell.assumptions)


def test_top_k_after_a_clients_noise_loses_the_sum() -> None:
    printed, each = stated("dp-fedsam-topk"), stated("dp-fedsam")
    assert printed.cell("client", "server").epsilon == each.cell("client", "server").epsilon
    # One upload's noise is all that is left to the world: far more than noise of the whole sum.
    assert printed.cell("client", "world").epsilon > 10 * each.cell("client", "world").epsilon


def test_a_mask_of_the_clients_own_proves_nothing_to_anybody() -> None:
    statement = stated("fed-smp-topk")
    assert {cell.epsilon for cell in statement.cells} == {float("inf")}
    assert "choose the coordinates it sends" in statement.cell("client", "server").reason


@pytest.mark.parametrize("name", CORRECTED)
def test_corrected(name: str) -> None:
    cell = stated(name).cell("client", "world")
    assert (cell.relation, cell.sampler, cell.accountant) == (
        "add-remove",
        "Poisson, rate 0.1",
        "pld",
    )
    # Never below the truth 9.372458, and within its own discretisation of it.
    assert 9.372458 <= cell.epsilon == pytest.approx(9.372458, rel=1e-4)
    assert stated(name).cell("client", "server").epsilon == float("inf")


def test_corrected_at_its_own_delta() -> None:
    cell = stated("dp-fedsam-c", None).cell("client", "world")
    assert cell.delta == 1 / 5000
    assert cell.epsilon == pytest.approx(11.38, abs=0.005)


def test_without_noise_nothing_is_published() -> None:
    for name in ("dp-fedavg", "dp-fedsam"):
        assert published_of(CATALOGUE[name].load()(sigma=0.0), SIZES) is None
