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
from confide.data.places import HUB, hub_cache, needed
from confide.data.settings import nearest, positive, share, words
from confide.data.tables import Table, codes, targets, values_of


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
    columns: Mapping[str, str] | str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    task: str | None = None,
    mean: Sequence[float] | None = None,
    deviation: Sequence[float] | None = None,
) -> Dataset:
    """A data set OWNER/NAME: of images if it has a column of them, a table otherwise.

    `train` and `held` are its splits; where it has no split `held`, the share `test` is taken.
    `columns` are natural columns, with other names if it is a mapping.
    """
    thing = f"Data {name}"
    splits = _splits(thing, name, config)
    # Many have no split "test"; one that was asked for by another name must be there.
    for option, split in (("train", train), *((("held", held),) if held != "test" else ())):
        if split is not None and split not in splits:
            raise ValueError(f"{thing}: {option} = {split!r}, allowed are {', '.join(splits)}.")
    sides = [splits[part] for part in (train, held) if part is not None and part in splits]
    kinds = {column: type(kind).__name__ for column, kind in sides[0].features.items()}
    image = image or next((column for column, kind in kinds.items() if kind == "Image"), None)
    target = target or next(
        (column for column, kind in kinds.items() if kind == "ClassLabel"), None
    )
    natural = (
        dict(columns)
        if isinstance(columns, Mapping)
        else {c: c for c in words(thing, "columns", columns)}
    )
    asked = (("image", image), ("target", target), *(("columns", c) for c in natural.values()))
    for option, column in asked:
        if column is not None and column not in kinds:
            raise ValueError(
                f"{thing}: {option} = {column!r} is not a column, allowed are {', '.join(kinds)}."
                f"{nearest(column, kinds)}"
            )
    share(thing, "test", test)
    if image is None:
        cells = {c: [value for side in sides for value in side[c]] for c in kinds}
        table = Table(thing, {c: values_of(cells[c]) for c in kinds})
        rows = np.arange(len(table)) < len(sides[0]) if len(sides) > 1 else None
        left_out = words(thing, "drop", drop)
        question = Question(check_column(table, "target", target), tuple(natural), left_out, task)
        return dataclasses.replace(from_table(table, question, test, seed, rows), name=name)
    if target is None:
        raise ValueError(f"{thing}: target is missing, allowed are {', '.join(kinds)}.")
    x = [_images(thing, side, image) for side in sides]
    y, labels = _classes(thing, sides, target)
    pixels = _pixels(thing, 1 if x[0].ndim == 3 else 3, mean, deviation)
    groups = {own: codes(values_of(list(sides[0][column]))) for own, column in natural.items()}
    if len(sides) == 1:
        by = next(iter(groups.values()), y[0])
        return split_images(name, (x[0], y[0]), labels, pixels, test, seed, groups, by)
    return image_dataset(name, (x[0], y[0]), (x[1], y[1]), labels, pixels, groups)


def _splits(thing: str, name: str, config: str | None) -> Any:
    package: Any = needed(HUB, thing)
    try:
        return package.load_dataset(name, config, cache_dir=str(hub_cache()))
    except Exception as why:
        # The package raises errors of every kind, from the network's to the file system's.
        first = (str(why).splitlines() or [""])[0].rstrip(".")
        raise ValueError(
            f"{thing}: Hugging Face does not give it ({type(why).__name__}: {first})."
        ) from why


def _classes(
    thing: str, sides: Sequence[Any], target: str
) -> tuple[list[NDArray[np.int64]], tuple[str, ...]]:
    """The labels of every side, and the names of the classes."""
    cells = [list(side[target]) for side in sides]
    names: list[str] | None = getattr(sides[0].features[target], "names", None)
    if names is not None:
        return [np.array(side, np.int64) for side in cells], tuple(names)
    column = values_of([value for side in cells for value in side])
    y, labels = targets(Table(thing, {target: column}), target, "classification")
    return np.split(y.numpy(), [len(cells[0])])[: len(cells)], labels


def _pixels(
    thing: str, channels: int, mean: Sequence[float] | None, deviation: Sequence[float] | None
) -> Pixels:
    """The scaling that was asked for, or to -1 to 1."""
    given = {"mean": mean, "deviation": deviation}
    for name, values in given.items():
        if values is not None and len(values) != channels:
            raise ValueError(
                f"{thing}: {name} = {list(values)}, allowed are {channels} numbers, one for each "
                "channel."
            )
    for value in deviation or ():
        positive(thing, "deviation", value)
    half = (0.5,) * channels
    return Pixels(tuple(mean or half), tuple(deviation or half))


def _images(thing: str, split: Any, column: str) -> NDArray[np.uint8]:
    """Pictures of one size, grey ones without a dimension for colours."""
    images = [picture for picture in split[column]]
    mode = "L" if all(picture.mode == "L" for picture in images) else "RGB"
    arrays = [np.asarray(picture.convert(mode), np.uint8) for picture in images]
    sizes = {array.shape for array in arrays}
    if len(sizes) != 1:
        raise ValueError(f"{thing}: the images have {len(sizes)} sizes, allowed is one.")
    return np.stack(arrays)
