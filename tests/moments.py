"""Kills at every moment at which a run makes something durable."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from confide.ledger import Ledger

T = TypeVar("T")


class Killed(BaseException):
    """What stands for a kill."""


class Moments:
    """Counts what a run makes durable, each once before and once after; kills at one of them."""

    def __init__(self, patch: pytest.MonkeyPatch, kill_at: int | None = None) -> None:
        """From now on."""
        self.count, self.kill_at = 0, kill_at
        rename, create, writing = Path.replace, Ledger.create, Ledger._writing

        def renamed(draft: Path, target: Path) -> Path:
            return self.around(lambda: rename(draft, target))

        def created(*given: Any) -> Ledger:
            return self.around(lambda: create(*given))

        @contextmanager
        def written(ledger: Ledger) -> Iterator[Any]:
            with writing(ledger) as given:
                yield given
                self.moment()  # not committed yet
            self.moment()

        patch.setattr(Path, "replace", renamed)
        patch.setattr(Ledger, "create", created)
        patch.setattr(Ledger, "_writing", written)

    def around(self, what: Callable[[], T]) -> T:
        self.moment()
        out = what()
        self.moment()
        return out

    def moment(self) -> None:
        self.count += 1
        if self.count == self.kill_at:
            raise Killed
