"""Scalar searches: scipy's, with the types it does not publish."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from scipy import optimize

_brent = cast(Callable[..., float], optimize.brentq)
_bounded = cast(Callable[..., Any], optimize.minimize_scalar)


def root(
    function: Callable[[float], float], low: float, high: float, within: float, share: float = 1e-14
) -> float:
    """Return a point near a change of sign: within `within`, or this share of the point."""
    return float(_brent(function, low, high, xtol=within, rtol=share))


def least(
    function: Callable[[float], float], low: float, high: float, within: float
) -> tuple[float, float]:
    """Return where the function is about least between two ends, and its value there."""
    found = _bounded(function, bounds=(low, high), method="bounded", options={"xatol": within})
    return float(found.x), float(found.fun)
