"""Runs that differ by their seed alone: their mean, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

from confide.report import digits


@dataclass(frozen=True)
class Spread:
    """A mean with half the width of its 95 % interval; one run has no interval."""

    mean: float
    half: float | None

    def words(self, metric: str) -> str:
        """90.9 ± 0.5 %, or an error with its interval."""
        told = digits.metric(self.mean, metric)
        if self.half is None:
            return told
        if metric != "accuracy":
            return f"{told} ± {self.half:.2g}"
        return f"{told.removesuffix(' %')} ± {100 * self.half:.1f} %"


def spread(values: Sequence[float]) -> Spread:
    """The mean and its interval by Student's t, as for independent seeds of like spread."""
    if len(values) == 1:
        return Spread(values[0], None)
    from scipy.special import stdtrit

    quantile = float(stdtrit(len(values) - 1, 0.975))
    return Spread(mean(values), quantile * stdev(values) / sqrt(len(values)))
