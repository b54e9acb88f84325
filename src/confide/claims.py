"""What is proved about a vector on its way from one unit to an observer.

Write the vector as x = s + n. A `Claim` says, in every world that its relation allows:

* bounds: the norms of s are at most `l1`, `l2`, `linf` (but for probability `fails`), it has
  `length` coordinates, at most `dim` of which (the same, public ones) can differ between two
  worlds, and s lies on `grid` x Z^length when `grid` is set;
* noise: n is independent of s and of everything else; it contains `noise`, equal and independent
  in every coordinate of a public subspace that contains s, and when `noisy` perhaps more
  independent noise of other laws;
* event: showing x to somebody is the release `event`; OPEN until a noise with a proof covers s.

Before the channel, s is one unit's own vector. Under add-remove the other world has no such vector
in its sum, so two worlds are at most the bound apart. Under zero-out the other world's vector comes
from a zero contribution: it is zero as long as only maps that keep 0 at 0 came before (`centred`);
behind noise, a randomiser or an unproved map it is any vector within the bound. There, and under
replace-one, two worlds are at most twice the bound apart (triangle inequality). Behind the channel
s is a sum over units (`pooled`), and a bound is that distance itself. The distance is the S that
every noise divides by. Three rules follow from this reading and carry the whole fold:

1. Once an event is set, whatever is computed from x alone is post-processing: the event stays, and
   no later noise replaces it (after a nonlinear map the bounds speak of other things).
2. A linear map acts on s and n alike. A nonlinear map makes all of x the new s: the noise is no
   longer independent of s, so `noise` is dropped, and bounds of the old s say nothing when noise
   was present.
3. Independent noise whose law is the same in both worlds can be left out of an argument but never
   assumed: adding noise of another law keeps bounds and `noise`. Only a channel adds the noise of
   several units.

Numbers beyond `LARGEST` are no bounds and those below `LEAST` count as it, so that no arithmetic in
single precision under- or overflows where something is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, inf, isnan, log10, sqrt

from confide.accounting.events import (
    OPEN,
    BinomialDpEvent,
    DpEvent,
    GaussianDpEvent,
    SkellamDpEvent,
)
from confide.accounting.relations import Relation

LARGEST, LEAST = 1e30, 1e-30


@dataclass(frozen=True, slots=True)
class Noise:
    """Independent noise, the same in every coordinate, of a law that is closed under sums."""

    law: str  # "gaussian", "skellam" or "binomial"
    amount: float  # variance; for the grid laws in squared grid steps; trials for the binomial
    p: float = 0.5  # of the binomial

    def plus(self, other: Noise) -> Noise | None:
        """The sum of two independent noises, if it has a law we know."""
        if (self.law, self.p) != (other.law, other.p):
            return None
        return replace(self, amount=self.amount + other.amount)

    def times(self, terms: int) -> Noise:
        """The sum of this many independent copies."""
        return replace(self, amount=self.amount * terms)


@dataclass(frozen=True, slots=True)
class Claim:
    """What is proved so far; a fresh one proves nothing."""

    relation: Relation
    length: int | None = None
    dim: int | None = None
    l1: float = inf
    l2: float = inf
    linf: float = inf
    grid: float | None = None
    noise: Noise | None = None
    noisy: bool = False
    pooled: bool = False
    centred: bool = True
    event: DpEvent = OPEN
    per_coordinate: float = inf  # pure epsilon of any one coordinate of x by itself
    fails: float = 0.0
    assumptions: tuple[str, ...] = ()
    reason: str = "nothing has been done to hide it"

    def __post_init__(self) -> None:
        """Norms imply each other; anything that is not a bound is no bound."""
        event: object = self.event
        if not isinstance(event, DpEvent):
            raise TypeError(f"Claim: event = {event}, allowed is an event.")
        if not (0 <= self.fails <= 1) or self.per_coordinate < 0:
            raise ValueError(f"Claim: fails = {self.fails}, allowed is a probability.")
        l1, l2, linf = (as_bound(b) for b in (self.l1, self.l2, self.linf))
        if self.dim is None:
            object.__setattr__(self, "dim", self.length)
        linf = min(linf, l2, l1)
        l2 = min(l2, l1)
        if self.dim is not None:
            l2 = min(l2, sqrt(self.dim) * linf) if linf < inf else l2
            l1 = min(l1, sqrt(self.dim) * l2) if l2 < inf else l1
        for name, value in (("l1", l1), ("l2", l2), ("linf", linf)):
            object.__setattr__(self, name, value)

    @property
    def open(self) -> bool:
        """Nothing protects x yet."""
        return self.event == OPEN

    def distance(self, bound: float) -> float:
        """How far apart two worlds' s can be, in the norm that has this bound."""
        if self.pooled:
            return bound
        apart = self.relation.factor
        return (2 if self.relation is Relation.ZERO_OUT and not self.centred else apart) * bound

    def pool(self) -> Claim:
        """One unit's vector enters a sum over units: from here on bounds are distances."""
        l1, l2, linf = (self.distance(b) for b in (self.l1, self.l2, self.linf))
        return replace(self, l1=l1, l2=l2, linf=linf, pooled=True)

    # Maps ---------------------------------------------------------------------------------------

    def mapped(
        self,
        *,
        l1: float = inf,
        l2: float = inf,
        linf: float = inf,
        shrinks: bool = False,
        why: str = "",
    ) -> Claim:
        """A nonlinear map with these bounds on its result; `shrinks`: no coordinate grows."""
        kept = shrinks and not self.noisy and not self.pooled
        apart = 2 if self.pooled else 1
        l1, l2, linf = apart * l1, apart * l2, apart * linf
        return replace(
            self,
            dim=self.dim if kept else self.length,
            l1=min(l1, self.l1) if kept else l1,
            l2=min(l2, self.l2) if kept else l2,
            linf=min(linf, self.linf) if kept else linf,
            grid=None,
            noise=None,
            noisy=False,
            centred=self.centred and not self.noisy,
            per_coordinate=inf,
            fails=self.fails if kept or not self.open else 0.0,
            reason=why if why and self.open else self.reason,
        )

    def forgotten(self, why: str) -> Claim:
        """Mathematics without a proof: only an event already set survives it."""
        return replace(self.mapped(why=why), length=None, dim=None, centred=False)

    def randomized(self, *, l2: float = inf, linf: float = inf) -> Claim:
        """The result of a randomiser, which does not keep zero at zero."""
        return replace(self.mapped(l2=l2, linf=linf), centred=False)

    def scaled(self, by: float, rounding: float = 0.0) -> Claim:
        """Multiplied by a public number: s and n alike; `rounding` may lengthen s by that share."""
        noise = self.noise
        if noise is not None and noise.law == "gaussian":
            noise = replace(noise, amount=noise.amount * by**2)
        return replace(
            self,
            l1=self.l1 * by * (1 + rounding),
            l2=self.l2 * by * (1 + rounding),
            linf=self.linf * by * (1 + rounding),
            grid=None if self.grid is None else self.grid * by,
            noise=noise,
        )

    def assuming(self, why: str) -> Claim:
        """The same, but everything downstream says what it rests on."""
        return (
            self if why in self.assumptions else replace(self, assumptions=(*self.assumptions, why))
        )

    def refused(self, why: str) -> Claim:
        """The two worlds differ in more than s: neither events nor bounds survive."""
        return replace(self.forgotten(""), event=OPEN, reason=why)

    # Noise --------------------------------------------------------------------------------------

    def noised(self, noise: Noise | None, *, keeps_grid: bool = False) -> Claim:
        """x plus independent noise; None for a law that is not closed under sums."""
        total = self.noise
        if noise is not None:
            total = noise if total is None else total.plus(noise) or total
        return replace(self, noise=total, noisy=True, grid=self.grid if keeps_grid else None)

    def released(self, event: DpEvent, per_coordinate: float = inf) -> Claim:
        """A noise with a proof covers s; keeps the first event (rule 1)."""
        if not self.open:
            return self
        return replace(self, event=event, per_coordinate=per_coordinate, reason="")

    def uncovered(self, why: str) -> Claim:
        """Noise was added, but it proves nothing, for this reason."""
        return replace(self, reason=why) if self.open else self

    def event_of(self, noise: Noise) -> DpEvent | None:
        """The release of s under this much noise of a law closed under sums; None if no proof."""
        if not LEAST**4 < noise.amount < LARGEST**4 or self.l2 == inf:
            return None
        if noise.law == "gaussian":
            return GaussianDpEvent(rounded_down(sqrt(noise.amount) / self.distance(self.l2)))
        if self.grid is None:
            return None
        l1, l2, linf = (self.distance(b) / self.grid for b in (self.l1, self.l2, self.linf))
        if noise.law == "skellam":
            return SkellamDpEvent(noise.amount, l2, min(l1, l2**2), self.dim)
        if self.dim is None or linf == inf:
            return None
        return BinomialDpEvent(int(noise.amount), noise.p, min(l1, l2**2), l2, linf, self.dim)


def as_bound(value: float) -> float:
    """A number that can be relied on as a bound, or infinity."""
    if isnan(value) or value < 0 or value > LARGEST:
        return inf
    return max(value, LEAST)


def rounded_down(multiplier: float) -> float:
    """Nine significant digits, never up, so that equal rounds compare equal after arithmetic.

    What arithmetic makes of a number with so few digits, powers of ten included, is that number.
    """
    digits = 10.0 ** (9 - floor(log10(multiplier * (1 + 1e-14))))
    return floor(multiplier * digits * (1 - 1e-14)) / digits
