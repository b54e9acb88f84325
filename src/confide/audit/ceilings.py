"""The trade-off curve that a row of a statement claims: the ceiling of every attack on it."""

from __future__ import annotations

from math import isfinite

from confide.accounting import account, contents, gdp, sampling
from confide.accounting.events import DpEvent
from confide.accounting.losses import LossAccountant
from confide.accounting.relations import Refused, Relation
from confide.audit.bounds import Curve, gaussian, of_pairs

GRID = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)


def ceiling(event: DpEvent | None, relation: Relation, epsilon: float, delta: float) -> Curve:
    """The curve of this event; of the row's two numbers alone where it has no simple one.

    Between the points that the accountant is asked for it lies below the claimed one, so nothing
    is refuted that was not claimed.
    """
    pairs = [(epsilon, delta)] if isfinite(epsilon) else []
    if event is not None:
        mu = gdp.ratio(event)
        if mu is not None:
            return gaussian(mu)
        pairs += deltas(event, relation)
    return of_pairs(pairs or [(0.0, 1.0)])


def of_replacing(curve: Curve, relation: Relation) -> Curve:
    """What the claim allows a test that tells which of two units was in.

    Under replace-one that is the claim itself. Where it speaks of adding, removing or blanking one,
    the two units are two steps apart: if f bounds one step, a test with alarms a misses the unit of
    the first step with at least f(a), and what it does not miss are its alarms in the second one,
    so its misses there are at least f(1 - f(a)).
    """
    if relation is Relation.REPLACE_ONE:
        return curve
    return lambda alarms: curve(min(1.0, max(0.0, 1 - curve(alarms))))


def deltas(event: DpEvent, relation: Relation) -> list[tuple[float, float]]:
    """Points of the privacy profile, as far as an accountant proves them."""
    if contents.certified_count(event):  # known by one (epsilon, delta) each
        return []
    priced = sampling.priced(event, relation)
    losses = LossAccountant(relation)
    if losses.supports(priced):
        losses.compose(priced)
        found = [(e, losses.get_delta(e)) for e in GRID]
    else:
        try:
            found = [(e, account.delta(event, e, relation).delta) for e in GRID]
        except Refused:
            found = []
    return [(float(e), d) for e, d in found if d < 1]
