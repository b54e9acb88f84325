"""Values that a person wrote, checked against the annotated fields of a dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from math import isnan
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from confide.data.settings import check_names

PLAIN: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    NoneType: '"none"',
}


class Unfit(Exception):
    """The value is not of that kind."""


def checked(thing: str, kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values as the fields of a dataclass want them."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    check_names(thing, given, [field.name for field in fields if field.init])
    hints = get_type_hints(kind)
    return {name: fitted(thing, name, value, hints[name]) for name, value in given.items()}


def fitted(thing: str, name: str, value: Any, hint: Any) -> Any:
    """One value, or one sentence."""
    try:
        return converted(value, hint)
    except Unfit:
        raise ValueError(f"{thing}: {name} = {value!r}, allowed is {words(hint)}.") from None


def converted(value: Any, hint: Any) -> Any:
    """The value as the annotation has it; what the annotation does not restrict stays."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return first_that_fits(value, inside)
    if origin is Literal:
        if not any(value == known and type(value) is type(known) for known in inside):
            raise Unfit
        return value
    if origin in (tuple, list):
        return tuple(items(value, inside))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise Unfit
        return dict(cast("Mapping[str, Any]", value))
    return plain(value, hint)


def plain(value: Any, hint: Any) -> Any:
    """A value without parts."""
    if hint is NoneType:
        if value not in (None, "none"):
            raise Unfit
        return None
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        if isnan(value):
            raise Unfit
        return float(value)
    if hint in PLAIN and type(value) is not hint:
        raise Unfit
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def first_that_fits(value: Any, hints: tuple[Any, ...]) -> Any:
    """A whole number stays one where both kinds of number are allowed; a text comes last."""
    order = (int, bool, float, NoneType)
    ranked = sorted(hints, key=lambda h: order.index(h) if h in order else len(order) + (h is str))
    for hint in ranked:
        try:
            return converted(value, hint)
        except Unfit:
            continue
    raise Unfit


def items(value: Any, inside: tuple[Any, ...]) -> list[Any]:
    """The members of a list."""
    if not isinstance(value, list | tuple):
        raise Unfit
    members = cast("list[Any]", value)
    if not inside:
        return list(members)
    if len(inside) == 1 or (len(inside) == 2 and inside[1] is Ellipsis):
        return [converted(member, inside[0]) for member in members]
    if len(members) != len(inside):
        raise Unfit
    return [converted(member, hint) for member, hint in zip(members, inside, strict=True)]


def words(hint: Any) -> str:
    """What an annotation allows, in words."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if origin in (Union, UnionType):
        return " or ".join(words(part) for part in inside)
    if origin is Literal:
        return " or ".join(
            f'"{known}"' if isinstance(known, str) else str(known) for known in inside
        )
    if origin in (tuple, list):
        parts = [part for part in inside if part is not Ellipsis]
        one = len(parts) == 1
        return f"a list, each {words(parts[0])}" if one else f"a list of {len(parts)} values"
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return "a table"
    return f"a {getattr(hint, '__name__', hint)}"
