"""UDP and CRD in the settings that the battery leaves out, and the filter that holds CRD."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isnan
from typing import Any

import numpy as np
import pytest

from confide.data import Federation
from confide.engine.rounds import Past, Round, Sizes
from confide.engine.running import Run, run
from confide.engine.spending import unrolled
from confide.methods import CATALOGUE
from confide.methods.udp_crd import UDPCRDC, discounted, eq_25, smoothed
from confide.methods.udp_lei import falling
from methods.naive_udp import (
    LONGER,
    OURS,
    eq_10,
    exact_cap,
    exactly,
    optimal,
    shared,
    stalls_smoothly,
    udp,
)
from methods.naive_udp import (
    eq_25 as naive_eq_25,
)
from methods.test_recompute import model_after
from methods.world import SEED, Case, World, network

UNEVEN = World((8, 3, 12, 5, 8, 9))
OWN = {"epsilon": (900.0, 500.0, 800.0, 900.0, 700.0, 600.0), "delta": (1e-3, 1e-4) * 3}


@dataclass(frozen=True)
class Judged(World):
    """The last public records judge models at the server."""

    @cached_property
    def federation(self) -> Federation:
        dealt = super().federation
        return replace(dealt, public=dealt.public[:4], validation=dealt.public[4:])


VARIANTS = {
    "sizes as weights": ("udp-c", udp(exactly, releases=3), {"weights": "size"}, UNEVEN),
    "sizes, K of U": ("udp", udp(eq_10), {"weights": "size", "K": 4}, UNEVEN),
    "own delta": ("udp-c", udp(exactly, releases=3), OWN, World()),
    "own budgets, CRD": (
        "udp-crd-c",
        udp(naive_eq_25(exact_cap), releases=8, discounts=stalls_smoothly),
        {**LONGER, "window": 1, "K": 3, **OWN},
        World(),
    ),
    "public trigger": (
        "udp-crd-c",
        udp(naive_eq_25(exact_cap), discounts=stalls_smoothly),
        {**LONGER, "T": 9, "window": 1, "trigger": "public", "beta": 0.7},
        Judged(),
    ),
    "search, uneven, K of U": (
        "udp-optimal-c",
        optimal(shared, releases=3),
        {"T": 2, "tries": 2, "K": 4, "weights": "size"},
        UNEVEN,
    ),
}


@pytest.mark.parametrize("words", VARIANTS)
def test_a_variant_beside_the_naive_algorithm(words: str) -> None:
    name, naive, settings, world = VARIANTS[words]
    case = Case(naive, {**OURS, **settings}, world=world)
    method = CATALOGUE[name].load()(**case.settings)
    ours, theirs = model_after(method, case), naive(world, method)
    assert np.abs(theirs - world.start()).max() > 1e-2
    assert np.abs(ours - theirs).max() < 1e-6


def test_clips_aside_the_naive_algorithm_is_met_to_rounding() -> None:
    # What is clipped is kept half a millionth below C; what is not, is not touched.
    for name, naive in (("udp", udp(eq_10)), ("udp-c", udp(exactly, releases=3))):
        case = Case(naive, {**OURS, "C": 50.0, "epsilon": 1e5})
        method = CATALOGUE[name].load()(**case.settings)
        assert np.abs(model_after(method, case) - naive(case.world, method)).max() < 1e-9


# The discount ---------------------------------------------------------------------------------


def test_the_number_of_rounds_follows_line_16_to_18() -> None:
    falling_then_flat = [5.0, 4.0, 3.0, 3.0, 3.0, 2.0, 2.0]
    # After round t the losses of w_0 ... w_t are known: the first stall shows after round 3.
    assert discounted(20, 0.5, 0.001, falling_then_flat, 7) == [20, 20, 20, 20, 11, 7, 7, 6]
    # The public loss of the model that a round has made is known at its end.
    assert discounted(20, 0.5, 0.001, falling_then_flat, 5, ahead=1) == [20, 20, 20, 11, 7, 7]
    assert discounted(20, 0.5, 0.001, [], 3) == [20, 20, 20, 20]


def test_a_trigger_rests_for_its_window() -> None:
    flat = [1.0] * 12
    assert discounted(40, 0.5, 0.001, flat, 9, every=3) == [40] * 4 + [21] * 3 + [13] * 3
    assert smoothed([1.0, 2.0, 6.0, 7.0], 2) == [1.0, 1.5, 4.0, 6.5]


@pytest.mark.parametrize("beta", [0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("T", [1, 2, 3, 17, 200])
def test_no_discount_ever_spends_more_than_the_cap(T: int, beta: float) -> None:
    random = np.random.default_rng(T)
    for _ in range(20):
        losses = list(random.normal(size=T + 1))
        spent, t = 0.0, 0
        while t < (rounds := discounted(T, beta, 0.001, losses[:t], t))[-1]:
            spent += eq_25(2.5, rounds) ** -2
            t += 1
        assert spent == pytest.approx(2.5, rel=1e-9) or t < T
        assert spent <= 2.5 * (1 + 1e-9)


# The filter -----------------------------------------------------------------------------------


def trained(method: Any, world: World | None = None, **more: Any) -> Run:
    return run(
        method, (world or World()).federation, model=network(), seed=SEED, workers=1,
        device="cpu", delta=0.001, **more,
    )  # fmt: skip


def test_a_run_that_is_cut_short_stays_within_its_statement() -> None:
    settings = {**OURS, "T": 30, "epsilon": 8.0, "zeta": 10.0, "window": 2, "n_test": 5}
    done = trained(CATALOGUE["udp-crd-c"].load()(**settings), evaluate_every=1)
    assert done.rounds < 30
    cell = done.statement.cell("record", "server")
    assert (cell.accountant, cell.status) == ("GDP filter", "proved")
    spent = [row["spent"]["record/server"] for row in done.metrics]
    assert spent == sorted(spent)
    assert spent[-1] <= cell.epsilon == pytest.approx(8.0, rel=2e-5)


@dataclass(frozen=True)
class Greedy(UDPCRDC):
    """Having seen two losses, it takes half of the noise that it may."""

    def round(self, past: Past) -> Round | None:
        method = UDPCRDC(**{**OURS, "T": self.T, "epsilon": self.epsilon, "n_test": 5})
        return replace(method, scale=1.0 if len(past.values("loss")) < 2 else 0.5).round(past)


def test_a_round_that_does_not_fit_is_not_released() -> None:
    done = trained(Greedy(T=12, K=6, epsilon=8.0), evaluate_every=1)
    # Two rounds of 1/12 and rounds of 4/12 of the budget: two more fit, a third does not.
    assert done.rounds == 4
    assert done.stopped is not None
    assert done.metrics[-1]["spent"]["record/server"] <= 8.0
    assert done.statement.cell("record", "server").epsilon <= 8.0


def test_each_group_of_clients_has_a_filter() -> None:
    settings = {**OURS, "T": 6, "zeta": 10.0, "window": 1, "n_test": 5}
    own = {"epsilon": (4.0, 8.0) * 3, "delta": (1e-3,) * 6}
    done = trained(CATALOGUE["udp-crd-c"].load()(**{**settings, **own}))
    cells = [
        c
        for c in done.statement.cells
        if (c.unit, c.observer, c.of) == ("record", "server", "update")
    ]
    assert [c.epsilon for c in cells] == pytest.approx([4.0, 8.0], rel=2e-5)
    assert {c.accountant for c in cells} == {"GDP filter"}


def test_the_public_trigger_needs_records_at_the_server() -> None:
    method = CATALOGUE["udp-crd-c"].load()(**OURS, trigger="public")
    with pytest.raises(ValueError, match=r"validation = 0, but the method follows the loss"):
        trained(method)
    done = trained(method, Judged())
    assert {c.of for c in done.statement.cells} == {"update"}
    assert done.statement.cell("record", "server").epsilon < inf


# Unequal clients and searches -----------------------------------------------------------------


def test_data_sizes_weigh_only_up_to_a_public_cap() -> None:
    method = CATALOGUE["udp-c"].load()(weights="size", K=4)
    sizes = Sizes(10, 400, (60, 40), 1200)
    ((plan, _),) = unrolled(method, sizes)
    assert (plan.aggregate.cap, plan.aggregate.by) == (1200, 4 * 800)  # type: ignore[union-attr]


def test_clients_without_records_and_digits_of_few_kinds_do_not_stop_it() -> None:
    for name in ("udp-c", "udp-crd-c", "udp-lei-c", "udp-optimal-c"):
        tries = {"tries": 2} if "optimal" in name else {}
        settings = {**OURS, "T": 2, "epsilon": 8.0, "weights": "size", "n_test": 5, **tries}
        done = trained(CATALOGUE[name].load()(**settings), UNEVEN)
        assert done.loss is not None
        assert not isnan(done.loss)
        assert done.statement.cell("record", "server").epsilon <= 8.0


def test_falling_noise_is_a_line_and_then_level() -> None:
    factors = falling(3.0, 1.0, 5)
    assert factors[:7] == pytest.approx([3.0, 2.5, 2.0, 1.5, 1.0, 1.0, 1.0])
    assert sum(factor**-2 for factor in factors) <= 5 < sum(f**-2 for f in [*factors, 1.0])


def test_the_best_of_a_search_is_the_model_with_the_least_told_loss() -> None:
    settings = {**OURS, "T": 3, "tries": 3, "scale": 0.0, "C": 1e6}
    best = trained(CATALOGUE["udp-optimal"].load()(**settings), dtype="float64")
    alone = trained(CATALOGUE["udp"].load()(**{**OURS, "scale": 0.0, "C": 1e6}), dtype="float64")
    # Without noise the longest run is the best one.
    assert best.rounds == 1 + 2 + 3
    assert best.loss == pytest.approx(alone.loss, abs=1e-12)
