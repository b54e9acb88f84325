"""Methods that adapt: what they may choose from what was released, and the filters that hold them.

A method's plan is what it does while it has seen nothing. One that says nothing about adapting must
give away exactly what was planned, round for round; masks, learning rates and clipping norms may
follow the answers, as they change no event. One that says `adapts = True` may also choose its
noise, its rates and its end: every row of its statement is then held by a filter, whose budget is
what the plan would have spent (docs/proofs/filters.md), and a round that does not fit ends the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt

import numpy as np

from confide.accounting import gdp, renyi, sampling
from confide.accounting.account import Answer
from confide.accounting.assumptions import assumptions_of
from confide.accounting.filters import (
    FILTER_ORDERS,
    GdpFilter,
    RenyiFilter,
    least_epsilon,
)
from confide.accounting.relations import Refused
from confide.budgets import SQUARED_MU, caps_of, charge_of
from confide.cells import CAPPED, Cell, arguments, best, cell_of, default_delta
from confide.derive import Key as CellKey
from confide.derive import Release, derive
from confide.engine.rounds import Round, Sizes
from confide.engine.spending import Budget, Plan
from confide.ledger import Cap, Charge, Ledger, Scope
from confide.published.value import Published
from confide.statements import Statement, alike, groups, noise_words
from confide.statements import state as composed

SLACK = 1 + 1e-8
"""Multipliers are rounded to nine digits, so rounds planned otherwise may cost this much more."""

LEFT_OPEN = "the method adapts, and no filter is proved for "


@dataclass(frozen=True)
class Account:
    """One row for one group of clients: its statement, and the cap that makes it true."""

    name: str
    key: CellKey
    group: str
    members: tuple[int, ...]  # of the group; none where no client has numbers of its own
    way: str
    cell: Cell
    cap: Cap

    @property
    def client(self) -> int | None:
        """A member of the group."""
        return self.members[0] if self.members else None


def adapts(method: object) -> bool:
    """Whether a method says that it chooses what it gives away from what it gave away."""
    return bool(getattr(type(method), "adapts", False))


def accounts(
    plan: Plan, sizes: Sizes, delta: float | None, budget: Budget | None = None
) -> list[Account]:
    """A filter for every row, with the plan's total as budget; `budget` replaces its own row's."""
    out: list[Account] = []
    members = alike(plan, sizes) or [()]
    for (group, client), peers in zip(groups(plan, sizes), members, strict=True):
        lived = [(derive(seen_by(r, client), sizes), n) for r, n in plan]
        for key in lived[0][0]:
            at = default_delta(key[0], sizes) if delta is None else delta
            own = budget if budget is not None and key == budget.key else None
            found = [filtered(key, ways, at, group, own) for ways in arguments(key, lived)]
            cell = best([one for one, _, _ in found])
            way, cap = next((w, c) for one, w, c in found if one == cell or cell.epsilon == inf)
            name = "/".join(key) + (f"/{group}" if group else "")
            out.append(Account(name, key, group, peers, way, cell, cap))
    return out


def filtered(
    key: CellKey,
    ways: list[tuple[Release, int]],
    delta: float,
    group: str,
    budget: Budget | None = None,
) -> tuple[Cell, str, Cap]:
    """One row by one argument: the epsilon at which the whole plan fits the filter, and its cap.

    A client is counted as taking part in every round, whatever the schedule turns out to be.
    """
    first, rounds = ways[0][0], sum(n for _, n in ways)
    scope = Scope(key[0], key[1], str(first.relation))

    def cell(answer: Answer, why: str = "") -> Cell:
        return cell_of(key, first, answer, rounds, ways, why, group)

    nothing = Answer(inf, delta, "none", None, first.relation, ())
    why = next((way.reason for way, _ in ways if way.open), "") or unfilterable(ways)
    if why:
        return cell(nothing, why), first.way, Cap(scope)
    squares = squared_mus(ways)
    meter: GdpFilter | RenyiFilter
    if squares is not None:
        name, epsilon = "GDP filter", gdp.epsilon(sqrt(squares * SLACK), delta)
        epsilon = epsilon if budget is None else budget.epsilon
        meter = GdpFilter(epsilon, delta)
    else:
        orders = np.array(FILTER_ORDERS)
        total = sum(
            (n * renyi.curve(sampling.priced(w.event, w.relation), orders) for w, n in ways),
            start=np.zeros(len(orders)),
        )
        name, epsilon = "RDP filter", least_epsilon(total * SLACK, delta, orders)
        epsilon = epsilon if budget is None else budget.epsilon
        if not isfinite(epsilon):
            return (
                cell(nothing, LEFT_OPEN + "a release without a Renyi curve"),
                first.way,
                Cap(scope),
            )
        meter = RenyiFilter(epsilon, delta, first.relation)
    cap = caps_of(meter, ["row"], scope)["row"]
    assumed = tuple(a for w, _ in ways for a in assumptions_of(w.event))
    return cell(Answer(epsilon, delta, name, None, first.relation, assumed)), first.way, cap


def unfilterable(ways: list[tuple[Release, int]]) -> str:
    """Why a row has no filter, if so."""
    if any(way.fails for way, _ in ways):
        return LEFT_OPEN + "bounds that can fail"
    if any(way.hops > 1 for way, _ in ways):
        return LEFT_OPEN + "neighbours that are more than one change away"
    if any(way.correlated for way, _ in ways):
        return LEFT_OPEN + "noise that goes on from round to round"
    if any(way.rounds == "all" and way.at_most is not None for way, _ in ways):
        return CAPPED
    return ""


def squared_mus(ways: list[tuple[Release, int]]) -> float | None:
    """The sum of squared ratios, if every release is an un-sampled Gaussian one."""
    ratios = [(gdp.ratio(way.event), n) for way, n in ways]
    if any(ratio is None or not 0 < ratio < inf for ratio, _ in ratios):
        return None
    return sum(n * ratio * ratio for ratio, n in ratios if ratio is not None)


def seen_by(r: Round, client: int | None) -> Round:
    """The round as a member of a group lives it."""
    return r if client is None else r.for_client(client)


def charges(r: Round, sizes: Sizes, held: list[Account]) -> tuple[Charge, ...]:
    """What a round chosen just now costs every row; refused where no filter measures it."""
    check_alike(r, held)
    out: list[Charge] = []
    lived = {one.client: derive(seen_by(r, one.client), sizes) for one in held}
    for one in held:
        ways = [w for w in lived[one.client].get(one.key, ()) if w.way == one.way]
        scope = one.cap.scope
        if not scope.parts:
            first = ways[0] if ways else next(iter(lived[one.client].values()))[0]
            out.append(Charge((one.name,), scope, first.event))
            continue
        if len(ways) != 1 or ways[0].open or unfilterable([(ways[0], 1)]):
            why = ways[0].reason if ways else "it has another cohort or channel than planned"
            raise Refused(f"this round protects {one.name} less than any filter allows: {why}")
        if str(ways[0].relation) != scope.relation:
            raise Refused(f"this round speaks of {one.name} under another relation than planned")
        out.append(charge_of(ways[0].event, [one.name], scope))
    return tuple(out)


def check_alike(r: Round, held: list[Account]) -> None:
    """A row speaks of all its clients: whoever was planned like another must stay like it."""
    for column in r.columns():
        for members in {one.members for one in held}:
            if not members or len({column[client] for client in members}) > 1:
                raise Refused("clients that were planned alike are given numbers of their own")


def starts(plan: Plan, sizes: Sizes, held: list[Account], budget: Budget | None = None) -> bool:
    """Whether the first planned round fits into every filter, and the budget's row has one."""
    if budget is not None and any(o.key == budget.key and not o.cap.limits for o in held):
        return False
    costs = {charge.accounts[0]: charge.spend for charge in charges(plan[0][0], sizes, held)}
    return all(
        not one.cap.limits
        or any(c <= limit for c, limit in zip(costs[one.name], one.cap.limits, strict=True))
        for one in held
    )


def as_planned(r: Round, planned: Round, sizes: Sizes) -> bool:
    """Whether a round gives away exactly what the plan's round gives away."""
    if r == planned:
        return True
    if alike([(r, 1)], sizes) != alike([(planned, 1)], sizes):
        return False
    return all(
        derive(seen_by(r, client), sizes) == derive(seen_by(planned, client), sizes)
        for _, client in groups([(planned, 1)], sizes)
    )


def spent(ledger: Ledger, one: Account, rounds: int) -> float:
    """The epsilon of what these rounds were charged, had nothing been chosen; to watch."""
    total = np.array(ledger.spent(one.name, before=rounds))
    if not one.cap.scope.parts:
        return inf
    if not np.any(total):
        return 0.0
    if one.cap.scope.parts == (SQUARED_MU,):
        return gdp.epsilon(sqrt(float(total[0])), one.cell.delta)
    return least_epsilon(total, one.cell.delta, np.array(FILTER_ORDERS))


def planned(
    method: object,
    plan: Plan,
    sizes: Sizes,
    delta: float | None = None,
    published: Published | None = None,
) -> Statement:
    """What a method is going to give away at the most: its whole plan, or its filters' caps."""
    if not adapts(method):
        return composed(plan, sizes, delta=delta, published=published)
    return state(accounts(plan, sizes, delta), plan, sum(n for _, n in plan), sizes, published)


def state(
    held: list[Account],
    plan: Plan,
    rounds: int,
    sizes: Sizes,
    published: Published | None = None,
    key: str | None = None,
) -> Statement:
    """The statement that the filters make true, however the rounds were chosen."""
    cells = tuple(one.cell for one in held)
    return Statement(cells, rounds, sizes, noise_words(plan, key), published)
