"""The statement: what is proved for each unit and observer, as data and in words.

The items follow what NIST SP 800-226 asks of a differential-privacy claim: the unit, the
neighbouring relation, the trust model (who sees what), epsilon and delta, how they were computed,
and what they rest on. Beside the proved cells stands the published claim, never mixed with them.
"""

from __future__ import annotations

from collections.abc import Iterable
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
from confide.published.value import Published
from confide.rounding import bound

if TYPE_CHECKING:
    from confide.derive import Key, Release
    from confide.engine.rounds import Round, Sizes

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


@dataclass(frozen=True)
class Statement:
    """All rows of a run or a plan, and what was published about it."""

    cells: tuple[Cell, ...]
    rounds: int
    sizes: Sizes
    noise: tuple[str, ...]
    published: Published | None = None

    def cell(self, unit: str, observer: str, of: str = "update") -> Cell:
        """One row; the worst group where clients differ."""
        found = [c for c in self.cells if (c.unit, c.observer, c.of) == (unit, observer, of)]
        if not found:
            raise KeyError(f"no row for {unit}, {observer}, {of}")
        return max(found, key=lambda c: c.epsilon)

    def rows(self) -> list[dict[str, Any]]:
        """The `statement` field of the JSON contract."""
        return [cell.row() for cell in self.cells]

    def words(self) -> str:
        """The whole statement in sentences."""
        lines = [
            f"{self.rounds} rounds, {self.sizes.clients} clients with at least "
            f"{self.sizes.records} records each, {self.sizes.dim} parameters.",
            *self.noise,
            *(cell.words() for cell in self.cells),
            "Settings chosen by looking at several runs or at held-out accuracy are not covered.",
        ]
        if self.published is not None:
            lines.append(f"Published, not proved here: {self.published}.")
        return "\n".join(lines)


def state(
    rounds: Iterable[tuple[Round, int]],
    sizes: Sizes,
    *,
    delta: float | None = None,
    published: Published | None = None,
    key: str | None = None,
) -> Statement:
    """The statement of a run of these rounds, each with how often it happens in a row.

    The rounds must have been planned before anything was released, but for the scale of clip and
    noise together: a run that chose its multipliers, its sampling or its length from what it saw is
    stated by the cap of its filter instead (docs/proofs/filters.md).

    `delta`: for every row; by default 1 / (10 x units), with as many units as there can be.
    `key`: where the noise's key comes from.
    """
    plan = [(r, n) for r, n in rounds if n > 0]
    if not plan:
        raise Refused("rounds: there are none, so nothing is released and nothing can be stated.")
    cells: list[Cell] = []
    for group, client in groups(plan, sizes):
        lived = [(r if client is None else r.for_client(client), n) for r, n in plan]
        cells += cells_of(lived, sizes, delta, group)
    total = sum(n for _, n in plan)
    return Statement(tuple(cells), total, sizes, noise_words(plan, key), published)


def groups(plan: list[tuple[Round, int]], sizes: Sizes) -> list[tuple[str, int | None]]:
    """Clients with equal numbers in every column: a name and a member of each group."""
    members = alike(plan, sizes)
    return [(f"{len(m)} clients like client {m[0]}", m[0]) for m in members] or [("", None)]


def alike(plan: list[tuple[Round, int]], sizes: Sizes) -> list[tuple[int, ...]]:
    """The members of every such group; none where no round has a column."""
    columns = [column for r, _ in plan for column in r.columns()]
    for column in columns:
        if len(column) != sizes.clients:
            raise Refused(
                f"a per-client column has {len(column)} numbers, allowed is one for each of the "
                f"{sizes.clients} clients"
            )
    members: dict[tuple[float, ...], list[int]] = {}
    for client in range(sizes.clients):
        members.setdefault(tuple(c[client] for c in columns), []).append(client)
    return [tuple(m) for m in members.values()] if columns else []


def cells_of(
    plan: list[tuple[Round, int]], sizes: Sizes, delta: float | None, group: str
) -> list[Cell]:
    """Every row for one group of clients."""
    from confide.derive import derive  # stages load torch; who reads a statement has no need of it

    derived = [(derive(r, sizes), n) for r, n in plan]
    keys = list(derived[0][0])
    if any(list(ways) != keys for ways, _ in derived):
        raise Refused("rounds: their uploads have different names, so rows do not add up.")
    cells: list[Cell] = []
    for key in keys:
        at = default_delta(key[0], sizes) if delta is None else delta
        cells.append(best([cell_by(key, ways, at, group) for ways in arguments(key, derived)]))
    return cells


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

    What is proved for any two inputs (replace-one) is proved for an input and none (zero-out).
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


def noise_words(plan: list[tuple[Round, int]], key: str | None) -> tuple[str, ...]:
    """Which key and which grid the noise has."""
    source = {
        None: "No noise is drawn in a plan; a run says where its key comes from.",
        "public seed": "The noise key is a public seed: whoever knows it can undo the noise.",
        "operating system": "The noise key is the operating system's and is erased at the end.",
    }[key]
    grids: dict[str, None] = {}
    for r, _ in plan:
        for _, _, stage in r.stages():
            grid = getattr(stage, "grid_words", None)
            if grid is not None:
                grids[f"{type(stage).__name__}: {grid}."] = None
    return (source, *grids)
