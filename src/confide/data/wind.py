"""Wind power of seven farms: the next 48 hours from the hours before (GEFCom 2012)."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from confide.data.dataset import Dataset
from confide.data.places import path_of
from confide.data.settings import share, whole
from confide.data.tables import is_text, read_csv, refuse_gaps

FARMS = tuple(f"wp{k}" for k in range(1, 8))
HOUR = timedelta(hours=1)


def read_packed(
    folder: Path, *, past: int = 48, ahead: int = 48, step: int = 24, test: float = 0.2
) -> Dataset:
    """The power measurements under the name that the packed file has."""
    return read_wind(folder, "gefcom2012_wind_power.csv", past, ahead, step, test)


def read_official(
    folder: Path, *, past: int = 48, ahead: int = 48, step: int = 24, test: float = 0.2
) -> Dataset:
    """The competition's own train.csv."""
    return read_wind(folder, "train.csv", past, ahead, step, test)


def read_wind(folder: Path, name: str, past: int, ahead: int, step: int, test: float) -> Dataset:
    """One record is one farm's power over `past` hours, to predict that of `ahead` hours.

    Records begin every `step` hours wherever no hour is missing, and the last ones in time are for
    tests: none of them shares an hour with a training record. With step below past + ahead, an hour
    is in several records of its farm.
    """
    thing = "Data wind"
    past, ahead, step = (
        whole(thing, key, value)
        for key, value in (("past", past), ("ahead", ahead), ("step", step))
    )
    path = path_of(folder, name)
    table = read_csv(thing, path)
    for column in ("date", *FARMS):
        if column not in table.columns or is_text(table.columns[column]):
            raise ValueError(f"{thing}: {path} has no column {column!r} of numbers.")
        refuse_gaps(thing, column, table.columns[column])
    power = np.stack([table.columns[farm] for farm in FARMS])
    hours = _hours(thing, table.columns["date"])
    length = past + ahead
    starts = np.arange(0, len(hours) - length + 1)
    whole_windows = starts[hours[starts + length - 1] - hours[starts] == length - 1]
    on_time = whole_windows[(hours[whole_windows] - hours[0]) % step == 0]
    train, held = _in_time(thing, hours, on_time, length, share(thing, "test", test))
    parts = [_windows(power, starts, past, length) for starts in (train, held)]
    return Dataset(
        name="wind",
        x_train=parts[0][0],
        y_train=parts[0][1],
        x_test=parts[1][0],
        y_test=parts[1][1],
        classes=None,
        columns={"farm": np.tile(np.arange(len(FARMS)), len(train))},
        preparation=f"power as a share of the farm's capacity; {past} hours to predict the next "
        f"{ahead}, a record every {step} hours",
    )


def _hours(thing: str, dates: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole hours since the first date; dates are written as 2009070100."""
    try:
        times = [datetime.strptime(str(int(date)), "%Y%m%d%H") for date in dates]
    except ValueError as why:
        raise ValueError(f"{thing}: date {why}, allowed is YYYYMMDDHH.") from why
    hours = np.array([(time - times[0]) // HOUR for time in times], np.int64)
    if np.any(np.diff(hours) <= 0):
        raise ValueError(f"{thing}: the dates do not rise, allowed are hours in their order.")
    return hours


def _in_time(
    thing: str, hours: NDArray[np.int64], starts: NDArray[np.int64], length: int, test: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Earlier windows for training, later ones for tests, and none that lie across."""
    count = len(starts) - round(test * len(starts))
    held = starts[count:]
    train = starts[:count]
    if len(held):
        train = train[hours[train] + length <= hours[held[0]]]
    if not len(train) or not len(held):
        raise ValueError(
            f"{thing}: past, ahead and step leave {len(train)} windows for training and "
            f"{len(held)} for tests, allowed is at least 1 of both."
        )
    return train, held


def _windows(
    power: NDArray[np.float64], starts: NDArray[np.int64], past: int, length: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs (n, 1, 1, past) and targets (n, ahead), the farms of one time side by side."""
    cut = power[:, starts[:, None] + np.arange(length)].transpose(1, 0, 2).reshape(-1, length)
    series = torch.from_numpy(cut.astype(np.float32))
    return series[:, None, None, :past].contiguous(), series[:, past:].contiguous()
