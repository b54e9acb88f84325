"""`confide audit RUN` as a person types it."""

import json
from pathlib import Path

import pytest

from confide.cli import main

RUN = ["run", "a.toml", "--method", "dp-fedavg-c", "--seeds", "0", "--out", "out"]


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(words)
    told = capsys.readouterr()
    return status, told.out, told.err


def test_a_run_is_audited_and_shown(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--set", 'run.taps=["world"]']) == 0
    status, out, _ = answer(["audit", "out", "--seconds", "1", "--json"], capsys)
    told = json.loads(out)
    assert status == 0 and told["verdict"] == "pass"
    assert {"observer", "claimed", "lower_bound", "via", "power", "faults"} <= told.keys()
    assert [one["check"] for one in told["run"]["checks"]] == ["statement", "ledger", "release"]
    assert told["run"]["canaries"] is None
    status, out, _ = answer(["audit", "out", "--seconds", "1"], capsys)
    assert status == 0
    for words in ("statement: pass", "ledger: pass", "PASS after", "not done: "):
        assert words in out


def test_a_statement_that_was_edited_is_refuted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(RUN) == 0
    path = Path("out/public/statement.json")
    stated = json.loads(path.read_text())
    for row in stated["statement"]:
        if row["epsilon"] != "inf":
            row["epsilon"] /= 2
    path.write_text(json.dumps(stated))
    status, out, _ = answer(["audit", "out", "--seconds", "1", "--json"], capsys)
    told = json.loads(out)
    assert status == 1 and told["verdict"] == "fail"
    assert "is not what the run file derives" in told["faults"][0]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["out"], "holds 2 runs, allowed is one of them"),
        (["nowhere/at-all"], "does not exist, allowed are the name of a method"),
        (["empty"], "is not a run directory"),
        (["begun"], "has not ended"),
        (["out/fedavg-s0", "--set", "m=3"], "with a run, which has its own settings"),
        (["out/fedavg-s0", "--seconds", "-1"], "--seconds -1"),
    ],
)
def test_what_is_no_run_gets_one_sentence(
    words: list[str], part: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty").mkdir()
    Path("begun/private").mkdir(parents=True)
    Path("begun/private/run.json").write_text("{}")
    for name in ("out/fedavg-s0", "out/fedavg-s1"):
        Path(name, "public").mkdir(parents=True)
        Path(name, "public", "run.json").write_text("{}")
    status, _, err = answer(["audit", *words], capsys)
    assert status == 2 and part in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ('run.taps=["everybody"]', "[run]: taps = "),
        ("run.taps=3", "[run]: taps = 3, allowed is a list"),
    ],
)
def test_unknown_taps_get_one_sentence(
    given: str, part: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = answer([*RUN, "--set", given], capsys)
    assert status == 2 and part in err and err.count("\n") == 1
    assert not Path("out").exists()
