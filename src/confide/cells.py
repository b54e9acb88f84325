"""One row of a statement: what is proved of every round of a run for one unit and observer.

Each round comes with one argument or several; those that speak of all rounds under one relation are
composed, and the best of them is the row.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import ceil, exp, inf
from typing import TYPE_CHECKING, Any

from confide.accounting.account import Answer
from confide.accounting.account import epsilon as account
from confide.accounting.events import (
    OPEN,
    DpEvent,
    RandomParticipationDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.relations import Refused, Relation
from confide.accounting.sequences import composed
from confide.rounding import bound

if TYPE_CHECKING:
    from confide.derive import Key, Release
    from confide.engine.rounds import Sizes

VIEWS = {
    "device": "someone inside a client, who sees each example's gradient as it leaves `example`",
    "server": "the server, which knows who takes part and sees what the channel shows",
    "world": "everyone else, who sees what is published, but not who takes part",
}


CAPPED = (
    "a cap on participations ties the cohorts of different rounds together, which no proof of "
    "amplification by sampling covers"
)

UNLIKE = (
    "the published noise goes on from round to round, and is not the same in all of them: no proof "
    "covers that"
)


@dataclass(frozen=True)
class Cell:
    """One row: what one observer can learn about one unit."""

    unit: str
    observer: str
    of: str
    epsilon: float
    delta: float
    relation: str
    sampler: str
    accountant: str
    participations: int
    assumptions: tuple[str, ...]
    status: str  # "proved" or "infinite"
    reason: str
    group: str = ""

    def words(self) -> str:
        """The row as a sentence that a privacy officer can read."""
        thing = "" if self.of == "update" else f" from `{self.of}`"
        who = f"To {VIEWS[self.observer]},{thing and ' looking at what it learns' + thing + ','}"
        if self.status == "infinite":
            return f"{who} no {self.unit} is protected: {self.reason}."
        rests = f" It assumes: {'; '.join(self.assumptions)}." if self.assumptions else ""
        return (
            f"{who} one {self.unit} more or less ({self.relation}) changes the odds of anything by "
            f"at most a factor of e^{bound(self.epsilon, 4)}, but for probability "
            f"{bound(self.delta, 2)} "
            f"({self.accountant}, {self.sampler or 'no sampling'}).{rests}"
        )

    def row(self) -> dict[str, Any]:
        """For JSON."""
        data = {**asdict(self), "assumptions": list(self.assumptions)}
        data["epsilon"] = "inf" if self.epsilon == inf else self.epsilon
        return data


def default_delta(unit: str, sizes: Sizes) -> float:
    """1 / (10 x units), with as many units as there can be."""
    return 1 / (10 * sizes.clients * (sizes.largest if unit == "record" else 1))


def arguments(
    key: Key, derived: list[tuple[dict[Key, tuple[Release, ...]], int]]
) -> list[list[tuple[Release, int]]]:
    """For each argument that speaks of every round under one relation: its releases."""
    first, _ = derived[0]
    found: list[list[tuple[Release, int]]] = []
    for lead in first[key]:
        same = [
            [(w, n) for w in ways[key] if (w.way, w.relation) == (lead.way, lead.relation)][:1]
            for ways, n in derived
        ]
        if all(same):
            found.append([pair for (pair,) in same])
    if not found:
        raise Refused(
            f"rounds: no argument for the row {key} covers all of them under one relation; give "
            "them the same kind of cohort, channel and batches."
        )
    return found


def best(options: list[Cell]) -> Cell:
    """The least epsilon under the first relation that has one; else every reason.

    Any of them may stand, because a row names its own relation. Where zero-out comes first a
    replace-one row may be less: both compare a unit that takes part with one that takes part. It
    must keep its name. Noise in local steps is the same for any two inputs, but a contribution of
    zero has none of it, so the second relation does not follow from the first.
    """
    proved = [c for c in options if c.status == "proved"]
    if proved:
        told = {proved[0].relation}
        if told == {str(Relation.ZERO_OUT)}:
            told.add(str(Relation.REPLACE_ONE))
        return min((c for c in proved if c.relation in told), key=lambda c: c.epsilon)
    reasons = list(dict.fromkeys(c.reason for c in options))
    return replace(options[0], reason="; and ".join(reasons))


def cell_by(key: Key, ways: list[tuple[Release, int]], delta: float, group: str) -> Cell:
    """One row by one way of proving it, over all rounds."""
    first = ways[0][0]
    event, participations = over_rounds(ways)
    why = next((way.reason for way, _ in ways if way.open), "")
    why = why or (UNLIKE if any(w.correlated != first.correlated for w, _ in ways) else CAPPED)
    answer = Answer(inf, delta, "none", None, first.relation, ())
    if event != OPEN:
        fails = sum(way.fails * n for way, n in ways)
        answer = epsilon_of(event, delta, first, fails)
        why = "" if answer.epsilon < inf else f"no finite epsilon is proved at delta {delta:g}"
    if first.rounds == "all":
        participations = sum(n for _, n in ways)
    return cell_of(key, first, replace(answer, delta=delta), participations, ways, why, group)


def cell_of(
    key: Key,
    first: Release,
    answer: Answer,
    participations: int,
    ways: list[tuple[Release, int]],
    why: str,
    group: str,
) -> Cell:
    """The row that says this answer."""
    unit, observer, of = key
    assumed = [a for way, _ in ways for a in way.assumptions] + list(answer.assumptions)
    return Cell(
        unit=unit,
        observer=observer,
        of=of,
        epsilon=answer.epsilon,
        delta=answer.delta,
        relation=str(first.relation if first.hops == 1 else Relation.REPLACE_ONE),
        sampler=first.sampler,
        accountant=answer.accountant,
        participations=participations,
        assumptions=tuple(dict.fromkeys(assumed)),
        status="proved" if answer.epsilon < inf else "infinite",
        reason=why,
        group=group,
    )


def over_rounds(ways: list[tuple[Release, int]]) -> tuple[DpEvent, int]:
    """The event of the whole run, and the largest number of a unit's participations it covers."""
    total = sum(n for _, n in ways)
    if any(way.open for way, _ in ways):
        return OPEN, total
    first = ways[0][0]
    if any(w.rounds == "all" and w.at_most is not None and w.at_most < total for w, _ in ways):
        return OPEN, total
    if any(w.correlated != first.correlated for w, _ in ways):
        return OPEN, total
    kind = (first.event, first.chance, first.rounds, first.at_most, first.spaced)
    if any((w.event, w.chance, w.rounds, w.at_most, w.spaced) != kind for w, _ in ways):
        return composed([SelfComposedDpEvent(way.event, n) for way, n in ways]), total
    turns = ceil(total / first.spaced)
    most = turns if first.at_most is None else min(turns, first.at_most)
    if first.rounds == "all":
        return SelfComposedDpEvent(first.event, total), total
    if first.chance < 1 and most == total:
        return RandomParticipationDpEvent(first.chance, total, first.event), total
    return SelfComposedDpEvent(first.event, most), most


LEAST_DELTA = 1e-18
"""Accountants are not asked below this; what would need a smaller delta is not stated."""


def epsilon_of(event: DpEvent, delta: float, way: Release, fails: float) -> Answer:
    """Epsilon when bounds fail with this probability over the run, and over one or more hops.

    Proof. Outside of the failures the run is (e, d)-DP; a failure costs at most its probability in
    one world and e^e times that in the other, so it is (e, d + (1 + e^e) fails)-DP. h (e, d) steps
    in a row are (h e, (1 + e^e + ... + e^((h-1) e)) d)-DP. Any e at which what is needed is at most
    delta is therefore right; the search goes up from the e without failures and tests each one.
    """
    answer = account(event, delta, way.relation)
    if (fails == 0 and way.hops == 1) or answer.epsilon == inf:
        return answer
    for _ in range(200):
        e = answer.epsilon * (1 + 1e-8) + 1e-12
        share = 1 / sum(exp(min(hop * e, 700.0)) for hop in range(way.hops))
        left = delta * share - (1 + exp(min(e, 700.0))) * fails
        if left < LEAST_DELTA:
            break
        following = account(event, left, way.relation)
        if following.epsilon <= e:
            return replace(following, epsilon=way.hops * e, delta=delta)
        if following.epsilon == inf:
            break
        answer = following
    return replace(answer, epsilon=inf, accountant="none")
