"""The experiment in which a paper introduces its method: the defaults of `confide plan`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """How many clients with how many records, on which data, with which model."""

    clients: int
    data: str
    model: str
    records: int = 600
