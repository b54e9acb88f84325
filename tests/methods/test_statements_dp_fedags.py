"""What DP-FedAGS proves at the paper's setting, beside what is published."""

from dataclasses import replace
from math import ceil, inf

import numpy as np
import pytest
from scipy.stats import norm

from confide.accounting.events import PoissonSampledDpEvent
from confide.accounting.relations import Relation
from confide.derive import derive
from confide.engine.adapting import as_planned
from confide.engine.rounds import Past, Released, Sizes, published_of
from confide.engine.running import run
from confide.engine.spending import Budget, unrolled
from confide.methods import CATALOGUE
from confide.methods.dp_fedsnlc import DPFedSNLCC
from confide.published import dp_fedags
from confide.stages import Clip, Gaussian
from confide.statements import Statement, state
from methods.cases import CASES
from methods.world import SEED, network

SIZES = Sizes(100, 600, (60, 40))
PRINTED = ("dp-fedags", "dp-fedsnlc")
CORRECTED = ("dp-fedags-c", "dp-fedsnlc-c")


def stated(name: str, **settings: float | str) -> Statement:
    method = CATALOGUE[name].load()(**settings)
    return state(unrolled(method, SIZES), SIZES, published=published_of(method, SIZES))


@pytest.mark.parametrize(
    ("name", "settings", "raw"),
    [
        ("dp-fedags", {"weights": "dynamic"}, "size and loss"),
        ("dp-fedags", {"weights": "fixed"}, "size"),
        ("dp-fedsnlc", {}, "size"),
        ("dp-fedsnlc", {"tau": 0.0}, "size"),
    ],
)
def test_as_printed_nothing_is_proved_for_anybody(
    name: str, settings: dict[str, str | float], raw: str
) -> None:
    statement = stated(name, scale=1e6, **settings)
    assert {cell.epsilon for cell in statement.cells} == {inf}
    for unit in ("record", "client"):
        for observer in ("server", "world"):
            reason = statement.cell(unit, observer).reason
            assert "carry no noise" in reason or "leaves without noise" in reason
            assert f"{raw}: nothing has been done to hide it" in reason
    assert "raw data" in statement.cell("client", "device").reason


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_published_stands_beside_it(name: str) -> None:
    claim = stated(name, epsilon=0.2).published
    assert claim is not None
    assert (claim.value, claim.delta, claim.unit) == (0.2, 0.001, "client")
    assert stated(name, scale=0.0).published is None


# docs/papers/dp-fedags.md: for a client at the defaults, to the world and to the server.
PAGE = {
    "dp-fedags": (inf, inf),
    "dp-fedsnlc": (inf, inf),
    "dp-fedags-c": (7.10, inf),
    "dp-fedsnlc-c": (7.10, inf),
    "cpsgd": (13.0, 72.5),
    "cpsgd-c": (2.13, inf),
}


@pytest.mark.parametrize("name", sorted(PAGE))
def test_the_table_of_the_page(name: str) -> None:
    kind = CATALOGUE[name].load()
    method, sizes = kind(), kind.setting.sizes
    statement = state(unrolled(method, sizes), sizes)
    found = [statement.cell("client", observer).epsilon for observer in ("world", "server")]
    assert found == pytest.approx(PAGE[name], rel=3e-3)


def test_the_noise_is_that_of_eq_2() -> None:
    (_, _, noise) = CATALOGUE["dp-fedags"].load()(epsilon=0.1).round(
        Past(0, SIZES)
    ).uploads["update"].stages  # fmt: skip
    assert noise.std == pytest.approx(8.0392, abs=5e-5)
    assert noise.std == dp_fedags.eq_2_sigma(1.0, 0.1).value
    assert noise.alpha == pytest.approx(1 / 0.005)


def sampled_gaussian_delta(q: float, z: float, T: int, e: float) -> float:
    """The hockey stick of T rounds by its own convolution: losses on a grid."""
    width, reach = 2e-4, 12.0
    points = np.arange(-(2**17), 2**17) * width

    def law(first: bool) -> np.ndarray:
        x = np.linspace(-reach * z, reach * z + 1, 800_001)
        a = norm.cdf(x, scale=z)
        b = (1 - q) * a + q * norm.cdf(x, loc=1, scale=z)
        low, mixed = np.diff(a), np.diff(b)
        middle = (x[1:] + x[:-1]) / 2
        loss = np.log1p(q * np.expm1((2 * middle - 1) / (2 * z * z)))
        weights, loss = (mixed, loss) if first else (low, -loss)
        cells = np.clip(np.rint(loss / width).astype(int) + len(points) // 2, 0, len(points) - 1)
        return np.bincount(cells, weights, len(points))

    worst = 0.0
    for first in (True, False):
        mass = np.fft.ifftshift(law(first))
        total = np.fft.fftshift(np.fft.irfft(np.fft.rfft(mass) ** T, len(mass)))
        worst = max(worst, float((total * np.maximum(0, 1 - np.exp(e - points)))[points > e].sum()))
    return worst


@pytest.mark.parametrize("name", CORRECTED)
def test_corrected_is_one_sampled_gaussian_of_the_joint_multiplier(name: str) -> None:
    cell = stated(name, sigma=2.0, T=40).cell("client", "world")
    assert (cell.relation, cell.sampler) == ("add-remove", "Poisson, rate 0.1")
    assert cell.delta == 1 / 1000
    # Every part's own noise over its own bound: 1 / z^2 adds up to 1 / sigma^2.
    r = CATALOGUE[name].load()(sigma=2.0, T=40).round(Past(7, SIZES))
    z = [r.published(n)[0].std * 10 / r.uploads[n].stages[-1].C for n in r.uploads]
    assert len(z) >= 2
    assert sum(1 / one**2 for one in z) == pytest.approx(1 / 4)
    assert sampled_gaussian_delta(0.1, 2.0, 40, cell.epsilon) == pytest.approx(1e-3, rel=2e-3)


@pytest.mark.parametrize("name", CORRECTED)
def test_one_coin_for_everything_a_client_sends(name: str) -> None:
    # Review A4 and C5: amplifying each release by itself would claim less.
    r = CATALOGUE[name].load()(sigma=2.0).round(Past(7, SIZES))
    (way, *_) = derive(r, SIZES)["client", "world", "update"]
    assert isinstance(way.event, PoissonSampledDpEvent)
    assert way.event.event.noise_multiplier == pytest.approx(2.0, rel=1e-8)  # pyright: ignore
    assert way.relation is Relation.ADD_REMOVE
    for row in derive(r, SIZES)["client", "server", "update"]:
        assert row.open  # who sees the sum before its noise


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("dp-fedags-c", {"weights": "dynamic"}),
        ("dp-fedags-c", {"weights": "fixed"}),
        ("dp-fedsnlc-c", {}),
    ],
)
def test_at_equal_sigma_the_statement_is_that_of_dp_fedavg(
    name: str, settings: dict[str, str | float]
) -> None:
    first = stated(name, T=40, **settings).cell("client", "world").epsilon
    known = stated("dp-fedavg-c", sigma=1.0, T=40).cell("client", "world")
    assert first == pytest.approx(known.epsilon, rel=1e-6)


def test_a_round_that_is_not_significant_gives_away_what_was_planned() -> None:
    method = DPFedSNLCC(window=1, tau=0.5)
    losses = tuple(Released(t, "loss", 1.0, "world") for t in range(2))
    planned, quiet = (method.round(Past(2, SIZES, released=seen)) for seen in ((), losses))
    assert planned is not None and quiet is not None
    bounds = [r.uploads["update"].stages[-1] for r in (planned, quiet)]
    assert bounds == [Clip(method.C), Clip(method.C_N)]
    assert as_planned(quiet, planned, SIZES)
    louder = replace(quiet, publish={**quiet.publish, "update": (Gaussian(1e-3),)})  # pyright: ignore
    assert not as_planned(louder, planned, SIZES)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [([], True), ([2.0], True), ([2.0, 1.0], True), ([2.0, 1.9], False), ([1.0, 2.0], True)],
)
def test_a_released_loss_that_stands_still_is_not_significant(
    seen: list[float], expected: bool
) -> None:
    assert DPFedSNLCC(window=1, tau=0.1).significant(seen) == expected


@pytest.mark.parametrize("name", CORRECTED)
def test_a_budget_sets_the_noise_of_all_parts_together(name: str) -> None:
    case = CASES[name]
    method = CATALOGUE[name].load()(**case.settings)
    done = run(
        method, case.world.federation, model=network(), seed=SEED, workers=1, device="cpu",
        budget=Budget(3.0, 0.01),
    )  # fmt: skip
    assert done.rounds == case.rounds
    assert 3.0 * (1 - 1e-3) <= done.statement.cell("client", "world").epsilon <= 3.0


def test_the_share_of_significant_coordinates_falls_as_in_eq_35() -> None:
    method = CATALOGUE["dp-fedags-c"].load()()
    for t in (2, 100, 150, 179, 181, 199):
        r = method.round(Past(t, SIZES))
        kept = len(r.uploads["update"].stages[0].keep)
        assert kept == ceil(max(1 - t / 200, 0.1) * 100)
        assert kept + len(r.uploads["rest"].stages[0].keep) == 100
