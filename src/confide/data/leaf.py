"""FEMNIST as LEAF writes it: JSON files of users with their pixels and labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.data.dataset import Dataset
from confide.data.idx import EMNIST_LABELS
from confide.data.pictures import GREY, image_dataset

SIDE = 28


def read_leaf(folder: Path) -> Dataset:
    """The folders train and test, each with JSON files; the natural column is the writer."""
    writers: dict[str, int] = {}
    x, y, writer = _side(folder / "train", writers)
    x_test, y_test, _ = _side(folder / "test", writers)
    labels = EMNIST_LABELS["byclass"]
    return image_dataset("femnist", (x, y), (x_test, y_test), labels, GREY, {"writer": writer})


def _side(
    folder: Path, writers: dict[str, int]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    images: list[NDArray[np.uint8]] = []
    labels: list[int] = []
    owners: list[int] = []
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise ValueError(f"Data femnist: {folder} has no .json files.")
    for path in paths:
        try:
            users: dict[str, Any] = json.loads(path.read_text())["user_data"]
            for user, held in users.items():
                pixels = np.asarray(held["x"], np.float64).reshape(-1, SIDE, SIDE)
                if len(pixels) != len(held["y"]) or pixels.min() < 0 or pixels.max() > 1:
                    raise ValueError(f"user {user} has pixels outside 0 to 1, or of another number")
                images.append(np.rint(pixels * 255).astype(np.uint8))
                labels += held["y"]
                owners += [writers.setdefault(user, len(writers))] * len(pixels)
        except (OSError, ValueError, KeyError, TypeError) as why:
            raise ValueError(f"Data femnist: {path} is not of LEAF's layout ({why}).") from why
    return np.concatenate(images), np.array(labels, np.int64), np.array(owners, np.int64)
