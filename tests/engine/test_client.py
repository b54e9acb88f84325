"""What one client does, beside a naive loop written from the definitions, in double precision."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from confide.aggregates import Mean, MeanOfPresent
from confide.cohorts import All, Epoch, Fixed, Poisson, Sampler
from confide.engine.client import Batch, Job, work
from confide.engine.flat import Flat
from confide.engine.rounds import Local, Round, Upload
from confide.engine.trainers import Recipe
from confide.local import SAM, SGD, Blur, Course, Gradient, Prox, Scaffold
from confide.randomness import Key
from confide.servers import Adam, Add, Momentum
from confide.stages import Clip, ClipLayers, Gaussian, PerClient, TwoPoint
from small import federation, mlp

KEY = Key.from_seed(11)
T = 5
LAYERS = (784 * 6 + 6, 6 * 10 + 10)


def run_client(local: Local, client: int, **round_: Any) -> dict[str, Tensor]:
    r = Round(cohort=All(), local=local, **round_)
    recipe = Recipe(mlp(), "cross-entropy", federation(), KEY, torch.float64)
    flat = Flat(mlp(), torch.float64)
    if local.remembers:
        memory = torch.zeros(8, flat.dim, dtype=torch.float64)
        recipe = Recipe(
            mlp(), "cross-entropy", federation(), KEY, torch.float64, "auto", memory,
            torch.zeros(8, dtype=torch.bool),
        )  # fmt: skip
    return work(recipe.workshop(), Job(T, r, flat.vector.clone(), {}), client)


def own_gradient(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """One example's gradient, by a module of its own."""
    module: nn.Module = mlp().double()
    torch.nn.utils.vector_to_parameters(w, module.parameters())
    loss = functional.cross_entropy(module(x[None].double()), y[None])
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(module.parameters()))])


def drawn(sampler: Sampler, steps: int, client: int, n: int) -> Iterator[Any]:
    """The batches that the definitions ask for."""
    stream = KEY.stream(T, client, "records")
    for _ in range(steps):
        if isinstance(sampler, Epoch):
            order = stream.permutation(n)
            full = n if sampler.partial else n // sampler.m * sampler.m
            yield from (order[i : min(i + sampler.m, full)] for i in range(0, full, sampler.m))
        elif isinstance(sampler, Poisson):
            yield np.flatnonzero(stream.bernoulli(sampler.q, n))
        elif isinstance(sampler, Fixed):
            yield stream.choose(n, sampler.m)
        else:
            yield np.arange(n)


Move = Callable[[Tensor, Callable[[Tensor], Tensor], Tensor, dict[str, Any]], Tensor]


def sgd(w: Tensor, g: Callable[[Tensor], Tensor], start: Tensor, s: dict[str, Any]) -> Tensor:
    s["v"] = 0.9 * s.get("v", 0) + (g(w) + 0.01 * w)
    return w - 0.1 * s["v"]


def sam(w: Tensor, g: Callable[[Tensor], Tensor], start: Tensor, s: dict[str, Any]) -> Tensor:
    up = g(w).clone()
    return w - 0.1 * g(w + 0.5 * up / torch.linalg.vector_norm(up))


def prox(w: Tensor, g: Callable[[Tensor], Tensor], start: Tensor, s: dict[str, Any]) -> Tensor:
    return w - 0.1 * (g(w) + 0.3 * (w - start))


def blur(w: Tensor, g: Callable[[Tensor], Tensor], start: Tensor, s: dict[str, Any]) -> Tensor:
    away = w - start
    pull = 2.0 * away if float((away**2).sum()) > 0.05**2 else 0 * away
    return w - 0.1 * (g(w) + pull)


STEPS: list[tuple[Any, Move]] = [
    (SGD(0.1, 0.9, 0.01), sgd),
    (SGD(0.1), lambda w, g, start, s: w - 0.1 * g(w)),
    (SAM(0.1, 0.5), sam),
    (Prox(0.1, 0.3), prox),
    (Blur(0.1, 2.0, 0.05), blur),
]


@pytest.mark.parametrize(("step", "move"), STEPS)
@pytest.mark.parametrize(
    "sampler", [All(), Poisson(0.3), Fixed(4), Epoch(8, partial=True), Epoch(8)]
)
def test_steps_and_batches(step: Any, move: Move, sampler: Sampler) -> None:
    client = 5  # 20 records
    held = federation().clients[client]
    x, y = federation().data.x_train[held], federation().data.y_train[held]
    start = Flat(mlp(), torch.float64).vector.clone()
    w, kept = start.clone(), {}
    for part in drawn(sampler, 2, client, len(held)):

        def mean(at: Tensor, part: Any = part) -> Tensor:
            rows = [own_gradient(at, x[i], y[i]) for i in part]
            return sum(rows, torch.zeros_like(at)) / max(1, len(rows))

        w = move(w, mean, start, kept)
    sent = run_client(Local(step, 2, sampler), client)["update"]
    assert torch.allclose(sent, w - start, rtol=1e-12, atol=1e-13)


def clip(v: Tensor, C: float) -> Tensor:
    return v * min(1.0, C / max(float(torch.linalg.vector_norm(v)), 1e-300))


@pytest.mark.parametrize("noisy", [False, True])
def test_clipped_examples_and_noise(noisy: bool) -> None:
    client = 5  # 20 records
    held = federation().clients[client]
    x, y = federation().data.x_train[held], federation().data.y_train[held]
    example: tuple[Any, ...] = (ClipLayers(0.3, LAYERS),)
    if noisy:
        example = (*example, Gaussian(0.05))
    local = Local(SGD(0.5), 2, Poisson(0.4), example, (Gaussian(0.02),), Mean(by=8.0))
    start = Flat(mlp(), torch.float64).vector.clone()
    w = start.clone()
    own, batch = KEY.stream(T, client, "example"), KEY.stream(T, client, "batch")
    for part in drawn(local.sampler, 2, client, len(held)):
        total = torch.zeros_like(w)
        for i in part:
            pieces = torch.split(own_gradient(w, x[i], y[i]), list(LAYERS))
            total += torch.cat([clip(piece, 0.3) for piece in pieces])
        if noisy:
            for _ in part:
                total += 0.05 * torch.from_numpy(own.normal(w.shape))
        total += 0.02 * torch.from_numpy(batch.normal(w.shape))
        w = w - 0.5 * total / 8
    sent = run_client(local, client)["update"]
    # The clip keeps a margin of half a millionth below C.
    assert torch.allclose(sent, w - start, rtol=1e-6, atol=1e-7)


def test_uploads_pass_their_stages_with_the_clients_own_numbers() -> None:
    norms = PerClient(tuple(0.1 * (k + 1) for k in range(8)))
    sent = run_client(Local(SGD(1.0)), 3, upload=(Clip(norms),))["update"]
    assert float(sent.norm()) == pytest.approx(0.4, rel=1e-6)


def test_named_uploads_and_values_of_ones_own() -> None:
    uploads = {
        "model": Upload(),
        "loss": Upload((), 1, "train"),
        "size": Upload((), 1, "train", value=lambda done: torch.tensor([float(done.records)])),
    }
    sent = run_client(Local(SGD(0.1)), 3, upload=uploads)
    held = federation().clients[3]
    x, y = federation().data.x_train[held].double(), federation().data.y_train[held]
    with torch.no_grad():
        loss = functional.cross_entropy(mlp().double()(x), y)
    assert float(sent["loss"]) == pytest.approx(float(loss), rel=1e-12)
    assert float(sent["size"]) == 51
    update = run_client(Local(SGD(0.1)), 3)["update"]
    start = Flat(mlp(), torch.float64).vector
    assert torch.allclose(sent["model"], start + update, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ("iterates", "loss"),
        ("iterates", "data"),
        ("iterates", "held_out"),
        ("iterates", "records"),
        ("train", "held_out"),
        ("train", "test_loss"),
        ("test", "loss"),
        ("test", "update"),
        ("test", "end"),
    ],
)
def test_a_value_sees_only_the_data_that_it_is_stated_to_be_made_of(data: str, field: str) -> None:
    """Else raw data could leave under a row that noise in the local steps makes finite."""
    local = Local(SGD(1.0), 1, All(), (Clip(1.0),), (Gaussian(1.0),), Mean(by=1.0))
    loud = Upload((), 1, data, value=lambda done: getattr(done, field))
    with pytest.raises(ValueError, match=f"data = '{data}' and a value that looks at '{field}'"):
        run_client(local, 3, upload={"update": Upload(), "x": loud})


@pytest.mark.parametrize(
    ("length", "value"),
    [
        (1, lambda done: done.update[:5]),  # five times what one randomised entry costs
        (1, lambda done: done.update[0]),
        (1, lambda done: torch.ones(int(done.records))),
        (2, lambda done: done.update[:4].reshape(2, 2)),
        (None, lambda done: torch.cat([done.update, done.update])),
        (None, lambda done: done.update[:5]),
        (1, lambda done: 0.5),
        (1, None),
    ],
)
def test_a_vector_has_as_many_numbers_as_its_statement_counts_with(length: Any, value: Any) -> None:
    upload = Upload((TwoPoint(1.0, 0.5),), length, "train", value)
    with pytest.raises(ValueError, match=r"'update' is .*, allowed with length = (None|\d) is"):
        run_client(Local(SGD(0.1)), 3, upload={"model": Upload(), "update": upload})


@pytest.mark.parametrize("name", ["update", "model", "control", "other"])
def test_what_training_makes_is_no_test_data(name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' has data = 'test'"):
        Round(All(), upload={"x": Upload(), name: Upload(data="test")})


@pytest.mark.parametrize("sampler", [All(), Poisson(0.5), Fixed(3), Epoch(3), Epoch(3, True)])
def test_an_empty_client_sends_zeros_and_its_noise(sampler: Sampler) -> None:
    assert not run_client(Local(SGD(0.1), 2, sampler), 2)["update"].any()
    noisy = Local(SGD(1.0), 2, Poisson(0.5), (Clip(1.0),), (Gaussian(1.0),), Mean(by=1.0))
    assert float(run_client(noisy, 2)["update"].std()) == pytest.approx(2**0.5, rel=0.05)


def test_scaffold_keeps_what_option_two_says() -> None:
    local = Local(Scaffold(0.1), 2, Epoch(8, True), remembers=True)
    both = {"update": Upload(), "control": Upload()}
    sent = run_client(local, 5, upload=both)
    # The first time: c_i+ = -update / (K eta), with 2 epochs of 3 batches.
    assert torch.allclose(sent["control"], -sent["update"] / (6 * 0.1), rtol=1e-12)
    with pytest.raises(ValueError, match="remembers = False, allowed with Scaffold is True"):
        Local(Scaffold(0.1))


class Greedy:
    """A step that looks twice and declares once."""

    gradients = 1
    losses = 0

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        w.sub_(gradient(w) + gradient(w))


class Peeking(Greedy):
    """A step that looks at a loss it has not declared."""

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        w.sub_(gradient(w) * gradient.loss(w))


@pytest.mark.parametrize("step", [Greedy(), Peeking()])
def test_a_step_cannot_look_more_often_than_it_declares(step: Any) -> None:
    with pytest.raises(ValueError, match="allowed are the 1 and 0 that it declares"):
        run_client(Local(step), 3)


def test_stages_that_are_no_clip_see_every_example() -> None:
    local = Local(SGD(1.0), 1, All(), (Clip(0.5, p=1),), average=MeanOfPresent())
    held = federation().clients[1]
    x, y = federation().data.x_train[held], federation().data.y_train[held]
    w = Flat(mlp(), torch.float64).vector
    rows = [own_gradient(w, x[i], y[i]) for i in range(len(held))]
    expected = -sum(v * min(1.0, 0.5 / float(v.abs().sum())) for v in rows) / len(rows)
    sent = run_client(local, 1)["update"]
    assert torch.allclose(sent, torch.as_tensor(expected), rtol=1e-6, atol=1e-10)


def test_draws_depend_on_round_client_and_purpose_only() -> None:
    local = Local(SGD(0.1), 2, Epoch(8, True))
    recipe = Recipe(mlp(), "cross-entropy", federation(), KEY, torch.float64)
    shop = recipe.workshop()
    job = Job(T, Round(cohort=All(), local=local), Flat(mlp(), torch.float64).vector.clone(), {})
    first = work(shop, job, 5)["update"].clone()
    work(shop, job, 3)
    assert torch.equal(work(shop, job, 5)["update"], first)
    assert isinstance(Batch, type)


def test_servers() -> None:
    model, update = torch.tensor([1.0, 2.0]), torch.tensor([0.5, -1.0])
    sent = {"update": update}
    assert torch.equal(Add(0.5)(model, sent, {})[0], model + 0.5 * update)
    assert torch.equal(Add()(model, {"model": update}, {})[0], update)
    now, state = Momentum(0.9)(model, sent, {})
    now, state = Momentum(0.9)(now, sent, state)
    assert torch.allclose(now, model + update + 1.9 * update)
    after, moments = Adam(0.1, 0.9, 0.99, 1e-3)(model, sent, {})
    m, v = 0.1 * update, 0.01 * update**2
    assert torch.allclose(after, model + 0.1 * m / (v.sqrt() + 1e-3))
    assert set(moments) == {"first", "second"}
    with pytest.raises(ValueError, match="allowed is at least one of update and model"):
        Add()(model, {"loss": update}, {})
