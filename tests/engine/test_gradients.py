"""Every strategy against the plain loop in double precision."""

from __future__ import annotations

import pytest

from confide.engine.gradients import gradient_of
from gradient_models import MODELS, close, problem

BATCHES = (0, 1, 5, 64)
FAST = ("autograd", "by hand")


@pytest.mark.parametrize("strategy", FAST)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_the_plain_loop(name: str, batch: int, strategy: str) -> None:
    if strategy == "by hand" and name not in ("mlp", "cnn"):
        pytest.skip("no chain of layers")
    flat, x, y = problem(name, batch)
    w = flat.vector.clone()
    plain = gradient_of(flat, "cross-entropy", "plain")
    fast = gradient_of(flat, "cross-entropy", strategy)
    for seed in (1, 2**64 - 1):
        plain.seed_dropout(seed)
        expected = [plain.total(w, x, y), plain.total(w, x, y)]
        fast.seed_dropout(seed)
        for total in expected:
            close(fast.total(w, x, y), total)
    close(fast.losses(w, x, y), plain.losses(w, x, y))
    if batch:
        close(fast.outputs(w, x), plain.outputs(w, x))
    plain.seed_dropout(1)
    stepped = w - 0.3 * plain.total(w, x, y) / max(batch, 1)
    v = w.clone()
    fast.seed_dropout(1)
    if fast.descend(v, x, y, 0.3):
        close(v, stepped)
