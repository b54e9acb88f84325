"""After clipping, no vector is longer than its claim: every way through the CPU, up to 50 million.

The norms are found again by numpy in double precision, which shares nothing with what clips. The
radius is C (1 - 2^-21), so that the claim of C has the rounding inside it: no norm may exceed C
itself, where C (1 + 1e-6) would be asked, and none may be much below.
"""

from math import sqrt
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from confide.accounting.relations import Relation
from confide.claims import Claim
from confide.cohorts import All
from confide.data import Dataset, Federation
from confide.engine.client import Job
from confide.engine.crew import cut
from confide.engine.flat import Flat
from confide.engine.gradients import example_gradient_of
from confide.engine.gradients.clipping import NOTHING, Bound, undrawn
from confide.engine.rounds import Local, Round, Upload
from confide.engine.sums import Picked, Sums
from confide.engine.trainers import Recipe
from confide.engine.ways import WAYS
from confide.engine.workers import trainer_on_cpu
from confide.local import SGD
from confide.losses import LOSSES
from confide.randomness import Key
from confide.stages import Clip, ClipLayers

MILLION = 10**6
C = 0.3


def norm(x: Tensor) -> float:
    """In double, of squares that numpy adds in pairs."""
    return sqrt(float(np.sum(np.square(x.numpy().astype(np.float64)))))


def vectors(n: int) -> dict[str, Tensor]:
    """Those on which single-precision norms go wrong in one direction or the other."""
    random = torch.Generator().manual_seed(n)
    normal = torch.randn(n, generator=random)
    return {
        "normal": normal,
        "equal": torch.full((n,), 0.1),
        "one above many": torch.cat([torch.full((1,), 1e4), torch.full((n - 1,), 1e-3)]),
        "tiny": normal * 1e-30,
        "huge": normal * 1e30,
    }


def layers_of(n: int) -> tuple[int, ...]:
    """Unequal layers."""
    return (n // 2, n // 3, 10, n - n // 2 - n // 3 - 10)


def held(x: Tensor, stage: Bound, long: bool = True) -> None:
    """The vector keeps to what the stage claims, as a whole and in each layer."""
    claim = stage.claim(Claim(Relation.REPLACE_ONE, length=len(x)))
    assert norm(x) <= claim.l2
    if isinstance(stage, Clip):
        pieces, norms = [x], [stage.C]
    else:
        pieces, norms = list(torch.split(x, list(stage.sizes))), list(stage.norms)
    for piece, most in zip(pieces, norms, strict=True):
        assert isinstance(most, float)
        found = norm(piece)
        assert found <= most
        assert not long or found >= most * (1 - 1e-6)


@pytest.mark.parametrize("millions", [1, 11, 50])
@pytest.mark.parametrize("layered", [False, True], ids=["flat", "per layer"])
def test_uploads(millions: int, layered: bool) -> None:
    n = millions * MILLION
    stage = ClipLayers((C, 2 * C, 0.1 * C, C), layers_of(n)) if layered else Clip(C)
    for name, x in vectors(n).items():
        if millions == 50 and name != "equal":
            continue  # the worst of them, for the time it takes
        held(stage(x, undrawn, NOTHING), stage, long=name not in ("tiny", "one above many"))


def test_single_precision_would_not_do() -> None:
    """What the tests are about: torch's own norm of many float32 values is too small."""
    x = vectors(11 * MILLION)["normal"]
    naive = x * (C / float(torch.linalg.vector_norm(x)))
    assert norm(naive) > C * (1 + 1e-5)


@pytest.mark.parametrize("layered", [False, True], ids=["flat", "per layer"])
def test_rows_of_a_cohort(layered: bool) -> None:
    n = 2 * MILLION
    stage = ClipLayers((C, C, C, C), layers_of(n)) if layered else Clip(C)
    rows = torch.stack([v for k, v in vectors(n).items() if k in ("normal", "equal", "huge")])
    for row in cut(rows, [stage]):
        held(row, stage)


def dense(hidden: int) -> tuple[nn.Module, Tensor]:
    """A network whose gradient has long layers, and an input of one sign."""
    model = nn.Sequential(nn.Linear(1000, hidden), nn.ReLU(), nn.Linear(hidden, 10))
    return model, torch.rand(2, 1000)


def convolutions(channels: int) -> tuple[nn.Module, Tensor]:
    """Convolutions by patches and by their own backward pass, GroupNorm, pooling."""
    model = nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1),
        nn.GroupNorm(4, channels),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, channels, 5, padding=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(channels * 64, 10),
    )
    return model, torch.rand(2, 3, 16, 16)


class Sentences(nn.Module):
    """An embedding, a layer norm, and a dense layer on a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.norm = nn.Embedding(4000, 256), nn.LayerNorm(256)
        self.dense, self.out = nn.Linear(256, 256), nn.Linear(256, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.relu(self.dense(self.norm(self.table(x)))).mean(1))


def problem(name: str) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(3)
    if name == "words":
        return Sentences(), torch.randint(0, 4000, (2, 40))
    return convolutions(200) if name == "convolutions" else dense(1000)


def stages_of(flat: Flat) -> list[Bound]:
    return [Clip(1e-3), ClipLayers(1e-3, flat.lengths), ClipLayers(1e-3, flat.layers)]


@pytest.mark.parametrize("way", ["book-keeping", "vmap", "plain"])
@pytest.mark.parametrize("name", ["dense", "convolutions", "words"])
def test_the_gradient_of_an_example(name: str, way: str) -> None:
    model, x = problem(name)
    flat = Flat(model)
    assert flat.dim > MILLION
    gradient = example_gradient_of(flat, "cross-entropy", way)
    w = flat.vector.clone()
    for stage in stages_of(flat):
        for i in (0, 1):
            # The sum over a batch of one is that example's clipped gradient.
            total = gradient.clipped(w, x[i : i + 1], torch.tensor([3]), stage)
            held(total, stage, long=isinstance(stage, Clip))


@pytest.mark.parametrize("name", ["dense", "convolutions"])
def test_the_gradient_of_an_example_of_a_cohort(name: str) -> None:
    model, x = problem(name)
    flat = Flat(model)
    sums = Sums(flat, LOSSES["cross-entropy"], x, torch.tensor([3, 3]), WAYS["cohort"])
    w, one = flat.vector.unsqueeze(0), torch.ones(1, dtype=torch.int64)
    for stage in stages_of(flat):
        lengths = (flat.dim,) if isinstance(stage, Clip) else stage.sizes
        radii = torch.full((1, len(lengths)), 1e-3, dtype=torch.float64)
        for i in (0, 1):
            batch = Picked(torch.tensor([[i]]), one, one, one, radii)
            held(sums(w, batch, lengths)[0], stage, long=isinstance(stage, Clip))


def test_the_gradient_of_an_example_of_fifty_millions() -> None:
    model = nn.Sequential(nn.Linear(5000, 10_000), nn.Linear(10_000, 2, bias=False))
    flat = Flat(model)
    assert flat.dim > 50 * MILLION
    gradient = example_gradient_of(flat, "cross-entropy")
    assert gradient.words == "per-example norms by book-keeping"
    x, y = torch.full((1, 5000), 0.7), torch.tensor([1])
    for stage in (Clip(1e-3), ClipLayers(1e-3, flat.layers)):
        held(gradient.clipped(flat.vector, x, y, stage), stage)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_client_sends(workers: int) -> None:
    """The whole way: trained, clipped, and through a worker's shared memory."""
    model, x = problem("dense")
    y = torch.zeros(2, dtype=torch.int64)
    data = Dataset("two", x, y, x, y, classes=10)
    nobody = np.empty(0, np.int64)
    clients = (np.array([0]), np.array([1]))
    federation = Federation(data, clients, nobody, nobody, "by hand", 1)
    recipe = Recipe(model, "cross-entropy", federation, Key.from_seed(1))
    flat = Flat(model)
    for stage in (Clip(1e-3), ClipLayers(1e-3, flat.layers)):
        r = Round(cohort=All(), local=Local(SGD(0.5)), upload={"update": Upload((stage,))})
        trainer: Any = trainer_on_cpu(recipe, workers, flat.dim, r)
        try:
            sent = list(trainer.train(Job(0, r, flat.vector.clone(), {}), [0, 1]))
            assert len(sent) == 2
            for vectors in sent:
                held(vectors["update"], stage)
        finally:
            trainer.close()
