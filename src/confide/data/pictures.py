"""Data sets of images in arrays of bytes: npz files, idx files and CIFAR's pickles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from confide.data.dataset import Dataset, Pixels

Bytes = NDArray[np.uint8]
DIGITS = tuple("0123456789")
MNIST = Pixels((0.1307,), (0.3081,))


def image_dataset(
    name: str,
    train: tuple[Bytes, NDArray[Any]],
    test: tuple[Bytes, NDArray[Any]],
    labels: tuple[str, ...],
    pixels: Pixels,
    columns: Mapping[str, NDArray[np.int64]] | None = None,
) -> Dataset:
    """Images and labels, scaled."""
    return Dataset(
        name=name,
        x_train=pixels.scale(train[0]),
        y_train=torch.from_numpy(train[1].astype(np.int64)),
        x_test=pixels.scale(test[0]),
        y_test=torch.from_numpy(test[1].astype(np.int64)),
        classes=len(labels),
        columns=columns or {},
        preparation=str(pixels),
        labels=labels,
        pixels=pixels,
    )


def arrays(path: Path, *names: str) -> list[NDArray[Any]]:
    """Named arrays of an npz file, which may not hold Python objects."""
    with np.load(path, allow_pickle=False) as held:
        missing = [name for name in names if name not in held.files]
        if missing:
            raise ValueError(
                f"Data: {path} has no array {missing[0]!r}, allowed are files with "
                f"{', '.join(names)}."
            )
        return [held[name] for name in names]


def read_mnist(folder: Path) -> Dataset:
    """The bundled MNIST."""
    x, y, x_test, y_test = arrays(folder / "mnist.npz", "x_train", "y_train", "x_test", "y_test")
    return image_dataset("mnist", (x, y), (x_test, y_test), DIGITS, MNIST)
