"""Clipping, and the bounds one may only assume."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import torch
from torch import Tensor

from confide.claims import Claim
from confide.randomness import Stream
from confide.stages.stage import PerClient, Shared, Stage, floating, positive

MARGIN = 1 - 2**-21
"""Vectors are shortened to C times this, so that rounding cannot carry them beyond C.

The product is taken in double precision and rounded once, by 2^-24 of itself in float32; the norm
is summed in double precision too, so it is off by at most n 2^-53 of itself."""

NORMS = (1, 2, inf)

BLOCK = 1 << 16
"""Values that are turned into doubles at a time."""


@dataclass(frozen=True)
class Clip(Stage):
    """x min(1, C/‖x‖) in l1 or l2; each coordinate to [-C, C] for linf.

    Proof: the result's norm is min(‖x‖, C), and no coordinate grows. Entries that are not finite
    become 0 first: a NaN would pass any comparison, and infinity times 0 is NaN.
    """

    C: float | PerClient
    p: float = 2

    def __post_init__(self) -> None:
        """Only norms with a proof."""
        positive(self, "C")
        if self.p not in NORMS:
            raise ValueError(f"Clip: p = {self.p!r}, allowed are 1, 2 and inf.")

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Shorten x to length C."""
        return shortened(finite(floating(self, x)), number(self.C), self.p)

    def claim(self, c: Claim) -> Claim:
        """The norm is at most C."""
        return clipped(c, self.p, number(self.C))


@dataclass(frozen=True)
class ClipLayers(Stage):
    """Clip every layer by itself; `sizes` are the layers' lengths, C one norm or one for each.

    Proof: a vector whose layers have norms at most C_i has l2 norm at most sqrt(sum C_i^2) when
    they are l2 norms, and l1 norm at most sum C_i when they are l1 norms, or
    sum C_i sqrt(d_i) when they are l2 norms (Cauchy-Schwarz in each layer).
    """

    C: float | tuple[float, ...]
    sizes: tuple[int, ...]
    p: float = 2

    def __post_init__(self) -> None:
        """One positive norm for each layer."""
        if not self.sizes or any(n < 1 for n in self.sizes):
            raise ValueError(f"ClipLayers: sizes = {self.sizes}, allowed are positive lengths.")
        if len(self.norms) != len(self.sizes):
            raise ValueError(
                f"ClipLayers: C has {len(self.norms)} norms, allowed is one, "
                f"or one for each of the {len(self.sizes)} layers in sizes."
            )
        for norm in self.norms:
            Clip(norm, self.p)

    @property
    def norms(self) -> tuple[float, ...]:
        """One norm for each layer."""
        return self.C if isinstance(self.C, tuple) else (self.C,) * len(self.sizes)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Shorten each layer to its length."""
        x = finite(floating(self, x))
        if x.numel() != sum(self.sizes):
            raise ValueError(
                f"ClipLayers: sizes add up to {sum(self.sizes)}, but the vector has {x.numel()} "
                "entries; give the lengths of the model's layers in order."
            )
        layers = torch.split(x, list(self.sizes))
        return torch.cat(
            [shortened(part, C, self.p) for part, C in zip(layers, self.norms, strict=True)]
        )

    def claim(self, c: Claim) -> Claim:
        """The layers' norms together."""
        if c.length is not None and c.length != sum(self.sizes):
            return c.forgotten(
                f"ClipLayers covers {sum(self.sizes)} of the vector's {c.length} coordinates"
            )
        norms = self.norms
        if self.p == 1:
            return c.mapped(l1=sum(norms), l2=sqrt(sum(C**2 for C in norms)), shrinks=True)
        if self.p == 2:
            l1 = sum(C * sqrt(n) for C, n in zip(norms, self.sizes, strict=True))
            return c.mapped(l1=l1, l2=sqrt(sum(C**2 for C in norms)), shrinks=True)
        l2 = sqrt(sum(C**2 * n for C, n in zip(norms, self.sizes, strict=True)))
        return c.mapped(l2=l2, linf=max(norms), shrinks=True)


@dataclass(frozen=True)
class Assume(Stage):
    """A bound that the paper states and no stage proves; every statement downstream says so."""

    why: str
    l1: float = inf
    l2: float = inf
    linf: float = inf

    def __post_init__(self) -> None:
        """A reason and at least one bound."""
        if not self.why.strip():
            raise ValueError("Assume: why is empty, allowed is the place the bound comes from.")
        if min(self.l1, self.l2, self.linf) == inf:
            raise ValueError("Assume: give at least one of l1, l2, linf; all are infinite.")
        for field in ("l1", "l2", "linf"):
            if getattr(self, field) != inf:
                positive(self, field)

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """Nothing happens to the vector."""
        return x

    def claim(self, c: Claim) -> Claim:
        """The bound, marked; with noise before it, it speaks of x and x is the new s."""
        return c.mapped(l1=self.l1, l2=self.l2, linf=self.linf, shrinks=True).assuming(self.why)


def number(value: float | PerClient) -> float:
    """A stage's number once its column is resolved; a column by itself cannot run."""
    if isinstance(value, PerClient):
        raise TypeError("a per-client column must be resolved with for_client() first")
    return value


def finite(x: Tensor) -> Tensor:
    """NaN and infinities become 0, before anything measures the vector."""
    return torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)


def shortened(x: Tensor, C: float | Tensor, p: float) -> Tensor:
    """x within the ball of radius C; the norm is summed in double precision."""
    radius = C * MARGIN
    if p == inf:
        return x.clamp(-radius, radius)
    length = length_of(x, p)
    factor = torch.where(length > radius, radius / length, 1.0)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    for part, to in zip(blocks(x), blocks(out), strict=True):
        to.copy_(part.double() * factor)
    return out


def length_of(x: Tensor, p: float) -> Tensor:
    """The p-norm, summed in double precision."""
    parts = [torch.linalg.vector_norm(part, p, dtype=torch.float64) for part in blocks(x)]
    return parts[0] if len(parts) == 1 else torch.linalg.vector_norm(torch.stack(parts), p)


def blocks(x: Tensor) -> tuple[Tensor, ...]:
    """On a CPU, pieces whose doubles stay in the cache instead of filling new memory."""
    flat = x.reshape(-1)
    return flat.split(BLOCK) if x.device.type == "cpu" and flat.numel() else (flat,)


def clipped(c: Claim, p: float, bound: float) -> Claim:
    """The claim after a map that makes the p-norm at most this and lets no coordinate grow."""
    if p == 1:
        return c.mapped(l1=bound, shrinks=True)
    if p == 2:
        return c.mapped(l2=bound, shrinks=True)
    return c.mapped(linf=bound, shrinks=True)
