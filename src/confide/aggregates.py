"""Aggregates: what the server makes of the uploads before `publish`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from confide.accounting.relations import Relation
from confide.claims import Claim


@dataclass(frozen=True)
class Mean:
    """The sum over a public number; None: the cohort's expected size.

    Proof: linear. The divisor is the same in both worlds, and an empty cohort still releases.
    """

    by: float | None = None
    equal_weights = True

    def __post_init__(self) -> None:
        """A positive divisor."""
        if self.by is not None and not 0 < self.by < float("inf"):
            raise ValueError(
                f"Mean: by = {self.by!r}, allowed is a finite number above 0, or None."
            )

    def claim(self, c: Claim, expected: float) -> Claim:
        """Everything scales."""
        return c.scaled(1 / (expected if self.by is None else self.by))


@dataclass(frozen=True)
class MeanOfPresent:
    """The sum over the number of those who came, as most code does.

    Proof: under zero-out and replace-one that number is the same in both worlds and at least 1, so
    distances do not grow; noise is scaled by an unknown number, so no later noise is added to it,
    but the event it has set is kept. Under add-remove it differs, and
    with it the scale of everything: refused.
    """

    equal_weights = True

    def claim(self, c: Claim, expected: float) -> Claim:
        """Refused under add-remove."""
        if c.relation is Relation.ADD_REMOVE:
            return c.refused(
                "division by the realised size reveals it; divide by the expected size"
            )
        return replace(c, noise=None, grid=None)


@dataclass(frozen=True)
class WeightedMean:
    """Each upload times its client's weight min(size, cap), over a public number.

    Proof: the client's vector is multiplied by a number of at most `cap`, its noise share with it,
    so shares of different weights do not add up to a known law. Data sizes are public: in a world
    of other sizes all weights and their sum would differ.
    """

    cap: float
    by: float
    equal_weights = False

    def __post_init__(self) -> None:
        """A public cap and a positive divisor."""
        for field in ("cap", "by"):
            value = getattr(self, field)
            if not 0 < value < float("inf"):
                raise ValueError(
                    f"WeightedMean: {field} = {value!r}, allowed is a finite number above 0; "
                    "without a public cap one client's weight has no bound."
                )

    def claim(self, c: Claim, expected: float) -> Claim:
        """The bounds scale by the largest weight."""
        scaled = replace(c, noise=None, grid=None).scaled(self.cap / self.by)
        return scaled.assuming("data sizes are public")


Aggregate = Mean | MeanOfPresent | WeightedMean
