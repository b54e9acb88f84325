"""What several runs are called on one page: by method, and by what sets equal methods apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from confide.report.record import RunRecord


@dataclass(frozen=True)
class Series:
    """Runs of one method with one set of settings (they differ by their seed), and their name."""

    name: str
    runs: tuple[RunRecord, ...]


def series(runs: Sequence[RunRecord]) -> list[Series]:
    """The runs by method and settings, in the order in which they were given."""
    groups: dict[tuple[str, str], list[RunRecord]] = {}
    for run in runs:
        groups.setdefault((run.method, repr(traits(run))), []).append(run)
    return [
        Series(name_of(members[0], [g[0] for g in groups.values()]), tuple(members))
        for members in groups.values()
    ]


def traits(run: RunRecord) -> dict[str, Any]:
    """Everything that was chosen about a run, but for its seed."""
    chosen = ("data", "model", "clients", "partition", "rounds")
    return {**{name: getattr(run, name) for name in chosen}, **run.settings}


def name_of(run: RunRecord, firsts: Sequence[RunRecord]) -> str:
    """The method, and what sets it apart from other runs of the same method."""
    alike = [traits(other) for other in firsts if other.method == run.method]
    own = traits(run)
    differing = [k for k in own if any(other.get(k) != own[k] for other in alike)]
    told = ", ".join(f"{k} {own[k]}" for k in differing)
    return f"{run.method} ({told})" if told else run.method
