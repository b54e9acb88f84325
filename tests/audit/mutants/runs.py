"""Bugs that end a run with one sentence, or do not let it begin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from audit.mutants.kinds import Mutant, refused
from confide.cohorts import All
from confide.engine.rounds import Local, Method, Past, Round, Upload
from confide.engine.running import run
from confide.local import SGD, Course, Gradient, Scaffold
from confide.stages import Clip, Gaussian
from small import Anything, Chooser, Private, federation, mlp

NOISY = (Clip(1.0), Gaussian(4.0))


def trained(method: Method) -> None:
    run(method, federation(), model=mlp(2), seed=1, workers=1, device="cpu")


def one_round(**changed: object) -> Method:
    return Anything(replace(Round(cohort=All(), upload=NOISY), **changed), T=1)  # type: ignore[arg-type]


@dataclass(frozen=True)
class LooksTwice(SGD):
    """Takes a gradient that it does not declare."""

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        gradient(w)
        super().__call__(w, gradient, course)


@dataclass(frozen=True)
class LooksAtTheLoss(SGD):
    """Looks at a loss that it does not declare."""

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        gradient.loss(w)
        super().__call__(w, gradient, course)


@dataclass(frozen=True)
class AdaptsInSecret(Chooser):
    """Chooses its noise from what was published, and does not say so."""

    adapts = False


@dataclass(frozen=True)
class StopsWhenGood(Private):
    """Ends when it likes what it sees."""

    def round(self, past: Past) -> Round | None:
        return None if past.t == 2 and past.model is not None else super().round(past)


def mean_of_records(done: object) -> Tensor:
    return torch.as_tensor(done.data.x.mean()).reshape(1)  # type: ignore[attr-defined]


def last_coordinate(done: object) -> Tensor:
    return done.update[:1].clone()  # type: ignore[attr-defined]


def two(value: object) -> dict[str, Upload]:
    more = Upload(NOISY, length=1, value=value)  # type: ignore[arg-type]
    return {"update": Upload(NOISY), "more": more}


MUTANTS: list[Mutant] = [
    refused(
        "a gradient that the step does not declare",
        partial(trained, one_round(local=Local(SGD()))),
        partial(trained, one_round(local=Local(LooksTwice()))),
    ),
    refused(
        "a loss that the step does not declare",
        partial(trained, one_round(local=Local(SGD()))),
        partial(trained, one_round(local=Local(LooksAtTheLoss()))),
    ),
    refused(
        "raw records in a vector said to be made of iterates",
        partial(trained, one_round(upload=two(last_coordinate))),
        partial(trained, one_round(upload=two(mean_of_records))),
    ),
    refused(
        "noise chosen from what was published, without a filter",
        partial(trained, Chooser(then=0.9)),
        partial(trained, AdaptsInSecret(then=0.9)),
    ),
    refused(
        "an end chosen from what was published",
        partial(trained, Private()),
        partial(trained, StopsWhenGood()),
    ),
    refused(
        "a client's memory that is not declared",
        lambda: Local(Scaffold(), remembers=True),
        lambda: Local(Scaffold()),
    ),
]
