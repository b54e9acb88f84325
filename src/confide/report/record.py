"""`read_run`: what a finished run left in its public directory, checked as it is read."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import inf
from pathlib import Path
from typing import Any, cast

from confide.report.fields import Fields, NotARun, load, parsed, text_of
from confide.statements import VIEWS, Cell

METRICS = ("accuracy", "mean absolute error")


@dataclass(frozen=True)
class Point:
    """One evaluated round, as far as it may be given away."""

    round: int
    accuracy: float | None
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

    dir: Path
    method: str
    paper: str
    data: str
    data_source: str
    licence: str
    model: str
    parameters: int
    rounds: int
    clients: int
    partition: str
    seeded: bool
    accuracy: float | None
    loss: float | None
    metric: str
    seconds: float
    examples_per_second: float
    strategy: str
    device: str
    versions: Mapping[str, Any]
    settings: Mapping[str, Any]
    stopped: str | None
    participations_most: int | None
    labels: tuple[tuple[int, ...], ...] | None
    class_names: tuple[str, ...] | None
    machine: Mapping[str, Any]
    cells: tuple[Cell, ...]
    published: Mapping[str, Any] | None
    words: tuple[str, ...]
    planned: int
    points: tuple[Point, ...]
    config: str
    budget: Budget | None


def find_runs(given: Iterable[Path]) -> list[Path]:
    """The run directories; a directory of runs stands for the runs in it, by name."""
    found: list[Path] = []
    for place in given:
        if (place / "public" / "run.json").is_file() or not place.is_dir():
            found.append(place)
            continue
        inside = sorted(p for p in place.iterdir() if (p / "public" / "run.json").is_file())
        found += inside or [place]
    return list(dict.fromkeys(found))


def read_run(place: Path) -> RunRecord:
    """Everything the report shows of one run."""
    public = place / "public"
    if not (public / "run.json").is_file():
        why = "public/run.json is missing" if place.is_dir() else "there is no such directory"
        raise NotARun(f"{place} is not a run directory: {why}.")
    run = Fields(public / "run.json", load(public / "run.json"))
    stated = Fields(public / "statement.json", load(public / "statement.json"))
    metric = run.text("metric")
    if metric not in METRICS:
        raise run.wrong("metric", metric, " or ".join(METRICS))
    config = text_of(public / "run.toml")
    published = stated.data.get("published")
    return RunRecord(
        dir=place,
        metric=metric,
        accuracy=run.score("accuracy"),
        loss=run.score("loss"),
        seeded=bool(run.data.get("seeded", True)),
        stopped=None if run.data.get("stopped") is None else run.text("stopped"),
        participations_most=(
            None
            if run.data.get("participations_most") is None
            else run.whole("participations_most")
        ),
        labels=histogram(run),
        class_names=names(run),
        published=None if published is None else stated.mapping("published"),
        cells=tuple(cell_of(row, stated) for row in stated.rows("statement")),
        words=tuple(str(line) for line in stated.rows("words")),
        planned=stated.whole("rounds"),
        points=points_of(public / "metrics.jsonl"),
        config=config,
        budget=budget_of(config),
        method=run.text("method"),
        paper=run.text("paper"),
        data=run.text("data"),
        data_source=run.text("data_source"),
        licence=run.text("licence"),
        model=run.text("model"),
        partition=run.text("partition"),
        strategy=run.text("strategy"),
        device=run.text("device"),
        parameters=run.whole("parameters"),
        rounds=run.whole("rounds"),
        clients=run.whole("clients"),
        seconds=run.number("seconds"),
        examples_per_second=run.number("examples_per_second"),
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


def points_of(path: Path) -> tuple[Point, ...]:
    """The evaluated rounds, in order; a half-written last line is left out."""
    points: dict[int, Point] = {}
    lines = text_of(path).splitlines()
    for at, line in enumerate(lines):
        try:
            one = Fields(path, parsed(line, path))
        except NotARun:
            if at == len(lines) - 1:
                break
            raise
        spent = Fields(path, one.mapping("spent") if one.data.get("spent") is not None else {})
        when = one.whole("round")
        points[when] = Point(
            when,
            one.score("accuracy"),
            one.score("loss"),
            {view: spent.number(view) for view in spent.data},
        )
    return tuple(points[when] for when in sorted(points))


def histogram(run: Fields) -> tuple[tuple[int, ...], ...] | None:
    """How many records of each class each shown client holds."""
    rows = run.data.get("labels")
    if rows is None:
        return None
    try:
        counts = tuple(tuple(int(n) for n in row) for row in rows)
    except (TypeError, ValueError) as why:
        raise run.wrong("labels", type(rows).__name__, "a list of counts for each client") from why
    if not counts or not counts[0] or any(len(row) != len(counts[0]) for row in counts):
        raise run.wrong("labels", f"{len(counts)} rows", "equally long rows of counts")
    return counts


def names(run: Fields) -> tuple[str, ...] | None:
    """What the classes are called."""
    if run.data.get("class_names") is None:
        return None
    return tuple(str(name) for name in run.rows("class_names"))


def budget_of(config: str) -> Budget | None:
    """The budget that the run file names, if it names one."""
    try:
        budget = tomllib.loads(config).get("budget")
    except tomllib.TOMLDecodeError:
        return None
    if not isinstance(budget, dict):
        return None
    given = cast("dict[str, Any]", budget)
    eps, delta = given.get("epsilon"), given.get("delta")
    if not isinstance(eps, int | float):
        return None
    unit, view = str(given.get("unit", "client")), str(given.get("view", "world"))
    return Budget(float(eps), float(delta) if isinstance(delta, int | float) else None, unit, view)
