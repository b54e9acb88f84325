"""JSON files of a run, read field by field; whatever is wrong becomes one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite, isnan
from pathlib import Path
from typing import Any, cast


class NotARun(ValueError):
    """A directory that holds no run, or files that no run wrote: one sentence."""


@dataclass(frozen=True)
class Fields:
    """One JSON object of a file, read field by field."""

    path: Path
    data: Mapping[str, Any]

    def wrong(self, name: str, value: object, allowed: str) -> NotARun:
        """The sentence."""
        return NotARun(f"{self.path}: {name} = {value!r}, allowed is {allowed}.")

    def get(self, name: str) -> Any:
        """A field that every run writes."""
        if name not in self.data:
            raise NotARun(f"{self.path} has no field {name!r}: no run of this version wrote it.")
        return self.data[name]

    def text(self, name: str) -> str:
        """A text."""
        value = self.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, value, "a text")
        return value

    def number(self, name: str) -> float:
        """A number; infinity is the text "inf"."""
        value = inf if self.get(name) == "inf" else self.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or isnan(value):
            raise self.wrong(name, value, 'a number or "inf"')
        return float(value)

    def score(self, name: str) -> float | None:
        """A measured number; None where the run diverged or has not measured it."""
        value = self.data.get(name)
        if value is None or (isinstance(value, float) and isnan(value)):
            return None
        return self.number(name) if isfinite(self.number(name)) else None

    def whole(self, name: str) -> int:
        """A whole number of at least 0."""
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong(name, value, "a whole number of at least 0")
        return value

    def mapping(self, name: str) -> Mapping[str, Any]:
        """A JSON object."""
        value = self.get(name)
        if not isinstance(value, dict):
            raise self.wrong(name, value, "a JSON object")
        return cast("dict[str, Any]", value)

    def rows(self, name: str) -> list[Any]:
        """A JSON list."""
        value = self.get(name)
        if not isinstance(value, list):
            raise self.wrong(name, value, "a list")
        return cast("list[Any]", value)


def text_of(path: Path) -> str:
    """A file of the run as text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as why:
        raise NotARun(f"{path} cannot be read: {type(why).__name__}.") from why


def load(path: Path) -> Mapping[str, Any]:
    """The JSON object in a file."""
    return parsed(text_of(path), path)


def parsed(text: str, path: Path) -> Mapping[str, Any]:
    """The JSON object in a text."""
    try:
        data = json.loads(text)
    except ValueError as why:
        raise NotARun(f"{path} is not JSON: {why}.") from why
    if not isinstance(data, dict):
        raise NotARun(f"{path} holds {type(data).__name__}, allowed is a JSON object.")
    return cast("dict[str, Any]", data)
