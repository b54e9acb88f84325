"""UDP-FL's noises, channels, aggregates and local steps, each beside the naive algorithm."""

from typing import Any

import numpy as np
import pytest
import torch

from confide.data import Dataset, Federation
from confide.engine.running import run
from confide.methods import CATALOGUE
from methods.naive_udp_fl import CASES, OURS, VARIANTS, naive
from methods.test_recompute import model_after


@pytest.mark.parametrize("name", ["udp-fl", "udp-fl-c"])
@pytest.mark.parametrize("changed", VARIANTS, ids=str)
def test_a_variant_beside_the_naive_algorithm(name: str, changed: dict[str, Any]) -> None:
    case = CASES[name]
    method = CATALOGUE[name].load()(**{**OURS, **changed})
    ours, theirs = model_after(method, case), naive(case.world, method)
    assert np.abs(theirs - case.world.start()).max() > 1e-2
    assert np.abs(ours - theirs).max() < 1e-6


def wind_shaped() -> Federation:
    """Ten farms' worth of daily curves: 48 hours to predict the next 48."""
    random = np.random.default_rng(8)
    hours = np.arange(96)
    phases = random.uniform(0, 2 * np.pi, size=(220, 1))
    power = 0.5 + 0.4 * np.sin(2 * np.pi * hours / 48 + phases)
    power += 0.03 * random.normal(size=power.shape)
    x = torch.from_numpy(power[:, None, None, :48]).float()
    y = torch.from_numpy(power[:, 48:]).float()
    data = Dataset("wind", x[:200], y[:200], x[200:], y[200:], classes=None)
    held = tuple(np.arange(k, 190, 10) for k in range(10))
    return Federation(data, held, np.empty(0, np.int64), np.arange(190, 200), "in turn", 1)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "staircase"])
def test_over_scaffold_it_forecasts_wind(noise: str) -> None:
    """Figure 5's setting: a regression, the control variates, ten clients, a clip of 10."""
    settings = {"T": 3, "K": 10, "c": 10.0, "noise": noise, "local": "scaffold", "epsilon": 50.0}
    method = CATALOGUE["udp-fl-c"].load()(**settings, q=0.5, aggregate="mode-connectivity")
    done = run(method, wind_shaped(), model="wind-cnn", workers=1, device="cpu")
    assert done.rounds == 3 and done.accuracy is None
    assert done.loss is not None and np.isfinite(done.loss)
    assert done.statement.cell("record", "server").epsilon < 70
