"""Renyi curves of releases on a random sample, and which sampling goes with which relation.

Everything drawn with one coin is composed first and amplified once. The proofs are in
docs/proofs/sampling.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import attrs
import dp_accounting as dp
import numpy as np
from dp_accounting.dp_event import RandomizedResponseDpEvent, RepeatAndSelectDpEvent

from confide.accounting import events, gdp, moments, staircase
from confide.accounting.events import DpEvent
from confide.accounting.moments import Array, Integers
from confide.accounting.relations import Refused, Relation
from confide.accounting.sampled_moments import (
    LARGEST_EVEN,
    GaussianMoments,
    LaplaceMoments,
    Moments,
    StepMoments,
)

Curve = Callable[[DpEvent, Array], Array]


def check_relation(event: DpEvent, relation: Relation) -> None:
    """Refuse an event whose sampling has no proof under this neighbouring relation."""
    relation = Relation(relation)
    if isinstance(event, events.PoissonSampledDpEvent) and relation is Relation.REPLACE_ONE:
        raise Refused(
            "Poisson sampling under replace-one is not proved: use add-remove or zero-out, "
            "fixed-size sampling, or a mixed event."
        )
    if (
        isinstance(event, events.SampledWithoutReplacementDpEvent)
        and relation is not Relation.REPLACE_ONE
    ):
        raise Refused(
            f"sampling without replacement under {relation} is not proved: "
            "a sample of fixed size goes with replace-one."
        )
    if isinstance(event, events.ShuffledDpEvent) and relation is Relation.ADD_REMOVE:
        raise Refused(
            "shuffling under add-remove is not proved: the number of messages shows who is "
            "absent; use zero-out or replace-one."
        )
    if isinstance(event, RandomizedResponseDpEvent) and relation is Relation.ADD_REMOVE:
        raise Refused(
            "randomised response under add-remove is not proved: an absent unit sends nothing; "
            "use zero-out or replace-one."
        )
    for part in _parts(event):
        check_relation(part, relation)


def priced(event: DpEvent, relation: Relation) -> DpEvent:
    """The event that is priced in place of this one, in plain numbers, or a refusal."""
    event = events.plain(event)
    check_relation(event, relation)
    return _replaced(event, Relation(relation))


def _replaced(event: DpEvent, relation: Relation) -> DpEvent:
    if isinstance(event, RandomizedResponseDpEvent):
        return _response(event, relation)
    if isinstance(event, events.ComposedDpEvent):
        parts = tuple(_replaced(part, relation) for part in event.events)
        return events.ComposedDpEvent(cast("list[DpEvent]", parts))
    inner = _parts(event)
    return attrs.evolve(event, event=_replaced(inner[0], relation)) if inner else event


def is_sampled(event: DpEvent) -> bool:
    """Whether a coin decides who takes part in the release, or in a part of it."""
    return isinstance(event, _COINS) or any(map(is_sampled, _parts(event)))


_COINS = (
    events.PoissonSampledDpEvent,
    dp.SampledWithReplacementDpEvent,
    events.SampledWithoutReplacementDpEvent,
    events.MixedDpEvent,
    events.RandomParticipationDpEvent,
)


def response_epsilon(event: dp.RandomizedResponseDpEvent) -> float:
    """The logarithm of the largest ratio of two laws of randomised response over k buckets."""
    lie, k = event.noise_parameter, event.num_buckets
    if not (lie <= 1 and k >= 1):
        raise Refused(
            f"randomised response with noise_parameter = {lie} over num_buckets = {k}: the first "
            "must be a probability, the second at least 1."
        )
    if k == 1 or lie == 1:
        return 0.0
    return math.inf if lie == 0 else math.log1p((1 - lie) / lie * k) * (1 + 1e-15)


def _response(event: dp.RandomizedResponseDpEvent, relation: Relation) -> DpEvent:
    """Two buckets are a staircase with gamma = 1/2; a zeroed answer may be anything in between.

    Given its own bucket the answer is it with probability 1 - p + p/k, given the other with p/k;
    all else is equally likely. With b = e^-epsilon the ratio of the two, u (1 + b) = 1 - p + 2p/k
    for u = 1 - p + p/k; a staircase with gamma = 1/2 has u = shift / (1 + b).
    """
    epsilon, lie = response_epsilon(event), event.noise_parameter
    if epsilon == 0:
        return events.NOTHING
    if relation is Relation.REPLACE_ONE and 1e-9 <= epsilon <= 700:
        shift = (1 - lie + 2 * lie / event.num_buckets) * (1 + 1e-15)
        return events.StaircaseDpEvent(epsilon, 0.5, min(shift, 1.0))
    return events.PureDpEvent(epsilon) if math.isfinite(epsilon) else events.OPEN


def _parts(event: DpEvent) -> list[DpEvent]:
    if isinstance(event, events.ComposedDpEvent):
        return list(event.events)
    if isinstance(
        event,
        events.SelfComposedDpEvent
        | events.PoissonSampledDpEvent
        | events.SampledWithoutReplacementDpEvent
        | events.MixedDpEvent
        | events.RandomParticipationDpEvent
        | dp.SampledWithReplacementDpEvent
        | RepeatAndSelectDpEvent,
    ):
        return [event.event]
    return []


def check_count(count: int) -> int:
    """How often an event is repeated: a whole number, at least 0."""
    return events.whole(count, "count")


def exact_moments(event: DpEvent) -> Moments | None:
    """Moments of the pair that dominates the event and is attained, where it is known."""
    mu = gdp.ratio(event)
    if mu is not None and 1e-9 <= mu <= 1e3:
        return GaussianMoments(1 / mu)
    if isinstance(event, events.LaplaceDpEvent) and 1e-3 <= event.noise_multiplier <= 1e9:
        return LaplaceMoments(1 / event.noise_multiplier)
    if isinstance(event, events.StaircaseDpEvent) and event.dim == 1:
        plus, _, _ = staircase.atoms(event.epsilon, event.gamma, event.shift)
        return StepMoments(event.epsilon, plus)
    if isinstance(event, events.PureDpEvent) and 1e-9 <= event.epsilon <= 700:
        plus, _, _ = staircase.atoms(event.epsilon, 0.5)
        return StepMoments(event.epsilon, plus)
    return None


def poisson(event: dp.PoissonSampledDpEvent, orders: Array, curve: Curve) -> Array:
    """The inner release on a sample that each unit joins by its own coin."""
    rate = event.sampling_probability
    if not 0 <= rate <= 1:
        raise Refused(f"sampling_probability = {rate}: must lie between 0 and 1.")
    inner = event.event
    if rate == 0:
        return np.zeros(orders.shape)
    if rate == 1:
        return curve(inner, orders)
    rate = max(rate, moments.LEAST_RATE)  # less of the unit is a mixture of more and of none
    pair = exact_moments(inner)
    if pair is not None:
        logs = pair.log_sampled(orders, rate)
    else:
        logs = moments.log_poisson(orders, rate, lambda ks: (ks - 1) * curve(inner, ks))
    amplified = moments.rounded_up(logs / (orders - 1), orders)
    return np.fmin(amplified, _blend(rate, curve(inner, orders), orders))


def mixed(event: events.MixedDpEvent, orders: Array, curve: Curve) -> Array:
    """The inner release with this probability, else one that is the same in both worlds."""
    return _blend(event.probability, curve(event.event, orders), orders)


def _blend(rate: float, inner: Array, orders: Array) -> Array:
    """log(1 - q + q e^{(order - 1) inner}) / (order - 1): joint convexity, nothing else.

    It rises with the rate.
    """
    if rate == 0:
        return np.zeros(orders.shape)
    if rate == 1:
        return inner
    rate = max(rate, moments.LEAST_RATE)
    growth = (orders - 1) * inner
    near = np.log1p(rate * np.expm1(np.minimum(growth, 1.0)))
    far = np.logaddexp(math.log1p(-rate), math.log(rate) + growth)
    return moments.rounded_up(np.where(growth < 1, near, far) / (orders - 1), orders)


def without_replacement(
    event: dp.SampledWithoutReplacementDpEvent, orders: Array, curve: Curve
) -> Array:
    """The inner release on a uniform sample of fixed size, under replace-one."""
    size, total = event.sample_size, event.source_dataset_size
    if not (size <= total and total >= 1):
        raise Refused(
            f"sample_size = {size} of source_dataset_size = {total}: must be whole numbers, the "
            "sample not above the source."
        )
    inner = event.event
    if size == 0:
        return np.zeros(orders.shape)
    if size == total:
        return curve(inner, orders)
    rate = size / total

    def at_integers(integers: Integers) -> Array:
        top = int(integers[-1])
        terms = _fixed_size_terms(top, inner, curve) + math.log(rate) * np.arange(top + 1)
        return np.logaddexp(0.0, moments.log_binomial_sum(integers, terms))

    logs = moments.between_integers(orders, at_integers)
    amplified = moments.rounded_up(logs / (orders - 1), orders)
    return np.fmin(amplified, curve(inner, orders))


def _fixed_size_terms(top: int, inner: DpEvent, curve: Curve) -> Array:
    """Logarithms of bounds on E_R |(P - Q) / R|^j for j = 0..top; the first two are not used."""
    growth = np.arange(1.0, top) * curve(inner, np.arange(2.0, top + 1))
    bounds = math.log(2) + growth
    bounds[0] = min(bounds[0], math.log(4) + float(moments.log_expm1(growth[0])))
    pair = exact_moments(inner)
    if pair is not None and top >= 3:
        # Only an attained pair has these: alternating sums of upper bounds bound nothing.
        powers = np.arange(2, min(top + 1, LARGEST_EVEN) + 1, 2)
        even = np.full(top + 2, np.inf)
        even[powers] = pair.log_even(powers)
        js = np.arange(2, top + 1)
        tight = math.log(4) + (even[js // 2 * 2] + even[(js + 1) // 2 * 2]) / 2
        bounds = np.fmin(bounds, tight)
    return np.concatenate([[-np.inf, -np.inf], bounds])
