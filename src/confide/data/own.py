"""A user's own data: arrays in an npz file, or a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from confide.data import splits
from confide.data.dataset import Dataset, Pixels
from confide.data.pictures import arrays, extra_arrays
from confide.data.settings import nearest, word, words
from confide.data.tables import (
    MOST_CLASSES,
    Table,
    codes,
    is_text,
    read_csv,
    read_parquet,
    table_dataset,
)

TASKS = ("classification", "regression")
MOST_CLASSES_OF_NUMBERS = 100
MOST_CHANNELS = 4
NAMES = ("x_train", "y_train", "x_test", "y_test")


def read_npz(path: Path, *, task: str | None = None) -> Dataset:
    """Arrays x_train, y_train, x_test, y_test; further integer arrays are natural columns.

    Bytes of three or four dimensions are images (n, h, w) or (n, h, w, channels) and are scaled to
    -1 to 1; all other numbers go to the model as they are.
    """
    thing = f"Data {path.name}"
    held = dict(zip(NAMES, arrays(path, *NAMES), strict=True))
    for name, array in held.items():
        check_numbers(thing, name, array)
    x = [held["x_train"], held["x_test"]]
    pixels = pixels_of(thing, x[0])
    if x[0].shape[1:] != x[1].shape[1:] or (x[0].dtype == np.uint8) != (x[1].dtype == np.uint8):
        raise ValueError(
            f"{thing}: x_train has records {x[0].shape[1:]} of {x[0].dtype} and x_test "
            f"{x[1].shape[1:]} of {x[1].dtype}, allowed are the same of both."
        )
    y = [held["y_train"], held["y_test"]]
    kind = word(thing, "task", task, TASKS) if task is not None else task_of(y[0])
    shapes = [pixels.scale(part) if pixels else as_floats(part) for part in x]
    goals = [
        goal(thing, f"y_{side}", part, kind)
        for side, part in zip(("train", "test"), y, strict=True)
    ]
    return Dataset(
        name=path.stem,
        x_train=shapes[0],
        y_train=goals[0],
        x_test=shapes[1],
        y_test=goals[1],
        classes=int(max(part.max() for part in goals)) + 1 if kind == "classification" else None,
        columns=natural_columns(thing, extra_arrays(path, NAMES), len(x[0])),
        source=path.name,
        preparation=str(pixels) if pixels else "none",
        pixels=pixels,
    )


def check_numbers(thing: str, name: str, array: NDArray[Any]) -> None:
    """Refuse an array that is not of finite numbers with at least one record."""
    if array.dtype.kind not in "biuf" or array.ndim == 0 or array.size == 0:
        raise ValueError(
            f"{thing}: {name} is {array.dtype} of shape {array.shape}, allowed are numbers with "
            "one row for each record, and at least 1."
        )
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            wrong = ~np.isfinite(array.astype(np.float32).reshape(len(array), -1))
        if wrong.any():
            first = int(wrong.any(1).argmax())
            raise ValueError(
                f"{thing}: {name} has {int(wrong.sum())} values that are NaN, infinite or too "
                f"large, the first in record {first}; allowed are finite numbers."
            )


def pixels_of(thing: str, x: NDArray[Any]) -> Pixels | None:
    """How to scale images, if these are images."""
    if x.dtype != np.uint8 or x.ndim not in (3, 4):
        return None
    channels = 1 if x.ndim == 3 else x.shape[3]
    if channels > MOST_CHANNELS:
        raise ValueError(
            f"{thing}: x_train of shape {x.shape} has {channels} channels, allowed for bytes are "
            f"images (n, height, width, channels) with at most {MOST_CHANNELS}."
        )
    return Pixels((0.5,) * channels, (0.5,) * channels)


def as_floats(x: NDArray[Any]) -> torch.Tensor:
    """Numbers as float32."""
    return torch.from_numpy(np.ascontiguousarray(x, np.float32))


def task_of(y: NDArray[Any]) -> str:
    """Whole numbers in one column are classes, all others are to be predicted."""
    return "classification" if y.ndim == 1 and y.dtype.kind in "biu" else "regression"


def goal(thing: str, name: str, y: NDArray[Any], task: str) -> torch.Tensor:
    """Labels or numbers to predict."""
    if task == "regression":
        return as_floats(y if y.ndim > 1 else y[:, None])
    labels = y.astype(np.int64)
    if y.ndim != 1 or (labels != y).any() or labels.min() < 0:
        raise ValueError(
            f"{thing}: {name} of shape {y.shape} does not hold classes, allowed are whole numbers "
            "from 0, one for each record."
        )
    if labels.max() >= MOST_CLASSES:
        raise ValueError(
            f"{thing}: {name} holds the label {labels.max()}, allowed are {MOST_CLASSES} classes, "
            'numbered from 0, or task = "regression".'
        )
    return torch.from_numpy(labels)


def natural_columns(
    thing: str, held: dict[str, NDArray[Any]], records: int
) -> dict[str, NDArray[np.int64]]:
    """Further arrays of an npz file."""
    for name, array in held.items():
        if array.shape != (records,) or array.dtype.kind not in "biuUS":
            raise ValueError(
                f"{thing}: {name} is {array.dtype} of shape {array.shape}, allowed beside "
                f"{', '.join(NAMES)} are natural columns: {records} whole numbers or words."
            )
    return {
        name: np.unique(array, return_inverse=True)[1].astype(np.int64)
        if array.dtype.kind in "US"
        else array.astype(np.int64)
        for name, array in held.items()
    }


def read_table(
    path: Path,
    *,
    target: str | None = None,
    test: float = 0.2,
    seed: int = 0,
    split: str | None = None,
    columns: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    task: str | None = None,
) -> Dataset:
    """A csv or parquet table: `target` is predicted from the others.

    `columns` are natural columns only, `drop` are left out; every column of words is a natural
    column too. A column `split` of the words train and test says what is for tests, or the share
    `test` is drawn by `seed`.
    """
    thing = f"Data {path.name}"
    table = (read_parquet if path.suffix == ".parquet" else read_csv)(thing, path)
    asked = Question(
        check_column(table, "target", target),
        words(thing, "columns", columns),
        (*words(thing, "drop", drop), *([split] if split is not None else [])),
        task,
    )
    train = None
    if split is not None:
        side = table.columns[check_column(table, "split", split)]
        strange = [value for value in np.unique(side).tolist() if value not in ("train", "test")]
        if strange:
            raise ValueError(
                f"{thing}: split = {split!r} holds {strange[0]!r}, allowed are train and test."
            )
        train = side == "train"
    data = from_table(table, asked, test, seed, train)
    return dataclasses.replace(data, name=path.name.split(".")[0], source=path.name)


@dataclass(frozen=True)
class Question:
    """What is to be predicted, and which columns are not to be used for it."""

    target: str
    columns: tuple[str, ...]
    drop: tuple[str, ...]
    task: str | None


def from_table(
    table: Table, asked: Question, test: float, seed: int, train: NDArray[np.bool_] | None
) -> Dataset:
    """A data set from a table, with the given training rows, or drawn ones."""
    known = list(table.columns)
    for option, names in (("columns", asked.columns), ("drop", asked.drop)):
        for name in names:
            check_column(table, option, name)
    unused = (asked.target, *asked.columns, *asked.drop)
    features = [name for name in known if name not in unused]
    if not features:
        raise ValueError(f"{table.thing}: nothing is left to predict {asked.target!r} from.")
    answer = table.columns[asked.target]
    task = asked.task
    if task is None:
        task = "classification" if is_text(answer) or few(answer) else "regression"
    word(table.thing, "task", task, TASKS)
    if train is None:
        groups = codes(answer) if task == "classification" else None
        kept, _ = splits.split(table.thing, len(table), test, seed, groups)
        train = np.isin(np.arange(len(table)), kept)
    told = [name for name in known if is_text(table.columns[name]) and name != asked.target]
    natural = {
        name: codes(table.columns[name])
        for name in (*told, *asked.columns)
        if name not in asked.drop
    }
    return table_dataset(table, features, asked.target, train, task, natural)


def few(answer: NDArray[Any]) -> bool:
    """Whether numbers look like classes: whole ones, with few different values."""
    return bool(np.all(answer % 1 == 0)) and len(np.unique(answer)) <= MOST_CLASSES_OF_NUMBERS


def check_column(table: Table, option: str, name: str | None) -> str:
    """The name of a column that is there."""
    known = list(table.columns)
    if name is None:
        raise ValueError(f"{table.thing}: {option} is missing, allowed are {', '.join(known)}.")
    if name not in known:
        raise ValueError(
            f"{table.thing}: {option} = {name!r} is not a column, allowed are {', '.join(known)}."
            f"{nearest(name, known)}"
        )
    return name
