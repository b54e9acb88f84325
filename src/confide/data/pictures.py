"""Data sets of images in arrays of bytes, as npz files hold them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from confide.data.checksums import check_arrays
from confide.data.dataset import Dataset, Pixels
from confide.data.settings import flag, word
from confide.data.splits import split

Bytes = NDArray[np.uint8]
DIGITS = tuple("0123456789")
MNIST = Pixels((0.1307,), (0.3081,))
CIFAR10 = Pixels((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
CIFAR10_LABELS = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
COLOUR = Pixels((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
GREY = Pixels()
AGES = {"0-12": 0, "13-19": 13, "20-39": 20, "40-64": 40, "65 and more": 65}
GENDERS = ("male", "female")
RACES = ("White", "Black", "Asian", "Indian", "other")


def image_dataset(
    name: str,
    train: tuple[Bytes, NDArray[Any]],
    test: tuple[Bytes, NDArray[Any]],
    labels: tuple[str, ...],
    pixels: Pixels,
    columns: Mapping[str, NDArray[Any]] | None = None,
) -> Dataset:
    """Images and labels, scaled."""
    return Dataset(
        name=name,
        x_train=pixels.scale(train[0]),
        y_train=torch.from_numpy(train[1].astype(np.int64)),
        x_test=pixels.scale(test[0]),
        y_test=torch.from_numpy(test[1].astype(np.int64)),
        classes=len(labels),
        columns={key: column.astype(np.int64) for key, column in (columns or {}).items()},
        preparation=str(pixels),
        labels=labels,
        pixels=pixels,
    )


def split_images(
    name: str,
    images: tuple[Bytes, NDArray[Any]],
    labels: tuple[str, ...],
    pixels: Pixels,
    test: Any,
    seed: Any,
    columns: Mapping[str, NDArray[Any]] | None = None,
    groups: NDArray[Any] | None = None,
) -> Dataset:
    """Images without a split: the same share of every group, or else class, is for tests."""
    x, y = images
    columns = columns or {}
    train, held = split(f"Data {name}", len(x), test, seed, y if groups is None else groups)
    kept = {key: column[train] for key, column in columns.items()}
    return image_dataset(name, (x[train], y[train]), (x[held], y[held]), labels, pixels, kept)


def arrays(path: Path, *names: str) -> list[NDArray[Any]]:
    """Named arrays of an npz file, which may not hold Python objects."""
    held = _opened(path, lambda name: name in names)
    for name in names:
        if name not in held:
            raise ValueError(
                f"Data: {path} has no array {name!r}, allowed are files with {', '.join(names)}."
            )
    return [held[name] for name in names]


def extra_arrays(path: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """All arrays of an npz file but the named ones."""
    return _opened(path, lambda name: name not in names)


def _opened(path: Path, wanted: Callable[[str], bool]) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as held:
            return {name: held[name] for name in held.files if wanted(name)}
    except (OSError, EOFError, ValueError, AttributeError, zipfile.BadZipFile) as why:
        raise ValueError(f"Data: {path} is not a readable npz file ({why}).") from why


def packed(name: str, path: Path, verify: Any, *names: str) -> list[NDArray[Any]]:
    """The same, with the checksum of their content."""
    held = arrays(path, *names)
    if flag(f"Data {name}", "verify", verify):
        check_arrays(name, path, held)
    return held


def read_mnist(folder: Path) -> Dataset:
    """The bundled MNIST."""
    x, y, x_test, y_test = arrays(folder / "mnist.npz", "x_train", "y_train", "x_test", "y_test")
    return image_dataset("mnist", (x, y), (x_test, y_test), DIGITS, MNIST)


def read_cifar10_part(folder: Path, *, verify: bool = True) -> Dataset:
    """The beginning of CIFAR-10's training images, and all test images."""
    x, y, x_test, y_test = packed(
        *("cifar10", folder / "cifar10_part1.npz", verify),
        *("x_train", "y_train", "x_test", "y_test"),
    )
    return image_dataset("cifar10", (x, y), (x_test, y_test), CIFAR10_LABELS, CIFAR10)


def read_femnist_part(
    folder: Path, *, test: float = 0.1, seed: int = 0, verify: bool = True
) -> Dataset:
    """Digits of a few writers; the same share of every writer's is for tests."""
    path = folder / "femnist_12clients.npz"
    x, y, writer = packed("femnist", path, verify, "x", "y", "client")
    columns = {"writer": writer}
    return split_images("femnist", (x, y), DIGITS, GREY, test, seed, columns, writer)


def read_lfw(folder: Path, *, test: float = 0.25, seed: int = 0, verify: bool = True) -> Dataset:
    """The 62 people with at least 20 images, 32x32; who they are is also the natural column."""
    x, y, names = packed("lfw", folder / "lfw62.npz", verify, "x", "y", "names")
    return split_images("lfw", (x, y), tuple(names.tolist()), COLOUR, test, seed, {"person": y})


def read_medical(folder: Path) -> Dataset:
    """A part of Medical MNIST, 64x64 grey."""
    # Without a checksum: the images were JPEG files, which decoders round differently.
    names = ("x_train", "y_train", "x_test", "y_test", "classes")
    x, y, x_test, y_test, labels = arrays(folder / "medical_mnist.npz", *names)
    return image_dataset("medical-mnist", (x, y), (x_test, y_test), tuple(labels.tolist()), GREY)


def read_utkface(
    folder: Path,
    *,
    target: str = "age",
    test: float = 0.2,
    seed: int = 0,
    verify: bool = True,
) -> Dataset:
    """Faces, 32x32; the target is the age group, the gender or the race."""
    path = folder / "utkface.npz"
    x, age, gender, race = packed("utkface", path, verify, "x", "age", "gender", "race")
    return faces(x, age, gender, race, target, test, seed)


def faces(
    x: Bytes,
    age: NDArray[Any],
    gender: NDArray[Any],
    race: NDArray[Any],
    target: str,
    test: float,
    seed: int,
) -> Dataset:
    """UTKFace with the chosen target; all three attributes are natural columns."""
    group = np.digitize(age, list(AGES.values())) - 1
    columns = {"age": group, "gender": gender, "race": race}
    labels = {"age": tuple(AGES), "gender": GENDERS, "race": RACES}
    word("Data utkface", "target", target, labels)
    chosen = (x, columns[target])
    return split_images("utkface", chosen, labels[target], COLOUR, test, seed, columns)
