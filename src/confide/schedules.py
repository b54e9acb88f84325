"""Learning rates that change.

A step's `eta` may be one of these: then it is asked with the number of steps that the client has
taken in this round. From round to round a method sets it itself, as in `SGD(Exponential(0.1,
0.99)(past.t))`. No data has a part in it, so no statement changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, inf, pi

from confide.cohorts import whole


@dataclass(frozen=True)
class Linear:
    """From `start` to `end` in a straight line over so many steps, then `end`."""

    start: float
    end: float
    over: int

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check_ends(self)

    def __call__(self, at: int) -> float:
        """The rate of this step, the first of which is 0."""
        return self.start + (self.end - self.start) * min(at / self.over, 1.0)


@dataclass(frozen=True)
class Cosine:
    """From `start` to `end` along half a cosine over so many steps, then `end`."""

    start: float
    end: float
    over: int

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check_ends(self)

    def __call__(self, at: int) -> float:
        """The rate of this step, the first of which is 0."""
        return self.end + (self.start - self.end) * (1 + cos(pi * min(at / self.over, 1.0))) / 2


@dataclass(frozen=True)
class Exponential:
    """`start` times `factor` for every `every` steps that have been taken."""

    start: float
    factor: float
    every: int = 1

    def __post_init__(self) -> None:
        """Sensible numbers."""
        between(self, "start", 0, above=True)
        between(self, "factor", 0, 1, above=True)
        whole("Exponential", "every", self.every)

    def __call__(self, at: int) -> float:
        """The rate of this step, the first of which is 0."""
        return self.start * self.factor ** (at // self.every)


Schedule = Linear | Cosine | Exponential


def rate_of(eta: float | Schedule, taken: int) -> float:
    """The learning rate after so many steps."""
    return eta if isinstance(eta, int | float) else eta(taken)


def check_rate(step: object) -> None:
    """A step's `eta` is a number above 0, or a schedule."""
    if not isinstance(getattr(step, "eta", None), Schedule):
        between(step, "eta", 0, above=True)


def check_ends(schedule: Linear | Cosine) -> None:
    """Rates of at least 0, the first above it, over at least one step."""
    between(schedule, "start", 0, above=True)
    between(schedule, "end", 0)
    whole(type(schedule).__name__, "over", schedule.over)


def between(step: object, field: str, least: float, most: float = inf, above: bool = False) -> None:
    """Refuse a setting outside of its range."""
    value = getattr(step, field)
    fine = isinstance(value, int | float) and not isinstance(value, bool) and value < inf
    if not fine or not least <= value <= most or (above and value == least):
        start = f"above {least:g}" if above else f"at least {least:g}"
        limit = f" and at most {most:g}" if most < inf else ""
        raise ValueError(
            f"{type(step).__name__}: {field} = {value!r}, "
            f"allowed is a finite number {start}{limit}."
        )
