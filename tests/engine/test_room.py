"""How many clients move at once on a GPU that processes share."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from confide.cohorts import All
from confide.engine.room import COPIES, SHARE, Room


@pytest.mark.parametrize(("part", "rows"), [(1.0, 70), (0.5, 35)])
def test_a_part_of_the_memory_holds_a_part_of_the_clients(
    part: float, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 70 clients with 8 records each, that fit all at once where the device is all ours."""
    size, example = 100, 1000
    client = COPIES * size + 8 * example
    told = {
        "get_device_properties": SimpleNamespace(total_memory=71 * client / SHARE),
        "get_per_process_memory_fraction": part,
        "memory_allocated": 0,
        "reset_peak_memory_stats": None,
        "max_memory_allocated": 8 * example,
    }
    for name, value in told.items():
        monkeypatch.setattr(torch.cuda, name, lambda _, value=value: value)
    data: Any = SimpleNamespace(x_train=SimpleNamespace(nbytes=0))
    federation: Any = SimpleNamespace(clients=[range(8)] * 70, data=data)
    vector: Any = SimpleNamespace(nbytes=size, device=torch.device("cuda"))
    room = Room(federation, vector, None, lambda local, columns: None)
    one: Any = SimpleNamespace(cohort=All(), local=SimpleNamespace(sampler=None, example=("clip",)))
    assert room.rows(one) == rows
