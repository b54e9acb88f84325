"""`read_run`: what a finished run left in its public directory, checked as it is read."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import inf
from pathlib import Path
from typing import Any, cast

from confide.report.fields import Fields, NotARun, load, parsed, text_of
from confide.report.private import Private, read_private
from confide.statements import VIEWS, Cell

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
    strategy: str
    versions: Mapping[str, Any]
    settings: Mapping[str, Any]
    stopped: str | None
    machine: Mapping[str, Any]
    cells: tuple[Cell, ...]
    published: Mapping[str, Any] | None
    words: tuple[str, ...]
    planned: int
    points: tuple[Point, ...]
    config: str
    budget: Budget | None
    private: Private | None


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


def read_run(place: Path, *, private: bool = False) -> RunRecord:
    """What may be given away of a run, and on request what only its owner may see."""
    public = place / "public"
    if not (public / "run.json").is_file():
        why = "public/run.json is missing" if place.is_dir() else "there is no such directory"
        raise NotARun(f"{place} is not a run directory: {why}.")
    run = Fields(public / "run.json", load(public / "run.json"))
    stated = Fields(public / "statement.json", load(public / "statement.json"))
    metric = run.text("metric")
    if metric not in METRICS:
        raise run.wrong("metric", metric, " or ".join(METRICS))
    # A run that was started from Python has no run file.
    config = text_of(public / "run.toml") if (public / "run.toml").exists() else ""
    points = points_of(public / "metrics.jsonl")
    published = stated.data.get("published")
    return RunRecord(
        dir=place,
        metric=metric,
        accuracy=points[-1].accuracy if points else None,
        loss=points[-1].loss if points else None,
        seeded=bool(run.data.get("seeded", True)),
        stopped=None if run.data.get("stopped") is None else run.text("stopped"),
        published=None if published is None else stated.mapping("published"),
        cells=tuple(cell_of(row, stated) for row in stated.rows("statement")),
        words=tuple(str(line) for line in stated.rows("words")),
        planned=stated.whole("rounds"),
        points=points,
        config=config,
        budget=budget_of(config),
        private=read_private(place) if private else None,
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
            one.score("error" if "error" in one.data else "accuracy"),
            one.score("loss"),
            {view: spent.number(view) for view in spent.data},
        )
    return tuple(points[when] for when in sorted(points))


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
