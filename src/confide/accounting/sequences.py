"""Releases one after the other, merged where that is exact."""

from __future__ import annotations

from math import sqrt

from confide.accounting.events import (
    OPEN,
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    SelfComposedDpEvent,
    number,
    whole,
)
from confide.accounting.gdp import ratio

ROUNDING = 1 - 1e-15
"""Merged multipliers are rounded down."""


def composed(events: list[DpEvent]) -> DpEvent:
    """All of these; Gaussians add their squared inverse multipliers exactly."""
    if any(e == OPEN for e in events):
        return OPEN
    if len(events) == 1:
        return events[0]
    together = ComposedDpEvent(events)
    if events and all(isinstance(e, GaussianDpEvent) for e in events) and (mu := ratio(together)):
        return GaussianDpEvent(ROUNDING / mu)
    return together


def repeated(event: DpEvent, times: int) -> DpEvent:
    """The same release this many times."""
    times = whole(times, "times")
    if event == OPEN or times == 1:
        return event
    if isinstance(event, GaussianDpEvent) and times:
        return GaussianDpEvent(
            number(event.noise_multiplier, "noise_multiplier") / sqrt(times) * ROUNDING
        )
    return SelfComposedDpEvent(event, times)
