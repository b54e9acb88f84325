"""Maps without noise: scaling, sparsifying, rotating."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from math import inf, sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.claims import LARGEST, LEAST, Claim
from confide.randomness import Stream
from confide.stages.bounds import number
from confide.stages.stage import PerClient, Shared, Stage, at_least, floating, positive

ROUNDING = 1 + 4e-6
"""Each of the at most 60 passes of the transform rounds a float32 entry by 2^-24 of itself."""


@dataclass(frozen=True)
class Scale(Stage):
    """x times a public number.

    Proof: a linear map multiplies s, n and every norm by the same number, up to one rounding.
    """

    by: float | PerClient

    def __post_init__(self) -> None:
        """A zero would erase the vector, which is not a release."""
        positive(self, "by", least=LEAST, most=LARGEST)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Multiply."""
        x = floating(self, x)
        return (x.double() * number(self.by)).to(x.dtype)

    def claim(self, c: Claim) -> Claim:
        """Everything scales."""
        return c.scaled(number(self.by), rounding=2**-23)


@dataclass(frozen=True)
class TopK(Stage):
    """Keep the k entries of largest magnitude, zero the others.

    Proof: no entry grows, and k entries of l2 norm b have l1 norm at most sqrt(k) b. The choice
    depends on the vector, so two worlds may keep different entries: the map is not a contraction,
    the zeros are not public, and noise that came before is no longer independent of s.
    """

    k: int

    def __post_init__(self) -> None:
        """At least one entry stays."""
        at_least(self, "k", 1)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Zero all but the largest."""
        check_entries(self, x)
        return only(x, x.abs().topk(self.k).indices)

    def claim(self, c: Claim) -> Claim:
        """Norms do not grow; the l1 norm follows from k."""
        clean = not c.noisy and not c.pooled
        why = "" if clean else "top-k after noise keeps entries that the noise chose"
        out = c.mapped(shrinks=True, why=why)
        return replace(out, l1=min(out.l1, sqrt(self.k) * out.l2)) if clean else out


def check_entries(stage: TopK | RandK, x: Tensor) -> None:
    """Refuse to keep more entries than there are."""
    if stage.k > x.numel():
        raise ValueError(
            f"{type(stage).__name__}: k = {stage.k}, allowed is at most the vector's "
            f"{x.numel()} entries."
        )


def only(x: Tensor, keep: Tensor) -> Tensor:
    """The vector, zero but at these places."""
    return torch.zeros_like(x).index_copy(0, keep, x[keep])


def kept(c: Claim, k: int) -> Claim:
    """A public choice of k entries: linear, and the zeros are equal in all worlds."""
    return replace(c, dim=k if c.dim is None else min(k, c.dim))


@dataclass(frozen=True)
class RandK(Stage):
    """Keep k entries that public randomness chose, the same for every client of the round.

    Proof: given the mask, this is a linear map of norm 1; the mask does not depend on data.
    """

    k: int

    def __post_init__(self) -> None:
        """At least one entry stays."""
        at_least(self, "k", 1)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Zero all entries outside of the round's mask."""
        check_entries(self, x)
        return only(x, torch.from_numpy(shared("rand-k").choose(x.numel(), self.k)))

    def claim(self, c: Claim) -> Claim:
        """At most k coordinates can differ between two worlds."""
        return kept(c, self.k)


@dataclass(frozen=True)
class Places:
    """A set of positions in a vector of this length, one bit for each: rounds keep their masks."""

    bits: bytes
    length: int
    count: int

    @classmethod
    def of(cls, chosen: Tensor) -> Places:
        """The positions at which this is true."""
        flags = chosen.detach().cpu().numpy()
        return cls(np.packbits(flags).tobytes(), len(flags), int(flags.sum()))

    @classmethod
    @cache
    def first(cls, count: int, length: int) -> Places:
        """The first ones: a stand-in where a plan needs a set of this size, whichever it is."""
        return cls.of(torch.arange(length) < count)

    @property
    def positions(self) -> NDArray[np.int64]:
        """In order; made anew each time, as plans keep many sets."""
        flags = np.unpackbits(np.frombuffer(self.bits, np.uint8), count=self.length)
        return np.flatnonzero(flags)

    def __len__(self) -> int:
        """How many there are."""
        return self.count

    def __repr__(self) -> str:
        """Short, and another one for another set."""
        return f"Places({len(self)} of {self.length}, {sha256(self.bits).hexdigest()[:32]})"


@dataclass(frozen=True)
class Mask(Stage):
    """Keep these entries; the list is public: a constant, public data, or what was released.

    Proof: as RandK. A list taken from the client's own vector is not public and must not be used
    here; TopK is the stage for that, and it proves less.
    """

    keep: tuple[int, ...] | Places

    def __post_init__(self) -> None:
        """Distinct positions."""
        keep = self.keep
        given = isinstance(keep, tuple) and (
            len(set(keep)) != len(keep) or min(keep, default=0) < 0
        )
        if not len(keep) or given:
            raise ValueError("Mask: keep must hold distinct positions of at least 0, at least one.")

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Zero all other entries."""
        places = self.keep.positions if isinstance(self.keep, Places) else self.keep
        keep = torch.as_tensor(places)
        if int(keep.max()) >= x.numel():
            raise ValueError(
                f"Mask: keep names position {int(keep.max())}, allowed is below {x.numel()}."
            )
        return only(x, keep)

    def claim(self, c: Claim) -> Claim:
        """At most the kept coordinates can differ between two worlds."""
        return kept(c, len(self.keep))


@dataclass(frozen=True)
class Rotate(Stage):
    """Random signs, then the Walsh-Hadamard transform: spreads any vector evenly.

    The vector is padded with zeros to a power of two. `Unrotate` at `publish` inverts it.

    Proof: given the public signs it is orthonormal: l2 stays, linf is at most l2, and
    l1 <= sqrt(d) l2. Gaussian noise with equal variances keeps its law under it; other laws do not.
    """

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Pad, flip signs, transform."""
        x = floating(self, x)
        padded = torch.zeros(power_of_two(x.numel()), dtype=x.dtype, device=x.device)
        padded[: x.numel()] = x
        return hadamard(padded * signs(shared, padded))

    def claim(self, c: Claim) -> Claim:
        """An isometry of l2 on the padded vector."""
        return rotated(c, None if c.length is None else power_of_two(c.length))


@dataclass(frozen=True)
class Unrotate(Stage):
    """The inverse of the round's `Rotate`, for vectors whose length was `dim` before padding."""

    dim: int

    def __post_init__(self) -> None:
        """The length before padding."""
        at_least(self, "dim", 1)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Transform back, flip the same signs, drop the padding."""
        if x.numel() != power_of_two(self.dim):
            raise ValueError(
                f"Unrotate: dim = {self.dim}, but the vector has {x.numel()} entries; "
                f"allowed is the length before Rotate, padded to {power_of_two(self.dim)}."
            )
        return (hadamard(x) * signs(shared, x))[: self.dim]

    def claim(self, c: Claim) -> Claim:
        """An isometry of l2, then a projection."""
        return rotated(c, self.dim)


def rotated(c: Claim, length: int | None) -> Claim:
    """The claim after an orthonormal public map onto this many coordinates."""
    l2 = c.l2 * ROUNDING
    gaussian = c.noise if c.noise is not None and c.noise.law == "gaussian" else None
    return replace(
        c,
        length=length,
        dim=length,
        l1=inf if length is None else l2 * sqrt(length),
        l2=l2,
        linf=l2,
        grid=None,
        noise=gaussian,
        per_coordinate=inf,
    )


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << (n - 1).bit_length()


def signs(shared: Shared, x: Tensor) -> Tensor:
    """The round's public random signs."""
    return torch.from_numpy(shared("rotate").signs(x.shape)).to(x)


def hadamard(x: Tensor) -> Tensor:
    """The orthonormal Walsh-Hadamard transform; its own inverse."""
    n = x.numel()
    width = 1
    while width < n:
        pairs = x.view(-1, 2, width)
        x = torch.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), 1).reshape(-1)
        width *= 2
    return x / sqrt(n)
