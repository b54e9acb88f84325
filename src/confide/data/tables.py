"""Tables: columns of text or numbers, and how they become a model's inputs."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from confide.data.dataset import Dataset
from confide.data.places import needed

MISSING = ("", "?", "NA", "NaN", "nan", "null")
MOST_WORDS = 1000
MOST_CLASSES = 1000

Column = NDArray[Any]  # float64 for numbers, text otherwise
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Table:
    """Columns of equal length by name; `thing` is what sentences call it."""

    thing: str
    columns: Mapping[str, Column]

    def __len__(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values())))


def read_csv(thing: str, path: Path) -> Table:
    """A table whose first line names the columns."""
    rows = rows_of(thing, path, lines_of(thing, path))
    if len(rows) < 2:
        raise ValueError(f"{thing}: {path} has {len(rows)} lines, allowed are at least 2.")
    return from_rows(thing, rows[0], rows[1:])


def lines_of(thing: str, path: Path) -> list[str]:
    """The lines of a text file, compressed or not."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return raw.decode("utf-8-sig").splitlines(keepends=True)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as why:
        raise ValueError(f"{thing}: {path} cannot be read ({why}).") from why


def rows_of(thing: str, path: Path, lines: Iterable[str]) -> list[list[str]]:
    """Cells without the spaces around them."""
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(lines) if row]
    except csv.Error as why:
        raise ValueError(f"{thing}: {path} cannot be read ({why}).") from why


def from_rows(thing: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of rows that are as long as there are names."""
    if not rows:
        raise ValueError(f"{thing}: it has no rows, allowed is at least 1.")
    for name in names:
        if list(names).count(name) > 1:
            raise ValueError(f"{thing}: the column {name!r} is there twice.")
    for number, row in enumerate(rows, 1):
        if len(row) != len(names):
            raise ValueError(
                f"{thing}: row {number} has {len(row)} cells, allowed are {len(names)}."
            )
    cells = zip(*rows, strict=True)
    return Table(thing, {n: column_of(column) for n, column in zip(names, cells, strict=True)})


def read_parquet(thing: str, path: Path) -> Table:
    """A table from a parquet file."""
    parquet = needed("pyarrow.parquet", thing)
    try:
        held: Any = parquet.read_table(path)
    except Exception as why:
        raise ValueError(f"{thing}: {path} is not a readable parquet file ({why}).") from why
    columns = {name: values_of(held.column(name).to_pylist()) for name in held.column_names}
    if not columns or not len(held):
        raise ValueError(f"{thing}: {path} has no rows.")
    return Table(thing, columns)


def values_of(values: Sequence[Any]) -> Column:
    """A column of Python objects: numbers where all are, text otherwise."""
    return column_of(["" if value is None else str(value) for value in values])


def column_of(cells: Sequence[str]) -> Column:
    """Numbers where every filled cell is one, text otherwise; a missing cell is NaN or empty."""
    filled = ["" if cell in MISSING else cell for cell in cells]
    try:
        return np.array([float(cell) if cell else np.nan for cell in filled])
    except ValueError:
        return np.array(filled)


def is_text(column: Column) -> bool:
    """Whether a column holds words."""
    return column.dtype.kind == "U"


def codes(column: Column) -> NDArray[np.int64]:
    """Different values as 0, 1, 2 ... in their order; what is missing is -1."""
    missing = column == "" if is_text(column) else np.isnan(column)
    _, inverse = np.unique(column[~missing], return_inverse=True)
    found = np.full(len(column), -1, np.int64)
    found[~missing] = inverse
    return found


def inputs(table: Table, names: Iterable[str], train: Mask) -> NDArray[np.float32]:
    """Words as one indicator for each word of the training rows, numbers standardised by them.

    A word that no training row has, or that is missing, has all its indicators at 0. A number that
    is the same in every training row is only centred.
    """
    parts: list[NDArray[np.float64]] = []
    for name in names:
        column = table.columns[name]
        if is_text(column):
            words = [word for word in np.unique(column[train]).tolist() if word]
            if len(words) > MOST_WORDS:
                raise ValueError(
                    f"{table.thing}: column {name!r} has {len(words)} different words, allowed are "
                    f"{MOST_WORDS}; leave it out with drop."
                )
            parts.append((column[:, None] == np.array(words, column.dtype)).astype(np.float64))
        else:
            refuse_gaps(table.thing, name, column)
            spread = column[train].std()
            centred = column - column[train].mean()
            parts.append((centred / (spread if spread > 0 else 1.0))[:, None])
    return np.concatenate(parts, 1).astype(np.float32)


def refuse_gaps(thing: str, name: str, column: Column) -> None:
    """Refuse numbers that are missing or infinite, naming the first."""
    wrong = np.flatnonzero(~np.isfinite(column))
    if len(wrong):
        raise ValueError(
            f"{thing}: column {name!r} has {len(wrong)} values that are missing or not finite, the "
            f"first in row {wrong[0] + 1}; allowed are finite numbers, or leave it out with drop."
        )


def table_dataset(
    table: Table,
    features: Sequence[str],
    target: str,
    train: Mask,
    task: str,
    columns: Mapping[str, NDArray[np.int64]],
) -> Dataset:
    """A data set from the rows for training and the others."""
    x = torch.from_numpy(inputs(table, features, train))
    y, labels = targets(table, target, task)
    side, other = torch.from_numpy(train), torch.from_numpy(~train)
    return Dataset(
        name=table.thing,
        x_train=x[side],
        y_train=y[side],
        x_test=x[other],
        y_test=y[other],
        classes=len(labels) if task == "classification" else None,
        columns={name: column[train] for name, column in columns.items()},
        preparation="words as indicators, numbers standardised by the mean and deviation of the "
        "training records, which no statement covers",
        labels=labels,
    )


def targets(table: Table, name: str, task: str) -> tuple[torch.Tensor, tuple[str, ...]]:
    """Classes with their names, or numbers."""
    column = table.columns[name]
    if task == "regression":
        if is_text(column):
            raise ValueError(
                f"{table.thing}: target = {name!r} holds words, allowed for a regression are "
                "numbers."
            )
        refuse_gaps(table.thing, name, column)
        return torch.from_numpy(column.astype(np.float32)[:, None]), ()
    y = codes(column)
    if (y < 0).any():
        raise ValueError(
            f"{table.thing}: target = {name!r} is missing in {int((y < 0).sum())} rows, the first "
            f"is row {int((y < 0).argmax()) + 1}; allowed are rows with a target."
        )
    values = np.unique(column)
    if len(values) > MOST_CLASSES:
        raise ValueError(
            f"{table.thing}: target = {name!r} has {len(values)} different values, allowed are "
            f'{MOST_CLASSES} classes, or task = "regression".'
        )
    return torch.from_numpy(y), tuple(
        value if isinstance(value, str) else f"{value:g}" for value in values.tolist()
    )
