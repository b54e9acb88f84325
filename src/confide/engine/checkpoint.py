"""Checkpoints: everything a run needs to go on to the same bits, in one file, whole or absent."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.engine.rounds import Released, Round

FORMAT = 1


@dataclass(eq=False)
class Progress:
    """Where a run stands between two rounds."""

    model: Tensor
    participations: NDArray[np.int64]
    t: int = 0
    server: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    earlier: tuple[Tensor, ...] = ()
    released: tuple[Released, ...] = ()
    plan: list[tuple[Round, int]] = field(default_factory=list[tuple[Round, int]])
    metrics: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    memory: Tensor | None = None
    remembered: Tensor | None = None
    output: str = ""  # the digest of the last release
    examples: int = 0
    seconds: float = 0.0


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, and why."""


def save(path: Path, progress: Progress, fingerprint: str) -> None:
    """Write beside it, sync, and rename: a crash leaves the old checkpoint or the new one."""
    body = {"format": FORMAT, "fingerprint": fingerprint, "progress": progress}
    write_whole(path, lambda draft: torch.save(body, draft))


def load(path: Path, fingerprint: str) -> Progress | None:
    """The checkpoint of this very run; None when it never got that far.

    A checkpoint holds Python objects (the method's rounds), so only one's own may be loaded: it
    lies in the run's private directory.
    """
    if not path.exists():
        return None
    try:
        body = torch.load(path, weights_only=False)
    except (RuntimeError, EOFError, pickle.UnpicklingError, AttributeError, ImportError) as why:
        raise CheckpointError(f"{path} cannot be read: {why}.") from why
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of this version of confide.")
    if body["fingerprint"] != fingerprint:
        raise CheckpointError(
            f"{path} belongs to a run with other settings, data or model; resume with the run's own."
        )
    return body["progress"]


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a draft, then put it in place in one step that survives a power cut."""
    draft = path.with_name(f".{path.name}.new")
    try:
        write(draft)
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
