"""Local steps for many clients at once: every client is a row, with the mathematics of local.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from confide.engine.gradients.dropout import FIRST, PARTS, SECOND, STEP, WORD, Dropout, signed
from confide.local import SAM, SGD, Blur, Descent, Prox, Scaffold
from confide.schedules import rate_of


class Gradients(Protocol):
    """A batch of each row, as a step may see it."""

    def __call__(self, w: Tensor, asked: Tensor | None = None) -> Tensor:
        """Each row's gradient at its w, after all stages, wherever a row has `asked` for it."""
        ...


VECTORISED = (SGD, SAM, Prox, Scaffold, Blur)
"""Steps that have a form in rows; a subclass may do anything and has none."""


@dataclass(eq=False)
class Courses:
    """What `Course` holds, for some clients: rows of `memory`, zeros where nothing is kept."""

    start: Tensor
    sent: Mapping[str, Tensor]
    memory: Tensor | None = None
    velocity: Tensor | None = None
    taken: int = 0


def move(step: object, w: Tensor, gradient: Gradients, course: Courses) -> None:
    """One step of every row, in place."""
    match step:
        case SGD():
            descend(step, w, gradient(w), course)
        case SAM():
            descend(step, w, uphill(step, w, gradient), course)
        case Prox():
            g = gradient(w)
            descend(step, w, g + step.mu * (w - course.start) if step.mu else g, course)
        case Blur():
            g = gradient(w)
            away = w - course.start
            far = (norms(away) > step.radius).unsqueeze(1)
            descend(step, w, torch.where(far, g + step.strength * away, g), course)
        case Scaffold():
            g = gradient(w)
            if course.memory is not None:
                g = g - course.memory
            if "control" in course.sent:
                g = g + course.sent["control"]
            w.sub_(g, alpha=step.eta)
        case _:
            raise TypeError(f"Cohort: a step of the type {type(step).__name__} has no rows.")


def uphill(step: SAM, w: Tensor, gradient: Gradients) -> Tensor:
    """The gradient at the worst point nearby; a row without a slope has none."""
    g = gradient(w)
    if not step.rho:
        return g
    lengths = norms(g).unsqueeze(1)
    climb = torch.where(lengths > 0, step.rho / lengths, 0.0).to(w.dtype)
    return torch.where(lengths > 0, gradient(w + g * climb, lengths[:, 0] > 0), g)


def descend(step: Descent, w: Tensor, g: Tensor, course: Courses) -> None:
    """Weight decay, then heavy-ball momentum, then the move."""
    if step.decay:
        g = g + step.decay * w
    if step.momentum:
        assert course.velocity is not None
        g = course.velocity.mul_(step.momentum).add_(g)
    w.sub_(g, alpha=rate_of(step.eta, course.taken))


def remembered(step: object, w: Tensor, course: Courses, taken: Tensor) -> Tensor | None:
    """What `Scaffold.remember` keeps for every row that took a step; others keep what they had."""
    if not isinstance(step, Scaffold):
        return None
    moved = (course.start - w) / (taken.clamp(min=1).to(w.dtype) * step.eta).unsqueeze(1)
    if course.memory is not None:
        moved = moved + course.memory
    return moved - course.sent["control"] if "control" in course.sent else moved


def norms(x: Tensor) -> Tensor:
    """The rows' l2 norms, summed in double."""
    return torch.linalg.vector_norm(x, dim=1, dtype=torch.float64)


UNSTEP = pow(STEP, -1, 1 << 64)
"""The word whose product with STEP is 1."""


class RowMasks:
    """The dropout masks of one client of a vmapped batch: `Masks` with tensors for its numbers.

    `begin` is called inside of vmap, where a client's key and batch number are scalars to look at.
    """

    def begin(self, key: Tensor, batch: Tensor, rows: Tensor) -> None:
        """Before the first layer of this batch, for these of its rows."""
        self._key, self._rows, self._place = mixed(key + batch), rows, 0

    def factor(self, x: Tensor, p: float, whole_channels: bool = False) -> Tensor:
        """What the next layer multiplies x by: 0 with probability p, else 1 / (1 - p)."""
        key = mixed(self._key + self._place)
        self._place += 1
        shape = x.shape[1:2] if whole_channels else x.shape[1:]
        channels_last = len(shape) == 3
        size = (shape[1], shape[2], shape[0]) if channels_last else tuple(shape)
        kept = keep(key, self._rows, shape.numel(), p).view(len(x), *size)
        if channels_last:
            kept = kept.permute(0, 3, 1, 2)
        factor = kept.to(x.dtype) * (1 / (1 - p) if p < 1 else 0.0)
        return factor.view(len(x), *shape, *(1,) * (x.dim() - 2)) if whole_channels else factor


def install(module: nn.Module) -> RowMasks | None:
    """Let the dropout layers that the gradients package put in draw by row; None without any."""
    layers = [part for part in module.modules() if isinstance(part, Dropout)]
    masks = RowMasks()
    for layer in layers:
        layer.masks = masks  # pyright: ignore[reportAttributeAccessIssue]
    return masks if layers else None


def keep(key: Tensor, rows: Tensor, size: int, p: float) -> Tensor:
    """Which elements of each row stay, as the gradients package's `keep` for this key."""
    bits = next(n for n in PARTS if n == 32 or (p * 2**n).is_integer())
    words = -(-size * bits // 64)
    # Compiled, places are narrow numbers: they may only be multiplied once a key has joined them.
    places = (rows * words).view(-1, 1) + torch.arange(words, device=rows.device)
    z = scrambled((places + key * signed(UNSTEP)) * signed(STEP))
    # Each part of a word in turn, the lowest first, is moved to the top and compared there.
    up = torch.arange(64 - bits, -1, -bits, device=rows.device)
    least = min(round(p * 2**bits), 2**bits - 1) - 2 ** (bits - 1)
    return ((z.unsqueeze(-1) << up) >= least << (64 - bits)).flatten(1)[:, :size]


def mixed(value: Tensor) -> Tensor:
    """SplitMix64's next word after the state `value`."""
    return scrambled(value + signed(STEP))


def scrambled(z: Tensor) -> Tensor:
    """SplitMix64's finaliser; 64-bit words lie in int64, whose arithmetic wraps around."""
    z = (z ^ ((z >> 30) & (WORD >> 30))) * signed(FIRST)
    z = (z ^ ((z >> 27) & (WORD >> 27))) * signed(SECOND)
    return z ^ ((z >> 31) & (WORD >> 31))


def seeds(values: Sequence[int]) -> Tensor:
    """The clients' dropout keys as `Masks.seed` makes them."""
    return mixed(torch.tensor([signed(value) for value in values], dtype=torch.int64))
