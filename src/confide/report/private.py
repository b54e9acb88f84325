"""What tells on the clients: their labels, how often one came, how long it took; for the owner."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from confide.report.fields import Fields, NotARun, load


@dataclass(frozen=True)
class Private:
    """Figures that no row of the statement covers."""

    seconds: float
    examples_per_second: float
    participations_most: int
    labels: tuple[tuple[int, ...], ...] | None
    class_names: tuple[str, ...] | None


def read_private(place: Path) -> Private:
    """The summary in a run's private directory, but for its seed."""
    path = place / "private" / "summary.json"
    if not path.is_file():
        raise NotARun(
            f"{path} is missing, allowed is a run with it, or a report of what is public."
        )
    found = Fields(path, load(path))
    return Private(
        seconds=found.number("seconds"),
        examples_per_second=found.number("examples_per_second"),
        participations_most=found.whole("participations_most"),
        labels=histogram(found),
        class_names=names(found),
    )


def histogram(found: Fields) -> tuple[tuple[int, ...], ...] | None:
    """How many records of each class each shown client holds."""
    rows = found.data.get("labels")
    if rows is None:
        return None
    try:
        counts = tuple(tuple(int(n) for n in row) for row in rows)
    except (TypeError, ValueError) as why:
        given = type(rows).__name__
        raise found.wrong("labels", given, "a list of counts for each client") from why
    if not counts or not counts[0] or any(len(row) != len(counts[0]) for row in counts):
        raise found.wrong("labels", f"{len(counts)} rows", "equally long rows of counts")
    return counts


def names(found: Fields) -> tuple[str, ...] | None:
    """What the classes are called."""
    if found.data.get("class_names") is None:
        return None
    return tuple(str(name) for name in found.rows("class_names"))
