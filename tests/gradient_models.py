"""Small models and batches that the gradient tests share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from confide.engine.flat import Flat


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 4))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Conv2d(4, 6, 3),
        nn.GroupNorm(2, 6),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(24, 4),
    )


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(2, 4)
        self.second = nn.Conv2d(4, 4, 3, padding="same", groups=2)
        self.unused = nn.Linear(3, 3)
        self.out = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        x = x + self.second(torch.relu_(self.norm(x)))
        return self.out(x.mean((2, 3)))


class Words(nn.Module):
    """Embedding, layer norm, dense layers on a sequence, and one layer called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 6, padding_idx=0)
        self.norm = nn.LayerNorm(6)
        self.twice = nn.Linear(6, 6)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(6, 4)
        self.tied = nn.Linear(6, 6, bias=False)
        self.tied.weight = self.twice.weight

    def forward(self, x: Tensor) -> Tensor:
        h = self.twice(self.drop(self.norm(self.table(x))))
        h = self.tied(torch.tanh(self.twice(torch.tanh(h))))
        return self.out(h.mean(1))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (mlp, (12,)),
    "cnn": (cnn, (1, 8, 8)),
    "residual": (Residual, (2, 6, 6)),
    "words": (Words, (5,)),
}


def problem(name: str, batch: int, seed: int = 0) -> tuple[Flat, Tensor, Tensor]:
    torch.manual_seed(seed)
    build, shape = MODELS[name]
    flat = Flat(build(), torch.float64)
    if name == "words":
        x = torch.randint(0, 7, (batch, *shape))
    else:
        x = torch.randn(batch, *shape, dtype=torch.float64)
    return flat, x, torch.randint(0, 4, (batch,))


def close(a: Tensor, b: Tensor) -> None:
    assert a.shape == b.shape and a.dtype == b.dtype
    scale = float(b.abs().max()) if b.numel() else 1.0
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12 * max(scale, 1e-3))
