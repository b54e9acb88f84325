"""What one release is to the accountant: a noise with the sensitivity already divided out.

An event says which pair of distributions (P, Q) an adversary must tell apart. The vocabulary is
dp-accounting's; this module adds the noises and the samplings that it lacks. Every multiplier is
the noise scale over S, the sensitivity *under the relation in force* (C for add-remove and
zero-out, 2C for replace-one). An accountant that does not know an event refuses it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, cast

import attrs
import dp_accounting as dp

from confide.accounting.relations import Refused

DpEvent = dp.DpEvent
GaussianDpEvent = dp.GaussianDpEvent
LaplaceDpEvent = dp.LaplaceDpEvent
"""Laplace noise on a vector whose l1 distance is at most S (docs/proofs/noises.md, Theorem 2)."""
PoissonSampledDpEvent = dp.PoissonSampledDpEvent
SampledWithoutReplacementDpEvent = dp.SampledWithoutReplacementDpEvent
ComposedDpEvent = dp.ComposedDpEvent
SelfComposedDpEvent = dp.SelfComposedDpEvent

OPEN = dp.NonPrivateDpEvent()
"""A release that nothing protects: infinite in every accountant."""

NOTHING = dp.NoOpDpEvent()
"""No release at all."""


LARGEST_COUNT = 2**63
"""More rounds, users or coordinates than this mean a slip, and powers of them overflow."""


def number(value: object, where: str) -> float:
    """Python's own float: not NaN, not text, not a truth value, not a paper's published value."""
    found = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):
            found = float(value)
    # A fraction below every double must not become a 0, nor one above them infinity.
    if not found >= 0 or (found in (0, math.inf) and found != value):
        raise Refused(f"{where} = {value}, allowed is a number of at least 0.")
    return found


def whole(value: object, where: str) -> int:
    """Python's own int: a number of repetitions, of users or of coordinates."""
    fits = isinstance(value, Integral) and not isinstance(value, bool)
    if not fits or not 0 <= int(cast(Integral, value)) <= LARGEST_COUNT:
        raise Refused(f"{where} = {value}, allowed is a whole number from 0 to 2^63.")
    return int(cast(Integral, value))


def plain(event: DpEvent) -> DpEvent:
    """The same event in Python's own numbers and tuples: the only form that is priced.

    numpy's narrow numbers overflow and round in silence, and equal ones of other types would share
    a place in a cache.
    """
    if not isinstance(cast(object, event), DpEvent):
        raise Refused(f"{event!r} is not an event.")
    kind = type(event)
    if isinstance(event, ComposedDpEvent):
        return ComposedDpEvent(_several(event.events, plain, f"{kind.__name__}: events"))
    return kind(
        **{
            field.name: _plain(
                getattr(event, field.name), field.type, f"{kind.__name__}: {field.name}"
            )
            for field in attrs.fields(kind)
        }
    )


def _plain(value: Any, declared: Any, where: str) -> Any:
    """One field's value, by the type that its class declares."""
    match declared if isinstance(declared, str) else getattr(declared, "__name__", ""):
        case "DpEvent":
            return plain(value)
        case "str":
            return value  # its class allows known words only
        case "int | None" if value is None:
            return None
        case "Union" if isinstance(value, list | tuple):  # of steps, in a tree
            return _several(value, lambda one: whole(one, where), where)
        case "int" | "int | None" | "Union":
            return whole(value, where)
        case "Sequence":
            return _several(value, lambda one: number(one, where), where)
        case _:
            return number(value, where)


def _several(values: Any, convert: Callable[[Any], Any], where: str) -> Any:
    if not isinstance(values, list | tuple):
        raise Refused(f"{where} = {values}, allowed is a list.")
    return tuple(convert(one) for one in cast("list[Any]", values))


def _float(value: float) -> float:
    """Convert a number; anything else is left for the field's rule, which names the field."""
    try:
        return number(value, "value")
    except Refused:
        return value


def _int(value: int | None) -> Any:
    """Convert a whole number; anything else is left for the field's rule."""
    try:
        return None if value is None else whole(value, "value")
    except Refused:
        return value


def real(event: object, field: attrs.Attribute[Any], value: object) -> None:
    """A number of at least 0."""
    try:
        number(value, f"{type(event).__name__}: {field.name}")
    except Refused as why:
        raise TypeError(str(why)) from None


def chance(event: object, field: attrs.Attribute[Any], value: object) -> None:
    """A probability."""
    real(event, field, value)
    if cast(float, value) > 1:
        name = type(event).__name__
        raise TypeError(f"{name}: {field.name} = {value}, allowed is a probability.")


def count(event: object, field: attrs.Attribute[Any], value: object) -> None:
    """A whole number of at least 1, or None where the field may be unknown."""
    if value is None and field.default is not attrs.NOTHING:
        return
    name = type(event).__name__
    try:
        found = whole(value, f"{name}: {field.name}")
    except Refused as why:
        raise TypeError(str(why)) from None
    if found == 0:
        raise TypeError(f"{name}: {field.name} = 0, allowed is a whole number above 0.")


@attrs.frozen
class LaplaceL2DpEvent(DpEvent):
    """Product Laplace noise on a vector whose l2 distance is at most S: Renyi only (Theorem 3)."""

    noise_multiplier: float = attrs.field(converter=_float, validator=real)
    dim: int | None = attrs.field(
        default=None, converter=_int, validator=count
    )  # None: any dimension, the limit of Theorem 3


@attrs.frozen
class LaplaceBothDpEvent(DpEvent):
    """Product Laplace noise on a vector with both an l1 and an l2 bound: the better row."""

    l1_multiplier: float = attrs.field(converter=_float, validator=real)
    l2_multiplier: float = attrs.field(converter=_float, validator=real)
    dim: int | None = attrs.field(default=None, converter=_int, validator=count)


@attrs.frozen
class StaircaseDpEvent(DpEvent):
    """Product staircase noise; the distance is `shift` <= 1 times its step Delta."""

    epsilon: float = attrs.field(
        converter=_float, validator=real
    )  # log of the ratio between two steps
    gamma: float = attrs.field(
        converter=_float, validator=chance
    )  # where in a step the density falls
    shift: float = attrs.field(default=1.0, converter=_float, validator=chance)
    norm: str = attrs.field(default="l1", validator=attrs.validators.in_(("l1", "l2")))
    dim: int | None = attrs.field(
        default=1, converter=_int, validator=count
    )  # None: any dimension (l1 only; infinite for l2)


@attrs.frozen
class PureDpEvent(DpEvent):
    """Any epsilon-DP release; dominated by randomised response on one bit."""

    epsilon: float = attrs.field(converter=_float, validator=real)


@attrs.frozen
class ApproximateDpEvent(DpEvent):
    """Any (epsilon, delta)-DP release; it reveals all with probability delta."""

    epsilon: float = attrs.field(converter=_float, validator=real)
    delta: float = attrs.field(converter=_float, validator=chance)


@attrs.frozen
class DiscreteGaussianDpEvent(DpEvent):
    """Discrete Gaussian noise of parameter `sigma` on integer vectors at l2 distance <= `l2`."""

    sigma: float = attrs.field(converter=_float, validator=real)
    l2: float = attrs.field(converter=_float, validator=real)
    dim: int | None = attrs.field(default=None, converter=_int, validator=count)


@attrs.frozen
class SkellamDpEvent(DpEvent):
    """Skellam noise of this variance on integer vectors at l1 and l2 distance at most these."""

    variance: float = attrs.field(converter=_float, validator=real)
    l2: float = attrs.field(converter=_float, validator=real)
    # never above min(sqrt(dim) l2, l2 squared)
    l1: float = attrs.field(default=math.inf, converter=_float, validator=real)
    dim: int | None = attrs.field(default=None, converter=_int, validator=count)


@attrs.frozen
class BinomialDpEvent(DpEvent):
    """Centred Binomial(trials, p) noise on integer vectors at these distances: no Renyi curve."""

    trials: int = attrs.field(converter=_int, validator=count)
    p: float = attrs.field(converter=_float, validator=chance)
    l1: float = attrs.field(converter=_float, validator=real)
    l2: float = attrs.field(converter=_float, validator=real)
    linf: float = attrs.field(converter=_float, validator=real)
    dim: int = attrs.field(converter=_int, validator=count)


@attrs.frozen
class ShuffledDpEvent(DpEvent):
    """One message from each of `users`, each by an epsilon-DP randomiser, in random order."""

    epsilon: float = attrs.field(converter=_float, validator=real)
    users: int = attrs.field(converter=_int, validator=count)


@attrs.frozen
class MixedDpEvent(DpEvent):
    """With this probability the inner release, else one that is the same in both worlds.

    The output without the unit need not look like either neighbour's output, so only joint
    convexity holds: delta falls by the factor, epsilon does not. It covers Poisson sampling under
    replace-one and a record inside a sampled client.
    """

    probability: float = attrs.field(converter=_float, validator=chance)
    event: DpEvent = attrs.field(validator=attrs.validators.instance_of(DpEvent))


@attrs.frozen
class RandomParticipationDpEvent(DpEvent):
    """`rounds` rounds, each joined independently with this probability, by coins free of data.

    A schedule whose rounds depend on each other (every second round, all rounds or none) is another
    event, even if each round is joined with this probability (docs/proofs/participation.md).
    """

    probability: float = attrs.field(converter=_float, validator=chance)
    rounds: int = attrs.field(converter=_int, validator=count)
    event: DpEvent = attrs.field(validator=attrs.validators.instance_of(DpEvent))
