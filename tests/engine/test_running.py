"""A run from the outside: same bits, budgets, empty cohorts, divergence, bad settings."""

from dataclasses import dataclass, replace
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from confide.accounting import gdp
from confide.aggregates import Mean, WeightedMean
from confide.channels import Sum
from confide.cohorts import All, Epoch, Fixed, Poisson
from confide.engine.ending import Diverged, RunFailed
from confide.engine.rounds import Local, Past, Round, Upload
from confide.engine.running import Run, run
from confide.engine.spending import Budget
from confide.local import SGD, Scaffold
from confide.stages import Clip, Gaussian, PerClient
from small import Anything, Private, federation, mlp, plain, total


def go(method: Any, **options: Any) -> Run:
    given = {"model": mlp(), "workers": 1, "seed": 3, **options}
    return run(method, federation(), **given)


@pytest.mark.parametrize(
    "method", [Private(), Anything(plain(Local(SGD(0.1), 2, Epoch(10, True))))]
)
def test_any_number_of_processes_gives_the_same_bits(method: Any) -> None:
    alone = go(method)
    for workers in (2, 3):
        several = go(method, workers=workers)
        assert f"{workers} worker processes" in several.strategy
        assert total(several.parameters) == total(alone.parameters)
        assert several.metrics == alone.metrics


def test_another_seed_gives_other_bits() -> None:
    assert total(go(Private()).parameters) != total(go(Private(), seed=4).parameters)


def test_an_empty_cohort_releases_noise_all_the_same() -> None:
    before = torch.cat([p.detach().flatten() for p in mlp().parameters()]).double()
    done = go(replace(Private(), T=1, q=0.05))
    assert done.participations == 0
    after = torch.cat([v.flatten() for v in done.parameters.values()]).double()
    moved = (after - before).std().item()
    expected = 1.0 * 0.5 / (0.05 * 8)
    assert moved == pytest.approx(expected, rel=0.05)


def test_nobody_takes_part_more_often_than_allowed() -> None:
    round_ = plain(Local(SGD(0.1)), Fixed(3, at_most=2))
    done = go(Anything(round_, T=20))
    assert done.participations == 2
    assert done.rounds == 5  # 8 clients twice are 16 places: after 5 rounds of 3 one place is left
    assert "may still take part" in (done.stopped or "")


def test_a_budget_sets_the_noise_and_is_never_passed() -> None:
    done = go(Private(T=6), budget=Budget(3.0, 1e-3))
    epsilon = done.statement.cell("client", "world").epsilon
    assert 3.0 * 0.998 <= epsilon <= 3.0
    assert done.rounds == 6 and done.stopped is None


def test_a_budget_with_a_noise_ends_the_run_before_it_would_overspend() -> None:
    done = go(Private(T=60, sigma=1.5), budget=Budget(4.0, 1e-3), calibrate=False)
    assert 0 < done.rounds < 60
    assert done.stopped is not None and "one more would exceed epsilon 4" in done.stopped
    cell = done.statement.cell("client", "world")
    assert cell.epsilon <= 4.0
    longer = go(Private(T=done.rounds + 1, sigma=1.5), delta=1e-3)
    assert longer.statement.cell("client", "world").epsilon > 4.0


@dataclass(frozen=True)
class Turns:
    """Clients with noise of their own, in other groups from round to round."""

    noise_field = None

    def round(self, past: Past) -> Round | None:
        columns = [(4.0,) * 8, (4.0,) * 3 + (9.0,) * 5, (9.0,) + (4.0,) * 7]
        if past.t == len(columns):
            return None
        return Round(All(), Local(SGD(0.1)), (Clip(1.0), Gaussian(PerClient(columns[past.t]))))


def test_clients_have_rows_by_all_their_numbers() -> None:
    done = go(Turns())
    rows = [c for c in done.statement.cells if (c.unit, c.observer) == ("client", "server")]
    # Distance 2 in each round over the noises of clients 0, 1 and 2, 3 to 7.
    noises = {"1 clients like client 0": (4, 4, 9), "2 clients like client 1": (4, 4, 4)}
    noises["5 clients like client 3"] = (4, 9, 4)
    assert {row.group for row in rows} == set(noises)
    for row in rows:
        mu = sqrt(sum((2 / std) ** 2 for std in noises[row.group]))
        assert row.epsilon == pytest.approx(gdp.epsilon(mu, row.delta), rel=1e-6)


def test_a_diverging_run_says_in_which_round() -> None:
    with pytest.raises(Diverged, match=r"round \d+: .* smaller learning rate"):
        go(Anything(plain(Local(SGD(1e30), 5))))


def test_weights_by_size_need_a_cap_and_the_statement_says_that_sizes_are_public() -> None:
    weighted = WeightedMean(cap=30, by=100)
    done = go(
        Anything(
            Round(
                cohort=All(),
                local=Local(SGD(0.1)),
                upload=(Clip(1.0),),
                channel=Sum(),
                aggregate=weighted,
                publish=(Gaussian(1.0),),
            ),
            T=1,
        )
    )
    cell = done.statement.cell("client", "world")
    assert cell.epsilon < inf and "data sizes are public" in cell.assumptions


@pytest.mark.parametrize("field", ["cap", "by"])
def test_weights_without_public_numbers_are_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"WeightedMean: {field} = inf, .* without a public cap"):
        WeightedMean(**{"cap": 30.0, "by": 100.0, field: inf})


NORMALISED = """
from torch import nn

def net():
    return nn.Sequential(nn.Conv2d(1, 4, 5), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(8),
                         nn.Flatten(), nn.Linear(36, 10))
"""


def test_batch_normalisation_is_refused_or_replaced(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NORMALISED)
    own = f"{tmp_path / 'net.py'}:net"
    with pytest.raises(ValueError, match=r"of BatchNorm2d .*use `--set model\.norm=group`"):
        go(Private(T=1), model=own)
    done = go(Private(T=1), model=own, norm="group")
    # Nothing but what is clipped and noised leaves: two convolution, norm and dense tensors each.
    assert len(done.parameters) == 6
    assert not any("running" in name for name in done.parameters)


def test_scaffold_remembers_and_sends_its_control() -> None:
    local = Local(Scaffold(0.1), 2, Epoch(10, True), remembers=True)
    both = {"update": Upload(), "control": Upload()}
    scaffold = Anything(plain(local, Fixed(4), upload=both), T=4)
    done = go(scaffold)
    plainly = go(Anything(plain(Local(SGD(0.1), 2, Epoch(10, True)), Fixed(4)), T=4))
    assert total(done.parameters) != total(plainly.parameters)
    assert total(done.parameters) == total(go(scaffold, workers=2).parameters)


@pytest.mark.parametrize(
    ("method", "options", "told"),
    [
        (Private(T=0), {}, "no rounds"),
        (Private(), {"dtype": "half"}, "dtype = 'half'"),
        (Private(), {"device": "tpu"}, "device = 'tpu'"),
        (Private(), {"workers": 0}, "workers = 0"),
        (Private(), {"strategy": "plian"}, "allowed are auto, plain, .*did you mean 'plain'"),
        (Private(), {"budget": Budget(1e-6), "calibrate": False}, "not even one round fits"),
        (Anything(plain(Local(SGD(0.1)))), {"budget": Budget(1.0)}, "names no noise"),
        (Anything(plain(Local(sampler=Fixed(9)))), {}, "Fixed: m = 9, allowed is at most"),
        (Anything(plain(Local(), Fixed(9))), {}, "Fixed: m = 9"),
        (Anything(plain(Local(), upload={"updaet": Upload()})), {}, "upload 'updaet' has no value"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(
    method: Any, options: dict[str, Any], told: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=told) as wrong:
        go(method, **options)
    assert "\n" not in str(wrong.value)


def test_a_gpu_that_is_not_there_is_said_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="'cuda', but torch sees no CUDA GPU; allowed here are"):
        go(Private(), device="cuda", out=tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_too_few_survivors_abort_the_round() -> None:
    with pytest.raises(RunFailed, match="survivors"):
        go(Anything(plain(Local(SGD(0.1)), Poisson(1e-6), channel=Sum(survivors=2))))


def test_a_public_divisor_is_used_as_given() -> None:
    one = Local(SGD(0.1))
    halved = go(Anything(plain(one, aggregate=Mean(by=16.0)), T=1))
    whole = go(Anything(plain(one, aggregate=Mean(by=8.0)), T=1))
    start = torch.cat([p.detach().flatten() for p in mlp().parameters()]).double()
    a = torch.cat([v.flatten() for v in halved.parameters.values()]).double() - start
    b = torch.cat([v.flatten() for v in whole.parameters.values()]).double() - start
    assert np.allclose(2 * a, b, atol=1e-7)
