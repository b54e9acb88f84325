"""A run directory on demand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from made_runs import write

Builder = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path) -> Builder:
    """A run of a method under `runs/NAME`; other fields as given."""

    def made(of: str = "dp-fedavg-c", name: str | None = None, **changes: Any) -> Path:
        return write(tmp_path / "runs" / (name or of), of, **changes)

    return made
