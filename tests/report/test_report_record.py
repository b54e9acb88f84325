"""Reading a run: what the files say, and one sentence for what they may not say."""

import json
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import pytest

from confide.report import NotARun, read_run
from confide.report.record import find_runs

Builder = Callable[..., Path]


def test_everything_arrives(build: Builder) -> None:
    run = read_run(build())
    assert (run.method, run.clients, run.rounds, run.planned) == ("dp-fedavg-c", 1000, 60, 60)
    assert run.points[-1].round == 60
    assert run.points[-1].accuracy == run.accuracy
    assert run.points[-1].spent["client/server"] == inf
    assert run.points[-1].spent["client/world"] == pytest.approx(1.1736, rel=1e-3)
    assert {c.epsilon for c in run.cells if c.status == "infinite"} == {inf}
    assert run.budget is not None
    assert (run.budget.epsilon, run.budget.unit, run.budget.view) == (2.0, "client", "world")
    assert run.labels is not None
    assert len(run.labels) == 60


def test_an_unfinished_last_line_is_left_out(build: Builder) -> None:
    run = build()
    path = run / "public" / "metrics.jsonl"
    path.write_text(path.read_text() + '{"round": 61, "accu')
    assert read_run(run).points[-1].round == 60


def test_a_round_that_was_run_again_counts_once(build: Builder) -> None:
    run = build()
    path = run / "public" / "metrics.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, *lines[-3:]]) + "\n")
    rounds = [p.round for p in read_run(run).points]
    assert rounds == sorted(set(rounds))


def refused(place: Path) -> str:
    with pytest.raises(NotARun) as why:
        read_run(place)
    sentence = str(why.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


def test_a_foreign_directory(tmp_path: Path) -> None:
    assert "public/run.json is missing" in refused(tmp_path)
    assert "there is no such directory" in refused(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["run.json", "statement.json", "metrics.jsonl", "run.toml"])
def test_a_file_of_bytes(build: Builder, name: str) -> None:
    run = build()
    (run / "public" / name).write_bytes(b"\xff\xfe\x00")
    assert name in refused(run)


@pytest.mark.parametrize("name", ["statement.json", "metrics.jsonl", "run.toml"])
def test_a_missing_file(build: Builder, name: str) -> None:
    run = build()
    (run / "public" / name).unlink()
    assert f"{name} cannot be read: FileNotFoundError" in refused(run)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("method", 3),
        ("clients", "many"),
        ("clients", True),
        ("rounds", -1),
        ("seconds", None),
        ("seconds", float("nan")),
        ("metric", "f1"),
        ("versions", []),
        ("labels", 4),
        ("labels", [[1, 2], [3]]),
        ("labels", []),
        ("class_names", "abc"),
        ("accuracy", "good"),
        ("stopped", 3),
        ("participations_most", 1.5),
    ],
)
def test_a_field_that_no_run_writes(build: Builder, field: str, value: Any) -> None:
    sentence = refused(build(**{field: value}))
    assert f"run.json: {field} = " in sentence
    assert "allowed is" in sentence


def test_a_missing_field(build: Builder) -> None:
    run = build()
    path = run / "public" / "run.json"
    data = json.loads(path.read_text())
    del data["licence"]
    path.write_text(json.dumps(data))
    assert "has no field 'licence'" in refused(run)


@pytest.mark.parametrize(
    ("field", "value"),
    [("epsilon", "small"), ("observer", "moon"), ("participations", None), ("assumptions", "a")],
)
def test_a_row_that_no_statement_has(build: Builder, field: str, value: Any) -> None:
    run = build()
    path = run / "public" / "statement.json"
    data = json.loads(path.read_text())
    data["statement"][0][field] = value
    path.write_text(json.dumps(data))
    assert f"statement.json: {field} = " in refused(run)


def test_a_budget_that_is_none(build: Builder) -> None:
    run = build()
    for text in ("rounds = 3", "[budget]\nunit = 'client'", "budget = 3", "= ="):
        (run / "public" / "run.toml").write_text(text)
        assert read_run(run).budget is None


def test_runs_are_found_by_name_and_once(build: Builder, tmp_path: Path) -> None:
    b, a = build("fedavg", name="b"), build("fedavg", name="a")
    (tmp_path / "runs" / "notes").mkdir()
    assert find_runs([tmp_path / "runs"]) == [a, b]
    assert find_runs([b, tmp_path / "runs"]) == [b, a]
    assert find_runs([tmp_path / "runs" / "notes"]) == [tmp_path / "runs" / "notes"]
