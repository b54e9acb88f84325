"""What an event holds: how many releases, which are unprotected, which need a certificate."""

from __future__ import annotations

import math

import attrs
from dp_accounting import NonPrivateDpEvent, NoOpDpEvent

from confide.accounting import binomial
from confide.accounting.events import (
    BinomialDpEvent,
    ComposedDpEvent,
    DpEvent,
    LaplaceBothDpEvent,
    MixedDpEvent,
    PoissonSampledDpEvent,
    RandomParticipationDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.relations import Refused


def _parts(event: DpEvent) -> list[DpEvent]:
    if isinstance(event, ComposedDpEvent):
        return list(event.events)
    inner = getattr(event, "event", None)
    return [inner] if isinstance(inner, DpEvent) else []


def releases(event: DpEvent) -> int:
    """How many releases the event holds; numbers that are not counts are refused."""
    _check_numbers(event)
    if isinstance(event, NoOpDpEvent):
        return 0
    inner = sum(releases(part) for part in _parts(event))
    match event:
        case SelfComposedDpEvent():
            return inner * _count("count", event.count)
        case RandomParticipationDpEvent():
            return inner * _count("rounds", event.rounds)
        case _:
            return inner if _holds_others(event) else 1


def _holds_others(event: DpEvent) -> bool:
    return isinstance(event, ComposedDpEvent) or bool(_parts(event))


def _count(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Refused(f"{name} = {value}: must be a whole number of at least 1")
    return value


def _check_numbers(event: DpEvent) -> None:
    for field in attrs.fields(type(event)):
        value = getattr(event, field.name)
        if isinstance(value, (int, float)) and not value >= 0:
            raise Refused(f"{field.name} = {value} of {type(event).__name__}: must be at least 0")
        endless = isinstance(value, float) and math.isinf(value)
        if endless and field.name not in ("l1", "linf"):
            raise Refused(f"{field.name} = {value} of {type(event).__name__}: must be finite")


def open_part(event: DpEvent) -> str | None:
    """Say which release of the event is certainly unprotected, if one is."""
    if isinstance(event, NonPrivateDpEvent):
        return "a release is unprotected"
    for name in ("noise_multiplier", "l1_multiplier", "l2_multiplier", "sigma", "variance"):
        if getattr(event, name, None) == 0:
            return f"{name} = 0 of {type(event).__name__}: a release is unprotected"
    if isinstance(event, MixedDpEvent | RandomParticipationDpEvent | PoissonSampledDpEvent):
        return None  # only with some probability; the accountants know
    return next((why for part in _parts(event) if (why := open_part(part))), None)


def has_two_norms(event: DpEvent) -> bool:
    """Say whether some release is bounded in two norms at once."""
    return isinstance(event, LaplaceBothDpEvent) or any(map(has_two_norms, _parts(event)))


def _needs_certificate(event: BinomialDpEvent) -> bool:
    return event.dim > 1 or event.p != 0.5


def certified_count(event: DpEvent) -> int:
    """How many releases of the event can only be known by a certificate."""
    if isinstance(event, BinomialDpEvent):
        return 1 if _needs_certificate(event) else 0
    times = 1
    if isinstance(event, SelfComposedDpEvent):
        times = event.count
    elif isinstance(event, RandomParticipationDpEvent):
        times = event.rounds
    return times * sum(certified_count(part) for part in _parts(event))


def certify(event: DpEvent, delta: float) -> DpEvent:
    """Replace such releases by their certificates at this delta each."""
    if isinstance(event, BinomialDpEvent):
        return binomial.certificate(event, delta) if _needs_certificate(event) else event
    if isinstance(event, ComposedDpEvent):
        return ComposedDpEvent([certify(part, delta) for part in event.events])
    parts = _parts(event)
    return attrs.evolve(event, event=certify(parts[0], delta)) if parts else event
