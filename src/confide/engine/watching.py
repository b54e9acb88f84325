"""What somebody who looks on at a run is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Watch(Protocol):
    """Somebody who looks on, and may ask for an end after the round that is being run."""

    @property
    def stopping(self) -> bool:
        """Whether the run should save where it stands, and stop there."""
        ...

    def round_done(self, t: int, rounds: int | None, examples: int, seconds: float) -> None:
        """A round has ended."""
        ...

    def evaluated(self, row: Mapping[str, Any]) -> None:
        """The model was evaluated."""
        ...
