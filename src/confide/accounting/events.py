"""What one release is to the accountant: a noise with the sensitivity already divided out.

An event says which pair of distributions (P, Q) an adversary must tell apart. The vocabulary is
dp-accounting's; this module adds the noises and the samplings that it lacks. Every multiplier is
the noise scale over S, the sensitivity *under the relation in force* (C for add-remove and
zero-out, 2C for replace-one). An accountant that does not know an event refuses it.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import attrs
import dp_accounting as dp

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


def real(event: object, field: attrs.Attribute[Any], value: object) -> None:
    """A number of at least 0: not NaN, not text, and not a paper's published value."""
    if not isinstance(value, Real) or isinstance(value, bool) or not float(value) >= 0:
        name = type(event).__name__
        raise TypeError(f"{name}: {field.name} = {value}, allowed is a number of at least 0.")


def chance(event: object, field: attrs.Attribute[Any], value: object) -> None:
    """A probability."""
    real(event, field, value)
    if not isinstance(value, Real) or float(value) > 1:
        name = type(event).__name__
        raise TypeError(f"{name}: {field.name} = {value}, allowed is a probability.")


def count(event: object, field: attrs.Attribute[Any], value: object) -> None:
    """A whole number of at least 1, or None where the field may be unknown."""
    if value is None and field.default is not attrs.NOTHING:
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        name = type(event).__name__
        raise TypeError(f"{name}: {field.name} = {value}, allowed is a whole number above 0.")


@attrs.frozen
class LaplaceL2DpEvent(DpEvent):
    """Product Laplace noise on a vector whose l2 distance is at most S: Renyi only (Theorem 3)."""

    noise_multiplier: float = attrs.field(validator=real)
    dim: int | None = attrs.field(
        default=None, validator=count
    )  # None: any dimension, the limit of Theorem 3


@attrs.frozen
class LaplaceBothDpEvent(DpEvent):
    """Product Laplace noise on a vector with both an l1 and an l2 bound: the better row."""

    l1_multiplier: float = attrs.field(validator=real)
    l2_multiplier: float = attrs.field(validator=real)
    dim: int | None = attrs.field(default=None, validator=count)


@attrs.frozen
class StaircaseDpEvent(DpEvent):
    """Product staircase noise; the distance is `shift` <= 1 times its step Delta."""

    epsilon: float = attrs.field(validator=real)  # log of the ratio between two steps
    gamma: float = attrs.field(validator=chance)  # where in a step the density falls
    shift: float = attrs.field(default=1.0, validator=chance)
    norm: str = attrs.field(default="l1", validator=attrs.validators.in_(("l1", "l2")))
    dim: int | None = attrs.field(
        default=1, validator=count
    )  # None: any dimension (l1 only; infinite for l2)


@attrs.frozen
class PureDpEvent(DpEvent):
    """Any epsilon-DP release; dominated by randomised response on one bit."""

    epsilon: float = attrs.field(validator=real)


@attrs.frozen
class ApproximateDpEvent(DpEvent):
    """Any (epsilon, delta)-DP release; it reveals all with probability delta."""

    epsilon: float = attrs.field(validator=real)
    delta: float = attrs.field(validator=chance)


@attrs.frozen
class DiscreteGaussianDpEvent(DpEvent):
    """Discrete Gaussian noise of parameter `sigma` on integer vectors at l2 distance <= `l2`."""

    sigma: float = attrs.field(validator=real)
    l2: float = attrs.field(validator=real)
    dim: int | None = attrs.field(default=None, validator=count)


@attrs.frozen
class SkellamDpEvent(DpEvent):
    """Skellam noise of this variance on integer vectors at l1 and l2 distance at most these."""

    variance: float = attrs.field(validator=real)
    l2: float = attrs.field(validator=real)
    # never above min(sqrt(dim) l2, l2 squared)
    l1: float = attrs.field(default=math.inf, validator=real)
    dim: int | None = attrs.field(default=None, validator=count)


@attrs.frozen
class BinomialDpEvent(DpEvent):
    """Centred Binomial(trials, p) noise on integer vectors at these distances: no Renyi curve."""

    trials: int = attrs.field(validator=count)
    p: float = attrs.field(validator=chance)
    l1: float = attrs.field(validator=real)
    l2: float = attrs.field(validator=real)
    linf: float = attrs.field(validator=real)
    dim: int = attrs.field(validator=count)


@attrs.frozen
class ShuffledDpEvent(DpEvent):
    """One message from each of `users`, each by an epsilon-DP randomiser, in random order."""

    epsilon: float = attrs.field(validator=real)
    users: int = attrs.field(validator=count)


@attrs.frozen
class MixedDpEvent(DpEvent):
    """With this probability the inner release, else one that is the same in both worlds.

    The output without the unit need not look like either neighbour's output, so only joint
    convexity holds: delta falls by the factor, epsilon does not. It covers Poisson sampling under
    replace-one and a record inside a sampled client.
    """

    probability: float = attrs.field(validator=chance)
    event: DpEvent = attrs.field(validator=attrs.validators.instance_of(DpEvent))


@attrs.frozen
class RandomParticipationDpEvent(DpEvent):
    """`rounds` rounds, each with this probability an inner release, by a schedule free of data."""

    probability: float = attrs.field(validator=chance)
    rounds: int = attrs.field(validator=count)
    event: DpEvent = attrs.field(validator=attrs.validators.instance_of(DpEvent))
