"""Every example's gradient, clipped, against the stage applied to each of them in turn."""

from __future__ import annotations

import pytest

from confide.engine.flat import Flat
from confide.engine.gradients import example_gradient_of
from confide.stages import Clip, ClipLayers
from gradient_models import MODELS, close, problem

BATCHES = (0, 1, 5, 64)
FAST = ("book-keeping", "vmap")


def stages(flat: Flat) -> list[Clip | ClipLayers]:
    lengths = flat.lengths
    halves = (sum(lengths[:2]), sum(lengths[2:]))
    cut = (lengths[0] - 1, flat.dim - lengths[0] + 1)
    return [
        Clip(0.5),
        Clip(1e6),
        Clip(0.5, 1),
        ClipLayers(0.1, lengths),
        ClipLayers((0.3, 0.2), halves),
        ClipLayers(0.1, cut),
    ]


@pytest.mark.parametrize("strategy", FAST)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_the_plain_loop(name: str, batch: int, strategy: str) -> None:
    flat, x, y = problem(name, batch)
    w = flat.vector.clone()
    plain = example_gradient_of(flat, "cross-entropy", "plain")
    fast = example_gradient_of(flat, "cross-entropy", strategy)
    plain.seed_dropout(5)
    rows = plain.each(w, x, y)
    fast.seed_dropout(5)
    close(fast.each(w, x, y), rows)
    for stage in stages(flat):
        parts = (x, x[:0], x)  # an empty batch changes no masks
        plain.seed_dropout(5)
        expected = [plain.clipped(w, part, y[: len(part)], stage) for part in parts]
        fast.seed_dropout(5)
        for part, total in zip(parts, expected, strict=True):
            close(fast.clipped(w, part, y[: len(part)], stage), total)
    assert "book" in fast.words if strategy == "book-keeping" else "vmap" in fast.words
