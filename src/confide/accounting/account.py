"""Epsilon of an event, by the best accountant that is proved for it.

Gaussian releases compose exactly; where every release has a dominating pair the privacy loss is
composed; the rest has a Renyi curve or none. What has no proof is infinite, with the reason. A
question that cannot be meant (nothing released, a number that is not one) is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, cast, get_args

from confide.accounting import binomial, contents, gdp, participation, sampling
from confide.accounting.assumptions import assumptions_of
from confide.accounting.events import (
    BinomialDpEvent,
    DpEvent,
    RandomParticipationDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.losses import LossAccountant
from confide.accounting.relations import Refused, Relation
from confide.accounting.renyi import RenyiAccountant

Accountant = Literal["auto", "gdp", "pld", "rdp"]
ACCOUNTANTS: tuple[str, ...] = get_args(Accountant)
CERTIFICATE_SHARES = (
    0.1,
    0.5,
    0.9,
    0.99,
)  # of delta, for releases known by one (epsilon, delta) each


@dataclass(frozen=True)
class Answer:
    """A proved guarantee, or infinity and why."""

    epsilon: float
    delta: float
    accountant: str
    order: float | None
    relation: Relation
    assumptions: tuple[str, ...]
    reason: str | None = None


def epsilon(
    event: DpEvent,
    delta: float,
    relation: Relation = Relation.ADD_REMOVE,
    accountant: Accountant = "auto",
) -> Answer:
    """Return the least epsilon that is proved for the event at this delta."""
    if not (isinstance(delta, float) and 0 < delta < 1):
        raise Refused(f"delta = {delta}: must be a number strictly between 0 and 1")
    relation = Relation(relation)
    question = _Question(sampling.priced(event, relation), relation, epsilon=None, delta=delta)
    return question.answer(accountant)


def delta(
    event: DpEvent,
    epsilon: float,
    relation: Relation = Relation.ADD_REMOVE,
    accountant: Accountant = "auto",
) -> Answer:
    """Return the least delta that is proved for the event at this epsilon."""
    if not 0 <= epsilon < math.inf:
        raise Refused(f"epsilon = {epsilon}: must be finite and at least 0")
    relation, epsilon = Relation(relation), float(epsilon)
    question = _Question(sampling.priced(event, relation), relation, epsilon=epsilon, delta=None)
    return question.answer(accountant)


@dataclass(frozen=True)
class _Found:
    value: float
    accountant: str
    order: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class _Question:
    """Either number is asked for and the other given."""

    event: DpEvent
    relation: Relation
    epsilon: float | None
    delta: float | None

    def answer(self, accountant: str) -> Answer:
        """Ask the accountants in order of strength."""
        if accountant not in ACCOUNTANTS:
            raise Refused(f"accountant = {accountant!r}: must be one of {', '.join(ACCOUNTANTS)}")
        if contents.releases(self.event) == 0:
            raise Refused("the event releases nothing, so there is no epsilon to state")
        found = self._by(accountant)
        worst = math.inf if self.epsilon is None else 1.0
        value = worst if math.isnan(found.value) else max(found.value, 0.0)
        reason = found.reason if value == worst else None
        if value == worst and reason is None:
            reason = (
                "no finite epsilon is proved at this delta"
                if self.epsilon is None
                else "no delta below 1 is proved at this epsilon"
            )
        return Answer(
            epsilon=value if self.epsilon is None else self.epsilon,
            delta=value if self.delta is None else self.delta,
            accountant=found.accountant,
            order=found.order,
            relation=self.relation,
            assumptions=assumptions_of(self.event),
            reason=reason,
        )

    def _by(self, accountant: str) -> _Found:
        open_ = contents.open_part(self.event)
        if open_ is not None:
            return self._unproved(open_)
        if accountant == "gdp":
            return self._gdp() or self._unproved(
                "the gdp accountant is exact for un-sampled Gaussian releases only"
            )
        if accountant == "pld":
            return self._pld()
        if accountant == "rdp":
            return self._rdp()
        return self._gdp() or self._best()

    def _best(self) -> _Found:
        losses = self._pld()
        # Two bounds hold for noise with two norms; only Renyi knows the better of them.
        if (
            math.isfinite(losses.value)
            and losses.reason is None
            and not contents.has_two_norms(self.event)
        ):
            return losses
        renyi = self._rdp()
        found = renyi if renyi.value < losses.value else losses
        if isinstance(self.event, RandomParticipationDpEvent) and self.delta is not None:
            split = self._by_threshold(self.event, self.delta)
            found = split if split.value < found.value else found
        if found.reason and losses.reason and renyi.reason:
            return self._unproved(f"{losses.reason}; {renyi.reason}")
        return found

    def _gdp(self) -> _Found | None:
        mu = gdp.ratio(self.event)
        if mu:
            value = (
                gdp.epsilon(mu, cast(float, self.delta))
                if self.epsilon is None
                else gdp.delta(mu, self.epsilon)
            )
            return _Found(value, "gdp")
        inner = _once(self.event)
        if isinstance(inner, RandomParticipationDpEvent) and gdp.ratio(inner.event):
            value = (
                participation.epsilon(inner, cast(float, self.delta))
                if self.epsilon is None
                else participation.delta(inner, self.epsilon)
            )
            return _Found(value, "gdp")
        return None

    def _pld(self) -> _Found:
        alone = _once(self.event)
        if isinstance(alone, BinomialDpEvent) and alone.dim == 1:
            if self.epsilon is None:
                return _Found(binomial.epsilon(alone, cast(float, self.delta)), "pld")
            return _Found(binomial.delta(alone, self.epsilon), "pld")
        if (count := contents.certified_count(self.event)) > 0:
            return self._certified(count)
        accountant = LossAccountant(self.relation)
        reason = _refusal(accountant, self.event)
        if reason is not None:
            return self._unproved(reason, "pld")
        accountant.compose(self.event)
        if self.epsilon is None:
            return _Found(accountant.get_epsilon(cast(float, self.delta)), "pld")
        return _Found(accountant.get_delta(self.epsilon), "pld")

    def _rdp(self) -> _Found:
        accountant = RenyiAccountant(self.relation)
        reason = _refusal(accountant, self.event)
        if reason is not None:
            return self._unproved(reason, "rdp")
        accountant.compose(self.event)
        if self.epsilon is None:
            value, order = accountant.get_epsilon_and_optimal_order(cast(float, self.delta))
        else:
            value, order = accountant.get_delta_and_optimal_order(self.epsilon)
        known = value < (math.inf if self.epsilon is None else 1.0)
        return _Found(value, "rdp", float(order) if known else None)

    def _by_threshold(self, event: RandomParticipationDpEvent, delta: float) -> _Found:
        def inner(release: DpEvent, count: int, left: float) -> float:
            repeated = SelfComposedDpEvent(release, count)
            return _Question(repeated, self.relation, None, left)._best().value

        return _Found(participation.epsilon_by_threshold(event, delta, inner), "rdp")

    def _certified(self, count: int) -> _Found:
        """Binomial releases known by cpSGD's theorem: one (epsilon, delta) each, composed."""
        if self.epsilon is not None:
            return self._inverse(self.epsilon)
        found = self._unproved("no certificate", "pld")
        for share in CERTIFICATE_SHARES:
            each = cast(float, self.delta) * share / count
            try:
                event = contents.certify(self.event, each)
            except Refused as refusal:
                found = found if math.isfinite(found.value) else self._unproved(str(refusal), "pld")
                continue
            other = _Question(event, self.relation, None, self.delta)._pld()
            found = other if other.value < found.value else found
        return found

    def _inverse(self, epsilon: float) -> _Found:
        """The least delta on a fine grid whose epsilon is small enough."""
        low, high = -30.0, 0.0
        best = self._unproved("no delta below 1 gives this epsilon", "pld")
        for _ in range(20):
            middle = (low + high) / 2
            other = _Question(self.event, self.relation, None, 10**middle)._pld()
            if other.value <= epsilon:
                best, high = _Found(10**middle, "pld"), middle
            else:
                low = middle
        return best

    def _unproved(self, reason: str, accountant: str = "none") -> _Found:
        return _Found(math.inf if self.epsilon is None else 1.0, accountant, None, reason)


def _once(event: DpEvent) -> DpEvent:
    """Take off repetitions that repeat once."""
    while isinstance(event, SelfComposedDpEvent) and event.count == 1:
        event = event.event
    return event


def _refusal(accountant: LossAccountant | RenyiAccountant, event: DpEvent) -> str | None:
    details = accountant._maybe_compose(event, 1, False)  # pyright: ignore[reportPrivateUsage]
    return None if details is None else str(details.error_message)
