"""The trade-off curve that a row of a statement claims: the ceiling of every attack on it."""

from __future__ import annotations

from math import isfinite

from confide.accounting import account, gdp, sampling
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


def deltas(event: DpEvent, relation: Relation) -> list[tuple[float, float]]:
    """Points of the privacy profile, as far as an accountant proves them."""
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
