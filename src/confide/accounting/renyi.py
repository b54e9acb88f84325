"""Renyi curves of events: what each noise proves at each order, composed by addition.

An order where nothing is proved is infinite; an event with no curve at all is refused. The rows
are proved in docs/proofs/noises.md, the sampled ones in docs/proofs/sampling.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import dp_accounting as dp
import numpy as np
import numpy.typing as npt

from confide.accounting import conversion, events, moments, sampling, staircase
from confide.accounting.events import DpEvent
from confide.accounting.moments import Array, Integers
from confide.accounting.relations import Refused, Relation


class NoCurve(Refused):
    """This event has no Renyi curve here."""


def _default_orders() -> Array:
    """Dense where curves bend: near its best order x + 1 an unsampled epsilon grows like t + 1/t.

    Steps of 6 % in x cost it 0.05 % at most; a sampled curve turns sharply where the sample stops
    hiding the unit, for usual noise at orders 2 to 250, and gets finer steps there.
    """
    low = 1 + np.geomspace(0.01, 1, 80)
    middle = [np.arange(2, 5, 0.03), np.arange(5, 16, 0.1), np.arange(16, 32, 0.25)]
    high = [np.arange(2.0, 257.0), np.round(np.geomspace(256, 6000, 110))]
    return np.unique(np.round(np.concatenate([low, *middle, *high]), 9))


ORDERS = _default_orders()
ORDERS.setflags(write=False)
LEAST_ORDER = 1 + 1e-4


def curve(event: DpEvent, orders: npt.ArrayLike = ORDERS) -> Array:
    """The Renyi divergence of the event at each order, both directions; read-only.

    It never falls as the order rises, so that orders next to 1, where digits cancel, may be
    answered by a higher one.
    """
    grid = np.asarray(orders, dtype=np.float64)
    if grid.ndim != 1 or grid.size == 0 or not bool(np.all((grid > 1) & (grid < math.inf))):
        raise Refused("Renyi orders must be a non-empty list of finite numbers above 1.")
    return _of_plain(events.plain(event), grid)


def _of_plain(event: DpEvent, orders: Array) -> Array:
    return _cached(event, np.maximum(orders, LEAST_ORDER).tobytes())


@lru_cache(maxsize=512)
def _cached(event: DpEvent, grid: bytes) -> Array:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        values = np.asarray(_curve(event, np.frombuffer(grid)), dtype=np.float64)
    # What is not a number is not proved; rounding may leave a zero just below zero.
    values = np.where(np.isnan(values), np.inf, np.maximum(values, 0.0))
    values.setflags(write=False)
    return values


def _curve(event: DpEvent, orders: Array) -> Array:
    match event:
        case dp.NoOpDpEvent():
            return np.zeros(orders.shape)
        case dp.NonPrivateDpEvent() | events.BinomialDpEvent():
            # Binomial noise shifted has another support: every order above 1 is infinite.
            return np.full(orders.shape, np.inf)
        case dp.SelfComposedDpEvent():
            return _repeated(event.event, event.count, orders)
        case dp.ComposedDpEvent():
            total = sum((_of_plain(e, orders) for e in event.events), np.zeros(orders.shape))
            return total * (1 + 3e-16 * len(event.events))
        case dp.PoissonSampledDpEvent():
            return sampling.poisson(event, orders, _of_plain)
        case dp.SampledWithoutReplacementDpEvent():
            return sampling.without_replacement(event, orders, _of_plain)
        case events.MixedDpEvent():
            return sampling.mixed(event, orders, _of_plain)
        case events.RandomParticipationDpEvent():
            # Rounds are joined independently: that many mixed rounds.
            round_ = events.MixedDpEvent(event.probability, event.event)
            return _repeated(round_, event.rounds, orders)
        case _:
            return moments.rounded_up(_noise(event, orders), orders)


def _repeated(event: DpEvent, count: int, orders: Array) -> Array:
    return count * _of_plain(event, orders) if count > 0 else np.zeros(orders.shape)


def _noise(event: DpEvent, orders: Array) -> Array:
    """One release of one noise."""
    match event:
        case dp.GaussianDpEvent():
            return _gaussian(event.noise_multiplier, orders)
        case dp.LaplaceDpEvent():
            return _laplace(event.noise_multiplier, orders)
        case events.LaplaceL2DpEvent():
            return _laplace_l2(event.noise_multiplier, event.dim, orders)
        case events.LaplaceBothDpEvent():
            return np.minimum(
                _laplace(event.l1_multiplier, orders),
                _laplace_l2(event.l2_multiplier, event.dim, orders),
            )
        case events.StaircaseDpEvent():
            return staircase.renyi(
                orders, event.epsilon, event.gamma, event.shift, event.norm, event.dim
            )
        case dp.RandomizedResponseDpEvent():
            return _pure(sampling.response_epsilon(event), orders)
        case events.PureDpEvent():
            return _pure(event.epsilon, orders)
        case events.ApproximateDpEvent():
            # With probability delta anything may happen, so only delta = 0 has a curve.
            if event.delta > 0:
                return np.full(orders.shape, np.inf)
            return _pure(event.epsilon, orders)
        case events.DiscreteGaussianDpEvent():
            return _discrete_gaussian(event, orders)
        case events.SkellamDpEvent():
            return _skellam(event, orders)
        case _:
            raise NoCurve(f"{type(event).__name__} has no Renyi curve: use the loss accountant.")


def _distance(multiplier: float) -> float:
    """How many noise scales apart the two worlds are; every curve rises with it."""
    if multiplier in (0, math.inf):
        return math.inf if multiplier == 0 else 0.0
    return max(1 / multiplier, moments.LEAST_DISTANCE)


def _gaussian(multiplier: float, orders: Array) -> Array:
    distance = _distance(multiplier)
    return orders * (distance * distance / 2)


def _laplace(multiplier: float, orders: Array) -> Array:
    return moments.laplace_renyi(orders, _distance(multiplier))


def _laplace_l2(multiplier: float, dim: int | None, orders: Array) -> Array:
    """Theorem 3: equal spread over all coordinates is worst; its limit is the Gaussian curve."""
    if dim is None:
        return _gaussian(multiplier, orders)
    each = _distance(multiplier) / math.sqrt(dim)
    return dim * moments.laplace_renyi(orders, max(each, moments.LEAST_DISTANCE) if each else 0.0)


def _pure(epsilon: float, orders: Array) -> Array:
    """Randomised response, which is the staircase with gamma = 1/2 at a full step."""
    if epsilon == 0 or epsilon > 700:
        return np.full(orders.shape, float(epsilon))
    return staircase.renyi(orders, max(epsilon, staircase.LEAST), 0.5)


def _discrete_gaussian(event: events.DiscreteGaussianDpEvent, orders: Array) -> Array:
    """At most the Gaussian curve, and equal to it where (order - 1) x shift is whole."""
    if event.sigma == 0:
        return np.full(orders.shape, np.inf)
    if event.l2 == 0:
        return np.zeros(orders.shape)
    distance = max(event.l2 / event.sigma, moments.LEAST_DISTANCE)
    return orders * (distance * distance / 2)


def _skellam(event: events.SkellamDpEvent, orders: Array) -> Array:
    """Whole orders by the cited bound, others by the chord of (order - 1) x divergence."""
    if event.variance == 0:
        return np.full(orders.shape, np.inf)
    # The bound falls as the variance grows, so that one beyond all use may be cut.
    variance, squared = min(event.variance, 1e200), event.l2 * event.l2
    # For whole numbers |v| <= v^2, so the l1 distance is never above the l2 distance squared.
    l1 = min(event.l1, squared)
    if event.dim is not None:
        l1 = min(l1, math.sqrt(event.dim) * event.l2)

    def at_integers(integers: Integers) -> Array:
        whole = integers.astype(np.float64)
        wide = ((2 * whole - 1) * squared + 6 * l1) / (2 * variance) / (2 * variance)
        extra = np.minimum(wide, 3 * l1 / (2 * variance))
        return (whole - 1) * (whole * squared / (2 * variance) + extra)

    return moments.between_integers(orders, at_integers) / (orders - 1)


_NEIGHBOURS = {
    Relation.ADD_REMOVE: dp.NeighboringRelation.ADD_OR_REMOVE_ONE,
    Relation.ZERO_OUT: dp.NeighboringRelation.REPLACE_SPECIAL,
    Relation.REPLACE_ONE: dp.NeighboringRelation.REPLACE_ONE,
}


class RenyiAccountant(dp.rdp.RdpAccountant):
    """dp-accounting's Renyi accountant, with the noises, samplings and relations it lacks."""

    def __init__(self, relation: Relation, orders: npt.ArrayLike = ORDERS) -> None:
        """Start from nothing spent."""
        self.relation = Relation(relation)
        super().__init__(np.asarray(orders, dtype=np.float64).tolist(), _NEIGHBOURS[self.relation])

    def _maybe_compose(
        self, event: DpEvent, count: int, do_compose: bool
    ) -> dp.PrivacyAccountant.CompositionErrorDetails | None:
        try:
            event, count = sampling.priced(event, self.relation), sampling.check_count(count)
            cost = curve(event, self._orders)
        except NoCurve:
            return self._theirs(event, count, do_compose)
        except Refused as refusal:
            return dp.PrivacyAccountant.CompositionErrorDetails(event, str(refusal))
        if do_compose and count > 0:
            self._rdp = moments.added(self._rdp, count * cost)
        return None

    def _theirs(
        self, event: DpEvent, count: int, do_compose: bool
    ) -> dp.PrivacyAccountant.CompositionErrorDetails | None:
        """An event that dp-accounting prices, or takes apart: rounded up like all others."""
        before, self._rdp = self._rdp, np.zeros(self._orders.shape)
        try:
            details = super()._maybe_compose(event, count, do_compose)
        finally:
            cost, self._rdp = self._rdp, before
        self._rdp = moments.added(before, moments.rounded_up(cost, self._orders))
        return details

    def get_epsilon_and_optimal_order(self, target_delta: float) -> tuple[float, float]:
        """The least epsilon over all orders at this delta, and its order."""
        return conversion.epsilon_from_curve(self._orders, self._rdp, target_delta)

    def get_epsilon(self, target_delta: float) -> float:
        """The least epsilon over all orders at this delta."""
        return self.get_epsilon_and_optimal_order(target_delta)[0]

    def get_delta_and_optimal_order(self, target_epsilon: float) -> tuple[float, float]:
        """The least delta over all orders at this epsilon, and its order."""
        return conversion.delta_from_curve(self._orders, self._rdp, target_epsilon)

    def get_delta(self, target_epsilon: float) -> float:
        """The least delta over all orders at this epsilon."""
        return self.get_delta_and_optimal_order(target_epsilon)[0]
