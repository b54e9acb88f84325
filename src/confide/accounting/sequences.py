"""Releases one after the other, merged where that is exact."""

from __future__ import annotations

from math import sqrt

from confide.accounting.events import (
    OPEN,
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    SelfComposedDpEvent,
)

ROUNDING = 1 - 1e-15
"""Merged multipliers are rounded down."""


def composed(events: list[DpEvent]) -> DpEvent:
    """All of these; Gaussians add their squared inverse multipliers exactly."""
    if any(e == OPEN for e in events):
        return OPEN
    if len(events) == 1:
        return events[0]
    multipliers = [e.noise_multiplier for e in events if isinstance(e, GaussianDpEvent)]
    if len(multipliers) == len(events):
        return GaussianDpEvent(ROUNDING / sqrt(sum(z**-2 for z in multipliers)))
    return ComposedDpEvent(events)


def repeated(event: DpEvent, times: int) -> DpEvent:
    """The same release this many times."""
    if event == OPEN or times == 1:
        return event
    if isinstance(event, GaussianDpEvent):
        return GaussianDpEvent(event.noise_multiplier / sqrt(times) * ROUNDING)
    return SelfComposedDpEvent(event, times)
