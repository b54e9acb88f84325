"""DP-FedAGS where clients differ in size, and the stage that its printed form rests on."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from catalogue import DIM, own, shared
from confide.accounting.relations import Relation
from confide.aggregates import ByLossAndSize
from confide.channels import Sum
from confide.claims import Claim
from confide.cohorts import All
from confide.engine import Past, Sizes
from confide.engine.rounds import Round, Upload
from confide.methods.dp_fedags import (
    DPFedAGS,
    DPFedAGSC,
    NoiseAboveThreshold,
    masks,
    mean_loss,
    threshold_rank,
)
from confide.stages import Clip, Gaussian
from methods.cases import CASES
from methods.naive_dp_fedags import CORRECTED, PRINTED, eq_37
from methods.test_recompute import model_after
from methods.world import World

UNEQUAL = World((8, 5, 9, 3, 6, 8))
KINDS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "dp-fedags": (DPFedAGS, {**PRINTED, "C": 1e6, "scale": 1e-9}),
    "dp-fedags-c": (DPFedAGSC, {**CORRECTED, "C": 1e6, "C_N": 1e6, "sigma": 1e-8}),
}


@pytest.mark.parametrize("weights", ["dynamic", "fixed"])
@pytest.mark.parametrize("name", sorted(KINDS))
def test_clients_of_unequal_size_are_weighed_as_the_formula_says(name: str, weights: str) -> None:
    kind, settings = KINDS[name]
    method = kind(**{**settings, "weights": weights})
    case = replace(CASES[name], world=UNEQUAL)
    ours, theirs = model_after(method, case), case.naive(case.world, method)
    # Nothing is clipped: without that half a millionth only rounding is left.
    assert np.abs(ours - theirs).max() < 1e-9


def test_weights_of_eq_37_add_up_to_one() -> None:
    sizes, losses = [8, 5, 9], [0.3, 2.0, 0.1]
    weights = eq_37(DPFedAGS(), sizes, losses)
    assert sum(weights) == pytest.approx(1.0)
    aggregate = ByLossAndSize()
    totals: dict[str, torch.Tensor] = {}
    for n, L, x in zip(sizes, losses, torch.eye(3), strict=True):
        terms = aggregate.terms({"update": x, "size": torch.tensor([n]), "loss": torch.tensor([L])})
        totals = {name: totals.get(name, 0.0) + term for name, term in terms.items()}
    found = aggregate.weighed(totals)
    assert found["update"].tolist() == pytest.approx(weights, rel=1e-6)
    assert float(found["size"]) == 22


def test_nobody_with_records_or_losses_moves_nothing() -> None:
    nothing = {"update": torch.ones(3), "size": torch.zeros(1), "loss": torch.zeros(1)}
    found = ByLossAndSize().weighed(ByLossAndSize().terms(nothing))
    assert found["update"].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("relation", list(Relation))
def test_weights_from_losses_prove_nothing_by_themselves(relation: Relation) -> None:
    c = Clip(1.0).claim(Claim(relation, length=DIM)).pool()
    weighed = ByLossAndSize().claim(c, 10.0)
    assert weighed.open and "change the weights of all the others" in weighed.reason
    assert Gaussian(100.0).claim(weighed).open


def test_weights_need_single_uploads_and_what_they_are_made_of() -> None:
    told = {"update": Upload(), "size": Upload(length=1), "loss": Upload(length=1)}
    assert Round(All(), upload=told, aggregate=ByLossAndSize())
    with pytest.raises(ValueError, match="allowed with ByLossAndSize is Each"):
        Round(All(), upload=told, channel=Sum(), aggregate=ByLossAndSize())
    with pytest.raises(ValueError, match="no size and no loss, allowed"):
        Round(All(), upload={"update": Upload()}, aggregate=ByLossAndSize())


def test_noise_above_the_threshold_only() -> None:
    x = -torch.arange(8.0)  # g = 0..7
    stage = NoiseAboveThreshold(rank=6, alpha=0.0, beta=0.0, std=1.0)
    moved = stage(x, shared, own(0)) != x
    assert moved.tolist() == [False] * 5 + [True] * 3
    assert stage.claim(Clip(1.0).claim(Claim(Relation.REPLACE_ONE, length=DIM))).open


def test_the_answers_noise_is_laplace_and_its_threshold_is_one_draw() -> None:
    n = 20_000
    stage = NoiseAboveThreshold(rank=1, alpha=2.0, beta=1e-9, std=1.0)
    moved = stage(torch.full((n,), 3.0), shared, own(0)) != 3.0  # all g = -3 = lambda
    # alpha >= beta with beta near 0: half of the coordinates, give or take 5 standard errors
    assert abs(int(moved.sum()) - n / 2) < 5 * (n / 4) ** 0.5
    shift = NoiseAboveThreshold(rank=1, alpha=1e-9, beta=5.0, std=1.0)
    counts = {int((shift(torch.ones(40), shared, own(i)) != 1.0).sum()) for i in range(12)}
    assert counts == {0, 40}


def test_the_threshold_rises_to_nine_tenths() -> None:
    ranks = [threshold_rank(t, 200, 1000) for t in (1, 100, 180, 181, 200)]
    assert ranks == [5, 500, 900, 900, 900]


SIZES = Sizes(100, 600, (60, 40))


def test_the_mask_is_what_moved_most_in_the_last_aggregate() -> None:
    before = torch.zeros(100)
    after = before.clone()
    after[[7, 50, 99]] = torch.tensor([-3.0, 2.0, 1.0])
    (inside,), (outside,) = masks(Past(1, SIZES, after, (before,)), 3)
    assert inside.keep.positions.tolist() == [7, 50, 99]  # pyright: ignore
    assert set(outside.keep.positions.tolist()) == set(range(100)) - {7, 50, 99}  # pyright: ignore
    assert masks(Past(0, SIZES, after), 100) == ((), ())


def test_a_noisy_mean_of_losses_is_never_divided_by_near_zero() -> None:
    assert mean_loss([1.0, 2.0], 4.0) == 1.5
    assert mean_loss([0.3, -0.7], 4.0) == 0.04
