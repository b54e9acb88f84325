"""What the engine asks of a way to take gradients."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from confide.stages import Clip, ClipLayers


class Gradient(Protocol):
    """The gradient of a batch's losses as one flat vector."""

    @property
    def words(self) -> str:
        """The strategy in words."""
        ...

    def seed_dropout(self, seed: int) -> None:
        """Start the dropout masks anew: once for each client and round."""
        ...

    def total(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """The sum of the examples' gradients at w; the next call may reuse its memory."""
        ...

    def descend(self, w: Tensor, x: Tensor, y: Tensor, rate: float) -> bool:
        """Step w by -rate times the mean gradient in place; False: it cannot, nothing was done."""
        ...

    def losses(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Each example's loss at w, without dropout."""
        ...

    def outputs(self, w: Tensor, x: Tensor) -> Tensor:
        """The model's outputs at w, without dropout."""
        ...


class ExampleGradient(Protocol):
    """Every example's own gradient, clipped before they are added."""

    @property
    def words(self) -> str:
        """The strategy in words."""
        ...

    def seed_dropout(self, seed: int) -> None:
        """Start the dropout masks anew: once for each client and round."""
        ...

    def clipped(self, w: Tensor, x: Tensor, y: Tensor, stage: Clip | ClipLayers) -> Tensor:
        """The sum of the clipped gradients; the next call may reuse its memory."""
        ...

    def each(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """One row for each example's gradient, not clipped."""
        ...
