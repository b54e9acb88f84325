"""Which noises have a proved dominating pair of scalar laws, and what it is.

Additive noise with a log-concave law has a likelihood ratio that falls along the line, so the best
test is a half-line and its advantage rises with the shift: the largest shift is the worst one, in
both directions and at every epsilon. That is the argument for one-dimensional discrete Gaussian,
Skellam and symmetric binomial noise. Laplace on an l1 ball is Theorem 2 and the scalar staircase
Theorem 1 of docs/proofs/noises.md; the rest is in docs/proofs/losses.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import special

from confide.accounting import binomial, gdp, staircase
from confide.accounting.events import (
    ApproximateDpEvent,
    BinomialDpEvent,
    DiscreteGaussianDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceBothDpEvent,
    LaplaceDpEvent,
    PureDpEvent,
    SkellamDpEvent,
    StaircaseDpEvent,
)
from confide.accounting.pairs import (
    Array,
    Atoms,
    LaplaceLoss,
    NormalLoss,
    Pair,
    atoms,
    continuous,
)
from confide.accounting.relations import Refused

LARGEST_SUPPORT = 1 << 22  # integers that a noise is written out on
LARGEST_SKELLAM = 1e9  # beyond it scipy's Bessel functions are not numbers


class Unproved(Exception):
    """No dominating pair is proved for an event; the message says why."""


def sampled(event: DpEvent, rate: float) -> Pair:
    """Return the pair of one release behind a Poisson coin."""
    if not 0 <= rate <= 1:
        raise Refused(f"rate = {rate}: must lie in [0, 1]")
    if rate == 0:
        return Pair(atoms([1.0], [1.0]), atoms([1.0], [1.0]))
    mu = gdp.ratio(event)
    if mu:
        return continuous(NormalLoss(mu), rate)
    match event:
        case LaplaceDpEvent():
            return continuous(LaplaceLoss(1 / _positive("scale", event.noise_multiplier)), rate)
        case LaplaceBothDpEvent():
            return continuous(LaplaceLoss(1 / _positive("scale", event.l1_multiplier)), rate)
        case GaussianDpEvent() if event.noise_multiplier == 0:
            return atoms([1.0, 0.0], [0.0, 1.0]).sampled(rate)
        case _:
            if type(event) not in PAIRS:
                raise Unproved(f"no dominating pair is proved for {event}")
            found = _written_out(event)
            return found.sampled(rate) if rate < 1 else Pair(found, found)


@lru_cache(maxsize=32)
def _written_out(event: DpEvent) -> Atoms:
    """Return the atoms of a symmetric pair; one event is asked about several times in a row."""
    return PAIRS[type(event)](event)


def _staircase(event: StaircaseDpEvent) -> Atoms:
    if event.dim != 1:
        raise Unproved("product staircase noise has a proved pair in one dimension only")
    plus, zero, minus = staircase.atoms(event.epsilon, event.gamma, event.shift)
    # The three atoms are at exactly +epsilon, 0, -epsilon: the exchange is exact.
    return atoms([plus, zero, minus], [minus, zero, plus])


def _response(event: PureDpEvent | ApproximateDpEvent) -> Atoms:
    """Randomised response, which reveals its input with probability delta."""
    delta = event.delta if isinstance(event, ApproximateDpEvent) else 0.0
    if not 0 <= delta < 1:
        raise Refused(f"delta of a release = {delta}: must lie in [0, 1)")
    _positive("epsilon of a release", event.epsilon, zero_allowed=delta > 0)
    kept = math.log1p(-delta)
    truth = kept - math.log1p(math.exp(-event.epsilon))
    lie = truth - event.epsilon
    open_ = math.log(delta) if delta else -math.inf
    return Atoms(np.array([truth, lie, open_, -math.inf]), np.array([lie, truth, -math.inf, open_]))


def _discrete_gaussian(event: DiscreteGaussianDpEvent) -> Atoms:
    if event.dim != 1:
        raise Unproved("discrete Gaussian noise has a proved pair in one dimension only")
    sigma = _positive("sigma", event.sigma)
    reach = math.ceil(12 * sigma) + 12  # beyond it less than 1e-30
    _bounded(reach)
    points = np.arange(-reach, reach + 1.0)
    log_total = math.log(float(np.exp(-(points**2) / (2 * sigma**2)).sum()))
    shift = _whole("l2", event.l2)
    return _moved(lambda x: -(x**2) / (2 * sigma**2) - log_total, reach, shift)


def _skellam(event: SkellamDpEvent) -> Atoms:
    if event.dim != 1:
        raise Unproved("Skellam noise has a proved pair in one dimension only")
    variance = _positive("variance", event.variance)
    if variance > LARGEST_SKELLAM:
        raise Unproved("the noise is too wide for its exact law to be written out")
    reach = math.ceil(12 * math.sqrt(variance)) + 60  # Bernstein: beyond it less than 1e-30
    _bounded(reach)

    def log_pmf(x: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(special.ive(np.abs(x), variance))

    return _moved(log_pmf, reach, _whole("l1 or l2", min(event.l1, event.l2)))


def _moved(log_pmf: Callable[[Array], Array], reach: int, shift: int) -> Atoms:
    """A log-concave law and itself moved by the largest shift; the far tails are given away."""
    whole = log_pmf(np.arange(-reach - shift, reach + shift + 1.0))
    rest = math.log(1e-30)
    return Atoms(
        np.append(whole[shift:], [rest, -math.inf]),
        np.append(whole[:-shift], [-math.inf, rest]),
    )


def _binomial(event: BinomialDpEvent) -> Atoms:
    if event.dim != 1:
        raise Unproved("binomial noise has a proved pair in one dimension only")
    if event.p != 0.5:
        raise Unproved("binomial noise may be composed as a pair for p = 1/2 only")
    return binomial.pair(event)


PAIRS: dict[type[DpEvent], Callable[..., Atoms]] = {
    StaircaseDpEvent: _staircase,
    PureDpEvent: _response,
    ApproximateDpEvent: _response,
    DiscreteGaussianDpEvent: _discrete_gaussian,
    SkellamDpEvent: _skellam,
    BinomialDpEvent: _binomial,
}


def _positive(name: str, value: float, zero_allowed: bool = False) -> float:
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero_allowed):
        raise Refused(f"{name} = {value}: must be positive and finite")
    return value


def _whole(name: str, bound: float) -> int:
    """The largest integer within a real bound; rounding must not lose the integer it meets."""
    shift = math.floor(_positive(name, bound) * (1 + 1e-9))
    if shift < 1:
        raise Refused(f"{name} = {bound}: integer vectors differ by at least 1")
    return shift


def _bounded(reach: int) -> None:
    if 2 * reach > LARGEST_SUPPORT:
        raise Unproved("the noise is too wide for its exact law to be written out")
