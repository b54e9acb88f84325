"""From a budget to the caps of a ledger, and from a release to what it costs there.

A budget in memory is forgotten in a crash and is not shared between processes; as caps of a ledger
it is neither. The parts of a cap's scope say how a release is measured: ("mu^2",) for Gaussian
releases, ("renyi@ORDER", ...) for a filter at fixed orders, ("rounds of HASH",) for a plan of
equal releases. So whoever opens the file charges it in the same way, and a charge that is measured
in another way, or belongs to another plan, does not fit its scope and is refused.

Why a cap is the filter: the ledger adds up the costs per part and lets a release happen while at
least one part stays within its limit; that is the rule proved in docs/proofs/filters.md. Its slack
of a part in 10^12 stays inside the part in 10^9 that every filter keeps back. A limit of 0 admits
nothing, because every part of a spend is above 0. An order at which nothing is proved costs more
than any limit, and so never holds again.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from confide.accounting import account, conversion, gdp, renyi, sampling, serial
from confide.accounting.events import DpEvent, plain
from confide.accounting.filters import Array, GdpFilter, PersonalBudgets, PlannedMeter, RenyiFilter
from confide.accounting.relations import Refused, Relation
from confide.ledger import UNPROVED, Cap, Charge, Ledger, Scope

Budget = GdpFilter | RenyiFilter | PersonalBudgets | PlannedMeter

SQUARED_MU = "mu^2"
_ORDER = "renyi@"
_PLAN = "rounds of "

_MOST_ROUNDS = 10**9  # the ledger's slack of a part in 10^12 is then far less than a round
_LEAST_SPEND = sys.float_info.min  # a ledger refuses free parts; this is above 0 and adds nothing
_ROUNDING = 1 + 1e-12  # more than a ledger's totals and the roots below can be off


def caps_of(budget: Budget, accounts: Sequence[str], scope: Scope) -> dict[str, Cap]:
    """The caps that hold these accounts to a fresh budget, to create or extend a ledger with.

    Personal budgets take one account per client, in the order of the clients; any other budget is
    given to each of the accounts. `scope` says whose privacy, against whom and under which
    relation; its parts are filled in here.
    """
    if scope.parts:
        raise Refused(f"scope.parts = {scope.parts}: must be empty, the budget decides them.")
    if isinstance(budget, RenyiFilter | PersonalBudgets) and budget.relation != scope.relation:
        raise Refused(
            f"scope.relation = {scope.relation}: must be {budget.relation}, as in the budget."
        )
    if np.any((budget.used if isinstance(budget, PlannedMeter) else budget.spent) != 0):
        raise Refused("the budget has been spent from: caps need a fresh one, or say too much.")
    parts, limits = _parts_and_limits(budget, scope)
    if not isinstance(budget, PersonalBudgets):
        limits = np.repeat(limits, len(accounts), axis=0)
    if isinstance(accounts, str) or len(set(accounts)) != len(limits):
        raise Refused("accounts must be a list of different names, for personal budgets one each.")
    caps: dict[tuple[float, ...], Cap] = {}  # equal ones are kept once
    for name, row in zip(accounts, map(tuple, limits.tolist()), strict=True):
        if max(row) == 0:
            raise Refused(
                f"the budget of account {name!r} admits no release at any order of the filter: "
                "raise epsilon or delta, or add orders."
            )
        if row not in caps:
            caps[row] = Cap(replace(scope, parts=parts), row)
    return {name: caps[tuple(row)] for name, row in zip(accounts, limits.tolist(), strict=True)}


def _parts_and_limits(budget: Budget, scope: Scope) -> tuple[tuple[str, ...], Array]:
    """What a budget measures, and its limits: a row per client, or one."""
    if isinstance(budget, PlannedMeter):
        if budget.rounds > _MOST_ROUNDS:
            raise Refused(f"rounds = {budget.rounds}: must be at most {_MOST_ROUNDS} in a ledger.")
        _check(budget.event, scope)
        return (_plan_part(budget.event),), np.array([[float(budget.rounds)]])
    if isinstance(budget, GdpFilter):
        return (SQUARED_MU,), np.array([[budget.budget]])
    limits = np.maximum(np.atleast_2d(budget.budgets), 0.0)  # an order without a budget is -inf
    if budget.orders is None:
        return (SQUARED_MU,), limits
    return tuple(f"{_ORDER}{order!r}" for order in budget.orders.tolist()), limits


def charge_of(event: DpEvent, accounts: Sequence[str], scope: Scope, count: int = 1) -> Charge:
    """What `count` such releases cost these accounts, which are all capped in this scope.

    The scope is that of their cap: `caps[name].scope`, or `ledger.cap(name).scope` where another
    process made the ledger. Where a hidden coin decides who takes part, charge the sampled release
    to *every* account that might have been drawn.
    """
    if type(count) is not int or count < 1:
        raise Refused(f"count = {count!r}: must be a whole number, at least 1.")
    _check(event, scope)
    each = _costs(event, scope)
    if not np.all(each >= 0) or not np.any(each > 0):
        raise Refused(f"{event} releases nothing, so there is nothing to charge.")
    if np.all(np.isinf(each)):
        raise Refused(f"{event} has no finite cost in any of {', '.join(scope.parts)}.")
    with np.errstate(over="ignore"):
        spend = np.clip(each * count, _LEAST_SPEND, UNPROVED)
    return Charge(tuple(accounts), scope, event, tuple(spend.tolist()), count)


def epsilon_if_planned(ledger: Ledger, name: str, delta: float) -> float:
    """The epsilon of everything an account was charged so far, *had it been planned beforehand*.

    For a run that picked nothing from its answers this is proved. One that adapted its noise, its
    rates or its end is only proved to stay within the promise of its cap: `promised`.
    """
    cap = ledger.cap(name)
    total = np.array(ledger.spent(name))
    relation = Relation(cap.scope.relation)
    if not cap.scope.parts or _is_plan(cap.scope) or not np.any(total):
        return account.epsilon(ledger.events(name), delta, relation).epsilon
    return _epsilon(cap.scope, total, delta)


def promised(ledger: Ledger, name: str, delta: float) -> float:
    """The epsilon that the filter of an account proves at this delta, however releases are chosen.

    It is infinite where the account was charged beyond its cap, as a release that left twice is.
    """
    cap = ledger.cap(name)
    if not cap.scope.parts or _is_plan(cap.scope):
        raise Refused(f"account {name!r} has no filter; ask an accountant about the plan's `total`")
    limits = np.array(cap.limits) * _ROUNDING
    if not np.any(np.array(ledger.spent(name)) <= limits):
        return math.inf
    if cap.scope.parts == (SQUARED_MU,):
        return _epsilon(cap.scope, limits, delta)
    share = conversion.check_delta(delta) / limits.size
    pairs = zip(_orders(cap.scope), limits, strict=True)
    return max(conversion.epsilon_from_curve([a], [b], share)[0] for a, b in pairs if b > 0)


def _epsilon(scope: Scope, total: Array, delta: float) -> float:
    """Epsilon of the total costs by ordinary composition."""
    if scope.parts == (SQUARED_MU,):
        return gdp.epsilon(math.sqrt(float(total[0])) * _ROUNDING, delta)
    curve = np.where(total >= UNPROVED, np.inf, total * _ROUNDING)
    return conversion.epsilon_from_curve(_orders(scope), curve, delta)[0]


def _costs(event: DpEvent, scope: Scope) -> Array:
    """What one release costs in each part of a scope."""
    if scope.parts == (SQUARED_MU,):
        ratio = gdp.ratio(event)
        if ratio is None or not math.isfinite(ratio):
            raise Refused(
                f"a squared-mu budget admits un-sampled Gaussian releases only, not {event}: "
                "use a Renyi filter."
            )
        return np.array([ratio**2])
    if _is_plan(scope):
        if scope.parts != (_plan_part(event),):
            raise Refused(
                f"the plan of these accounts holds another release than {event}: a plan that "
                "changes needs a filter."
            )
        return np.ones(1)
    return renyi.curve(event, _orders(scope))


def _check(event: DpEvent, scope: Scope) -> None:
    """Refuse what no accountant bounds, and a sampling that has no proof under the relation."""
    if serial.is_unprotected(event):
        raise Refused(f"{event} has no bound: an account with a cap cannot be charged for it.")
    sampling.check_relation(event, Relation(scope.relation))


def _is_plan(scope: Scope) -> bool:
    return len(scope.parts) == 1 and scope.parts[0].startswith(_PLAN)


def _plan_part(event: DpEvent) -> str:
    digest = hashlib.sha256(serial.dump(plain(event)).encode()).hexdigest()
    return f"{_PLAN}{digest[:32]}"


def _orders(scope: Scope) -> Array:
    """The Renyi orders that the parts of a scope name."""
    try:
        orders = [float(part.removeprefix(_ORDER)) for part in scope.parts]
    except ValueError:
        orders = []
    if not orders or not all(part.startswith(_ORDER) for part in scope.parts):
        raise Refused(
            f"scope.parts = {scope.parts}: must be {SQUARED_MU}, {_ORDER}ORDER... or {_PLAN}HASH."
        )
    return np.array(orders)
