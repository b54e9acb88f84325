"""The tables of a run file, each with its fields, their kinds and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from confide.data.settings import whole


@dataclass(frozen=True)
class Data:
    """`[data]`: which records, and who holds them."""

    name: str = "mnist"
    clients: int | None = None  # None: as many as in the paper of the first method
    partition: Mapping[str, Any] | None = None
    validation: int | float = 0.0
    public: int | float = 0
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        """At least one client."""
        at_least_one("data", self, "clients")


@dataclass(frozen=True)
class Model:
    """`[model]`: by its name or `file.py:name`."""

    name: str | None = None  # None: a small one that fits the records
    norm: Literal["group"] | None = None


@dataclass(frozen=True)
class Running:
    """`[run]`: where and how; nothing in here changes what is stated."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["float32", "float64"] = "float32"
    workers: int | None = None
    evaluate_every: int | None = None
    checkpoint_every: int | None = None
    taps: tuple[Literal["device", "server", "world"], ...] = ()  # whose views are kept

    def __post_init__(self) -> None:
        """Whole numbers of at least one."""
        for name in ("workers", "evaluate_every", "checkpoint_every"):
            at_least_one("run", self, name)


def at_least_one(table: str, part: Any, name: str) -> None:
    """A whole number of at least 1, where one is given."""
    value = getattr(part, name)
    if value is not None:
        whole(f"[{table}]", name, value)
