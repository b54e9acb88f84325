"""Something that is not as it is said to be, and whether the statement rests on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from confide.statements import Statement

SEERS = {
    "example": ("device", "server", "world"),
    "batch": ("server", "world"),
    "upload": ("server", "world"),
    "publish": ("world",),
}
"""Whose rows of the statement rest on noise at this place."""
LEVELS = ("fail", "warn", "told")


@dataclass(frozen=True)
class Fault:
    """What is wrong; `told` where no finite row of the statement rests on it."""

    kind: str
    words: str
    level: str  # one of LEVELS
    about: str = ""  # of several faults of a kind about one thing, the first is told

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {"kind": self.kind, "level": self.level, "words": self.words}


def finite(statement: Statement, observer: str, of: str | None = None) -> bool:
    """Whether the statement promises anything to anybody about what this observer sees."""
    return any(
        cell.epsilon < inf and cell.observer == observer and of in (None, cell.of)
        for cell in statement.cells
    )


def against(statement: Statement, seers: Sequence[str]) -> str:
    """How bad a fault is that these observers see."""
    return "fail" if any(finite(statement, seer) for seer in seers) else "told"


def told_once(faults: Sequence[Fault]) -> Iterator[Fault]:
    """The worst first; what is said of a stage is not said again of its layers, or of each key."""
    known: set[tuple[str, str]] = set()
    for fault in sorted(faults, key=lambda f: LEVELS.index(f.level)):
        about = fault.kind, fault.about or fault.words
        if about not in known:
            known.add(about)
            yield fault
