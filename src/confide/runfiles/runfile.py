"""A run file: what is trained on which data, with which seeds, checked field by field."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from confide.data.settings import check_names, nearest, whole
from confide.engine.calibrating import noise_field
from confide.engine.canaries import Planting
from confide.engine.rounds import Method, Round
from confide.engine.spending import Budget
from confide.methods.making import field_names, find, label, make
from confide.runfiles.parts import Data, Model, Running
from confide.runfiles.typed import checked, fitted

Table = Mapping[str, Any]
TABLES = ("data", "model", "budget", "method", "run", "audit")
TOP = ("methods", "seeds", "rounds", *TABLES)


@dataclass(frozen=True)
class RunFile:
    """Methods times seeds, one after another under the same data."""

    methods: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    rounds: int | None = None
    data: Data = field(default_factory=Data)
    model: Model = field(default_factory=Model)
    budget: Budget | None = None
    method: Mapping[str, Table] = field(default_factory=dict[str, Table])  # by label
    run: Running = field(default_factory=Running)
    audit: Planting | None = None

    @property
    def count(self) -> int:
        """How many runs there are."""
        return len(self.methods) * len(self.seeds)

    def singles(self) -> list[RunFile]:
        """One run file for each method and seed."""
        return [self.single(name, seed) for name in self.methods for seed in self.seeds]

    def single(self, name: str, seed: int) -> RunFile:
        """The run file of one of the runs."""
        own = {label(name): self.method[label(name)]} if label(name) in self.method else {}
        return dataclasses.replace(self, methods=(name,), seeds=(seed,), method=own)

    @property
    def label(self) -> str:
        """What a single run is called."""
        return label(self.methods[0])

    def built(self) -> Method:
        """The method of a single run; `rounds` is its T unless the file gives one."""
        values = dict(self.method.get(self.label, {}))
        if self.rounds is not None and "T" in field_names(find(self.methods[0])):
            values.setdefault("T", self.rounds)
        made = make(self.methods[0], values)
        if isinstance(made, Round):
            raise ValueError(
                f"Method {self.label}: it is a single Round, allowed is a Method with round(past)."
            )
        return made

    def keeps_noise(self, method: Method) -> bool:
        """Whether the file sets the noise itself, so that a budget only ends the run."""
        return noise_field(method) in self.method.get(self.label, {})

    def table(self, *, secret: bool = True) -> dict[str, Any]:
        """As a TOML table that reads back to the same; without `secret`, without the seeds."""
        out: dict[str, Any] = {"methods": list(self.methods)}
        if secret:
            out["seeds"] = list(self.seeds)
        if self.rounds is not None:
            out["rounds"] = self.rounds
        for name in ("data", "model", "budget", "run", "audit"):
            part = getattr(self, name)
            told = {} if part is None else filled(part)
            if told:
                out[name] = told
        if self.method:
            out["method"] = {name: dict(values) for name, values in self.method.items()}
        return out


def filled(part: Any) -> dict[str, Any]:
    """The fields of a table that are not at their default, and the name of the data in any case."""
    empty = type(part)() if not isinstance(part, Budget | Planting) else None
    return {
        f.name: value
        for f in dataclasses.fields(part)
        if (value := getattr(part, f.name)) is not None
        and (empty is None or f.name == "name" or value != getattr(empty, f.name))
    }


def parse(raw: Table) -> RunFile:
    """A run file from a TOML table; everything that is wrong is one sentence."""
    check_names("Run file", raw, TOP)
    tables = {name: table(f"[{name}]", raw[name]) for name in TABLES if name in raw}
    if "methods" not in raw:
        raise ValueError("Run file: methods is missing, allowed is a list of methods.")
    methods = texts(raw["methods"])
    for name in methods:
        find(name)
    seeds = numbers("seeds", raw.get("seeds", [0]))
    rounds = raw.get("rounds")
    return RunFile(
        methods=methods,
        seeds=seeds,
        rounds=None if rounds is None else whole("Run file", "rounds", rounds),
        data=part("[data]", Data, tables.get("data", {})),
        model=part("[model]", Model, tables.get("model", {})),
        budget=part("[budget]", Budget, tables["budget"]) if "budget" in tables else None,
        method=method_tables(tables.get("method", {}), methods),
        run=part("[run]", Running, tables.get("run", {})),
        audit=part("[audit]", Planting, tables["audit"]) if "audit" in tables else None,
    )


def method_tables(given: Table, methods: Sequence[str]) -> dict[str, Table]:
    """The fields of each method, checked against its class, under its label."""
    out: dict[str, Table] = {}
    known = {name: name for name in methods} | {label(name): name for name in methods}
    for name, values in given.items():
        if name not in known:
            listed = list(dict.fromkeys(label(method) for method in methods))
            raise ValueError(
                f"Run file: [method.{name}] is about none of its methods, allowed are "
                f"{', '.join(listed)}.{nearest(name, listed)}"
            )
        thing = find(known[name])
        kind = thing if isinstance(thing, type) else type(thing)
        own = label(known[name])
        out[own] = checked(f"[method.{own}]", kind, table(f"[method.{own}]", values))
    return out


def part(thing: str, kind: type[Any], given: Table) -> Any:
    """One of the tables."""
    values = checked(thing, kind, given)
    for f in dataclasses.fields(kind):
        required = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        if required and f.name not in values:
            raise ValueError(f"{thing}: {f.name} is missing, allowed is a number.")
    return kind(**values)


def table(thing: str, given: Any) -> Table:
    """A TOML table."""
    if not isinstance(given, Mapping):
        raise ValueError(f"Run file: {thing} = {given!r}, allowed is a table.")
    return cast("Table", given)


def texts(given: Any) -> tuple[str, ...]:
    """The methods: at least one, each once."""
    values = (given,) if isinstance(given, str) else fitted(
        "Run file", "methods", given, tuple[str, ...]
    )  # fmt: skip
    if not values:
        raise ValueError("Run file: methods = [], allowed is at least one method.")
    return once("methods", values, label)


def numbers(name: str, given: Any) -> tuple[int, ...]:
    """The seeds: at least one, each once."""
    values = fitted("Run file", name, given, tuple[int, ...])
    if not values or min(values) < 0:
        raise ValueError(
            f"Run file: {name} = {given!r}, allowed is a list of whole numbers of at least 0."
        )
    return once(name, values, int)


def once(name: str, values: Sequence[Any], called: Any) -> tuple[Any, ...]:
    """Refuse what would be run twice under one name."""
    seen: set[Any] = set()
    for value in values:
        if called(value) in seen:
            raise ValueError(
                f"Run file: {name} = {list(values)!r} has {called(value)} twice, allowed is once."
            )
        seen.add(called(value))
    return tuple(values)
