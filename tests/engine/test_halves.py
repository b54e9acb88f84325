"""A large batch in two halves: the same bits with a second thread as without, the same masks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from confide.engine.gradients import example_gradient_of
from confide.engine.gradients.halves import LARGE, Halves
from confide.engine.pool import Pool
from confide.stages import Clip
from gradient_models import MODELS, close, problem

STAGE = Clip(0.5)


def sums(found: Halves, w: Tensor, x: Tensor, y: Tensor) -> list[Tensor]:
    """A small batch, then two large ones: the masks of all are those of one sequence."""
    found.seed_dropout(5)
    sizes = (3, len(x), LARGE + 1)
    return [found.clipped(w, x[:n], y[:n], STAGE).clone() for n in sizes]


@pytest.mark.parametrize("name", MODELS)
def test_a_second_thread_changes_no_bits(name: str) -> None:
    flat, x, y = problem(name, 2 * LARGE)
    w = flat.vector.clone()
    alone = example_gradient_of(flat, "cross-entropy")
    shared = example_gradient_of(flat, "cross-entropy")
    plain = example_gradient_of(flat, "cross-entropy", "plain")
    assert isinstance(alone, Halves)
    assert isinstance(shared, Halves)
    expected = sums(alone, w, x, y)
    with Pool(1) as pool:
        shared.pool = pool
        for one, two in zip(expected, sums(shared, w, x, y), strict=True):
            assert torch.equal(one, two)
    plain.seed_dropout(5)
    for n, total in zip((3, len(x), LARGE + 1), expected, strict=True):
        close(total, plain.clipped(w, x[:n], y[:n], STAGE))


def test_what_goes_wrong_in_the_second_half_is_told() -> None:
    flat, x, y = problem(next(iter(MODELS)), LARGE)
    shared = example_gradient_of(flat, "cross-entropy")
    assert isinstance(shared, Halves)
    y[-1] = 10**6
    with Pool(1) as pool, pytest.raises((IndexError, RuntimeError)):
        shared.pool = pool
        shared.clipped(flat.vector.clone(), x, y, STAGE)
