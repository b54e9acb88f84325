"""A data set ready for a model, and the same data dealt out to clients."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Pixels:
    """How bytes become model inputs: (byte / 255 - mean) / deviation, one pair per channel."""

    mean: tuple[float, ...] = (0.5,)
    deviation: tuple[float, ...] = (0.5,)

    def scale(self, images: NDArray[np.uint8]) -> Tensor:
        """Bytes (n, h, w) or (n, h, w, channels) as float32 (n, channels, h, w)."""
        if images.ndim == 3:
            images = images[..., None]
        # Writable, as torch wants it: what was read from bytes is not, and is copied.
        pixels = torch.from_numpy(np.require(images.transpose(0, 3, 1, 2), None, ["C", "W"]))
        mean, deviation = self._columns(torch.float64)
        scaled = pixels.to(torch.float32).mul_((1 / (255 * deviation)).float())
        return scaled.sub_((mean / deviation).float())

    def restore(self, inputs: Tensor) -> Tensor:
        """Model inputs as brightness between 0 and 1."""
        mean, deviation = self._columns(inputs.dtype)
        return inputs * deviation.to(inputs.device) + mean.to(inputs.device)

    def __str__(self) -> str:
        """In words."""
        mean, deviation = (
            ", ".join(f"{value:g}" for value in values) for values in (self.mean, self.deviation)
        )
        return f"pixels: (byte / 255 - ({mean})) / ({deviation}), public constants"

    def _columns(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        mean, deviation = (torch.tensor(v, dtype=dtype) for v in (self.mean, self.deviation))
        return mean.reshape(-1, 1, 1), deviation.reshape(-1, 1, 1)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test records; `columns` are natural groups of the training records."""

    name: str
    x_train: Tensor
    y_train: Tensor
    x_test: Tensor
    y_test: Tensor
    classes: int | None  # None: regression
    columns: Mapping[str, Positions] = field(default_factory=dict[str, Positions])
    licence: str = ""
    source: str = ""
    preparation: str = ""  # what was done to the raw values, in words
    labels: tuple[str, ...] = ()  # the names of the classes, where they have any
    pixels: Pixels | None = None  # for images: back to brightness

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        for part in ("train", "test"):
            x, y = getattr(self, f"x_{part}"), getattr(self, f"y_{part}")
            if len(x) != len(y) or len(x) == 0:
                raise ValueError(
                    f"Dataset {self.name}: x_{part} has {len(x)} records and y_{part} {len(y)}, "
                    "allowed is the same number of both, and at least 1."
                )
            if x.dtype != torch.float32 or x.shape[1:] != self.x_train.shape[1:]:
                raise ValueError(
                    f"Dataset {self.name}: x_{part} is {x.dtype} {tuple(x.shape[1:])}, allowed is "
                    f"float32 with records of the shape of x_train, {self.shape}."
                )
            self._check_targets(f"y_{part}", y)
        if self.classes is not None and self.classes < 2:
            raise ValueError(
                f"Dataset {self.name}: it has {self.classes} class, allowed are at least 2."
            )
        for name, groups in self.columns.items():
            if groups.shape != (len(self.x_train),):
                raise ValueError(
                    f"Dataset {self.name}: column {name} has the shape {groups.shape}, allowed is "
                    f"one value for each of the {len(self.x_train)} training records."
                )

    def _check_targets(self, name: str, y: Tensor) -> None:
        if self.classes is None:
            if y.dtype != torch.float32 or y.ndim != 2 or y.shape[1:] != self.y_train.shape[1:]:
                raise ValueError(
                    f"Dataset {self.name}: {name} is {y.dtype} {tuple(y.shape)}, allowed for a "
                    "regression is float32 (records, targets)."
                )
        elif y.dtype != torch.int64 or y.ndim != 1:
            raise ValueError(
                f"Dataset {self.name}: {name} is {y.dtype} {tuple(y.shape)}, allowed for classes "
                "is int64 (records,)."
            )
        elif not 0 <= int(y.min()) <= int(y.max()) < self.classes:
            raise ValueError(
                f"Dataset {self.name}: {name} holds labels from {int(y.min())} to {int(y.max())}, "
                f"allowed is 0 to {self.classes - 1}."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one record."""
        return tuple(self.x_train.shape[1:])

    @property
    def outputs(self) -> int:
        """How wide a model's answer is: the classes, or the targets."""
        return self.y_train.shape[1] if self.classes is None else self.classes

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of every array with its name, type and shape."""
        digest = hashlib.sha256()
        arrays = {n: getattr(self, n).numpy() for n in ("x_train", "y_train", "x_test", "y_test")}
        arrays |= {f"column {name}": self.columns[name] for name in sorted(self.columns)}
        for name, array in arrays.items():
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def __repr__(self) -> str:
        """What one wants to know at a glance."""
        task = "regression" if self.classes is None else f"{self.classes} classes"
        return (
            f"Dataset({self.name}: {len(self.x_train):,} training and {len(self.x_test):,} test "
            f"records of shape {self.shape}, {task})"
        )


@dataclass(frozen=True, eq=False)
class Federation:
    """Which training record is whose; records are held once, clients are positions."""

    data: Dataset
    clients: tuple[Positions, ...]
    validation: Positions  # held by the server, in no client
    public: Positions  # known to everybody, in no client
    partition: str  # in words
    copies: int  # the largest number of clients that hold one record
    by_chance: bool = False  # who holds which record, or none, was drawn without looking at them

    def __post_init__(self) -> None:
        """What the server looks at for nothing is no client's, and no shared record is left out."""
        total = len(self.data.x_train)
        holders = np.bincount(np.concatenate(self.clients), minlength=total)
        for name in ("validation", "public"):
            shared = np.flatnonzero(holders[getattr(self, name)])
            if len(shared):
                raise ValueError(
                    f"Federation: {name} has {len(shared)} records that clients hold too, allowed "
                    "are records in no client's hands: the server looks at them without noise."
                )
        if holders.max(initial=0) > self.copies:
            raise ValueError(
                f"Federation: copies = {self.copies}, but one record is held by {holders.max()} "
                "clients, allowed is at least as many."
            )

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many records each client holds."""
        return np.array([len(held) for held in self.clients], np.int64)

    def tests(self, client: int) -> Positions:
        """The test records that a client holds, dealt in turn: every record is one client's."""
        return np.arange(client, len(self.data.x_test), len(self.clients), dtype=np.int64)

    def histogram(self) -> NDArray[np.int64] | None:
        """Records per client and class; None for a regression."""
        classes = self.data.classes
        if classes is None:
            return None
        y = self.data.y_train.numpy()
        return np.stack([np.bincount(y[held], minlength=classes) for held in self.clients])

    def __repr__(self) -> str:
        """What one wants to know at a glance."""
        sizes = self.sizes
        held = f"{sizes.min():,} to {sizes.max():,}" if sizes.min() < sizes.max() else f"{sizes[0]}"
        shared = "" if self.copies <= 1 else f", one record at up to {self.copies} clients"
        return (
            f"Federation({self.data.name}: {len(sizes):,} clients with {held} records each, "
            f"{self.partition}{shared}; {len(self.validation):,} for validation, "
            f"{len(self.public):,} public)"
        )
