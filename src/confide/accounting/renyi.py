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


def curve(event: DpEvent, orders: npt.ArrayLike = ORDERS) -> Array:
    """The Renyi divergence of the event at each order, both directions; read-only."""
    grid = np.asarray(orders, dtype=np.float64)
    if grid.ndim != 1 or grid.size == 0 or not bool(np.all((grid > 1) & (grid < math.inf))):
        raise Refused("Renyi orders must be a non-empty list of finite numbers above 1.")
    try:
        hash(event)
    except TypeError:  # a composed event may hold a list
        return _fresh(event, grid)
    return _cached(event, grid.tobytes())


@lru_cache(maxsize=512)
def _cached(event: DpEvent, grid: bytes) -> Array:
    return _fresh(event, np.frombuffer(grid, dtype=np.float64))


def _fresh(event: DpEvent, orders: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(_curve(event, orders), dtype=np.float64)
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
            return sum((curve(part, orders) for part in event.events), np.zeros(orders.shape))
        case dp.PoissonSampledDpEvent():
            return sampling.poisson(event, orders, curve)
        case dp.SampledWithoutReplacementDpEvent():
            return sampling.without_replacement(event, orders, curve)
        case events.MixedDpEvent():
            return sampling.mixed(event, orders, curve)
        case events.RandomParticipationDpEvent():
            # By joint convexity over the schedule, at most that many independent mixed rounds.
            round_ = events.MixedDpEvent(event.probability, event.event)
            return _repeated(round_, event.rounds, orders)
        case _:
            return _noise(event, orders)


def _repeated(event: DpEvent, count: int, orders: Array) -> Array:
    if sampling.check_count(count) == 0:
        return np.zeros(orders.shape)
    return count * curve(event, orders)


def _noise(event: DpEvent, orders: Array) -> Array:
    """One release of one noise."""
    match event:
        case dp.GaussianDpEvent():
            return _gaussian(event.noise_multiplier, orders)
        case dp.LaplaceDpEvent():
            return moments.laplace_renyi(orders, _distance(event.noise_multiplier))
        case events.LaplaceL2DpEvent():
            return _laplace_l2(event.noise_multiplier, event.dim, orders)
        case events.LaplaceBothDpEvent():
            return np.minimum(
                moments.laplace_renyi(orders, _distance(event.l1_multiplier)),
                _laplace_l2(event.l2_multiplier, event.dim, orders),
            )
        case events.StaircaseDpEvent():
            return staircase.renyi(
                orders, event.epsilon, event.gamma, event.shift, event.norm, event.dim
            )
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
    """How many noise scales apart the two worlds are."""
    if not multiplier >= 0:
        raise Refused(f"noise multiplier = {multiplier}: must be at least 0.")
    return math.inf if multiplier == 0 else 1 / multiplier


def _gaussian(multiplier: float, orders: Array) -> Array:
    return orders * (_distance(multiplier) ** 2 / 2)


def _laplace_l2(multiplier: float, dim: int | None, orders: Array) -> Array:
    """Theorem 3: equal spread over all coordinates is worst; its limit is the Gaussian curve."""
    if dim is None:
        return _gaussian(multiplier, orders)
    return dim * moments.laplace_renyi(orders, _distance(multiplier) / math.sqrt(dim))


def _pure(epsilon: float, orders: Array) -> Array:
    """Randomised response, which is the staircase with gamma = 1/2 at a full step."""
    if epsilon == 0 or epsilon > 700:
        return np.full(orders.shape, float(epsilon))
    return staircase.renyi(orders, epsilon, 0.5)


def _discrete_gaussian(event: events.DiscreteGaussianDpEvent, orders: Array) -> Array:
    """At most the Gaussian curve, and equal to it where (order - 1) x shift is whole."""
    if event.sigma == 0:
        return np.full(orders.shape, np.inf)
    return orders * ((event.l2 / event.sigma) ** 2 / 2)


def _skellam(event: events.SkellamDpEvent, orders: Array) -> Array:
    """Whole orders by the cited bound, others by the chord of (order - 1) x divergence."""
    if event.variance == 0:
        return np.full(orders.shape, np.inf)
    # For whole numbers |v| <= v^2, so the l1 distance is never above the l2 distance squared.
    l1 = min(event.l1, event.l2**2)
    if event.dim is not None:
        l1 = min(l1, math.sqrt(event.dim) * event.l2)

    def at_integers(integers: Integers) -> Array:
        whole = integers.astype(np.float64)
        wide = ((2 * whole - 1) * event.l2**2 + 6 * l1) / (4 * event.variance**2)
        extra = np.minimum(wide, 3 * l1 / (2 * event.variance))
        return (whole - 1) * (whole * event.l2**2 / (2 * event.variance) + extra)

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
            sampling.check_relation(event, self.relation)
            cost = curve(event, self._orders)
            if do_compose and sampling.check_count(count) > 0:
                self._rdp = self._rdp + count * cost
        except NoCurve:
            return super()._maybe_compose(event, count, do_compose)
        except Refused as refusal:
            return dp.PrivacyAccountant.CompositionErrorDetails(event, str(refusal))
        return None

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
