"""What an audit answered, row by row, whichever layer found it: checked as it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from confide.report.fields import Fields, load

VERDICTS = ("fail", "warn", "pass")
STAGES, ACCOUNTS = "stages of one round", "the statement, computed once more"
CANARIES, ATTACKS = "canaries in the run", "attack on the run"
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Found:
    """One thing that was attacked: the claim about it, and what is known to be given away."""

    layer: str
    release: str
    unit: str
    observer: str
    claimed: float
    lower_bound: float  # valid
    estimate: float | None  # the lower limit of an estimate
    verdict: str
    words: str
    power: str
    ceiling: Points = ()  # false alarms, and the most hits that the claim allows
    points: Points = ()  # false alarms and hits as counted
    sure: Points = ()  # the same, each at its worse 95 % limit


@dataclass(frozen=True)
class Audited:
    """A whole audit: its rows, what is wrong, and what else must be known."""

    verdict: str
    rows: tuple[Found, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def others(self) -> list[str]:
        """The faults that no row tells."""
        return [fault for fault in self.faults if not any(r.words in fault for r in self.rows)]

    @property
    def curves(self) -> list[Found]:
        """The rows that there is a picture of."""
        return [row for row in self.rows if row.points and row.ceiling]


def audited(answer: Mapping[str, Any], place: Path) -> Audited:
    """The answer of `confide audit`, about a method or about a run."""
    whole = Fields(place, answer)
    rows = [found(one, STAGES, place) for one in whole.rows("releases")]
    notes: list[str] = []
    if answer.get("accounts") is not None:
        books = Fields(place, whole.mapping("accounts"))
        rows += [
            of_account(one, place) for one in books.rows("rows") if one.get("at_least") is not None
        ]
    about = Fields(place, whole.mapping("run")) if answer.get("run") is not None else None
    for holder in (whole, about):
        if holder is not None and holder.data.get("canaries") is not None:
            told = Fields(place, holder.mapping("canaries"))
            rows += [found(one, CANARIES, place) for one in told.rows("rows")]
            notes.append(told.text("words"))
    if about is not None:
        rows += [found(one, ATTACKS, place) for one in about.rows("attacks")]
        notes += [f"Not done: {why}." for why in texts(about.rows("not_done"))]
    return Audited(verdict(whole), tuple(rows), tuple(texts(whole.rows("faults"))), tuple(notes))


def of_canaries(path: Path) -> Audited | None:
    """What a run's canaries told; None where it had none."""
    return read_canaries(Fields(path, load(path))) if path.is_file() else None


def read_canaries(told: Fields) -> Audited:
    """The same of what is at hand."""
    rows = tuple(found(one, CANARIES, told.path) for one in told.rows("rows"))
    return Audited(verdict(told), rows, (), (told.text("words"),))


def found(row: object, layer: str, place: Path) -> Found:
    """One row of any layer."""
    if not isinstance(row, dict):
        raise Fields(place, {}).wrong("rows", row, "JSON objects")
    one = Fields(place, cast("dict[str, Any]", row))
    estimate = one.data.get("estimate")
    return Found(
        layer=layer,
        release=one.text("release"),
        unit=one.text("unit"),
        observer=one.text("observer"),
        claimed=one.number("claimed"),
        lower_bound=one.number("lower_bound"),
        estimate=None if estimate is None else one.number("estimate"),
        verdict=verdict(one),
        words=one.text("words"),
        power=str(one.data.get("power", "")),
        ceiling=points(one, "ceiling"),
        points=points(one, "points"),
        sure=points(one, "sure"),
    )


def of_account(row: object, place: Path) -> Found:
    """A row of the statement that was computed once more from the rounds."""
    one = Fields(place, cast("dict[str, Any]", row))
    whole = {
        **one.data,
        "release": f"one {one.text('unit')}, all rounds",
        "claimed": one.get("stated"),
        "lower_bound": one.get("at_least"),
    }
    return found(whole, ACCOUNTS, place)


def verdict(one: Fields) -> str:
    """One of the three words."""
    value = one.text("verdict")
    if value not in VERDICTS:
        raise one.wrong("verdict", value, ", ".join(VERDICTS))
    return value


def points(one: Fields, name: str) -> Points:
    """A curve, where the row has one."""
    value: Any = one.data.get(name)
    if not isinstance(value, list):
        return ()
    pairs = cast("list[Any]", value)
    for pair in pairs:
        shares = cast("list[Any]", pair) if isinstance(pair, list) else []
        if len(shares) != 2 or not all(isinstance(x, int | float) and 0 <= x <= 1 for x in shares):
            raise one.wrong(name, pair, "a list of pairs of shares")
    return tuple((float(x), float(y)) for x, y in pairs)


def texts(values: Iterable[Any]) -> list[str]:
    """Lines of words."""
    return [str(value) for value in values]
