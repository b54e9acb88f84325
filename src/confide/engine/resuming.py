"""Where a run lies, and what it goes on from: its ledger, its last checkpoint, clients' memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from confide.engine.checkpoint import Progress, load, save
from confide.engine.directory import Directory
from confide.engine.rounds import Sizes
from confide.engine.spending import Plan
from confide.engine.trainers import Recipe
from confide.ledger import Ledger

CHECKPOINT = "checkpoint.pt"


def memory_for(plan: Plan, sizes: Sizes, dtype: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
    """Room for what clients keep, if a round of the method says that they do."""
    if not any(r.local.remembers for r, _ in plan):
        return None, None
    return (
        torch.zeros(sizes.clients, sizes.dim, dtype=dtype),
        torch.zeros(sizes.clients, dtype=torch.bool),
    )


def with_memory(recipe: Recipe, progress: Progress) -> Recipe:
    """The recipe, its memory filled from the checkpoint."""
    if progress.memory is not None and recipe.memory is not None:
        assert recipe.remembered is not None and progress.remembered is not None
        recipe.memory.copy_(progress.memory)
        recipe.remembered.copy_(progress.remembered)
    return recipe


@contextmanager
def place(
    out: str | Path | None, resume: bool, caps: dict[str, Any]
) -> Generator[tuple[Directory | None, Ledger]]:
    """The run's directory with its ledger; without `out`, a ledger for as long as the run lasts."""
    if out is None:
        with (
            tempfile.TemporaryDirectory(dir=memory_disk()) as passing,
            Ledger.create(Path(passing) / "ledger.sqlite", caps) as ledger,
        ):
            yield None, ledger
        return
    directory = Directory.open(Path(out)) if resume else Directory.create(Path(out))
    path = directory.private / "ledger.sqlite"
    if not path.exists() and (directory.private / CHECKPOINT).exists():
        raise ValueError(
            f"resume: {path} is missing, though the run has a checkpoint; allowed is the ledger "
            "that says what it has spent."
        )
    with Ledger.open(path) if path.exists() else Ledger.create(path, caps) as ledger:
        yield directory, ledger


def memory_disk() -> str | None:
    """Where a ledger that nobody will read again need not wait for a disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None


def reached(directory: Directory | None, ledger: Ledger, fingerprint: str) -> Progress | None:
    """The last checkpoint, if the ledger knows of every release that led to it."""
    if directory is None:
        raise ValueError("run: resume = True without out, allowed is out = the run's directory.")
    progress = load(directory.private / CHECKPOINT, fingerprint)
    if progress is not None:
        ledger.verify(progress.head)
    return progress


def save_progress(
    directory: Directory, now: Progress, ledger: Ledger, recipe: Recipe, fingerprint: str
) -> None:
    """Everything that `reached` finds again."""
    now.memory, now.remembered = recipe.memory, recipe.remembered
    now.head = ledger.head()
    directory.write_lines("public/metrics.jsonl", now.metrics)
    save(directory.private / CHECKPOINT, now, fingerprint)
