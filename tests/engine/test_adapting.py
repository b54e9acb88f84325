"""Methods that choose from what they saw: only with filters, never beyond them."""

from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path

import pytest

from confide.accounting import gdp
from confide.accounting.filters import FILTER_ORDERS, RenyiFilter, least_epsilon
from confide.accounting.relations import Relation
from confide.channels import Sum
from confide.cohorts import All, Poisson
from confide.engine.ending import RunFailed
from confide.engine.rounds import Local, Past, Round
from confide.engine.running import Run, run
from confide.engine.spending import Budget
from confide.local import SGD
from confide.stages import Clip, Gaussian, PerClient
from small import Chooser, federation, mlp


@dataclass(frozen=True)
class Silent(Chooser):
    """The same, without saying so."""

    adapts = False


@dataclass(frozen=True)
class Moves:
    """Only the clip and its noise follow the answers, in proportion."""

    T: int = 4
    noise_field = None

    def round(self, past: Past) -> Round | None:
        if past.t == self.T:
            return None
        C = 1.0 if past.model is None else 1.0 + float(past.model.abs().mean())
        return Round(
            cohort=Poisson(0.5),
            upload=(Clip(C),),
            channel=Sum(),
            publish=(Gaussian(C / 4),),
        )


def trained(method: object, **more: object) -> Run:
    return run(method, federation(), model=mlp(), workers=1, **more)  # type: ignore[arg-type]


def test_who_spends_less_than_planned_is_stated_by_the_plan(tmp_path: Path) -> None:
    done = trained(Chooser(then=3.0), out=tmp_path / "run")
    cell = done.statement.cell("client", "world")
    mu = sqrt(5 * (1 / 4 + 1 / 80**2))
    assert done.rounds == 5
    assert cell.accountant == "GDP filter"
    # 8 clients, noise sigma/8 on the mean: multiplier sigma; the bit's is 10 * 8.
    assert cell.epsilon == pytest.approx(gdp.epsilon(mu, cell.delta), rel=1e-6)
    assert cell.epsilon >= gdp.epsilon(mu, cell.delta)


def test_who_would_overspend_is_stopped_before(tmp_path: Path) -> None:
    done = trained(Chooser(then=0.6), out=tmp_path / "run")
    # One round of 1/4 and rounds of 1/1.44 within 5/4: a single further one fits.
    assert done.rounds == 2
    assert done.stopped is not None
    assert done.statement.cell("client", "world").epsilon < inf


def test_the_last_model_is_evaluated_when_a_run_ends_before_its_plan() -> None:
    done = trained(Chooser(then=0.6), evaluate_every=5)
    assert [row["round"] for row in done.metrics] == [2]
    assert done.loss is not None


def test_sampled_rounds_are_held_at_fixed_orders() -> None:
    done = trained(Chooser(q=0.25))
    cell = done.statement.cell("client", "world")
    assert (cell.accountant, cell.status) == ("RDP filter", "proved")
    assert done.statement.cell("client", "server").epsilon == inf


def test_what_is_not_announced_is_refused() -> None:
    with pytest.raises(
        RunFailed, match=r"round 1: Silent gives away something else.*adapts = True"
    ):
        trained(Silent(then=0.9))
    assert trained(Silent(then=1.0)).rounds == 5


def test_the_scale_of_clip_and_noise_may_follow_the_answers() -> None:
    done = trained(Moves())
    assert done.statement.cell("client", "world").epsilon < inf
    assert done.statement.cell("client", "world").accountant != "RDP filter"


def test_a_budget_sets_the_noise_of_the_plan() -> None:
    budget = Budget(epsilon=3.0, delta=1e-3)
    done = trained(Chooser(), budget=budget)
    assert done.statement.cell("client", "world").epsilon == pytest.approx(3.0, rel=1e-3)
    assert done.statement.cell("client", "world").epsilon <= 3.0


def test_a_budget_without_calibration_is_the_filter() -> None:
    budget = Budget(epsilon=1.0, delta=1e-3)
    done = trained(Chooser(sigma=4.0, then=1.0, T=100), budget=budget, calibrate=False)
    mu = gdp.mu(1.0, 1e-3)
    assert done.rounds == int(mu**2 / (1 / 16 + 1 / 80**2))
    assert done.statement.cell("client", "world").epsilon == 1.0


def test_least_epsilon_is_the_first_whose_budgets_admit_the_totals() -> None:
    import numpy as np

    orders = np.array(FILTER_ORDERS)
    for scale in (1e-3, 0.05, 0.7):
        totals = scale * orders
        epsilon = least_epsilon(totals, 1e-5, orders)
        room = RenyiFilter(epsilon, 1e-5, Relation.ADD_REMOVE).left - totals
        assert room.max() >= 0
        less = RenyiFilter(epsilon * (1 - 1e-6), 1e-5, Relation.ADD_REMOVE).left - totals
        assert less.max() < 0


@dataclass(frozen=True)
class Sly:
    """Says nothing about adapting, and does something else once there is a model to look at."""

    does: str
    T: int = 4
    noise_field = None

    def round(self, past: Past) -> Round | None:
        seen = past.model is not None
        if past.t == self.T or (self.does == "ends" and seen and past.t == 2):
            return None
        # The plan: little noise once, then ten times as much.
        sigma = 1.0 if past.t == 0 or (self.does == "repeats" and seen) else 10.0
        column = (1.0, 2.0, 2.0, 1.0) * 2
        if self.does == "swaps" and seen and past.t:
            column = (1.0, 2.0, 1.0, 2.0) * 2  # as many clients of each kind
        return Round(
            All(),
            Local(SGD(0.1)),
            (Clip(1.0), Gaussian(PerClient(tuple(sigma * c for c in column)))),
        )


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("ends", r"round 2: Sly ends before the 4 rounds that it planned"),
        ("repeats", r"round 1: Sly gives away something else"),
        ("swaps", r"round 1: Sly gives away something else"),
    ],
)
def test_every_way_to_leave_the_plan_is_refused(does: str, told: str) -> None:
    with pytest.raises(RunFailed, match=told):
        trained(Sly(does))
    assert trained(Sly("nothing")).rounds == 4


@dataclass(frozen=True)
class Favours:
    """Adapts, and gives the last client less noise than its group was planned with."""

    planned: bool  # whether the plan has columns at all
    adapts = True
    noise_field = None

    def round(self, past: Past) -> Round | None:
        if past.t == 2:
            return None
        std: float | PerClient = PerClient((4.0,) * 8) if self.planned else 4.0
        if past.t and past.model is not None:
            std = PerClient((4.0,) * 7 + (0.01,))
        return Round(All(), Local(SGD(0.1)), (Clip(1.0), Gaussian(std)))


@pytest.mark.parametrize("planned", [True, False])
def test_who_was_planned_like_others_stays_like_them(planned: bool) -> None:
    with pytest.raises(RunFailed, match="round 1: clients that were planned alike"):
        trained(Favours(planned))


def test_a_filter_rests_on_what_its_releases_rest_on() -> None:
    cell = trained(Chooser(q=0.25)).statement.cell("client", "world")
    assert any("drawn by its own coin" in a for a in cell.assumptions)
