import json

import pytest

from confide import cli


@pytest.fixture(autouse=True)
def verbs(monkeypatch, tmp_path):
    monkeypatch.setitem(cli.VERBS, "datasets", "data sets")
    monkeypatch.setitem(cli.VERBS, "models", "models")
    monkeypatch.delenv("CONFIDE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def answer(capsys, *words):
    assert cli.main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_datasets_tell_what_is_here_and_how_to_get_the_others(capsys, tmp_path):
    rows = {row["name"]: row for row in answer(capsys, "datasets")["datasets"]}
    assert len(rows) == 14
    assert rows["mnist"]["here"] and rows["mnist"]["get"] is None
    assert not rows["wind"]["here"] and "train.csv" in rows["wind"]["get"]
    (tmp_path / "confide" / "gefcom2012").mkdir(parents=True)
    (tmp_path / "confide" / "gefcom2012" / "train.csv").write_text("")
    found = answer(capsys, "datasets", "wind")
    assert found["datasets"][0]["where"] == str(tmp_path / "confide" / "gefcom2012")
    assert found["looked_in"] == [str(tmp_path / "confide")]
    assert len(found["datasets"]) == 1


def test_a_part_says_so(capsys, tmp_path):
    (tmp_path / "confide").mkdir()
    (tmp_path / "confide" / "cifar10_part1.npz").write_bytes(b"")
    assert "18,000" in answer(capsys, "datasets", "cifar10")["datasets"][0]["part"]
    assert cli.main(["datasets"]) == 0
    shown = capsys.readouterr().out
    assert "18,000" in shown and "CC BY-SA 3.0" in shown and "Files are looked for in" in shown


def test_an_unknown_name(capsys):
    assert cli.main(["datasets", "cifar"]) == 2
    assert "Did you mean cifar1" in capsys.readouterr().err


def test_models(capsys):
    rows = {row["name"]: row for row in answer(capsys, "models")["models"]}
    assert rows["mlp256"]["parameters"] == 203_530
    assert rows["svm"]["loss"] == "hinge" and rows["wind-cnn"]["loss"] == "squared"
    assert cli.main(["models"]) == 0
    assert "11,173,962" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["datasets", "models"])
def test_the_example_works(capsys, verb):
    from importlib import import_module

    words = import_module(f"confide.cli.{verb}").example().split()
    assert words[0] == "confide"
    assert cli.main(words[1:]) == 0
