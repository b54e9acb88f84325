"""What a client keeps between rounds, and whether noise in its local steps covers it."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from torch import Tensor

from confide.aggregates import MeanOfPresent
from confide.cohorts import All, Poisson
from confide.derive import Release, derive
from confide.engine.rounds import Local, Round, Sizes, Upload
from confide.local import SGD, Course, Pulled, Scaffold
from confide.stages import Clip, Gaussian

SIZES = Sizes(10, 50, (30, 20))
NOISY = Local(SGD(0.1), 2, Poisson(0.1), example=(Clip(1.0),), batch=(Gaussian(2.0),))
SENT = {"model": Upload(), "control": Upload()}


def ways(local: Local, unit: str = "record", **more: Any) -> tuple[Release, ...]:
    r = Round(All(), local, **{"upload": SENT, "aggregate": MeanOfPresent(), **more})
    return derive(r, SIZES)[unit, "server", "update"]


@dataclass(frozen=True)
class Looking(Scaffold):
    """Keeps its iterates, and looks at losses too."""

    losses = 1

    def remember(self, w: Tensor, course: Course) -> Tensor | None:
        """As before."""
        return super().remember(w, course)


@pytest.mark.parametrize("unit", ["record", "client"])
@pytest.mark.parametrize("step", [Scaffold(0.1), Pulled(Scaffold(0.1), 0.3)])
def test_a_steps_own_memory_costs_nothing_behind_noisy_gradients(step: Any, unit: str) -> None:
    """Nothing but the credit for the coin of its records, which a record's row goes without."""
    kept = ways(replace(NOISY, step=step, remembers=True), unit)
    everyone = replace(NOISY, sampler=Poisson(1.0))
    plain = ways(everyone if unit == "record" else NOISY, unit, upload={"model": Upload()})
    assert [w.event for w in kept] == [w.event for w in plain]
    assert any(not way.open for way in kept)


def test_state_that_is_only_declared_counts_as_raw() -> None:
    assert all(way.open for way in ways(replace(NOISY, remembers=True)))


def test_memory_behind_gradients_without_noise_is_not_covered() -> None:
    step = Scaffold(0.1)
    for changed in ({"batch": ()}, {"example": ()}):
        local = replace(NOISY, step=step, remembers=True, **changed)
        assert all(way.open for way in ways(local))


def test_memory_beside_another_look_at_the_data_is_not_covered() -> None:
    local = replace(NOISY, step=Scaffold(0.1), remembers=True)
    assert all(way.open for way in ways(replace(local, step=Looking(0.1))))
    again = {**SENT, "loss": Upload((), 1, data="train")}
    assert all(way.open for way in ways(local, upload=again))
