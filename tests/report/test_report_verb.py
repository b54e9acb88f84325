"""`confide report` as a person and a script call it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from confide import cli

Builder = Callable[..., Path]


@pytest.fixture(autouse=True)
def known_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.VERBS, "report", "one self-contained HTML file about runs")


def test_beside_the_run(build: Builder, capsys: pytest.CaptureFixture[str]) -> None:
    run = build()
    assert cli.main(["report", str(run), "--json"]) == 0
    out, err = capsys.readouterr()
    path = run / "public" / "report.html"
    assert json.loads(out) == {"report": str(path), "runs": [str(run)]}
    assert err == ""
    assert path.read_text().startswith("<!doctype html>")


def test_several_runs_here(
    build: Builder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = [str(build(m)) for m in ("fedavg", "dp-fedavg-c")]
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", *runs]) == 0
    assert "report of 2 runs: report.html" in capsys.readouterr().out
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize("words", [["nowhere"], ["."], ["nowhere", "--out", "x.html"]])
def test_what_is_no_run(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "is not a run directory" in err
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written(
    build: Builder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(build())
    (tmp_path / "file").write_text("")
    for out in (tmp_path, tmp_path / "file" / "report.html"):
        assert cli.main(["report", run, "--out", str(out)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
