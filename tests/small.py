"""A small federation of real digits and a small model, for tests of the engine."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import nn

from confide.aggregates import Mean, MeanOfPresent
from confide.channels import Sum
from confide.cohorts import All, Cohort, Epoch, Poisson
from confide.data import Dataset, Federation, load
from confide.engine.outcomes import Outcome
from confide.engine.rounds import Local, Past, Round, Upload
from confide.local import SGD
from confide.stages import Clip, Gaussian


@cache
def digits(train: int = 240, test: int = 100) -> Dataset:
    """The first digits of MNIST."""
    whole = load("mnist")
    return replace(
        whole,
        x_train=whole.x_train[:train].clone(),
        y_train=whole.y_train[:train].clone(),
        x_test=whole.x_test[:test].clone(),
        y_test=whole.y_test[:test].clone(),
        columns={},
    )


@cache
def federation(sizes: tuple[int, ...] = (30, 7, 0, 51, 1, 20, 12, 40)) -> Federation:
    """Clients of unequal size, one of them empty."""
    ends = np.cumsum(sizes)
    clients = tuple(np.arange(end - n, end) for n, end in zip(sizes, ends, strict=True))
    nobody = np.empty(0, np.int64)
    return Federation(digits(), clients, nobody, nobody, "by hand", 1)


def mlp(hidden: int = 6) -> nn.Module:
    """784-hidden-10, always with the same first parameters."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return nn.Sequential(nn.Flatten(), nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 10))


@dataclass(frozen=True)
class Anything:
    """A method that repeats one round."""

    what: Round
    T: int = 3
    noise_field = None

    def round(self, past: Past) -> Round | None:
        """The same again, T times."""
        return None if past.t == self.T else self.what


@dataclass(frozen=True)
class Private:
    """DP-FedAvg, small."""

    T: int = 4
    q: float = 0.5
    sigma: float = 1.0
    C: float = 0.5
    eta: float = 0.1
    name = "private"
    noise_field = "sigma"

    def round(self, past: Past) -> Round | None:
        """Clip at the clients, noise once on the sum."""
        if past.t == self.T:
            return None
        return Round(
            cohort=Poisson(self.q),
            local=Local(SGD(self.eta), 1, Epoch(10, partial=True)),
            upload=(Clip(self.C),),
            channel=Sum(),
            publish=(Gaussian(self.sigma * self.C / (self.q * past.public.clients)),),
        )


def first_value(done: Outcome) -> torch.Tensor:
    """What a client is asked for beside its update."""
    return done.update[:1].clone()


@dataclass(frozen=True)
class Chooser:
    """Noise that follows what was published; the plan is five rounds of multiplier sigma."""

    sigma: float = 2.0
    then: float = 1.0  # of the rounds after the first answer
    T: int = 5
    q: float | None = None
    adapts = True
    noise_field = "sigma"

    def round(self, past: Past) -> Round | None:
        """Clip, and noise by what the last answer was."""
        if past.t == self.T:
            return None
        seen = past.values("bit")
        sigma = self.sigma * (self.then if seen else 1.0)
        cohort = All() if self.q is None else Poisson(self.q)
        return Round(
            cohort=cohort,
            local=Local(SGD(0.1)),
            upload={
                "update": Upload((Clip(1.0),)),
                "bit": Upload((Clip(1.0),), length=1, data="train", value=first_value),
            },
            channel=Sum(),
            aggregate=Mean(by=8.0),
            publish={"update": (Gaussian(sigma / 8),), "bit": (Gaussian(10.0),)},
        )


def plain(local: Local, cohort: Cohort | None = None, **other: Any) -> Round:
    """No noise: the mean of everybody's update."""
    return Round(cohort=cohort or All(), local=local, **{"aggregate": MeanOfPresent(), **other})


def total(parameters: Mapping[str, torch.Tensor]) -> bytes:
    """All bytes of a model."""
    return b"".join(v.numpy().tobytes() for v in parameters.values())
