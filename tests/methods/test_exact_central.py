"""Methods whose noise is added once to sums, attacked with the worst that clients can send."""

from math import exp, inf, nan, sqrt

import numpy as np
import pytest
import torch
from scipy import stats

from catalogue import own, shared
from confide.engine.adapting import as_planned
from confide.engine.rounds import Past, Released, Round, Sizes
from confide.engine.spending import planned_at, unrolled
from confide.methods.making import make
from confide.stages import Gaussian
from confide.statements import state

SIZES = Sizes(200, 40, (6, 4))
DELTA = 1e-3
METHODS: dict[str, dict[str, float]] = {
    "dp-fedavg-c": {}, "dp-fedsam-c": {}, "dp-fedsam-topk-c": {"p": 0.4}, "fed-smp-randk-c": {},
    "fed-smp-topk-c": {}, "dp-fedavg-blur-c": {}, "fed-sdp-c": {"K_t": 60},
    "dp-fedavg-adaptive": {}, "dp-fedags-c": {}, "dp-fedsnlc-c": {},
}  # fmt: skip


def hostile(length: int, pick: np.random.Generator) -> list[torch.Tensor]:
    """Long, short, spiked and broken vectors."""
    direction = torch.from_numpy(pick.normal(size=length)).float()
    spike = torch.zeros(length)
    spike[int(pick.integers(length))] = 1e20
    broken = direction.clone()
    broken[0] = pick.choice([nan, inf, -inf])
    return [direction * s for s in (1e-30, 1e-3, 1.0, 1e6, 1e18)] + [spike, -spike, broken * 1e3]


def farthest(r: Round, pick: np.random.Generator) -> float:
    """How far a client moves all that is published, in standard deviations of the noise."""
    squares = 0.0
    for name, upload in r.uploads.items():
        vectors = hostile(upload.length or SIZES.dim, pick)
        noise = r.published(name)[0]
        assert isinstance(noise, Gaussian) and isinstance(noise.std, float)
        std = noise.std * r.cohort.expected(SIZES.clients)
        longest = 0.0
        for x in vectors:
            for stage in upload.stages:
                x = stage(x, shared, own(0))
            assert torch.isfinite(x).all()
            longest = max(longest, float(torch.linalg.vector_norm(x.double())))
        squares += (longest / std) ** 2
    return sqrt(squares)


def later(pick: np.random.Generator, t: int) -> Past:
    """After t rounds that published anything at all."""
    model, before = (torch.from_numpy(pick.normal(size=SIZES.dim)).float() for _ in range(2))
    values = pick.normal(scale=30.0, size=(t, 2))
    heard = [
        Released(i, name, float(value), "world")
        for i, pair in enumerate(values)
        for name, value in zip(("bit", "loss"), pair, strict=True)
    ]
    return Past(t, SIZES, model, (before,), tuple(heard))


def sampled(mu: float, q: float, epsilon: float) -> float:
    """The delta of one sampled Gaussian release, both ways, by a fine sum."""
    x, h = np.linspace(-12, 12 + mu, 400_001, retstep=True)
    q_, p = stats.norm.pdf(x), (1 - q) * stats.norm.pdf(x) + q * stats.norm.pdf(x - mu)
    factor = exp(epsilon)
    return h * float(
        max(np.maximum(p - factor * q_, 0).sum(), np.maximum(q_ - factor * p, 0).sum())
    )


@pytest.mark.parametrize("t", [0, 1, 25])
@pytest.mark.parametrize("name", sorted(METHODS))
def test_no_client_moves_a_round_further_than_it_is_charged_for(name: str, t: int) -> None:
    rate = {} if "K_t" in METHODS[name] else {"q": 0.3}
    method = make(name, {"T": 100, **rate, **METHODS[name]})
    pick = np.random.default_rng(t)
    r = method.round(later(pick, t) if t else Past(0, SIZES))
    assert isinstance(r, Round)
    moved = max(farthest(r, pick) for _ in range(5))
    cell = state([(r, 1)], SIZES, delta=DELTA).cell("client", "world")
    assert cell.relation == "add-remove"
    found = sampled(moved, 0.3, cell.epsilon)
    assert 0.98 * DELTA < found <= DELTA * 1.0001
    plan = planned_at(unrolled(method, SIZES), t)
    assert plan is not None and as_planned(r, plan, SIZES), "whatever was published before"
