"""Events as JSON text and back, without losing a bit: what a ledger stores and an auditor reads.

An event is an object whose "type" names its class and whose other members are its fields, in
their order. Python writes the shortest decimal that reads back as the same double, so floats
survive exactly; infinity is the string "inf"; a list is an array, a tuple is {"tuple": [...]}.
One event has one text. Whatever is not an event of the vocabulary is refused.
"""

from __future__ import annotations

import difflib
import json
import math
from typing import Any, cast

import attrs
from dp_accounting import dp_event

from confide.accounting import events

KNOWN: dict[str, type[events.DpEvent]] = {
    kind.__name__: kind
    for kind in (
        dp_event.NoOpDpEvent,
        dp_event.NonPrivateDpEvent,
        dp_event.UnsupportedDpEvent,
        dp_event.RandomizedResponseDpEvent,
        dp_event.GaussianDpEvent,
        dp_event.LaplaceDpEvent,
        dp_event.DiscreteLaplaceDpEvent,
        dp_event.SelfComposedDpEvent,
        dp_event.ComposedDpEvent,
        dp_event.PoissonSampledDpEvent,
        dp_event.SampledWithReplacementDpEvent,
        dp_event.SampledWithoutReplacementDpEvent,
        dp_event.SingleEpochTreeAggregationDpEvent,
        dp_event.RepeatAndSelectDpEvent,
        dp_event.MixtureOfGaussiansDpEvent,
        dp_event.ZCDpEvent,
        dp_event.TruncatedSubsampledGaussianDpEvent,
        events.LaplaceL2DpEvent,
        events.LaplaceBothDpEvent,
        events.StaircaseDpEvent,
        events.PureDpEvent,
        events.ApproximateDpEvent,
        events.DiscreteGaussianDpEvent,
        events.SkellamDpEvent,
        events.BinomialDpEvent,
        events.ShuffledDpEvent,
        events.MixedDpEvent,
        events.RandomParticipationDpEvent,
    )
}

UNPROTECTED = (dp_event.NonPrivateDpEvent, dp_event.UnsupportedDpEvent)


def dump(event: events.DpEvent) -> str:
    """Write an event as JSON text; `load` gives back an equal event."""
    return json.dumps(_plain_event(event), separators=(",", ":"), allow_nan=False)


def load(text: str) -> events.DpEvent:
    """Read an event from the text that `dump` wrote; refuse everything else."""
    try:
        plain = json.loads(text, object_pairs_hook=_members, parse_constant=_refuse_constant)
        return _event(plain)
    except json.JSONDecodeError as wrong:
        raise ValueError(f"the text of an event must be JSON, but {wrong}") from None
    except RecursionError:
        raise ValueError("the text of an event is nested too deeply to be read") from None


def is_unprotected(event: events.DpEvent) -> bool:
    """Whether the event, or any event inside it, is one that no accountant can bound."""
    if isinstance(event, UNPROTECTED):
        return True
    inside: list[Any] = []
    for field in attrs.fields(type(event)):
        value = getattr(event, field.name)
        inside.extend(cast("list[Any]", value) if isinstance(value, list | tuple) else [value])
    return any(is_unprotected(one) for one in inside if isinstance(one, events.DpEvent))


def _plain_event(event: events.DpEvent) -> dict[str, Any]:
    """One event as plain JSON values."""
    kind = type(event)
    if KNOWN.get(kind.__name__) is not kind:
        raise ValueError(_unknown(kind.__name__))
    fields = [field.name for field in attrs.fields(kind)]
    return {"type": kind.__name__} | {
        name: _plain(getattr(event, name), f"{kind.__name__}.{name}") for name in fields
    }


def _plain(value: Any, where: str) -> Any:
    """One field's value as a plain JSON value; `where` names it in a refusal."""
    if isinstance(value, events.DpEvent):
        return _plain_event(value)
    if isinstance(value, list):
        return [_plain(one, where) for one in cast("list[Any]", value)]
    if isinstance(value, tuple):
        return {"tuple": [_plain(one, where) for one in cast("tuple[Any, ...]", value)]}
    if isinstance(value, float):
        if math.isnan(value) or value == -math.inf:
            raise ValueError(f"{where} is {value}; allowed are finite numbers and inf")
        return "inf" if value == math.inf else float(value)
    if value is None or type(value) in (int, str):
        if value == "inf":
            raise ValueError(f'{where} is the text "inf", which stands for the number infinity')
        return value
    found = f"{value!r} of type {type(value).__name__}"
    raise ValueError(f"{where} is {found}; allowed are float, int, str, None, lists and events")


def _event(plain: Any) -> events.DpEvent:
    """The event that an object with a "type" describes."""
    if not isinstance(plain, dict) or "type" not in plain:
        raise ValueError(f'an event must be an object with a "type", but it is {plain!r}')
    members = dict(cast("dict[str, Any]", plain))
    name = members.pop("type")
    kind = KNOWN.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(_unknown(name))
    fields = [field.name for field in attrs.fields(kind)]
    if list(members) != fields:
        raise ValueError(f"{name} must have the fields {fields} in order, but has {list(members)}")
    values = {field: _value(value) for field, value in members.items()}
    try:
        return kind(**values)
    except (TypeError, ValueError) as wrong:  # a field's own rule
        raise ValueError(f"{name} cannot have {values}: {wrong.args[0]}") from None


def _value(plain: Any) -> Any:
    """The Python value of one field."""
    if isinstance(plain, list):
        return [_value(one) for one in cast("list[Any]", plain)]
    if isinstance(plain, dict):
        members = cast("dict[str, Any]", plain)
        if list(members) == ["tuple"] and isinstance(members["tuple"], list):
            return tuple(_value(one) for one in cast("list[Any]", members["tuple"]))
        return _event(members)
    if isinstance(plain, bool):
        raise ValueError(f"a field of an event is {plain!r}; a truth value is not allowed there")
    if isinstance(plain, float) and math.isinf(plain):
        raise ValueError('a field of an event overflows a double; infinity is written "inf"')
    return math.inf if plain == "inf" else plain


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, unless it names a member twice (then readers could disagree on it)."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError(f"an event names a field twice: {[name for name, _ in pairs]}")
    return members


def _refuse_constant(name: str) -> float:
    """Refuse the non-standard JSON numbers NaN, Infinity and -Infinity."""
    raise ValueError(f'a field of an event is {name}; infinity is written "inf", NaN is refused')


def _unknown(name: object) -> str:
    """The sentence for a type outside the vocabulary, with the nearest one inside."""
    near = difflib.get_close_matches(str(name), KNOWN, n=1, cutoff=0.0)
    return f"{name!r} is not an event that can be recorded; the nearest known one is {near[0]}"
