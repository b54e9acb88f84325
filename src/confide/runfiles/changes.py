"""The words of a command on top of a run file."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, cast

from confide.data.settings import nearest
from confide.methods.making import field_names, find, label
from confide.runfiles.runfile import TABLES, TOP

Raw = dict[str, Any]
BUDGET = ("epsilon", "delta", "unit", "view")


def pairs(given: Sequence[str]) -> dict[str, Any]:
    """The `--set` options as values: numbers, true/false, lists, tables, else text."""
    values: dict[str, Any] = {}
    for pair in given:
        key, found, text = pair.partition("=")
        if not found or not key.strip():
            raise ValueError(f"--set {pair!r} is not understood, allowed is KEY=VALUE.")
        try:
            values[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[key.strip()] = text
    return values


def budget(text: str) -> Raw:
    """EPSILON[,DELTA[,UNIT[,VIEW]]] as the table of a run file."""
    words = [word.strip() for word in text.split(",")]
    if len(words) > len(BUDGET) or not all(words):
        raise ValueError(f"--budget {text!r}, allowed is EPSILON[,DELTA[,UNIT[,VIEW]]].")
    out: Raw = dict(zip(BUDGET, words, strict=False))
    for name in ("epsilon", "delta"):
        if name in out:
            try:
                out[name] = float(out[name])
            except ValueError:
                raise ValueError(
                    f"--budget: {name} = {out[name]!r}, allowed is a number."
                ) from None
    return out


def seeds(text: str) -> list[int]:
    """Whole numbers with commas."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"--seeds {text!r}, allowed are whole numbers such as 0,1,2.") from None


def names(given: Sequence[str]) -> list[str]:
    """`--method`, repeated or with commas."""
    return [name.strip() for words in given for name in words.split(",")]


def select(raw: Raw, methods: Sequence[str]) -> Raw:
    """Other methods: the tables of those that are left out go too."""
    known = {*methods, *(label(name) for name in methods)}
    tables: Any = raw.get("method", {})
    kept = {k: v for k, v in tables.items() if k in known} if isinstance(tables, dict) else tables
    return {**raw, "methods": list(methods), "method": kept}


def put(raw: Raw, given: dict[str, Any]) -> Raw:
    """The `--set` values at their places: `model.norm`, `NAME.sigma`, or every method's `sigma`."""
    out = deepcopy(raw)
    methods: list[str] = [m for m in out.get("methods", []) if isinstance(m, str)]
    if isinstance(out.get("method"), dict):
        tables = cast("Raw", out["method"])
        out["method"] = {label(k) if k in methods else k: v for k, v in tables.items()}
    for key, value in given.items():
        table, _, rest = key.partition(".")
        own = [name for name in methods if key.startswith((f"{name}.", f"{label(name)}."))]
        if own:
            name = max(own, key=len)
            field = key.removeprefix(f"{name}.").removeprefix(f"{label(name)}.")
            deposit(out, ("method", label(name), field), value, key)
        elif rest and table in TABLES and table != "method":
            deposit(out, (table, *rest.split(".")), value, key)
        elif rest:
            known = [*(label(name) for name in methods), *(t for t in TABLES if t != "method")]
            raise ValueError(
                f"--set {key}: there is no {table!r}, allowed before the dot are "
                f"{', '.join(known)}.{nearest(table, known)}"
            )
        else:
            everywhere(out, methods, key, value)
    return out


def everywhere(out: Raw, methods: Sequence[str], key: str, value: Any) -> None:
    """A bare field, for every method that has it."""
    fields = {name: field_names(find(name)) for name in methods}
    having = [name for name in methods if key in fields[name]]
    if not having:
        known = list(dict.fromkeys(field for names in fields.values() for field in names))
        told = "an option or a line of the run file sets it" if key in TOP else "no method has it"
        raise ValueError(
            f"--set {key}: {told}, allowed are {', '.join(known)} and TABLE.FIELD."
            f"{nearest(key, known)}"
        )
    for name in having:
        deposit(out, ("method", label(name), key), value, key)


def deposit(out: Raw, place: Sequence[str], value: Any, key: str) -> None:
    """Put a value into nested tables."""
    at = out
    for part in place[:-1]:
        inner = at.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ValueError(f"--set {key}: {part} = {inner!r} has no fields, allowed is a table.")
        at = cast("Raw", inner)
    at[place[-1]] = value
