"""Which directories hold runs, and how each of them ended."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from confide.report.fields import NotARun

ENDS = ("public/run.json", "public/failed.json")
"""What a run writes at its end: it is finished, or it failed for good."""


def find_runs(given: Iterable[Path]) -> list[Path]:
    """The run directories; a directory of runs stands for the runs in it, by name."""
    found: list[Path] = []
    for place in given:
        if is_run(place) or not place.is_dir():
            found.append(place)
            continue
        inside = sorted(part for part in place.iterdir() if is_run(part))
        found += inside or [place]
    return list(dict.fromkeys(found))


def is_run(place: Path) -> bool:
    """Whether a run was ever started there."""
    return any((place / name).is_file() for name in (*ENDS, "private/run.json"))


def unfinished(place: Path) -> bool:
    """Whether a run was started there and did not come to an end."""
    return is_run(place) and not any((place / name).is_file() for name in ENDS)


def ended(place: Path) -> Path:
    """The file that says what was run there and how it ended."""
    for name in ENDS:
        if (place / name).is_file():
            return place / name
    if unfinished(place):
        raise NotARun(
            f"{place} holds a run that has not ended, allowed is one that has; "
            "confide run --resume goes on with it."
        )
    why = "public/run.json is missing" if place.is_dir() else "there is no such directory"
    raise NotARun(f"{place} is not a run directory: {why}.")


def method_in(place: Path) -> str:
    """What an unfinished run is called on a page; its directory's name would tell its seed."""
    try:
        found = tomllib.loads((place / "public" / "run.toml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return "a method"
    methods = found.get("methods")
    if not isinstance(methods, list) or not methods:
        return "a method"
    return str(cast("list[Any]", methods)[0])
