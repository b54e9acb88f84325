"""How a run is going: a bar on a terminal, a line now and then elsewhere; on standard error."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from confide.rounding import bound

PAUSE = 1.0
"""Seconds between two plain lines."""


@dataclass
class Course:
    """What has been seen of a run."""

    title: str
    limit: str | None = None  # the view that has a budget, such as "client/world"
    budget: float | None = None
    unit: str | None = None  # whom the method's noise is about; None: nobody has said
    began: float = field(default_factory=monotonic)
    first: int | None = None  # the first round that this process ran
    t: int = 0
    rounds: int | None = None
    examples: int = 0
    busy: float = 0.0
    row: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stopping: bool = False

    def round_done(self, t: int, rounds: int | None, examples: int, seconds: float) -> None:
        """One more round."""
        self.first = t - 1 if self.first is None else self.first
        self.t, self.rounds = t, rounds
        self.examples += examples
        self.busy += seconds

    def words(self) -> str:
        """Accuracy, loss, what is spent, speed, time left."""
        told = [*self.scores(), *self.spent()]
        if self.busy > 0:
            told.append(f"{self.examples / self.busy:,.0f} examples/s")
        left = self.left()
        if left is not None:
            told.append(f"{clock(left)} left")
        return ", ".join(told)

    def scores(self) -> list[str]:
        """What the last evaluation said."""
        out: list[str] = []
        if "accuracy" in self.row:
            out.append(f"accuracy {self.row['accuracy']:.1%}")
        if "error" in self.row:
            out.append(f"error {self.row['error']:.4g}, rmse {self.row['rmse']:.4g}")
        if "loss" in self.row:
            out.append(f"loss {self.row['loss']:.3g}")
        return out

    def spent(self) -> list[str]:
        """Epsilon so far, of the budget and for the unit that the method protects."""
        spent: dict[str, float | str] = dict(self.row.get("spent", {}))
        proved = {view: e for view, e in spent.items() if not isinstance(e, str)}
        unit = self.unit or min(proved, key=proved.__getitem__, default="").partition("/")[0]
        out: list[str] = []
        if self.limit in spent and self.budget is not None:
            out.append(f"ε {self.limit} {bound(spent[self.limit], 3)} of {self.budget:g}")
        for view in proved:
            if view != self.limit and view.startswith(f"{unit}/"):
                out.append(f"ε {view} {bound(proved[view], 3)}")
        return out

    def left(self) -> float | None:
        """Seconds until the last round, if all take as long as those so far."""
        if self.rounds is None or self.first is None or self.t == self.first:
            return None
        each = (monotonic() - self.began) / (self.t - self.first)
        return each * (self.rounds - self.t)


class Lines:
    """A line after an evaluation, at most one in a second, and one at the end."""

    def __init__(self, course: Course, stream: TextIO) -> None:
        """Where to write."""
        self._course, self._stream = course, stream
        self._last = float("-inf")

    @property
    def stopping(self) -> bool:
        """Whether somebody has asked for an end."""
        return self._course.stopping

    def round_done(self, t: int, rounds: int | None, examples: int, seconds: float) -> None:
        """Take note."""
        self._course.round_done(t, rounds, examples, seconds)

    def evaluated(self, row: Mapping[str, Any]) -> None:
        """Say so."""
        course = self._course
        course.row = row
        if monotonic() - self._last >= PAUSE or course.t == course.rounds:
            self._last = monotonic()
            of = "" if course.rounds is None else f"/{course.rounds}"
            print(f"{course.title}: round {course.t}{of}, {course.words()}", file=self._stream)
            self._stream.flush()


class Bar:
    """One bar for the run, drawn anew after every round."""

    def __init__(self, course: Course, bar: Progress, task: TaskID) -> None:
        """Which bar."""
        self._course, self._bar, self._task = course, bar, task

    @property
    def stopping(self) -> bool:
        """Whether somebody has asked for an end."""
        return self._course.stopping

    def round_done(self, t: int, rounds: int | None, examples: int, seconds: float) -> None:
        """Move the bar."""
        self._course.round_done(t, rounds, examples, seconds)
        self._draw()

    def evaluated(self, row: Mapping[str, Any]) -> None:
        """Show the new scores."""
        self._course.row = row
        self._draw()

    def _draw(self) -> None:
        course = self._course
        of = "" if course.rounds is None else f"/{course.rounds}"
        self._bar.update(
            self._task,
            completed=course.t,
            total=course.rounds,
            rounds=f"round {course.t}{of}",
            words=course.words(),
        )


@contextmanager
def watching(course: Course) -> Generator[Lines | Bar]:
    """A watch for one run, fit for where standard error goes."""
    screen = Console(stderr=True)
    if not screen.is_terminal:
        with asked(course, lambda line: print(line, file=sys.stderr, flush=True)):
            yield Lines(course, sys.stderr)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[rounds]}"),
        # On a narrow terminal this one goes on in the next line, and no other is cut.
        TextColumn("{task.fields[words]}", style="dim", table_column=Column(no_wrap=False)),
    )
    with Progress(*columns, console=screen) as bar:
        task = bar.add_task(course.title, total=None, rounds="", words="starting")
        with asked(course, bar.console.print):
            yield Bar(course, bar, task)


@contextmanager
def asked(course: Course, tell: Callable[[str], object]) -> Generator[None]:
    """Ctrl-C asks for an end after this round; a second one does not wait for it."""

    def ask(number: int, frame: object) -> None:
        if course.stopping or course.first is None:
            raise KeyboardInterrupt
        course.stopping = True
        tell("stopping after this round, so that it is kept; Ctrl-C again stops at once")

    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread only
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def clock(seconds: float) -> str:
    """A time as a person says it."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
