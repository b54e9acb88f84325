"""Data sets, and how they are dealt out to clients.

The functions load what they need when they are called, so that a list of the data sets appears at
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confide.data.dataset import Dataset, Federation, Pixels

__all__ = ["Dataset", "Federation", "Pixels", "federate", "load"]


def load(name_or_path: str, **options: Any) -> Dataset:
    """A data set by its name, a file or folder of one's own, or a Hugging Face name."""
    from confide.data.loading import load_dataset

    return load_dataset(name_or_path, options)


def federate(
    data: Dataset,
    clients: int | None,
    partition: Mapping[str, Any] | None,
    seed: int,
    *,
    validation: float = 0.0,
    public: float = 0,
) -> Federation:
    """Set records aside for validation and as public, and deal the others out to clients."""
    from confide.data import federation

    return federation.federate(data, clients, partition, seed, validation=validation, public=public)


def __getattr__(name: str) -> Any:
    """Load a type when it is first used."""
    if name not in ("Dataset", "Federation", "Pixels"):
        raise AttributeError(f"module 'confide.data' has no attribute {name!r}")
    return getattr(import_module("confide.data.dataset"), name)
