"""Aggregates: what the server makes of the uploads before `publish`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from confide.accounting.relations import Relation
from confide.claims import Claim
from confide.cohorts import whole
from confide.local import between

if TYPE_CHECKING:
    from torch import Tensor

CURVES = ("polygon", "bezier")
BY_LOSS = " by loss"


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


@dataclass(frozen=True)
class ByLossAndSize:
    """The sum of gamma_k x_k, gamma_k = (n_k/n + L_k/L)/2, from uploads named `size` and `loss`.

    Zhang et al. (DP-FedAGS), eq. (37); n and L are sums over those who came. Without `losses` the
    weights are n_k/n, eq. (36). A sum without any size or any loss leaves its half out.

    Proof: whoever sees every upload can compute it, so what holds for all of them together stays.
    Nothing else is proved: one client's loss or size changes the weights of all others.
    """

    losses: bool = True
    equal_weights = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The uploads that the weights are made of."""
        return ("size", "loss") if self.losses else ("size",)

    def terms(self, sent: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What is added up: each vector times its client's size, and once more times its loss."""
        out = {name: sent[name] for name in self.needs}
        for name, vector in sent.items():
            if name not in self.needs:
                out[name] = vector.double() * sent["size"].double()
                if self.losses:
                    out[name + BY_LOSS] = vector.double() * sent["loss"].double()
        return out

    def weighed(self, totals: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The sums with the weights gamma_k."""
        out = {name: totals[name] for name in self.needs}
        for name, vector in totals.items():
            if name in self.needs or name.endswith(BY_LOSS):
                continue
            halves = [vector / above_zero(totals["size"])]
            if self.losses:
                halves.append(totals[name + BY_LOSS] / above_zero(totals["loss"]))
            out[name] = sum(halves[1:], halves[0]) / len(halves)
        return out

    def claim(self, c: Claim, expected: float) -> Claim:
        """Refused: the proof for whoever sees every upload is all there is."""
        return c.refused("one client's loss and size change the weights of all the others")


def above_zero(total: Tensor) -> Tensor:
    """The total, or 1 in place of 0."""
    return total + (total == 0)


@dataclass(frozen=True)
class ModeConnectivity:
    """The uploaded models two by two, until one is left; each pair gives way to a curve's bend.

    The curve runs from one model w1 to the other w2 and bends at theta, their midpoint at first:
    a polygonal chain of two segments, or a quadratic Bezier curve. theta takes `steps` gradient
    steps on the loss at points drawn uniformly from the curve, on at most B public records each. A
    model without a partner goes on to the next turn. Other uploads than `model` are averaged.

    Proof: what comes out is computed from the uploads as the server sees them, from public records
    and from coins that depend on nothing: post-processing of the server's view, so every row of the
    world is the server's. It is no function of the uploads' sum: under `Sum` it does not exist, and
    what is proved of a sum says nothing about it. Clients' records would be a further release, and
    are not looked at. docs/proofs/mode-connectivity.md.
    """

    steps: int = 10
    eta: float = 0.01
    B: int = 100
    curve: str = "polygon"
    equal_weights = True

    def __post_init__(self) -> None:
        """Whole numbers, a rate above 0, a known curve."""
        whole("ModeConnectivity", "steps", self.steps)
        whole("ModeConnectivity", "B", self.B)
        between(self, "eta", 0, above=True)
        if self.curve not in CURVES:
            raise ValueError(
                f"ModeConnectivity: curve = {self.curve!r}, allowed are {' and '.join(CURVES)}."
            )

    def point(self, p: float, w1: Tensor, theta: Tensor, w2: Tensor) -> tuple[Tensor, float]:
        """The curve at p from 0 to 1, and its derivative by theta."""
        if self.curve == "bezier":
            bend = 2 * p * (1 - p)
            return (1 - p) ** 2 * w1 + bend * theta + p**2 * w2, bend
        bend = 2 * min(p, 1 - p)
        return bend * theta + (1 - bend) * (w1 if p <= 0.5 else w2), bend

    def claim(self, c: Claim, expected: float) -> Claim:
        """Nothing that holds of the sum holds of it."""
        return c.refused("mode connectivity looks at single uploads: the sum's noise covers none")


Aggregate = Mean | MeanOfPresent | WeightedMean | ByLossAndSize | ModeConnectivity
