"""What a run publishes beside its model: the same files, whatever the clients hold."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from confide.audit.rehearsal import federation, network
from confide.data.dataset import Federation
from confide.engine import records
from confide.engine.rounds import Sizes
from confide.engine.running import run
from confide.methods.making import make

CLIENTS = 6
OF_THE_MODEL = {"accuracy", "loss"}
"""Figures of the released model on held-out records, which no client holds."""


def world(other: bool) -> Federation:
    """Clients with other records and other numbers of them; the least and the largest stay."""
    sizes = Sizes(CLIENTS, 16, (588,), 18)
    made = federation(sizes, False)
    if not other:
        return made
    first, second, third, *rest = made.clients
    data = replace(made.data, x_train=made.data.x_train.flip(0))
    return replace(made, data=data, clients=(third, first, second, *rest))


def published(place: Path, other: bool) -> dict[str, Any]:
    """Every value in the public files of three rounds, by where it stands."""
    method: Any = make("dp-fedavg-c", {"q": 0.5, "T": 3})
    run(method, world(other), model=network(), out=place, workers=1, device="cpu")
    found: dict[str, Any] = {}
    for file in sorted((place / "public").iterdir()):
        if file.suffix in (".json", ".jsonl"):
            for number, line in enumerate(whole(file)):
                found |= leaves(line, f"{file.name} {number}")
        else:
            found[file.name] = "model" if file.suffix == ".safetensors" else file.read_text()
    return found


def whole(file: Path) -> list[Any]:
    """The values of a file."""
    text = file.read_text()
    return (
        [json.loads(text)]
        if file.suffix == ".json"
        else list(map(json.loads, text.split("\n")[:-1]))
    )


def leaves(value: Any, place: str) -> dict[str, Any]:
    """Each number and word by its path."""
    if isinstance(value, dict):
        parts = [leaves(inner, f"{place}/{name}") for name, inner in value.items()]
    elif isinstance(value, list):
        parts = [leaves(inner, f"{place}/{number}") for number, inner in enumerate(value)]
    else:
        return {place: value}
    return {path: inner for part in parts for path, inner in part.items()}


def differing(tmp_path: Path) -> set[str]:
    """The names of the values that follow the records."""
    one, two = published(tmp_path / "one", False), published(tmp_path / "two", True)
    assert one.keys() == two.keys() and len(one) > 40
    return {path.rpartition("/")[2] for path in one if one[path] != two[path]}


def test_only_the_models_own_figures_follow_the_records(tmp_path: Path) -> None:
    assert differing(tmp_path) <= OF_THE_MODEL


def test_a_number_that_tells_on_clients_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = records.public
    monkeypatch.setattr(records, "public", lambda one: {**public(one), "seen": one.examples})
    assert "seen" in differing(tmp_path)
