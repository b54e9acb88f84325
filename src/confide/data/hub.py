"""Data sets of Hugging Face, by the package `datasets`, which downloads and caches them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.data.dataset import Dataset, Pixels
from confide.data.own import Question, check_column, from_table
from confide.data.pictures import image_dataset, split_images
from confide.data.places import needed
from confide.data.settings import nearest, share
from confide.data.tables import Table, codes, values_of


def read_hub(
    name: str,
    *,
    config: str | None = None,
    image: str | None = None,
    target: str | None = None,
    train: str = "train",
    held: str | None = "test",
    test: float = 0.2,
    seed: int = 0,
    columns: Mapping[str, str] | Sequence[str] = (),
    drop: Sequence[str] = (),
    task: str | None = None,
    mean: tuple[float, ...] | None = None,
    deviation: tuple[float, ...] | None = None,
) -> Dataset:
    """A data set OWNER/NAME: of images if it has a column of them, a table otherwise.

    `train` and `held` are its splits; where it has no split `held`, the share `test` is taken.
    `columns` are natural columns, with other names if it is a mapping.
    """
    thing = f"Data {name}"
    package: Any = needed("datasets", thing)
    try:
        splits: Any = package.load_dataset(name, config)
    except Exception as why:
        # The package raises errors of every kind, from the network's to the file system's.
        first = (str(why).splitlines() or [""])[0]
        raise ValueError(
            f"{thing}: Hugging Face does not give it ({type(why).__name__}: {first})."
        ) from why
    if train not in splits:
        raise ValueError(f"{thing}: train = {train!r}, allowed are {', '.join(splits)}.")
    kinds = {column: type(kind).__name__ for column, kind in splits[train].features.items()}
    image = image or next((column for column, kind in kinds.items() if kind == "Image"), None)
    target = target or next(
        (column for column, kind in kinds.items() if kind == "ClassLabel"), None
    )
    for option, column in (("image", image), ("target", target)):
        if column is not None and column not in kinds:
            raise ValueError(
                f"{thing}: {option} = {column!r} is not a column, allowed are {', '.join(kinds)}."
                f"{nearest(column, kinds)}"
            )
    share(thing, "test", test)
    natural = dict(columns) if isinstance(columns, Mapping) else {c: c for c in columns}
    given = held is not None and held in splits
    if image is None:
        sides = [splits[train], splits[held]] if given else [splits[train]]
        cells = {c: [value for side in sides for value in side[c]] for c in kinds}
        table = Table(thing, {c: values_of(cells[c]) for c in kinds})
        rows = np.arange(len(table)) < len(sides[0]) if given else None
        asked = Question(check_column(table, "target", target), tuple(natural), tuple(drop), task)
        return dataclasses.replace(from_table(table, asked, test, seed, rows), name=name)
    if target is None:
        raise ValueError(f"{thing}: target is missing, allowed are {', '.join(kinds)}.")
    labels = _labels(splits[train], target)
    x, y = _images(thing, splits[train], image), np.array(list(splits[train][target]), np.int64)
    channels = 1 if x.ndim == 3 else 3
    pixels = Pixels(mean or (0.5,) * channels, deviation or (0.5,) * channels)
    groups = {own: codes(values_of(splits[train][column])) for own, column in natural.items()}
    if not given:
        by = next(iter(groups.values()), y)
        return split_images(name, (x, y), labels, pixels, test, seed, groups, by)
    kept = (_images(thing, splits[held], image), np.array(list(splits[held][target]), np.int64))
    return image_dataset(name, (x, y), kept, labels, pixels, groups)


def _labels(split: Any, target: str) -> tuple[str, ...]:
    names: list[str] | None = getattr(split.features[target], "names", None)
    if names is not None:
        return tuple(names)
    return tuple(str(k) for k in range(int(max(split[target])) + 1))


def _images(thing: str, split: Any, column: str) -> NDArray[np.uint8]:
    """Pictures of one size, grey ones without a dimension for colours."""
    images = [picture for picture in split[column]]
    mode = "L" if all(picture.mode == "L" for picture in images) else "RGB"
    arrays = [np.asarray(picture.convert(mode), np.uint8) for picture in images]
    sizes = {array.shape for array in arrays}
    if len(sizes) != 1:
        raise ValueError(f"{thing}: the images have {len(sizes)} sizes, allowed is one.")
    return np.stack(arrays)
