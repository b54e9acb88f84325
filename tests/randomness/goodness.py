"""Goodness-of-fit p-values that several test files use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

# Keys are fixed, so a p-value is a constant of the code: about 200 of them are asserted, and all
# pass with probability 0.98 when every law is right. A wrong law gives far less than 1e-4.
LEAST_P = 1e-4


def chi_square(observed: NDArray[np.int64], probability: NDArray[np.float64]) -> float:
    """Return the p-value of counts against probabilities; the last cell absorbs what is missing."""
    expected = probability * observed.sum()
    assert abs(expected.sum() / observed.sum() - 1) < 1e-9
    assert expected.min() > 5
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, len(observed) - 1))


def chi_square_of_law(
    draws: NDArray[np.int64], cdf: Callable[[NDArray[np.int64]], object]
) -> float:
    """Return the p-value of integer draws against a distribution function.

    Cells are single integers in the bulk; in the tails, and where the law is wide, neighbours are
    merged until a cell expects at least 20 draws.
    """
    low, high = int(draws.min()) - 1, int(draws.max()) + 1
    step = max(1, (high - low) >> 16)
    edges = np.arange(low, high + step, step)
    heights = np.asarray(cdf(edges), np.float64) * len(draws)
    kept: list[int] = []
    last = 0.0
    for at, height in enumerate(heights):
        if height - last >= 20 and len(draws) - height >= 20:
            kept.append(at)
            last = float(height)
    cells = np.searchsorted(edges[kept], draws, "left")
    probability = np.diff(np.concatenate([[0.0], heights[kept] / len(draws), [1.0]]))
    return chi_square(np.bincount(cells, minlength=len(kept) + 1), probability)


def kolmogorov(draws: NDArray[np.floating], cdf: Callable[..., object]) -> float:
    """Return the Kolmogorov-Smirnov p-value."""
    return float(stats.kstest(draws.astype(np.float64), cdf).pvalue)
