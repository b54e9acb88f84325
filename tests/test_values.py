"""Values that bring a bound of their own: two worlds are never further apart than they claim."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from confide.accounting.relations import Relation
from confide.claims import Claim
from confide.cohorts import All
from confide.engine.rounds import Round, Upload
from confide.stages import Clip, Gaussian, Laplace, PerClient, Stage
from confide.values import HeldOutLoss


def told(value: HeldOutLoss, losses: torch.Tensor) -> float:
    done: Any = SimpleNamespace(held_out=lambda: losses)
    return float(value(done))


@pytest.mark.parametrize("n", [1, 3, 40_000])
def test_another_record_moves_the_loss_by_no_more_than_is_claimed(n: int) -> None:
    value = HeldOutLoss(bound=5.0, n=n)
    c = value.claim(Claim(Relation.REPLACE_ONE, length=1), "record")
    draw = torch.Generator().manual_seed(1)
    for _ in range(20):
        losses = 4 + torch.rand(n, generator=draw)
        losses[0] = 0.0
        changed = losses.clone()
        changed[0] = torch.inf
        apart = abs(told(value, losses) - told(value, changed))
        assert 0.99 * value.bound / n < apart <= c.distance(c.l2)


@pytest.mark.parametrize("relation", list(Relation))
def test_a_whole_client_stays_within_the_bound(relation: Relation) -> None:
    value = HeldOutLoss(bound=5.0, n=3)
    c = value.claim(Claim(relation, length=1), "client")
    nothing = told(value, torch.zeros(0))
    for losses in ([9.0] * 3, [-1.0, torch.nan, torch.inf], [5.0] * 8):
        assert nothing <= told(value, torch.tensor(losses)) <= 5.0 <= c.l2


@pytest.mark.parametrize(
    "stages",
    [
        (),
        (Clip(1.0), Gaussian(1.0)),
        (Laplace(1.0),),  # rounds towards zero, which can part two values by a grid step more
        (Gaussian(0.0), Laplace(1.0)),
    ],
)
def test_a_distance_is_no_length(stages: tuple[Stage, ...]) -> None:
    with pytest.raises(ValueError, match="Gaussian noise first"):
        Upload(stages, length=1, data="test", value=HeldOutLoss(1.0, 5))


@pytest.mark.parametrize("data", ["iterates", "train"])
def test_held_out_losses_have_a_row_of_their_own(data: str) -> None:
    with pytest.raises(ValueError, match="allowed for HeldOutLoss is 'test'"):
        Upload((Gaussian(1.0),), length=1, data=data, value=HeldOutLoss(1.0, 5))


def test_a_client_without_noise_among_others_is_refused() -> None:
    loss = Upload(
        (Gaussian(PerClient((1.0, 0.0))),), length=1, data="test", value=HeldOutLoss(1.0, 5)
    )
    r = Round(cohort=All(), upload={"update": Upload(), "loss": loss})
    assert r.for_client(0)
    with pytest.raises(ValueError, match="Gaussian noise first"):
        r.for_client(1)
