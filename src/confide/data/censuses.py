"""Adult and IPUMS: what a person earns, from what the census asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from confide.data.checksums import check_file
from confide.data.dataset import Dataset
from confide.data.places import path_of
from confide.data.settings import flag, positive
from confide.data.splits import split
from confide.data.tables import (
    Table,
    codes,
    from_rows,
    is_text,
    lines_of,
    read_csv,
    read_parquet,
    rows_of,
    table_dataset,
)

ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
)
INCOME_UNKNOWN = 9_999_998  # IPUMS writes this and the next number for people who were not asked


def read_adult_csv(folder: Path, *, test: float | None = None, seed: int = 0) -> Dataset:
    """Adult in one file, whose column `split` says what is for training."""
    path = path_of(folder, "adult.csv")
    table = read_csv("Data adult", path)
    for name in (*ADULT, "split"):
        if name not in table.columns:
            raise ValueError(f"Data adult: {path} has no column {name!r}.")
    return _adult(table, table.columns["split"] == "train", test, seed)


def read_adult(
    folder: Path, *, test: float | None = None, seed: int = 0, verify: bool = True
) -> Dataset:
    """Adult as UCI publishes it: adult.data for training and adult.test."""
    paths = [path_of(folder, name) for name in ("adult.data", "adult.test")]
    if flag("Data adult", "verify", verify):
        for path in paths:
            check_file("adult", path)
    sides = [_official(path) for path in paths]
    columns = {
        name: np.concatenate([side.columns[name] for side in sides]) for name in sides[0].columns
    }
    count = len(sides[0])
    return _adult(Table("Data adult", columns), np.arange(len(columns["age"])) < count, test, seed)


def _official(path: Path) -> Table:
    thing = "Data adult"
    # The test file begins with a remark, and there every income ends with a full stop.
    lines = [line.rstrip().removesuffix(".") for line in lines_of(thing, path)]
    rows = rows_of(thing, path, [line for line in lines if not line.startswith("|")])
    return from_rows(thing, ADULT, rows)


def _adult(table: Table, official: Any, test: float | None, seed: int) -> Dataset:
    """The official split, or another one with a share for tests."""
    train = np.asarray(official, np.bool_)
    if test is not None:
        kept, _ = split(table.thing, len(table), test, seed, codes(table.columns["income"]))
        train = np.isin(np.arange(len(table)), kept)
    natural = {n: codes(table.columns[n]) for n in ADULT[:-1] if is_text(table.columns[n])}
    return table_dataset(table, ADULT[:-1], "income", train, "classification", natural)


def read_ipums(
    folder: Path,
    *,
    income: str = "INCTOT",
    threshold: float = 25_000,
    test: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """A user's extract: is the income above the threshold; codes are used as numbers."""
    paths = [folder / f"ipums{ending}" for ending in (".csv", ".csv.gz", ".parquet")]
    path = next(path for path in paths if path.exists())
    table = (read_parquet if path.suffix == ".parquet" else read_csv)("Data ipums", path)
    if income not in table.columns or is_text(table.columns[income]):
        raise ValueError(
            f"Data ipums: income = {income!r} is not a column of numbers, allowed are "
            f"{', '.join(table.columns)}."
        )
    earned = table.columns[income]
    known = np.isfinite(earned) & (earned < INCOME_UNKNOWN)
    above = earned > positive("Data ipums", "threshold", threshold)
    rows = {name: column[known] for name, column in table.columns.items() if name != income}
    rows["income above"] = above[known].astype(np.float64)
    asked = Table("Data ipums", rows)
    kept, _ = split(asked.thing, len(asked), test, seed, codes(rows["income above"]))
    train = np.isin(np.arange(len(asked)), kept)
    features = [name for name in rows if name != "income above"]
    natural = {name: codes(rows[name]) for name in features if is_text(rows[name])}
    return table_dataset(asked, features, "income above", train, "classification", natural)
