"""Scores of what a stage did are standard normal where it does what it says, and not elsewhere."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi2, kstest

from confide.audit.laws import claimed, is_continuous, is_noise, scores
from confide.claims import Claim, Noise
from confide.engine.client import shared_streams
from confide.randomness import Key, Stream
from confide.stages import (
    BallRandomizer,
    Binomial,
    Clip,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Mask,
    Ordinal,
    RadialStaircase,
    RandomizedResponse,
    Shared,
    Skellam,
    Stage,
    Staircase,
    TwoPoint,
)


@dataclass(frozen=True)
class Own(Stage):
    """Gaussian noise of a class of its own, with a claim."""

    std: float

    def __call__(self, x: torch.Tensor, shared: Shared, own: Stream) -> torch.Tensor:
        return x + self.std * torch.from_numpy(own.normal(tuple(x.shape)))

    def claim(self, c: Claim) -> Claim:
        return c.noised(Noise("gaussian", self.std**2))


STAGES: dict[str, Stage] = {
    "Gaussian": Gaussian(3.0),
    "own": Own(2.0),
    "Laplace": Laplace(0.7),
    "staircase": Staircase(1.5, 2.0),
    "staircase with its fall at 0.9": Staircase(0.4, 1.0, 0.9),
    "radial staircase": RadialStaircase(1.0, 2.0),
    "discrete Gaussian": DiscreteGaussian(0.5, 1.7),
    "narrow discrete Gaussian": DiscreteGaussian(0.5, 0.3),
    "Skellam": Skellam(0.25, 40.0),
    "binomial": Binomial(0.5, 60),
    "randomised response": RandomizedResponse(5, 1.0, 1.0),
    "two points": TwoPoint(1.0, 2.0),
    "ordinal": Ordinal(6, 1.0, 3.0),
    "ball": BallRandomizer(1.0, 1.5),
}


def drawn(stage: Stage, judge: Stage, dim: int, times: int) -> Any:
    """What this judge thinks of the draws of this stage."""
    key, coins = Key.from_seed(3), np.random.default_rng(1)
    x = (torch.linspace(-1.0, 1.0, dim + 1).double()[1:] * 2).round() / 2
    if isinstance(stage, BallRandomizer):
        x = x / x.norm() * 0.8
    out: list[Any] = []
    for i in range(times):
        came = stage(x.clone(), shared_streams(key, 0), key.stream(0, i, "law"))
        out.append(scores(judge, x, came, coins))
    return np.concatenate(out)


@pytest.mark.parametrize("dim", [1, 2, 40])
@pytest.mark.parametrize("name", STAGES)
def test_scores_of_a_right_stage_are_normal(name: str, dim: int) -> None:
    z = drawn(STAGES[name], STAGES[name], dim, max(200, 4000 // dim))
    assert kstest(z, "norm").pvalue > 1e-4
    total = float((z**2).sum())
    assert 1e-4 < chi2.cdf(total, len(z)) < 1 - 1e-4
    assert len(z) == (1 if name == "ball" else dim) * max(200, 4000 // dim)


OTHERS: dict[str, dict[str, Any]] = {
    "Gaussian": {"std": 2.7},
    "own": {"std": 1.8},
    "Laplace": {"scale": 0.6},
    "staircase": {"epsilon": 1.8},
    "staircase with its fall at 0.9": {"epsilon": 0.8},
    "radial staircase": {"delta": 1.0},
    "discrete Gaussian": {"sigma": 1.5},
    "narrow discrete Gaussian": {"sigma": 0.4},
    "Skellam": {"variance": 30.0},
    "binomial": {"trials": 50},
    "randomised response": {"epsilon": 2.0},
    "two points": {"epsilon": 3.0},
    "ordinal": {"epsilon": 4.0},
    "ball": {"epsilon": 2.5},
}


@pytest.mark.parametrize("name", STAGES)
def test_scores_of_another_law_are_not(name: str) -> None:
    real: Any = replace(STAGES[name], **OTHERS[name])  # type: ignore[type-var]
    dim = 1 if name == "radial staircase" else 40  # else one number of forty speaks of the length
    z = drawn(real, STAGES[name], dim, 400 if name == "ball" else 4000 // dim)
    total = float((z**2).sum())
    tail = 2 * min(chi2.cdf(total, len(z)), chi2.sf(total, len(z)))
    assert min(kstest(z, "norm").pvalue, tail) < 1e-6


def test_what_is_noise_and_what_is_not() -> None:
    for stage in STAGES.values():
        assert is_noise(stage, 8)
    for quiet in (Clip(1.0), Mask((0, 1)), Gaussian(0.0), Laplace(0.0), Stage()):
        assert not is_noise(quiet, 8)
    assert claimed(STAGES["own"], 4).std == pytest.approx(2.0)
    assert is_continuous(STAGES["own"], 4) and not is_continuous(STAGES["two points"], 4)
    assert scores(Clip(1.0), torch.ones(2), torch.ones(2), np.random.default_rng(0)) is None
