"""What a run spends: its sizes, the ledger's accounts and charges, and a budget's last round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

from confide.accounting.filters import PlannedMeter
from confide.accounting.relations import Refused, Relation
from confide.budgets import caps_of, charge_of
from confide.cells import Cell, arguments, best, cell_by, default_delta
from confide.claims import Claim
from confide.data.dataset import Federation
from confide.derive import Key as CellKey
from confide.derive import Release as Way
from confide.derive import derive
from confide.derive.release import fold
from confide.engine.rounds import Method, Past, Round, Sizes, Upload
from confide.ledger import Cap, Charge, Scope
from confide.statements import groups

Plan = list[tuple[Round, int]]
MOST_ROUNDS = 1_000_000


@dataclass(frozen=True)
class Budget:
    """The most that a run may give away about one unit to one observer."""

    epsilon: float
    delta: float | None = None  # None: 1 / (10 x units)
    unit: str = "client"
    view: str = "world"

    def __post_init__(self) -> None:
        """Known words and sensible numbers."""
        if not 0 < self.epsilon < inf:
            raise ValueError(
                f"budget: epsilon = {self.epsilon!r}, allowed is a finite number above 0."
            )
        if self.delta is not None and not 0 < self.delta < 1:
            raise ValueError(f"budget: delta = {self.delta!r}, allowed is between 0 and 1.")
        for field, allowed in (("unit", ("record", "client")), ("view", ("server", "world"))):
            if getattr(self, field) not in allowed:
                raise ValueError(
                    f"budget: {field} = {getattr(self, field)!r}, allowed are "
                    f"{' and '.join(allowed)}."
                )

    @property
    def key(self) -> CellKey:
        """The row of the statement that it limits."""
        return self.unit, self.view, "update"


def sizes_of(federation: Federation, lengths: tuple[int, ...]) -> Sizes:
    """The public numbers of a federation; clients without records count for none."""
    sizes = federation.sizes
    held = sizes[sizes > 0]
    if not len(held):
        raise ValueError("Federation: no client holds a record, allowed is at least one that does.")
    return Sizes(len(sizes), int(held.min()), lengths, int(held.max()), federation.copies)


def unrolled(method: Method, sizes: Sizes, rounds: int | None = None) -> Plan:
    """Every round of a method that adapts to nothing."""
    plan: Plan = []
    for t in range(MOST_ROUNDS if rounds is None else rounds):
        now = method.round(Past(t=t, sizes=sizes))
        if now is None:
            return plan
        if plan and plan[-1][0] == now:
            plan[-1] = now, plan[-1][1] + 1
        else:
            plan.append((now, 1))
    if rounds is None:
        raise ValueError(
            f"{type(method).__name__}: it does not end within {MOST_ROUNDS} rounds; give rounds."
        )
    return plan


def planned_at(plan: Plan, t: int) -> Round | None:
    """The round that was planned for this moment."""
    for r, count in plan:
        if t < count:
            return r
        t -= count
    return None


def first_rounds(plan: Plan, rounds: int) -> Plan:
    """The beginning of a plan."""
    out: Plan = []
    for r, count in plan:
        out.append((r, min(count, rounds)))
        rounds -= count
        if rounds <= 0:
            break
    return out


def spent(plan: Plan, sizes: Sizes, key: CellKey, delta: float | None) -> Cell:
    """One row of the statement of these rounds, for the worst group of clients."""
    at = default_delta(key[0], sizes) if delta is None else delta
    cells: list[Cell] = []
    for group, client in groups(plan, sizes):
        derived = [
            (derived_once(r, sizes) if client is None else derive(r.for_client(client), sizes), n)
            for r, n in plan
        ]
        ways = arguments(key, derived)
        cells.append(best([cell_by(key, way, at, group) for way in ways]))
    return max(cells, key=lambda c: c.epsilon)


@dataclass(frozen=True, eq=False)
class Same:
    """A round by its identity: it has no hash of its own, and a plan keeps its rounds."""

    round: Round

    def __eq__(self, other: object) -> bool:
        """Whether it is the same object."""
        return isinstance(other, Same) and self.round is other.round

    def __hash__(self) -> int:
        """Of the object, not of its fields."""
        return id(self.round)


def derived_once(r: Round, sizes: Sizes) -> dict[CellKey, tuple[Way, ...]]:
    """What a round of the plan gives away: asked for again whenever somebody watches."""
    return _derived(Same(r), sizes)


@lru_cache(maxsize=1 << 12)
def _derived(one: Same, sizes: Sizes) -> dict[CellKey, tuple[Way, ...]]:
    return derive(one.round, sizes)


def affordable(plan: Plan, sizes: Sizes, budget: Budget) -> int:
    """How many of the planned rounds fit into the budget."""

    def fits(rounds: int) -> bool:
        cell = spent(first_rounds(plan, rounds), sizes, budget.key, budget.delta)
        return cell.epsilon <= budget.epsilon

    total = sum(count for _, count in plan)
    if fits(total):
        return total
    low, high = 0, total  # low fits, high does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def accounts(plan: Plan, sizes: Sizes, budget: Budget | None, rounds: int) -> dict[str, Cap]:
    """An account for every row of the statement; the budget's own has a limit.

    Where all rounds are the same release, the limit stands in the ledger itself, so that no second
    process can spend the last of it either.
    """
    caps: dict[str, Cap] = {}
    named = [r for t, (r, _) in enumerate(plan) if not t or r.columns()]  # groups may change
    for name, key, way in {row[0]: row for r in named for row in rows(r, sizes)}.values():
        scope = Scope(key[0], key[1], str(way.relation))
        caps[name] = Cap(scope)
        if budget is not None and key == budget.key and not way.open and rounds:
            names = {repr(w.event) for r, _ in plan for n, _, w in rows(r, sizes) if n == name}
            if len(names) == 1:
                caps |= caps_of(PlannedMeter(way.event, rounds), [name], scope)
    return caps


def charges(r: Round, sizes: Sizes, caps: dict[str, Cap]) -> tuple[Charge, ...]:
    """What this round costs every account."""
    found: list[Charge] = []
    for name, _, way in rows(r, sizes):
        scope = caps[name].scope
        found.append(
            charge_of(way.event, [name], scope)
            if scope.parts
            else Charge((name,), scope, way.event)
        )
    return tuple(found)


def rows(r: Round, sizes: Sizes) -> list[tuple[str, CellKey, Way]]:
    """For every row and group of clients: the account's name and the argument that is recorded."""
    out: list[tuple[str, CellKey, Way]] = []
    for group, client in groups([(r, 1)], sizes):
        cells = derive(r if client is None else r.for_client(client), sizes)
        for key, ways in cells.items():
            name = "/".join(key) + (f"/{group}" if group else "")
            out.append((name, key, lead(ways)))
    return out


def length_after(upload: Upload, dim: int) -> int:
    """How long an uploaded vector is when it leaves: rotations pad."""
    length = dim if upload.length is None else upload.length
    stages = tuple(stage.for_client(0) for stage in upload.stages)
    after = fold(stages, Claim(Relation.REPLACE_ONE, length=length)).length
    return length if after is None else after


def lead(ways: Sequence[Way]) -> Way:
    """The first argument that proves something."""
    return next((way for way in ways if not way.open), ways[0])


def check_planned(method: Method, sizes: Sizes, rounds: int | None) -> Plan:
    """The plan, refusing a method that ends before it begins."""
    plan = unrolled(method, sizes, rounds)
    if not plan:
        raise Refused(f"{type(method).__name__}: it has no rounds, so there is nothing to run.")
    return plan
