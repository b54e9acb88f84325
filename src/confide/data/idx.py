"""Files of the idx format: MNIST, Fashion-MNIST, EMNIST."""

from __future__ import annotations

import gzip
import zlib
from math import prod
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase, digits

import numpy as np
from numpy.typing import NDArray

from confide.data.checksums import check_file
from confide.data.dataset import Dataset, Pixels
from confide.data.pictures import MNIST, image_dataset
from confide.data.places import path_of
from confide.data.settings import flag, share, whole, word
from confide.randomness import Key

Bytes = NDArray[np.uint8]
FASHION = Pixels((0.2860,), (0.3530,))
FASHION_LABELS = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker",
                  "bag", "ankle boot")  # fmt: skip
# bymerge and balanced hold these small letters under the capital ones.
_MERGED = set("cijklmopsuvwxyz")
_SEPARATE = [letter for letter in ascii_lowercase if letter not in _MERGED]
EMNIST_LABELS = {
    "byclass": (*digits, *ascii_uppercase, *ascii_lowercase),
    "bymerge": (*digits, *ascii_uppercase, *_SEPARATE),
    "balanced": (*digits, *ascii_uppercase, *_SEPARATE),
    "letters": tuple(ascii_lowercase),
    "digits": tuple(digits),
    "mnist": tuple(digits),
}
PARTS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte",
         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")  # fmt: skip


def read_idx(path: Path) -> Bytes:
    """The array of bytes in an idx file, compressed or not."""
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as why:
        raise ValueError(f"Data: {path} cannot be read ({why}).") from why
    dimensions = raw[3] if len(raw) > 3 else 0
    start = 4 + 4 * dimensions
    if raw[:3] != b"\0\0\x08" or not 1 <= dimensions <= 3 or len(raw) < start:
        raise ValueError(f"Data: {path} is not an idx file of bytes.")
    shape = tuple(np.frombuffer(raw, ">u4", dimensions, 4).tolist())
    if len(raw) - start != prod(shape):
        raise ValueError(
            f"Data: {path} holds {len(raw) - start} bytes, allowed are the {prod(shape)} of its "
            f"shape {shape}; get it again."
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def read_fashion(folder: Path, *, verify: bool = True) -> Dataset:
    """Fashion-MNIST."""
    return read_four(folder, "fashion-mnist", FASHION_LABELS, FASHION, verify)


def read_own(folder: Path) -> Dataset:
    """Four idx files of one's own; the classes are the labels from 0 to the largest."""
    return read_four(folder, folder.name, None, MNIST, False)


def read_four(
    folder: Path, name: str, labels: tuple[str, ...] | None, pixels: Pixels, verify: bool
) -> Dataset:
    """Images and labels of both parts."""
    paths = [path_of(folder, part) for part in PARTS]
    if flag(f"Data {name}", "verify", verify):
        for path in paths:
            check_file(name, path)
    x, y, x_test, y_test = map(read_idx, paths)
    if labels is None:
        labels = tuple(str(k) for k in range(int(max(y.max(), y_test.max())) + 1))
    return image_dataset(name, (x, y), (x_test, y_test), labels, pixels)


def read_emnist(
    folder: Path, *, split: str = "byclass", part: float | None = None, seed: int = 0
) -> Dataset:
    """EMNIST of one of its splits, all of it or a random `part` of both sides."""
    labels = EMNIST_LABELS[word("Data emnist", "split", split, EMNIST_LABELS)]
    sides = [_emnist_side(folder, split, side, part, seed) for side in ("train", "test")]
    return image_dataset("emnist", sides[0], sides[1], labels, MNIST)


def _emnist_side(
    folder: Path, split: str, side: str, part: float | None, seed: int
) -> tuple[Bytes, NDArray[np.int64]]:
    names = (f"emnist-{split}-{side}-images-idx3-ubyte", f"emnist-{split}-{side}-labels-idx1-ubyte")
    x, y = (read_idx(path_of(folder, name)) for name in names)
    if part is not None:
        count = round(share("Data emnist", "part", part) * len(x))
        stream = Key.from_seed(whole("Data emnist", "seed", seed, 0)).stream(0, None, side)
        chosen = stream.choose(len(x), count)
        x, y = x[chosen], y[chosen]
    # The files hold every image with rows and columns exchanged, and the letters count from 1.
    return x.transpose(0, 2, 1), y.astype(np.int64) - (split == "letters")
