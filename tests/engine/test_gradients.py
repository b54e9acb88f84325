"""Every strategy against the plain loop in double precision."""

from __future__ import annotations

import pytest
import torch

from confide.engine.gradients import gradient_of
from confide.engine.gradients.products import LARGE, MANY, add_outer, linear
from gradient_models import MODELS, close, problem

BATCHES = (0, 1, 5, 64)
CHAINS = ("mlp", "cnn")
FAST = [*((name, "autograd") for name in MODELS), *((name, "by hand") for name in CHAINS)]


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(("name", "strategy"), FAST)
def test_agrees_with_the_plain_loop(name: str, batch: int, strategy: str) -> None:
    flat, x, y = problem(name, batch)
    w = flat.vector.clone()
    plain = gradient_of(flat, "cross-entropy", "plain")
    fast = gradient_of(flat, "cross-entropy", strategy)
    for seed in (1, 2**64 - 1):
        plain.seed_dropout(seed)
        # An empty batch between two others changes no masks.
        expected = [plain.total(w, part, y[: len(part)]) for part in (x, x[:0], x)]
        fast.seed_dropout(seed)
        for total, part in zip(expected, (x, x[:0], x), strict=True):
            close(fast.total(w, part, y[: len(part)]), total)
    close(fast.losses(w, x, y), plain.losses(w, x, y))
    if batch:
        close(fast.outputs(w, x), plain.outputs(w, x))
    plain.seed_dropout(1)
    stepped = w - 0.3 * plain.total(w, x, y) / max(batch, 1)
    v = w.clone()
    fast.seed_dropout(1)
    if fast.descend(v, x, y, 0.3):
        close(v, stepped)


@pytest.mark.parametrize("batch", (1, MANY - 1, MANY, 64))
@pytest.mark.parametrize("outputs", (10, LARGE // 1024))
def test_products_are_as_exact_as_float32(batch: int, outputs: int) -> None:
    draws = torch.Generator().manual_seed(1)
    x = torch.randn(batch, 1024, generator=draws)
    weight = torch.randn(outputs, 1024, generator=draws)
    bias = torch.randn(outputs, generator=draws)
    g = torch.randn(batch, outputs, generator=draws)
    exact = torch.addmm(bias.double(), x.double(), weight.double().t())
    # A sum of n rounded terms is off by at most n 2^-24 of the sum of their sizes; here n = 1024,
    # and rounding errors of both signs leave far less.
    bound = 1e-5 * float(exact.abs().max())
    assert float((linear(x, weight, bias) - exact).abs().max()) < bound
    back = linear(g, weight.t()) - g.double() @ weight.double()
    assert float(back.abs().max()) < 1e-5 * 1024
    for beta, alpha in ((0.0, 1.0), (1.0, -0.3)):
        target = weight.clone()
        add_outer(target, g, x, beta, alpha)
        exact = beta * weight.double() + alpha * g.double().t() @ x.double()
        assert float((target - exact).abs().max()) < 1e-5 * batch
