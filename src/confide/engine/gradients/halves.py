"""A large batch of clipped examples in two halves, which two threads take at once.

The halves are the same and their sums are added in the same order whether or not there is a second
thread, so the bits do not depend on it.
"""

from __future__ import annotations

from torch import Tensor

from confide.engine.flat import Flat
from confide.engine.gradients.bookkeeping import Bookkeeping
from confide.engine.gradients.clipping import Bound
from confide.engine.pool import Pool
from confide.losses import Loss

LARGE = 32
"""Examples from which on a CPU the second thread saves more than the second sum costs."""


class Halves:
    """Book-keeping by one thread, or by two that each have a module of their own."""

    def __init__(self, flat: Flat, loss: Loss) -> None:
        """The second is made for the first large batch; `pool` may be given at any time."""
        self._one, self._loss = Bookkeeping(flat, loss), loss
        self._two: Bookkeeping | None = None
        self.pool: Pool | None = None

    @property
    def words(self) -> str:
        """The strategy in words."""
        return self._one.words

    def seed_dropout(self, seed: int) -> None:
        """Start the dropout masks anew."""
        self._one.seed_dropout(seed)

    def each(self, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """One row for each example's gradient."""
        return self._one.each(w, x, y)

    def clipped(self, w: Tensor, x: Tensor, y: Tensor, stage: Bound) -> Tensor:
        """The sum of the clipped gradients, in a buffer that the next call reuses."""
        if len(x) < LARGE or w.device.type != "cpu":
            return self._one.clipped(w, x, y, stage)
        if self._two is None:
            self._two = Bookkeeping(Flat(self._one.flat.module, w.dtype), self._loss)
        two, middle, found = self._two, len(x) // 2, list[Tensor]()
        two.follow(self._one, middle)

        def second() -> None:
            found.append(two.clipped(w, x[middle:], y[middle:], stage))

        begun = None if self.pool is None else self.pool.begin([second])
        total = self._one.clipped(w, x[:middle], y[:middle], stage)
        if begun is None:
            second()
        else:
            begun.finish()
        return total.add_(found[0])
