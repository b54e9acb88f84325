"""`read_run`: what a run left in its public directory, checked as it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from confide.cells import VIEWS, Cell
from confide.report.audited import Audited, of_canaries, read_canaries
from confide.report.fields import Fields, NotARun, load, parsed, text_of
from confide.report.finding import ended
from confide.report.private import Private, read_private

if TYPE_CHECKING:
    from confide.engine.running import Run

AUDIT, CANARIES = "public/audit.json", "private/canaries.json"
METRICS = ("accuracy", "mean absolute error")


@dataclass(frozen=True)
class Point:
    """One evaluated round, as far as it may be given away."""

    round: int
    accuracy: float | None  # or the mean absolute error, as the run's metric says
    loss: float | None
    spent: Mapping[str, float]  # "client/world" -> epsilon


@dataclass(frozen=True)
class Budget:
    """What the run was allowed to spend."""

    epsilon: float
    delta: float | None
    unit: str
    view: str


@dataclass(frozen=True)
class RunRecord:
    """One run as its report needs it."""

    method: str
    paper: str
    data: str
    data_source: str
    licence: str
    model: str
    parameters: int
    rounds: int
    planned: int  # rounds
    clients: int
    partition: str
    metric: str
    strategy: str
    versions: Mapping[str, Any]
    settings: Mapping[str, Any]
    stopped: str | None  # why it ended before the planned rounds
    failed: str | None  # why it has no model
    machine: Mapping[str, Any]
    cells: tuple[Cell, ...]
    published: Mapping[str, Any] | None
    words: tuple[str, ...]
    covered: int  # rounds that the statement speaks of
    points: tuple[Point, ...]
    config: str
    budget: Budget | None
    private: Private | None
    audit: Audited | None = None  # of its canaries, if it has some

    @property
    def last(self) -> Point | None:
        """The last evaluated round."""
        return self.points[-1] if self.points else None

    @property
    def accuracy(self) -> float | None:
        """Of the last evaluated round (or its error); a failed run has none."""
        return self.last.accuracy if self.last and self.failed is None else None

    @property
    def loss(self) -> float | None:
        """Of the last evaluated round; a failed run has none."""
        return self.last.loss if self.last and self.failed is None else None


def read_run(place: Path, *, private: bool = False) -> RunRecord:
    """What may be given away of a run, and on request what only its owner may see."""
    public = place / "public"
    path = ended(place)
    # A run that was started from Python has no run file.
    toml = public / "run.toml"
    return record(
        Fields(path, load(path)),
        Fields(public / "statement.json", load(public / "statement.json")),
        rows_of(public / "metrics.jsonl"),
        text_of(toml) if toml.exists() else "",
        read_private(place) if private else None,
        of_canaries(place / (CANARIES if private else AUDIT)),
    )


def record_of(run: Run) -> RunRecord:
    """The same of a run that is still at hand, as far as it may be given away."""
    from confide.engine import records

    audit: Audited | None = None
    if run.audit is not None:
        audit = read_canaries(Fields(Path(AUDIT), run.audit.data(private=False)))
    return record(
        Fields(Path("run.json"), records.public(run)),
        Fields(Path("statement.json"), records.statement(run)),
        [Fields(Path("metrics.jsonl"), row) for row in run.metrics],
        "",
        None,
        audit,
    )


def record(
    run: Fields,
    stated: Fields,
    rows: Sequence[Fields],
    config: str,
    private: Private | None,
    audit: Audited | None = None,
) -> RunRecord:
    """The record from its parts, each field checked."""
    metric = run.text("metric")
    if metric not in METRICS:
        raise run.wrong("metric", metric, " or ".join(METRICS))
    return RunRecord(
        metric=metric,
        stopped=None if run.get("stopped") is None else run.text("stopped"),
        failed=None if run.get("failed") is None else run.text("failed"),
        published=None if stated.get("published") is None else stated.mapping("published"),
        cells=tuple(cell_of(row, stated) for row in stated.rows("statement")),
        words=tuple(str(line) for line in stated.rows("words")),
        covered=stated.whole("rounds"),
        points=points_of(rows),
        config=config,
        budget=None if run.get("budget") is None else budget_of(run),
        private=private,
        audit=audit,
        method=run.text("method"),
        paper=run.text("paper"),
        data=run.text("data"),
        data_source=run.text("data_source"),
        licence=run.text("licence"),
        model=run.text("model"),
        partition=run.text("partition"),
        strategy=run.text("strategy"),
        parameters=run.whole("parameters"),
        rounds=run.whole("rounds"),
        planned=run.whole("planned"),
        clients=run.whole("clients"),
        versions=run.mapping("versions"),
        settings=run.mapping("settings"),
        machine=run.mapping("machine"),
    )


def cell_of(row: object, stated: Fields) -> Cell:
    """A row of the statement."""
    if not isinstance(row, dict):
        raise stated.wrong("statement", row, "rows as JSON objects")
    one = Fields(stated.path, cast("dict[str, Any]", row))
    if one.text("observer") not in VIEWS:
        raise one.wrong("observer", one.text("observer"), ", ".join(VIEWS))
    values = {f.name: one.data.get(f.name, "") for f in fields(Cell)}
    values.update(
        {n: one.text(n) for n in ("unit", "of", "relation", "sampler", "accountant", "reason")},
        epsilon=one.number("epsilon"),
        delta=one.number("delta"),
        participations=one.whole("participations"),
        assumptions=tuple(str(a) for a in one.rows("assumptions")),
        status="infinite" if one.number("epsilon") == inf else "proved",
        group=str(values["group"]),
    )
    return Cell(**values)


def rows_of(path: Path) -> list[Fields]:
    """The lines of the metrics; a half-written last line is left out."""
    lines = text_of(path).splitlines()
    rows: list[Fields] = []
    for at, line in enumerate(lines):
        try:
            rows.append(Fields(path, parsed(line, path)))
        except NotARun:
            if at < len(lines) - 1:
                raise
    return rows


def points_of(rows: Sequence[Fields]) -> tuple[Point, ...]:
    """The evaluated rounds in order, each once."""
    points: dict[int, Point] = {}
    for one in rows:
        spent = Fields(one.path, one.mapping("spent") if one.data.get("spent") is not None else {})
        when = one.whole("round")
        points[when] = Point(
            when,
            one.score("error" if "error" in one.data else "accuracy"),
            one.score("loss"),
            {view: spent.number(view) for view in spent.data},
        )
    return tuple(points[when] for when in sorted(points))


def budget_of(run: Fields) -> Budget:
    """What the run was allowed to spend."""
    given = Fields(run.path, run.mapping("budget"))
    delta = None if given.get("delta") is None else given.number("delta")
    return Budget(given.number("epsilon"), delta, given.text("unit"), given.text("view"))
