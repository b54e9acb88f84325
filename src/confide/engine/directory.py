"""A run directory: `public/` may be given away, `private/` undoes the noise of a simulated run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from confide.engine import safetensors
from confide.engine.checkpoint import write_whole


@dataclass(frozen=True)
class Directory:
    """Where everything of one run lies."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> Directory:
        """A new directory, known as a run's from the start; one that holds a run is refused."""
        parts = path / "public", path / "private"
        if any(part.exists() and not bare(part) for part in parts):
            raise ValueError(
                f"out: {path} holds a run already, allowed is a new directory, or --resume {path}."
            )
        for part, mode in zip(parts, (0o777, 0o700), strict=True):
            part.mkdir(mode, parents=True, exist_ok=True)
        made = cls(path)
        made.write_json("private/run.json", {"format": 1})
        return made

    @classmethod
    def open(cls, path: Path) -> Directory:
        """An existing one."""
        if not (path / "private" / "run.json").is_file():
            raise ValueError(f"resume: {path} is not the directory of a run.")
        return cls(path)

    @property
    def public(self) -> Path:
        """What may be given away."""
        return self.path / "public"

    @property
    def private(self) -> Path:
        """Seed, checkpoint, ledger."""
        return self.path / "private"

    def write_json(self, name: str, value: Any) -> None:
        """One JSON file, whole or absent."""
        text = json.dumps(value, allow_nan=False, indent=1)
        write_whole(self.path / name, lambda draft: draft.write_text(text + "\n", "utf-8"))

    def write_lines(self, name: str, rows: list[dict[str, Any]]) -> None:
        """One JSON object in a line, all of them written anew."""
        text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
        write_whole(self.path / name, lambda draft: draft.write_text(text, "utf-8"))

    def write_text(self, name: str, text: str) -> None:
        """A text file, whole or absent."""
        write_whole(self.path / name, lambda draft: draft.write_text(text, "utf-8"))

    def write_model(self, state: Mapping[str, Tensor]) -> None:
        """The model as safetensors."""
        write_whole(
            self.public / "model.safetensors", lambda draft: safetensors.write(draft, state)
        )

    def read_json(self, name: str) -> Any:
        """One JSON file."""
        return json.loads((self.path / name).read_text("utf-8"))


def bare(part: Path) -> bool:
    """Whether a part of a run directory holds nothing but the draft of a run that was killed."""
    drafts = {".run.json.new"}
    return part.is_dir() and {entry.name for entry in part.iterdir()} <= drafts
