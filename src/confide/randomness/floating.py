"""Continuous noises and directions in double precision.

Their law is right to the precision of a float and no further: which floats can come out depends on
the input, so a statement that rests on them says so. `confide.randomness.exact` has the noises
without that flaw.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from confide.randomness.streams import Shape, Stream

_MOST_LEVELS = 1 << 24


def staircase(
    stream: Stream, shape: Shape, epsilon: float, step: float, gamma: float
) -> NDArray[np.float64]:
    """Return values of density a exp(-epsilon n(x)), where n counts the drops between 0 and |x|.

    The density drops at (k + gamma) step, k = 0, 1, 2, ... A period of one step consists of a high
    part of length gamma and a low one of length 1 - gamma; periods are geometric.
    """
    _check_staircase(epsilon, step, gamma)
    ratio = math.exp(-epsilon)
    low_share = (1 - gamma) * ratio / (gamma + (1 - gamma) * ratio)
    period = np.floor(stream.exponential(shape) / epsilon)
    low = stream.bernoulli(low_share, shape)
    within = stream.uniform(shape)
    place = np.where(low, gamma + (1 - gamma) * within, gamma * within)
    return stream.signs(shape) * (step * (period + place))


def radial_staircase(
    stream: Stream, shape: Shape, epsilon: float, step: float, gamma: float
) -> NDArray[np.float64]:
    """Return vectors (along the last axis) of joint density proportional to exp(-epsilon n(|x|_1)).

    The l1 norm is drawn first: a level with the density's mass on its shell, then a radius in the
    shell, whose volume grows with the power `dim`. The direction is uniform on the l1 sphere. All
    powers are taken in logarithms, so that any dimension works.
    """
    _check_staircase(epsilon, step, gamma)
    *rows, dim = _vectors(shape)
    count = math.prod(rows)
    levels, mass = _levels(dim, epsilon, gamma)
    drawn = np.searchsorted(mass, stream.uniform(count) * mass[-1], "left")
    outer = levels[drawn] + gamma
    inner = _power(np.maximum(outer - 1, 0) / outer, dim)
    radius = outer * np.exp(np.log(inner + stream.uniform(count) * (1 - inner)) / dim)
    return l1_sphere(stream, shape) * (step * radius).reshape(*rows, 1)


def _levels(
    dim: int, epsilon: float, gamma: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """List the levels that matter, with the cumulated mass of their shells.

    The density of the norm times epsilon is within a factor exp(epsilon) of that of Gamma(dim),
    which leaves dim +- (sqrt(2 dim y) + y) with probability at most 2 exp(-y): what the window
    leaves out is less than the rounding of a float.
    """
    centre = max(1, round(dim / epsilon))
    rarity = 50 + epsilon
    reach = (math.sqrt(2 * dim * rarity) + rarity) / epsilon + 3
    if reach > _MOST_LEVELS:
        raise ValueError(
            f"radial_staircase: epsilon={epsilon!r} is too small for dim={dim}: the steps vanish "
            "beside the noise; use Laplace noise."
        )
    first = max(0 if gamma > 0 else 1, centre - math.ceil(reach))
    levels = np.arange(first, centre + math.ceil(reach) + 1, dtype=np.float64)
    outer = levels + gamma
    inner = _power(np.maximum(outer - 1, 0) / outer, dim)
    distance = levels - centre
    with np.errstate(divide="ignore"):  # a first shell too thin to be seen has no mass
        log_volume = dim * np.log1p(distance / (centre + gamma)) + np.log1p(-inner)
    log_mass = log_volume - epsilon * distance
    return levels, np.cumsum(np.exp(log_mass - log_mass.max()))


def _power(base: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    """Raise numbers in [0, 1) to a power, letting what is too small be 0."""
    with np.errstate(under="ignore"):
        return np.power(base, exponent)


def sphere(stream: Stream, shape: Shape) -> NDArray[np.float64]:
    """Return vectors (along the last axis) uniform on the Euclidean unit sphere."""
    _vectors(shape)
    while True:
        points = stream.normal(shape)
        norms = np.linalg.norm(points, axis=-1, keepdims=True)
        if np.all(norms > 0):
            return points / norms


def l1_sphere(stream: Stream, shape: Shape) -> NDArray[np.float64]:
    """Return vectors (along the last axis) uniform on the sphere of l1 norm 1."""
    _vectors(shape)
    while True:
        sizes = stream.exponential(shape)
        norms = sizes.sum(axis=-1, keepdims=True)
        if np.all(norms > 0):
            return stream.signs(shape) * (sizes / norms)


def _vectors(shape: Shape) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, int) else shape
    if not sizes or sizes[-1] < 1:
        raise ValueError(f"shape={shape!r} must end with a dimension of at least 1.")
    return sizes


def _check_staircase(epsilon: float, step: float, gamma: float) -> None:
    if not 0 < epsilon < math.inf:
        raise ValueError(f"staircase: epsilon={epsilon!r} must be positive and finite.")
    if not 0 < step < math.inf:
        raise ValueError(f"staircase: step={step!r} must be positive and finite.")
    if not 0 <= gamma <= 1:
        raise ValueError(f"staircase: gamma={gamma!r} must be in [0, 1].")
