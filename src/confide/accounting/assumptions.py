"""What a guarantee of an event takes for granted, one sentence each."""

from __future__ import annotations

from confide.accounting import events
from confide.accounting.events import DpEvent

SENTENCES: tuple[tuple[type[DpEvent], str], ...] = (
    (
        events.PoissonSampledDpEvent,
        "every unit is drawn by its own coin in every round, the draw stays hidden, and an empty "
        "draw is released like any other",
    ),
    (
        events.SampledWithoutReplacementDpEvent,
        "every round draws a set of fixed size uniformly and afresh, and the set stays hidden",
    ),
    (
        events.MixedDpEvent,
        "the unit is drawn by a coin that no data influences",
    ),
    (
        events.RandomParticipationDpEvent,
        "the schedule of participation depends on no data, and neither does the noise",
    ),
    (
        events.ShuffledDpEvent,
        "every user sends one message, of the same randomiser, and the shuffler keeps the order "
        "to itself",
    ),
    (
        events.BinomialDpEvent,
        "distances are those of the rounded integer vectors",
    ),
    (
        events.SkellamDpEvent,
        "distances are those of the rounded integer vectors",
    ),
    (
        events.DiscreteGaussianDpEvent,
        "distances are those of the rounded integer vectors",
    ),
)


def assumptions_of(event: DpEvent) -> tuple[str, ...]:
    """Return the sentences that apply to the event, in a fixed order and once each."""
    kinds = set(_kinds(event))
    return tuple(dict.fromkeys(text for kind, text in SENTENCES if kind in kinds))


def _kinds(event: DpEvent) -> list[type[DpEvent]]:
    kinds = [type(event)]
    if isinstance(event, events.ComposedDpEvent):
        for part in event.events:
            kinds += _kinds(part)
    inner = getattr(event, "event", None)
    return kinds + (_kinds(inner) if isinstance(inner, DpEvent) else [])
