"""TOML, written: the reader is Python's own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast


def dump(table: Mapping[str, Any]) -> str:
    """A TOML text; tables one and two levels deep get headings, deeper ones stay in their line."""
    return "\n".join(lines(table, ())) + "\n"


def lines(table: Mapping[str, Any], at: tuple[str, ...]) -> Iterator[str]:
    """Values first, then tables."""
    depth = 2 if at[:1] == ("method",) else 1
    tables = {k: v for k, v in table.items() if isinstance(v, Mapping) and len(at) < depth}
    plain = {k: v for k, v in table.items() if k not in tables}
    if at and (plain or not tables):
        yield f"[{'.'.join(key(part) for part in at)}]"
    for name, inner in plain.items():
        yield f"{key(name)} = {value(inner)}"
    for name, inner in tables.items():
        yield from lines(cast("Mapping[str, Any]", inner), (*at, name))


def key(name: str) -> str:
    """Bare where TOML allows that."""
    bare = name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if bare else text(name)


def value(given: Any) -> str:
    """One value in a line."""
    if given is None:
        return '"none"'
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, int | float):
        return repr(given)
    if isinstance(given, Mapping):
        inner = ", ".join(f"{key(k)} = {value(v)}" for k, v in given.items())
        return f"{{{inner}}}"
    if isinstance(given, list | tuple):
        return f"[{', '.join(value(v) for v in cast('list[Any]', given))}]"
    return text(str(given))


def text(given: str) -> str:
    """A TOML string: JSON's, but for one character."""
    return json.dumps(given, ensure_ascii=False).replace("\x7f", "\\u007f")
