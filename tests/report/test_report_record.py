"""Reading a run: what the files say, and one sentence for what they may not say."""

import json
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import pytest

from confide.report import NotARun, read_run
from confide.report.finding import find_runs
from made_runs import BUDGET

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
    assert run.private is None
    assert run.failed is None


def test_what_only_the_owner_may_see(build: Builder) -> None:
    found = read_run(build(), private=True).private
    assert found is not None
    assert (found.seconds, found.participations_most) == (6.84, 16)
    assert found.labels is not None and len(found.labels) == 60
    assert found.class_names == tuple("0123456789")
    assert not hasattr(found, "seed")


def test_the_owners_copy_needs_the_private_directory(build: Builder) -> None:
    run = build()
    (run / "private" / "summary.json").unlink()
    assert read_run(run).rounds == 60
    assert "summary.json is missing" in refused(run, private=True)


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


def refused(place: Path, private: bool = False) -> str:
    with pytest.raises(NotARun) as why:
        read_run(place, private=private)
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


def test_a_run_from_python_has_no_run_file(build: Builder) -> None:
    run = build()
    (run / "public" / "run.toml").unlink()
    assert read_run(run).config == ""


@pytest.mark.parametrize("name", ["statement.json", "metrics.jsonl"])
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
        ("metric", "f1"),
        ("versions", []),
        ("planned", None),
        ("stopped", 3),
        ("budget", 2),
    ],
)
def test_a_field_that_no_run_writes(build: Builder, field: str, value: Any) -> None:
    sentence = refused(build(**{field: value}))
    assert f"run.json: {field} = " in sentence
    assert "allowed is" in sentence


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seconds", None),
        ("seconds", float("nan")),
        ("labels", 4),
        ("labels", [[1, 2], [3]]),
        ("labels", []),
        ("class_names", "abc"),
        ("participations_most", 1.5),
    ],
)
def test_a_private_field_that_no_run_writes(build: Builder, field: str, value: Any) -> None:
    sentence = refused(build(**{field: value}), private=True)
    assert f"summary.json: {field} = " in sentence
    assert "allowed is" in sentence


@pytest.mark.parametrize(
    ("field", "value"), [("accuracy", "good"), ("loss", []), ("round", 1.5), ("spent", 3)]
)
def test_a_metric_that_no_run_writes(build: Builder, field: str, value: Any) -> None:
    run = build()
    path = run / "public" / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[2][field] = value
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert f"metrics.jsonl: {field} = " in refused(run)


@pytest.mark.parametrize(
    ("field", "value"), [("epsilon", "2"), ("epsilon", None), ("delta", "small"), ("unit", 1)]
)
def test_a_budget_that_no_run_writes(build: Builder, field: str, value: Any) -> None:
    assert f"run.json: {field} = " in refused(build(budget={**BUDGET, field: value}))


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


def test_the_budget_is_the_runs_and_not_its_files(build: Builder) -> None:
    run = build("fedavg")
    (run / "public" / "run.toml").write_text("[budget]\nepsilon = 1\n")
    assert read_run(run).budget is None


def test_a_failed_run_is_read_but_has_no_score(build: Builder) -> None:
    run = build(failed="round 7: the loss is nan", rounds=7)
    assert not (run / "public" / "run.json").exists()
    found = read_run(run)
    assert (found.failed, found.rounds, found.covered) == ("round 7: the loss is nan", 7, 60)
    assert found.accuracy is None and found.loss is None
    assert found.cells


def test_runs_are_found_by_name_and_once(build: Builder, tmp_path: Path) -> None:
    b, a = build("fedavg", name="b"), build("fedavg", name="a")
    (tmp_path / "runs" / "notes").mkdir()
    assert find_runs([tmp_path / "runs"]) == [a, b]
    assert find_runs([b, tmp_path / "runs"]) == [b, a]
    assert find_runs([tmp_path / "runs" / "notes"]) == [tmp_path / "runs" / "notes"]
