"""Many releases of one unit put together by dp-accounting, rounded so that they show less."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import inf, log, sqrt

import dp_accounting
import numpy as np
from dp_accounting.pld import privacy_loss_distribution as losses
from scipy.stats import norm

from confide.audit.bounds import Rows
from confide.cells import Cell

COARSEST, FINEST = 0.05, 1e-4
"""Of the grid of privacy losses; each round loses half a step of it."""
ROUNDED = 0.02
"""What all rounds may lose by it, as a share of the epsilon that is looked at."""
BINS = 4000


@dataclass(frozen=True)
class Shown:
    """What one release shows of a unit: a shift of `mu` standard deviations behind a coin.

    `both`: the other world is shifted as far the other way, rather than not at all.
    """

    mu: float
    q: float = 1.0
    both: bool = False


def composed(rounds: list[tuple[Shown, int]], cell: Cell) -> float:
    """The least epsilon at the row's delta that all of them allow."""
    counted: Counter[Shown] = Counter()
    for one, n in rounds:
        counted[one] += n
    if all(one.q == 1 for one in counted):
        mu = sqrt(sum(n * one.mu**2 for one, n in counted.items()))
        return float(dp_accounting.get_epsilon_gaussian(1 / mu, cell.delta))
    steps = ROUNDED * max(cell.epsilon, 0.1) / sum(counted.values())
    grid = min(COARSEST, max(FINEST, 2 * steps))
    total: losses.PrivacyLossDistribution | None = None
    for one, n in counted.items():
        part = loss_of(one, grid).self_compose(n)
        total = part if total is None else total.compose(part)
    assert total is not None
    return float(total.get_epsilon_for_delta(cell.delta))


def loss_of(one: Shown, grid: float) -> losses.PrivacyLossDistribution:
    """The privacy loss of one release, rounded down."""
    if not one.both:
        return losses.from_gaussian_mechanism(
            1 / one.mu,
            pessimistic_estimate=False,
            value_discretization_interval=grid,
            sampling_prob=one.q,
            use_connect_dots=False,
        )
    # Shifted either way behind the coin. Bins are post-processing: they can only hide.
    edges = np.concatenate([[-inf], np.linspace(-one.mu - 9, one.mu + 9, BINS), [inf]])
    middle, up, down = (masses(edges, shift) for shift in (0.0, one.mu / 2, -one.mu / 2))
    here, there = ((1 - one.q) * middle + one.q * side for side in (up, down))
    kept = [n for n in range(len(here)) if here[n] > 0 and there[n] > 0]
    lower, upper = ({n: log(side[n]) for n in kept} for side in (there, here))
    return losses.from_two_probability_mass_functions(
        lower, upper, pessimistic_estimate=False, value_discretization_interval=grid
    )


def masses(edges: Rows, shift: float) -> Rows:
    """What a shifted normal law puts between these edges, exact in both tails."""
    low, high = edges[:-1] - shift, edges[1:] - shift
    right = norm.sf(low) - norm.sf(high)
    return np.where(low > 0, right, norm.cdf(high) - norm.cdf(low))
