"""The small data sets that scikit-learn brings."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from confide.data.dataset import Dataset, Pixels
from confide.data.pictures import DIGITS
from confide.data.places import needed
from confide.data.splits import split
from confide.data.tables import Table, table_dataset

BRIGHTEST = 16


def read_cancer(name: str, *, test: float = 0.25, seed: int = 0) -> Dataset:
    """Breast cancer Wisconsin (diagnostic): 30 numbers, standardised."""
    held: Any = needed("sklearn.datasets", "Data cancer").load_breast_cancer()
    features: NDArray[np.float64] = held.data
    words = np.array(held.target_names.tolist())[held.target]
    names = [str(feature) for feature in held.feature_names]
    table = Table("Data cancer", dict(zip(names, features.T, strict=True)) | {"diagnosis": words})
    train, _ = split(table.thing, len(words), test, seed, words)
    side = np.isin(np.arange(len(words)), train)
    return table_dataset(table, names, "diagnosis", side, "classification", {})


def read_digits(name: str, *, test: float = 0.2, seed: int = 0) -> Dataset:
    """Handwritten digits of 8x8 pixels with 17 levels of grey."""
    held: Any = needed("sklearn.datasets", "Data digits").load_digits()
    images = torch.from_numpy(held.images.astype(np.float32) / BRIGHTEST)[:, None]
    y = torch.from_numpy(held.target.astype(np.int64))
    train, test_side = split("Data digits", len(y), test, seed, held.target)
    return Dataset(
        name="digits",
        x_train=images[train],
        y_train=y[train],
        x_test=images[test_side],
        y_test=y[test_side],
        classes=len(DIGITS),
        preparation=f"pixels / {BRIGHTEST}",
        labels=DIGITS,
        pixels=Pixels((0.0,), (1.0,)),
    )
