"""Settings that a person wrote, read with one sentence for whatever is wrong with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any


def nearest(given: str, known: Iterable[str]) -> str:
    """A hint at the known word that is most like the given one, or nothing."""
    near = difflib.get_close_matches(given, list(known), 1)
    return f" Did you mean {near[0]}?" if near else ""


def check_names(thing: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a setting that does not exist."""
    known = list(known)
    for name in given:
        if name not in known:
            allowed = f"allowed are {', '.join(known)}" if known else "it has no settings"
            raise ValueError(f"{thing}: unknown setting {name!r}, {allowed}.{nearest(name, known)}")


def whole(thing: str, name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """A whole number within bounds."""
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if not fits or (most is not None and value > most):
        allowed = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{thing}: {name} = {value!r}, allowed is a whole number {allowed}.")
    return value


def positive(thing: str, name: str, value: Any) -> float:
    """A finite number above 0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not isfinite(value) or value <= 0:
        raise ValueError(f"{thing}: {name} = {value!r}, allowed is a finite number above 0.")
    return float(value)


def share(thing: str, name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < 1:
        raise ValueError(f"{thing}: {name} = {value!r}, allowed is a number between 0 and 1.")
    return float(value)


def word(thing: str, name: str, value: Any, known: Iterable[str]) -> str:
    """One of the known words."""
    known = list(known)
    if value not in known:
        hint = nearest(str(value), known)
        raise ValueError(f"{thing}: {name} = {value!r}, allowed are {', '.join(known)}.{hint}")
    return value


def words(thing: str, name: str, value: Any) -> tuple[str, ...]:
    """One word or several."""
    given = (value,) if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise ValueError(f"{thing}: {name} = {value!r}, allowed is a word or a list of words.")
    return tuple(given)


def flag(thing: str, name: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{thing}: {name} = {value!r}, allowed are true and false.")
    return value


def required(thing: str, settings: Mapping[str, Any], name: str, what: str) -> Any:
    """A setting without a default."""
    if name not in settings:
        raise ValueError(f"{thing}: {name} is missing, allowed is {what}.")
    return settings[name]
