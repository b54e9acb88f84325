"""Values of uploads that bring a bound of their own, finer than that of a clip of the vector."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from confide.accounting.relations import Relation
from confide.claims import Claim

if TYPE_CHECKING:
    from torch import Tensor

    from confide.engine.outcomes import Outcome


@runtime_checkable
class Bounded(Protocol):
    """What a client computes, with what is proved about it."""

    def __call__(self, done: Outcome) -> Tensor:
        """The vector before its stages."""
        ...

    def claim(self, c: Claim, unit: str) -> Claim:
        """The bounds that hold when one unit changes."""
        ...


@dataclass(frozen=True)
class HeldOutLoss:
    """The losses of the received model on the client's n test records, each cut at `bound`, over n.

    n is a public number; with more records than n the result is cut at `bound` once more, and with
    fewer it is smaller.

    Proof. Each loss is cut to [0, bound], so another record in a place moves the sum by at most
    `bound` and the result by at most bound / n; the last cut moves nothing further apart. Under
    replace-one two worlds are twice the claimed bound apart, and the claim speaks of the result
    less the middle of what the changed record can make of it: half of bound / n. The whole client
    moves it within [0, bound]. The result stays in double precision: single precision could carry
    two results further apart than they are, by more than the claim has to spare.
    """

    bound: float
    n: int

    def __post_init__(self) -> None:
        """Positive numbers."""
        if not 0 < self.bound < inf:
            raise ValueError(
                f"HeldOutLoss: bound = {self.bound!r}, allowed is a finite number above 0."
            )
        if not isinstance(self.n, int) or isinstance(self.n, bool) or self.n < 1:
            raise ValueError(f"HeldOutLoss: n = {self.n!r}, allowed is a whole number from 1.")

    def __call__(self, done: Outcome) -> Tensor:
        """Cut, add, divide, cut; a loss that is no number counts as the bound."""
        losses = done.held_out().nan_to_num(nan=self.bound).clamp(0.0, self.bound)
        return (losses.double().sum() / self.n).clamp(max=self.bound).reshape(1)

    def claim(self, c: Claim, unit: str) -> Claim:
        """See above."""
        rounding = 1 + 2**-22
        if unit == "record" and c.relation is Relation.REPLACE_ONE:
            return replace(c, linf=self.bound / self.n / 2 * rounding, centred=False)
        return replace(c, linf=self.bound * rounding)
