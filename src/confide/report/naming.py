"""What several runs are called on one page: by method, and by what sets equal methods apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from confide.report.record import RunRecord
from confide.report.verdict import worst

VIEWS = (("client", "world"), ("record", "world"), ("client", "server"), ("record", "server"))


@dataclass(frozen=True)
class Series:
    """Runs of one method with one set of settings (they differ by their seed), and their name."""

    name: str
    runs: tuple[RunRecord, ...]

    @property
    def ended(self) -> tuple[RunRecord, ...]:
        """Those that did not fail."""
        return tuple(run for run in self.runs if run.failed is None)

    @property
    def scores(self) -> list[float]:
        """The accuracies (or errors) that are known."""
        return [run.accuracy for run in self.ended if run.accuracy is not None]

    def most(self, view: tuple[str, str]) -> float:
        """The largest proved epsilon of the runs; infinite where there is none."""
        return max(epsilon(run, view) for run in self.runs)

    @property
    def speaker(self) -> RunRecord:
        """The run that gave away most: the others are protected at least as well."""
        return max(self.runs, key=lambda run: [epsilon(run, view) for view in VIEWS])


def epsilon(run: RunRecord, view: tuple[str, str]) -> float:
    """The proved epsilon of a view; infinite where there is none."""
    cell = worst(run, *view)
    return inf if cell is None else cell.epsilon


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
    chosen = {
        name: getattr(run, name) for name in ("data", "model", "clients", "partition", "planned")
    }
    return {**chosen, "budget": run.budget and run.budget.epsilon, **run.settings}


def name_of(run: RunRecord, firsts: Sequence[RunRecord]) -> str:
    """The method, and what sets it apart from other runs of the same method."""
    alike = [traits(other) for other in firsts if other.method == run.method]
    own = traits(run)
    differing = [k for k in own if any(other.get(k) != own[k] for other in alike)]
    if {"planned", "T"} <= set(differing):
        differing.remove("planned")  # T says it
    told = ", ".join(f"{k} {value_of(own[k])}" for k in differing).replace("planned", "rounds")
    return f"{run.method} ({told})" if told else run.method


def value_of(value: Any) -> str:
    """A setting within a name."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
