"""The privacy-loss accountant: which releases have a proved dominating pair, and their composition.

It is dp-accounting's PLD accountant with this project's events. Sensitivity is already divided
out of every multiplier (S of the relation in force), so an un-sampled pair is the same under each
relation; a Poisson coin is accepted only where an absent unit sends nothing, that is under
add-remove and zero-out. Each direction is composed by itself and the worse one is reported. The
normal and Laplace losses are evaluated here and not by dp-accounting because it inverts them one
point at a time and composes on a fixed grid. The proofs are in docs/proofs/losses.md.
"""

from __future__ import annotations

import math

from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant

from confide.accounting import sampling
from confide.accounting.composition import Composition
from confide.accounting.dominating import Unproved
from confide.accounting.events import ComposedDpEvent, DpEvent, SelfComposedDpEvent
from confide.accounting.pairs import Atoms
from confide.accounting.plans import Plan, plan_of
from confide.accounting.relations import Refused, Relation

NEIGHBOURS = {
    Relation.ADD_REMOVE: NeighboringRelation.ADD_OR_REMOVE_ONE,
    Relation.ZERO_OUT: NeighboringRelation.REPLACE_SPECIAL,
    Relation.REPLACE_ONE: NeighboringRelation.REPLACE_ONE,
}


class LossAccountant(PLDAccountant):
    """dp-accounting's PLD accountant for this project's events and relations."""

    def __init__(self, relation: Relation = Relation.ADD_REMOVE):
        """Start from nothing spent."""
        self._relation = Relation(relation)
        super().__init__(NEIGHBOURS[self._relation])
        self._releases: dict[str, tuple[DpEvent, int]] = {}
        self._built: list[Composition] | None = None

    def _maybe_compose(
        self, event: DpEvent, count: int, do_compose: bool
    ) -> PLDAccountant.CompositionErrorDetails | None:
        if not do_compose:
            try:
                plan_of(sampling.priced(event, self._relation), self._relation)
            except (Unproved, Refused) as reason:
                return self.CompositionErrorDetails(event, str(reason))
            return None
        event = sampling.priced(event, self._relation)
        key = repr(event)
        self._releases[key] = event, self._releases.get(key, (event, 0))[1] + count
        self._built = None
        return None

    def _compositions(self) -> list[Composition]:
        """One composition, or one for each direction where they differ."""
        if self._built is None:
            repeated = [
                SelfComposedDpEvent(event, count) for event, count in self._releases.values()
            ]
            plan = plan_of(ComposedDpEvent(list[DpEvent](repeated)), self._relation)
            pairs = list(plan.pairs())
            if not pairs:
                raise Refused("nothing was released, so there is no epsilon to state")
            self._built = [
                _composition(plan, removal)
                for removal in (
                    [True, False] if any(p.remove is not p.add for p in pairs) else [True]
                )
            ]
        return self._built

    def get_epsilon(self, target_delta: float) -> float:
        """Return a proved epsilon, or infinity."""
        found = [one.epsilon(target_delta) for one in self._compositions()]
        return math.inf if any(math.isnan(value) for value in found) else max(found)

    def get_delta(self, target_epsilon: float) -> float:
        """Return a proved delta, at most 1."""
        found = [one.delta(target_epsilon) for one in self._compositions()]
        return 1.0 if any(math.isnan(value) for value in found) else max(found)


def _composition(plan: Plan, removal: bool) -> Composition:
    sides = [pair.remove if removal else pair.add for pair in plan.pairs()]
    units = {side.unit if isinstance(side, Atoms) else None for side in sides if side.span > 0}
    return Composition(
        build=lambda width: plan.law(width, removal),
        span=max(side.span for side in sides) or 1.0,
        unit=units.pop() if len(units) == 1 else None,
        lumpy=any(isinstance(side, Atoms) for side in sides),
    )
