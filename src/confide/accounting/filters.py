"""Budgets that are asked before each release, also when releases depend on the answers so far.

Ordinary composition needs every noise, rate and round count fixed in advance. A method that picks
its noise multiplier, its rate or its last round from what it has seen needs a filter: it may go on
while the sum of the costs, the next one included, stays within a fixed budget. A clipping norm
that follows the answers at a fixed multiplier is no such choice: every round costs the same. The
proofs are in docs/proofs/filters.md. Each check takes the same time at any round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from confide.accounting import conversion, gdp, renyi, sampling
from confide.accounting.events import DpEvent, SelfComposedDpEvent, plain, whole
from confide.accounting.moments import added
from confide.accounting.relations import Refused, Relation

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FILTER_ORDERS = (1.5, 2.5, 4.0, 7.0, 12.0, 24.0, 64.0)
"""Few, because each order gets an equal share of delta."""

# A part in 10^9 of each budget is kept back. Half of it is then allowed for sums, which are rounded
# up, so that a plan of up to a million rounds that uses a budget up exactly fits to its last one.
_KEPT_BACK = 1 - 1e-9
_ROUNDING = 1 + 5e-10


class GdpFilter:
    """Un-sampled Gaussian releases, chosen as one likes, within one exact (epsilon, delta)."""

    def __init__(self, epsilon: float, delta: float) -> None:
        """Set the budget: the squared mu that (epsilon, delta) allows."""
        self.budget = gdp.mu(epsilon, delta) ** 2 * _KEPT_BACK
        self.spent = 0.0

    @property
    def left(self) -> float:
        """The squared mu still to spend: a release of multiplier z costs 1 / z^2."""
        return max(self.budget - self.spent, 0.0)

    def fits(self, event: DpEvent) -> bool:
        """Whether this release may be made now."""
        return self._after(_squared_mu(event)) <= self.budget * _ROUNDING

    def spend(self, event: DpEvent) -> None:
        """Record the release, before it is made; refuse it if it does not fit."""
        cost = _squared_mu(event)
        if not self._after(cost) <= self.budget * _ROUNDING:
            raise Refused(
                f"this release costs {cost:.6g} in squared mu and {self.left:.6g} is left: "
                "use more noise or stop."
            )
        self.spent = self._after(cost)

    def _after(self, cost: float) -> float:
        return float(added(np.array(self.spent), np.array(cost)))


def _squared_mu(event: DpEvent) -> float:
    ratio = gdp.ratio(event)
    if ratio is None:
        raise Refused(
            f"a GDP filter admits un-sampled Gaussian releases only, not {type(event).__name__}: "
            "use a Renyi filter."
        )
    return ratio * ratio


class RenyiFilter:
    """Any releases with Renyi curves: it goes on while some order of a fixed list has room."""

    def __init__(
        self,
        epsilon: float,
        delta: float,
        relation: Relation,
        orders: Sequence[float] = FILTER_ORDERS,
    ) -> None:
        """Set each order's budget at its share of delta; the orders cannot change later."""
        self.relation = Relation(relation)
        self.orders = _frozen(np.array(orders, dtype=np.float64))
        self.budgets = _frozen(
            renyi_budgets(np.array([epsilon], float), np.array([delta], float), self.orders)[0]
        )
        self.spent = _frozen(np.zeros(self.orders.shape))

    @property
    def left(self) -> Array:
        """What each order has left; below 0 where an order has run out."""
        return self.budgets - self.spent

    def fits(self, event: DpEvent) -> bool:
        """Whether this release may be made now."""
        return _within(added(self.spent, self._cost(event)), self.budgets)

    def spend(self, event: DpEvent) -> None:
        """Record the release at every order, before it is made; refuse it if it does not fit."""
        after = added(self.spent, self._cost(event))
        if not _within(after, self.budgets):
            raise Refused("this release fits no order of the Renyi filter: use more noise or stop.")
        self.spent = _frozen(after)

    def _cost(self, event: DpEvent) -> Array:
        return renyi.curve(sampling.priced(event, self.relation), self.orders)


def _frozen(values: Array) -> Array:
    """An array that nobody changes by accident."""
    values.setflags(write=False)
    return values


def _within(totals: Array, budgets: Array) -> bool:
    return bool(np.any(totals <= budgets * _ROUNDING))


def renyi_budgets(epsilons: Array, deltas: Array, orders: Array) -> Array:
    """Per client and order: the divergence that proves epsilon at delta / number of orders.

    It inverts the conversion of `conversion.epsilons`. An order whose budget would be below 0
    admits nothing.
    """
    if not (orders.size > 0 and bool(np.all((orders > 1) & (orders < math.inf)))):
        raise Refused("filter orders must be a non-empty list of finite numbers above 1.")
    if np.unique(orders).size != orders.size:
        raise Refused("filter orders must differ from each other.")
    _check_budgets(epsilons, deltas)
    budgets = epsilons[:, None] + _gain(deltas, orders)
    return np.where(budgets >= 0, budgets * _KEPT_BACK, -np.inf)


def least_epsilon(totals: Array, delta: float, orders: Array) -> float:
    """The least epsilon whose budgets hold these totals at one order; the inverse of the above."""
    needed = totals / _KEPT_BACK - _gain(np.array([delta]), orders)[0]
    return max(0.0, float(np.min(np.where(np.isnan(needed), np.inf, needed)))) * (1 + 1e-12)


def _gain(deltas: Array, orders: Array) -> Array:
    """By how much an order's budget differs from epsilon, at each order's share of delta."""
    log_delta = np.log(deltas / orders.size)[:, None]
    return (log_delta + np.log(orders)) / (orders - 1) - np.log1p(-1 / orders)


def _check_budgets(epsilons: Array, deltas: Array) -> None:
    if epsilons.shape != deltas.shape or epsilons.ndim != 1 or epsilons.size == 0:
        raise Refused("epsilons and deltas must be two non-empty lists of equal length.")
    for epsilon in (float(epsilons.min()), float(epsilons.max())):
        conversion.check_epsilon(epsilon)
    for delta in (float(deltas.min()), float(deltas.max())):
        if not 0 < delta < 1:
            raise Refused(f"delta = {delta}: must be above 0 and below 1.")


class PlannedMeter:
    """A fixed number of equal releases known in advance: the meter only counts.

    Its statement is that of `total`, priced once before the first round by any accountant, the
    tightest included, because nothing of the plan depends on an answer.
    """

    def __init__(self, event: DpEvent, rounds: int) -> None:
        """Fix the plan."""
        self.event = plain(event)
        self.rounds = whole(rounds, "rounds")
        if self.rounds == 0:
            raise Refused("rounds = 0: must be at least 1.")
        self.used = 0

    @property
    def total(self) -> DpEvent:
        """The whole plan as one event."""
        return SelfComposedDpEvent(self.event, self.rounds)

    @property
    def left(self) -> int:
        """Rounds not yet used."""
        return self.rounds - self.used

    def fits(self, event: DpEvent) -> bool:
        """Whether this is the planned release and a round is left."""
        return plain(event) == self.event and self.left > 0

    def spend(self, event: DpEvent) -> None:
        """Count the release, before it is made; refuse what was not planned."""
        if plain(event) != self.event:
            raise Refused(
                f"the plan holds {self.event}, not {event}: a plan that changes needs a filter."
            )
        if self.left == 0:
            raise Refused(f"all {self.rounds} planned rounds are used.")
        self.used += 1


class PersonalBudgets:
    """Every client its own (epsilon, delta), met by its own filter over the rounds it joins.

    The budgets must be public or chosen without looking at data. Where a coin decides who takes
    part, the amplified cost is that of everybody the coin might have picked, so every client with
    room spends it in every round; one without room must not be among those the coin picks from.
    """

    def __init__(
        self,
        epsilons: npt.ArrayLike,
        deltas: npt.ArrayLike,
        relation: Relation,
        orders: Sequence[float] | None = FILTER_ORDERS,
    ) -> None:
        """Set the budgets; `orders=None` is the exact filter for un-sampled Gaussian releases."""
        self.epsilons = _frozen(np.array(epsilons, dtype=np.float64))
        self.deltas = _frozen(np.array(deltas, dtype=np.float64))
        self.relation = Relation(relation)
        if orders is None:
            self.orders = None
            self.budgets = _frozen(_gdp_budgets(self.epsilons, self.deltas))
        else:
            self.orders = _frozen(np.array(orders, dtype=np.float64))
            self.budgets = _frozen(renyi_budgets(self.epsilons, self.deltas, self.orders))
        self._spent = np.zeros(self.budgets.shape)

    @property
    def spent(self) -> Array:
        """What each client has spent at each order."""
        return _frozen(self._spent.view())

    def statement(self) -> tuple[float, float]:
        """What holds for every client: the largest epsilon and the largest delta, never a mean."""
        return float(self.epsilons.max()), float(self.deltas.max())

    def left(self, client: int, event: DpEvent) -> int:
        """How many more releases like this one this client can afford."""
        rows = self._rows([client])
        return int(self._affordable(rows, self._cost(event))[0])

    def left_each(self, event: DpEvent) -> Integers:
        """How many more releases like this one each client can afford."""
        return self._affordable(np.arange(self.epsilons.size), self._cost(event))

    def fits(self, clients: npt.ArrayLike | None, event: DpEvent) -> npt.NDArray[np.bool_]:
        """Which of these clients, or of all, may take part in (or be drawn for) this release."""
        return self._fits(self._rows(clients), self._cost(event))

    def spend(self, clients: npt.ArrayLike | None, event: DpEvent) -> None:
        """Record the release, before it is made: for these clients, all of them or none.

        With a coin in the event, give None instead: all whom `fits(None, event)` names are charged.
        """
        rows, cost = self._rows(clients), self._cost(event)
        within = self._fits(rows, cost)
        if sampling.is_sampled(event) != (clients is None):
            raise Refused(
                "clients must be None for a sampled release, which costs everyone who might be "
                "drawn, and a list of those who take part for any other."
            )
        if clients is None:
            rows, within = rows[within], within[within]
        if not bool(within.all()):
            raise Refused(
                f"client {int(rows[~within][0])} has too little budget left for this release: "
                "leave it out or use more noise."
            )
        self._spent[rows] = added(self._spent[rows], cost)

    def _fits(self, rows: Integers, cost: Array) -> npt.NDArray[np.bool_]:
        after = added(self._spent[rows], cost)
        return np.any(after <= self.budgets[rows] * _ROUNDING, axis=1)

    def _affordable(self, rows: Integers, cost: Array) -> Integers:
        room = self.budgets[rows] * (1 + 2e-10) - self._spent[rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            counts = np.floor(room / cost)
        counts = np.where(room >= 0, np.where(cost == 0, np.inf, counts), 0.0)
        return np.minimum(counts.max(axis=1), 2.0**53).astype(np.int64)

    def _cost(self, event: DpEvent) -> Array:
        if self.orders is None:
            return np.array([_squared_mu(event)])
        return renyi.curve(sampling.priced(event, self.relation), self.orders)

    def _rows(self, clients: npt.ArrayLike | None) -> Integers:
        if clients is None:
            return np.arange(self.epsilons.size)
        rows = np.atleast_1d(np.asarray(clients))
        if rows.size == 0:
            return np.zeros(0, dtype=np.int64)
        if rows.dtype.kind not in "iu" or rows.ndim != 1:
            raise Refused("clients must be a list of whole numbers.")
        if not (rows.min() >= 0 and rows.max() < self.epsilons.size):
            raise Refused(f"clients must be numbered from 0 to {self.epsilons.size - 1}.")
        if np.unique(rows).size != rows.size:
            raise Refused("a client cannot take part twice in one release.")
        return rows.astype(np.int64)


def _gdp_budgets(epsilons: Array, deltas: Array) -> Array:
    """The squared mu of each client, solved once for each budget that occurs."""
    _check_budgets(epsilons, deltas)
    kinds, which = np.unique(np.stack([epsilons, deltas], axis=1), axis=0, return_inverse=True)
    squares = np.array([gdp.mu(float(epsilon), float(delta)) ** 2 for epsilon, delta in kinds])
    return (squares * _KEPT_BACK)[which.reshape(-1), None]
