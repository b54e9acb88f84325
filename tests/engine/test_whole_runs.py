"""Whole runs beside a double-precision loop that does one example after the other.

The loop is written from the definitions and shares the records and the recorded draws with the
engine, nothing else. Clients are of unequal sizes, one of them is empty, and so are some cohorts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from confide.aggregates import Mean, MeanOfPresent, WeightedMean
from confide.channels import Sum
from confide.cohorts import All, Epoch, Fixed, Poisson
from confide.data import Dataset, Federation
from confide.engine.rounds import Local, Past, Round, Upload
from confide.engine.running import Run, run
from confide.local import SAM, SGD, Blur, Prox, Scaffold
from confide.schedules import Cosine, Exponential, Linear
from confide.servers import Add, Momentum
from confide.stages import Clip, Gaussian
from methods.world import DIM, SEED, Vector, World, network, shortened
from small import Anything, plain

WORLD = World((8, 0, 5, 13, 4, 8))
ROUNDS = 4
WAYS = [
    {"workers": 1},
    {"workers": 3},
    {"workers": 1, "strategy": "plain"},
    {"strategy": "cohort", "device": "cpu"},
]
WAY_IDS = ["in process", "3 workers", "plain", "cohort"]


def model_after(method: Any, world: World = WORLD, **way: Any) -> Vector:
    given = {"model": network(), "seed": SEED, "dtype": "float64", "device": "cpu", **way}
    done = run(method, world.federation, **given)
    return np.concatenate([v.numpy().ravel() for v in done.parameters.values()])


Mean_ = Callable[[Vector], Vector]


@dataclass
class Client:
    """What the definitions let a client keep while it trains."""

    start: Vector
    server: Vector  # the control that the server sent
    control: Vector  # its own
    velocity: Vector | None = None
    taken: int = 0


def momentum(eta: Callable[[int], float]) -> Any:
    def step(w: Vector, g: Mean_, c: Client) -> Vector:
        v = g(w) + 0.01 * w
        c.velocity = v if c.velocity is None else 0.9 * c.velocity + v
        return w - eta(c.taken) * c.velocity

    return step


def sam(w: Vector, g: Mean_, c: Client) -> Vector:
    up = g(w)
    length = np.sqrt(up @ up)
    return w - 0.1 * g(w + 0.5 * up / length) if length else w


def prox(w: Vector, g: Mean_, c: Client) -> Vector:
    return w - 0.1 * (g(w) + 0.3 * (w - c.start))


def blur(w: Vector, g: Mean_, c: Client) -> Vector:
    away = w - c.start
    return w - 0.1 * (g(w) + (2.0 * away if np.sqrt(away @ away) > 0.05 else 0.0))


def scaffold(w: Vector, g: Mean_, c: Client) -> Vector:
    return w - 0.1 * (g(w) - c.control + c.server)


def fading(at: int) -> float:
    """Half a cosine from 0.2 to 0.01 in 5 steps."""
    return 0.01 + 0.19 * (1 + np.cos(np.pi * min(at, 5) / 5)) / 2


STEPS: dict[str, tuple[Any, Any]] = {
    "sgd": (SGD(0.1), lambda w, g, c: w - 0.1 * g(w)),
    "sgd, momentum, decay": (SGD(0.1, 0.9, 0.01), momentum(lambda at: 0.1)),
    "sgd, cosine": (SGD(Cosine(0.2, 0.01, 5)), lambda w, g, c: w - fading(c.taken) * g(w)),
    "sgd, momentum, decay, linear": (
        SGD(Linear(0.2, 0.05, 4), 0.9, 0.01),
        momentum(lambda at: 0.2 - 0.15 * min(at, 4) / 4),
    ),
    "sam": (SAM(0.1, 0.5), sam),
    "prox": (Prox(0.1, 0.3), prox),
    "blur": (Blur(0.1, 2.0, 0.05), blur),
    "scaffold": (Scaffold(0.1), scaffold),
}

Batches = Callable[[int, int], Iterator[list[tuple[Vector, int]]]]


def whole_batches(t: int, k: int) -> Iterator[list[tuple[Vector, int]]]:
    yield from [WORLD.records(k)] * 3


def full_epochs(t: int, k: int) -> Iterator[list[tuple[Vector, int]]]:
    yield from (batch for batch in WORLD.epochs(t, k, 3, 4) if len(batch) == 4)


SAMPLERS: dict[str, tuple[Any, Batches]] = {
    "all": (All(), whole_batches),
    "Poisson": (Poisson(0.3), lambda t, k: WORLD.coins(t, k, 3, 0.3)),
    "fixed": (Fixed(4), lambda t, k: WORLD.subsets(t, k, 3, 4) if WORLD.sizes[k] else iter(())),
    "epochs": (Epoch(4, partial=True), lambda t, k: WORLD.epochs(t, k, 3, 4)),
    "epochs, full batches": (Epoch(4), full_epochs),
}

COHORTS: dict[str, tuple[Any, Callable[[int], list[int]]]] = {
    "everyone": (All(), lambda t: list(range(WORLD.M))),
    "Poisson": (Poisson(0.15), lambda t: WORLD.poisson(t, 0.15)),
    "fixed": (Fixed(3), lambda t: WORLD.fixed(t, 3)),
}


def naive(step: Any, batches: Batches, cohort: Callable[[int], list[int]], mean: str) -> Vector:
    """Every round, client, step and example in turn."""
    w, control = WORLD.start(), np.zeros(DIM)
    own = [np.zeros(DIM) for _ in WORLD.sizes]
    for t in range(ROUNDS):
        came = cohort(t)
        update, moved = np.zeros(DIM), np.zeros(DIM)
        for k in came:
            c, local = Client(w, control, own[k]), w
            for batch in batches(t, k):
                local = step(local, lambda at, b=batch: gradient(at, b), c)
                c.taken += 1
            if step is scaffold and c.taken:
                new = own[k] - control + (w - local) / (c.taken * 0.1)
                moved += new - own[k]
                own[k] = new
            update += local - w
        by = max(1, len(came)) if mean == "present" else 0.15 * WORLD.M
        w, control = w + update / by, control + 0.5 * moved / by
    return w


def gradient(w: Vector, batch: list[tuple[Vector, int]]) -> Vector:
    return WORLD.mean_gradient(w, batch) if batch else np.zeros(DIM)


def method(step: Any, sampler: Any, cohort: Any, aggregate: Any) -> Anything:
    remembers = isinstance(step, Scaffold)
    upload = {"update": Upload(), "control": Upload()} if remembers else {"update": Upload()}
    local = Local(step, 3, sampler, remembers=remembers)
    server = Add(share=0.5)
    return Anything(plain(local, cohort, upload=upload, aggregate=aggregate, server=server), ROUNDS)


@pytest.mark.parametrize("cohort", COHORTS)
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("step", STEPS)
def test_every_step_sampler_and_cohort(step: str, sampler: str, cohort: str) -> None:
    ours, theirs = STEPS[step]
    drawn, batches = SAMPLERS[sampler]
    who, came = COHORTS[cohort]
    mean = "expected" if cohort == "Poisson" else "present"
    expected = naive(theirs, batches, came, mean)
    assert np.abs(expected - WORLD.start()).max() > 1e-3
    aggregate = Mean() if mean == "expected" else MeanOfPresent()
    for way in (WAYS[0], WAYS[3]):
        found = model_after(method(ours, drawn, who, aggregate), **way)
        assert np.abs(found - expected).max() <= 1e-12


def test_the_cohorts_have_what_they_should() -> None:
    sizes = [len(WORLD.poisson(t, 0.15)) for t in range(ROUNDS)]
    assert min(sizes) == 0 < max(sizes)
    assert any(1 in WORLD.fixed(t, 3) for t in range(ROUNDS))  # the empty client


@pytest.mark.parametrize("way", WAYS, ids=WAY_IDS)
@pytest.mark.parametrize("step", STEPS)
def test_every_strategy(step: str, way: dict[str, Any]) -> None:
    ours, theirs = STEPS[step]
    drawn, batches = SAMPLERS["epochs"]
    who, came = COHORTS["everyone"]
    expected = naive(theirs, batches, came, "present")
    found = model_after(method(ours, drawn, who, MeanOfPresent()), **way)
    assert np.abs(found - expected).max() <= 1e-12


@dataclass(frozen=True)
class Falling:
    """The rate falls from round to round, as a method writes it."""

    noise_field = None

    def round(self, past: Past) -> Round | None:
        eta = Exponential(0.4, 0.5, every=2)(past.t)
        return None if past.t == ROUNDS else plain(Local(SGD(eta), 3, Epoch(4, partial=True)))


def test_a_rate_that_falls_with_the_rounds() -> None:
    w = WORLD.start()
    for t in range(ROUNDS):
        moved = np.zeros(DIM)
        for k in range(WORLD.M):
            local = w
            for batch in WORLD.epochs(t, k, 3, 4):
                local = local - (0.4, 0.4, 0.2, 0.2)[t] * gradient(local, batch)
            moved += local - w
        w = w + moved / WORLD.M
    assert np.abs(model_after(Falling(), workers=1) - w).max() <= 1e-12


@pytest.mark.parametrize("way", WAYS, ids=WAY_IDS)
def test_noise_weights_and_the_servers_momentum(way: dict[str, Any]) -> None:
    """Weights by size up to a cap, noise of a client, noise on the sum, also for nobody."""
    cap, by, C, sigma = 7, 20.0, 0.05, 0.01
    step = Local(SGD(0.1), 2, Epoch(4, partial=True))
    r = Round(
        cohort=Poisson(0.15),
        local=step,
        upload=(Clip(C), Gaussian(sigma)),
        channel=Sum(),
        aggregate=WeightedMean(cap=cap, by=by),
        publish=(Gaussian(sigma),),
        server=Momentum(0.5),
    )
    w, velocity = WORLD.start(), np.zeros(DIM)
    for t in range(ROUNDS):
        total = np.zeros(DIM)
        for k in WORLD.poisson(t, 0.15):
            local = w
            for batch in WORLD.epochs(t, k, 2, 4):
                local = local - 0.1 * gradient(local, batch)
            # The clip's radius keeps 2^-21 below C.
            sent = shortened(local - w, C * (1 - 2**-21))
            sent = sent + sigma * WORLD.stream(t, k, "upload update").normal(DIM)
            total += min(cap, WORLD.sizes[k]) * sent
        published = total / by + sigma * WORLD.stream(t, None, "publish update").normal(DIM)
        velocity = 0.5 * velocity + published
        w = w + velocity
    found = model_after(Anything(r, ROUNDS), **way)
    assert np.abs(found - w).max() <= 1e-12


def picture_federation() -> Federation:
    """Random pictures, for models with layers that the loop above does not have."""
    random = torch.Generator().manual_seed(4)
    x = torch.randn(40, 1, 10, 10, generator=random)
    y = torch.randint(0, 4, (40,), generator=random)
    sizes = np.cumsum((8, 0, 5, 13, 4, 10))
    held = tuple(np.arange(a, b) for a, b in zip((0, *sizes[:-1]), sizes, strict=True))
    nobody = np.empty(0, np.int64)
    return Federation(Dataset("noise", x, y, x, y, 4), held, nobody, nobody, "by hand", 1)


def pictures() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(2)
        return nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Dropout2d(0.2), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3)),
            nn.Linear(72, 4),
        )


LOCALS = {
    "batches": Local(SAM(0.1, 0.2, 0.5), 2, Epoch(4, partial=True)),
    "examples": Local(SGD(0.1), 3, Poisson(0.4), (Clip(0.1),), (Gaussian(0.01),), Mean(by=4.0)),
}


@pytest.mark.parametrize("local", LOCALS)
def test_strategies_agree_on_convolutions_norms_and_dropout(local: str) -> None:
    def trained(**way: Any) -> Vector:
        done: Run = run(
            Anything(plain(LOCALS[local]), 2),
            picture_federation(),
            **{"model": pictures(), "seed": 1, "dtype": "float64", "device": "cpu", **way},
        )
        return np.concatenate([v.numpy().ravel() for v in done.parameters.values()])

    reference = trained(workers=1, strategy="plain")
    for way in WAYS[:2] + WAYS[3:]:
        assert np.abs(trained(**way) - reference).max() <= 1e-10
