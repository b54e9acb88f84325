"""What adaptive clipping and DP-SCAFFOLD prove, and that adapting never changes it."""

from dataclasses import replace
from math import inf, sqrt
from typing import Any, ClassVar

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant

from confide.accounting.events import PoissonSampledDpEvent
from confide.accounting.relations import Relation
from confide.cohorts import All, Fixed, Poisson
from confide.derive import derive
from confide.engine import adapting
from confide.engine.ending import RunFailed
from confide.engine.rounds import Local, Past, Released, Round, Sizes
from confide.engine.running import Run, run
from confide.engine.spending import Budget, unrolled
from confide.local import SGD, Scaffold
from confide.methods.adaptive import DPFedAvgAdaptive
from confide.methods.dp_scaffold import DPScaffold
from confide.stages import Clip, Gaussian
from confide.statements import state
from methods.naive_adaptive_scaffold import ADAPTIVE
from methods.world import SEED, World, network
from published.truths import gdp_epsilon

SIZES = Sizes(500, 100, (60, 40))
DELTA = 1 / 5000
WORLD = ("client", "world", "update")


def adaptive(**changed: Any) -> DPFedAvgAdaptive:
    return replace(DPFedAvgAdaptive(T=200, q=0.1, z=0.95), **changed)


def go(method: Any, **more: Any) -> Run:
    return run(
        method, World().federation, model=network(), seed=SEED, workers=1, device="cpu", **more
    )


# Adaptive clipping ------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma_b", [None, 0.6, 20.0])
def test_bits_and_updates_together_have_the_multiplier_z(sigma_b: float | None) -> None:
    cell = state(unrolled(adaptive(sigma_b=sigma_b), SIZES), SIZES, delta=DELTA).cell(*WORLD[:2])
    assert (cell.relation, cell.sampler) == ("add-remove", "Poisson, rate 0.1")
    event = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(0.95))
    exact = PLDAccountant(value_discretization_interval=1e-4).compose(event, 200)
    assert cell.epsilon == pytest.approx(exact.get_epsilon(DELTA), rel=2e-3)


def test_both_sums_stand_under_one_coin() -> None:
    # Amplifying each by itself and adding them up would claim less than this.
    ((r, _),) = unrolled(adaptive(sigma_b=0.6), SIZES)
    way = derive(r, SIZES)[WORLD][0]
    assert way.relation is Relation.ADD_REMOVE
    assert isinstance(way.event, PoissonSampledDpEvent)
    z_delta, of_bit = 1 / sqrt(0.95**-2 - 1.2**-2), 2 * 0.6
    m = 0.1 * 500
    update, bit = (r.published(name)[0].std * m for name in ("update", "bit"))  # type: ignore[attr-defined]
    assert update == pytest.approx(z_delta * 0.1)
    assert bit == pytest.approx(0.6)
    assert 1 / z_delta**2 + 1 / of_bit**2 == pytest.approx(1 / 0.95**2)
    apart = [dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(z)) for z in (z_delta, of_bit)]
    both = PLDAccountant().compose(dp.ComposedDpEvent(apart), 200).get_epsilon(DELTA)
    joint = PLDAccountant().compose(dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(0.95)), 200)
    assert both < joint.get_epsilon(DELTA)


def test_raw_bits_would_protect_nobody() -> None:
    ((r, _),) = unrolled(adaptive(), SIZES)
    raw = replace(r, publish={"update": r.published("update")})
    assert all(way.open for way in derive(raw, SIZES)[WORLD])
    assert {w.open for w in derive(r, SIZES)["client", "server", "update"]} == {True}


def test_whatever_the_bits_say_the_round_gives_away_what_was_planned() -> None:
    method = adaptive()
    ((planned, _),) = unrolled(method, SIZES)
    random = np.random.default_rng(4)
    seen: tuple[Released, ...] = ()
    bounds: list[float] = []
    for t in range(150):
        now = method.round(Past(t=t, sizes=SIZES, released=seen))
        assert now is not None
        assert adapting.as_planned(now, planned, SIZES)
        bounds.append(now.uploads["update"].stages[0].C)  # type: ignore[attr-defined]
        bit = float(random.normal(scale=10.0 ** random.integers(-3, 4)))
        seen = (*seen, Released(t, "bit", bit, "world"))
    assert min(bounds) < 1e-8 * method.C_0 < 1e8 * method.C_0 < max(bounds)


def test_the_bound_rises_when_fewer_than_gamma_are_within_and_falls_otherwise() -> None:
    method = adaptive(gamma=0.3, eta_C=0.2)
    for share, factor in ((0.3, 1.0), (0.0, np.exp(0.06)), (1.0, np.exp(-0.14))):
        past = Past(t=1, sizes=SIZES, released=(Released(0, "bit", share - 0.5, "world"),))
        assert method.bound(past) == pytest.approx(0.1 * factor, rel=1e-12)


def test_the_bound_finds_the_quantile() -> None:
    # Many rounds with little noise: half of the clients' updates end up within the bound.
    settings = {**ADAPTIVE, "T": 60, "q": 1.0, "z": 0.01, "C_0": 50.0, "gamma": 0.5, "eta": 0.01}
    watched: list[float] = []

    class Watched(DPFedAvgAdaptive):
        def bound(self, past: Past) -> float:
            watched.append(super().bound(past))
            return watched[-1]

    go(Watched(**settings))
    assert watched[-1] < 0.5  # from 50
    assert abs(np.log(watched[-1] / watched[-10])) < 0.5  # it rests there


class Undershooting(DPFedAvgAdaptive):
    """Noise that does not follow the bound: another multiplier in every round."""

    def round(self, past: Past) -> Round | None:
        r = super().round(past)
        if r is None:
            return None
        return replace(r, publish={"update": (Gaussian(0.1),), "bit": r.published("bit")})


def test_noise_that_does_not_follow_the_bound_ends_the_run() -> None:
    with pytest.raises(RunFailed, match="gives away something else than it planned"):
        go(Undershooting(**ADAPTIVE))


class Filtered(DPFedAvgAdaptive):
    """The same, with every row held by a filter."""

    adapts: ClassVar = True


class FilteredUndershooting(Undershooting):
    """A multiplier that falls as the bound rises, held by a filter."""

    adapts: ClassVar = True


def test_within_a_filter_it_makes_every_round_and_one_that_overspends_is_stopped() -> None:
    for budget in (None, Budget(30.0, 1e-2)):
        done = go(Filtered(**ADAPTIVE), budget=budget)
        assert done.rounds == ADAPTIVE["T"]
        cell = done.statement.cell("client", "world")
        assert cell.accountant == "RDP filter"
        assert cell.epsilon <= (inf if budget is None else budget.epsilon)
    falls = {**ADAPTIVE, "T": 12, "gamma": 1.0, "eta_C": 2.0}  # the bound rises
    done = go(FilteredUndershooting(**falls))
    assert 0 < done.rounds < 12
    assert done.stopped is not None


# DP-SCAFFOLD ------------------------------------------------------------------------------------


def scaffold_cells(method: DPScaffold, sizes: Sizes) -> dict[tuple[str, str], Any]:
    statement = state(unrolled(method, sizes), sizes, delta=1e-5)
    return {(c.unit, c.observer): c for c in statement.cells}


def test_every_step_of_dp_scaffold_counts_in_full() -> None:
    method = DPScaffold()
    found = scaffold_cells(method, method.setting.sizes)
    server = found["record", "server"]
    assert (server.relation, server.accountant) == ("replace-one", "gdp")
    assert server.sampler == "200 of 1000 without replacement, without credit"
    # 100 rounds of 10 steps, each of multiplier 30 over one replaced record's 2C.
    assert server.epsilon == pytest.approx(gdp_epsilon(sqrt(1000) / 30, 1e-5), rel=1e-5)
    assert found["record", "world"].epsilon < server.epsilon  # not everybody is there each time
    assert found["record", "device"].epsilon == inf


def test_a_whole_client_changes_every_record_of_every_batch() -> None:
    method = DPScaffold(sigma_g=3000.0)
    cell = scaffold_cells(method, method.setting.sizes)["client", "server"]
    assert cell.epsilon == pytest.approx(gdp_epsilon(sqrt(1000) * 200 / 3000, 1e-5), rel=1e-5)


@pytest.mark.parametrize("sampler", [Poisson(0.1), Fixed(10), All()])
def test_memory_takes_the_credit_for_sampling_records(sampler: Any) -> None:
    def epsilon(step: SGD | Scaffold) -> float:
        local = Local(
            step, 4, sampler, (Clip(1.0),), (Gaussian(20.0),), remembers=isinstance(step, Scaffold)
        )
        r = Round(All(), local)
        return state([(r, 10)], SIZES, delta=1e-5).cell("record", "server").epsilon

    with_memory, without = epsilon(Scaffold(0.1)), epsilon(SGD(0.1))
    S = 1.0 if isinstance(sampler, Poisson) else 2.0
    assert with_memory == pytest.approx(gdp_epsilon(sqrt(40) * S / 20, 1e-5), rel=1e-5)
    if isinstance(sampler, All):
        assert without == with_memory
    else:
        assert without < with_memory


def test_memory_of_raw_gradients_is_not_covered() -> None:
    local = Local(Scaffold(0.1), 4, Fixed(10), remembers=True)
    r = Round(All(), local, upload=(Clip(1.0), Gaussian(1.0)))
    cells = state([(r, 1)], SIZES, delta=1e-5)
    # The clip and noise of the upload hold for whatever the client sends.
    expected = gdp_epsilon(2.0, 1e-5)
    assert cells.cell("record", "server").epsilon == pytest.approx(expected, rel=1e-5)
    inside = replace(r, upload=())
    statement = state([(inside, 1)], SIZES, delta=1e-5)
    assert {c.epsilon for c in statement.cells} == {inf}


def test_a_memory_that_no_step_makes_stays_unproved() -> None:
    local = Local(SGD(0.1), 4, Fixed(10), (Clip(1.0),), (Gaussian(20.0),), remembers=True)
    cell = state([(Round(All(), local), 1)], SIZES, delta=1e-5).cell("record", "server")
    assert cell.epsilon == inf
    assert "own state has seen raw data" in cell.reason
