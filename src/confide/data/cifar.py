"""CIFAR-10 and CIFAR-100 as their authors publish them: Python pickles, read without trust."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.data.checksums import check_file
from confide.data.dataset import Dataset, Pixels
from confide.data.pictures import CIFAR10, CIFAR10_LABELS, image_dataset
from confide.data.settings import flag, word

CIFAR100 = Pixels((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))
BATCHES = tuple(f"data_batch_{k}" for k in range(1, 6))
SIDE = 32

# All that a pickled array of numbers is made of; `_codecs.encode` is how Python 3 writes bytes in
# the old protocols.
_ALLOWED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("_codecs", "encode"),
}


class ArraysOnly(pickle.Unpickler):
    """An unpickler that builds numpy arrays, numbers, text, lists and dicts, and nothing else."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Refuse every name but those of an array."""
        if (module_name, global_name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it names {module_name}.{global_name}")
        if global_name == "_reconstruct":
            return _reconstruct
        return super().find_class(module_name, global_name)


def _reconstruct(kind: Any, shape: Any, dtype: Any) -> NDArray[Any]:
    """An empty array, as numpy makes it before a pickle fills it."""
    if kind is not np.ndarray:
        raise pickle.UnpicklingError("it holds an array of an unknown kind")
    return np.ndarray(shape, dtype)


def read_batch(path: Path, label: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The images (n, 32, 32, 3) and labels of one pickle."""
    try:
        with path.open("rb") as file:
            held: Any = ArraysOnly(file, encoding="latin1").load()
        data, labels = held["data"], held[label]
        images = np.asarray(data).reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
        y = np.asarray(labels, np.int64)
    except Exception as why:
        # A pickle can fail in any way at all.
        raise ValueError(
            f"Data: {path} is not a batch of CIFAR ({type(why).__name__}: {why})."
        ) from why
    if images.dtype != np.uint8 or len(images) != len(y):
        raise ValueError(f"Data: {path} is not a batch of CIFAR: images and labels do not fit.")
    return images, y


def read_cifar10(folder: Path, *, verify: bool = True) -> Dataset:
    """CIFAR-10."""
    train, test = _batches(folder, "cifar10", BATCHES, ("test_batch",), "labels", verify)
    return image_dataset("cifar10", train, test, CIFAR10_LABELS, CIFAR10)


def read_cifar100(folder: Path, *, labels: str = "fine", verify: bool = True) -> Dataset:
    """CIFAR-100 with its 100 fine or 20 coarse classes."""
    word("Data cifar100", "labels", labels, ("fine", "coarse"))
    train, test = _batches(folder, "cifar100", ("train",), ("test",), f"{labels}_labels", verify)
    names = tuple(str(k) for k in range(100 if labels == "fine" else 20))
    return image_dataset("cifar100", train, test, names, CIFAR100)


Side = tuple[NDArray[np.uint8], NDArray[np.int64]]


def _batches(
    folder: Path, name: str, train: tuple[str, ...], test: tuple[str, ...], label: str, verify: Any
) -> tuple[Side, Side]:
    if flag(f"Data {name}", "verify", verify):
        for file in (*train, *test):
            check_file(name, folder / file)
    sides: list[Side] = []
    for files in (train, test):
        read = [read_batch(folder / file, label) for file in files]
        sides.append((np.concatenate([x for x, _ in read]), np.concatenate([y for _, y in read])))
    return sides[0], sides[1]
