"""Which correlation leaves the least noise in the models: banded factors of the workload.

Round t's model has seen the sum of the noises n_0, ..., n_t, each with what momentum makes of it.
With c of B numbers and independent z, sum_j c_j n_{t-j} = z_t, the expected squared noise of all T
models is sum_j (T - j) e_j^2 per unit variance, where e is the power series (workload / c); and
what a participation costs grows with ‖c‖. So ‖c‖^2 sum_j (T - j) e_j^2 is what should be small. It
says nothing about privacy: any c is accounted as it is.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.signal import fftconvolve, lfilter
from scipy.special import binom

Series = NDArray[np.float64]


@lru_cache(maxsize=32)
def least_error(T: int, bands: int, beta: float = 0.0) -> tuple[float, ...]:
    """The c of at most this many numbers, the first of them 1, for T rounds with momentum beta.

    Six decimals, so that machines agree.
    """
    bands = min(bands, T)
    if bands == 1:
        return (1.0,)
    work = workload(T, beta)
    start = root_of_sums(bands)[1:]
    found = minimize(error_of, start, args=(work,), jac=True, method="L-BFGS-B")
    c = found.x if found.fun < error_of(start, work)[0] else start
    return (1.0, *(float(value) for value in np.round(c, 6)))


def workload(T: int, beta: float) -> Series:
    """How much of a round's noise is in the model j rounds later: 1 + beta + ... + beta^j."""
    return np.cumsum(np.power(beta, np.arange(T)), dtype=np.float64)


def root_of_sums(bands: int) -> Series:
    """The power series (1 - x)^(-1/2), which is optimal for many bands up to a constant."""
    j = np.arange(bands)
    return binom(2 * j, j) / 4.0**j


def error_of(rest: Series, work: Series) -> tuple[float, Series]:
    """The log of ‖c‖^2 sum_j (T - j) e_j^2 for c = (1, rest), and its gradient."""
    T = len(work)
    c = np.concatenate([[1.0], rest])
    left = np.arange(T, 0, -1.0)
    e: Series = np.asarray(lfilter([1.0], c, work))
    size, error = float(c @ c), float(left @ (e * e))
    # e c = work, so a change of c_k moves e by -(e / c) shifted by k.
    shifted: Series = np.asarray(lfilter([1.0], c, e))
    pull = fftconvolve(2 * left * e, shifted[::-1])[T - 1 :]
    gradient = 2 * c / size - pull[: len(c)] / error
    return float(np.log(size) + np.log(error)), gradient[1:]
