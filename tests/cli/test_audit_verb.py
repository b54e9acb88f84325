"""`confide audit` at the command line: a run with canaries, a page, and what is refused."""

import json
from pathlib import Path

import pytest

from confide.audit import trained as training
from confide.cli import main
from confide.data.dataset import Dataset
from small import digits

Answer = pytest.CaptureFixture[str]
FAST = ("--seconds", "1", "--set", "E=1", "--set", "q=0.5")


def few() -> Dataset:
    """Digits enough for a test."""
    return digits(240)


def test_training_and_the_page(here: Path, capsys: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "digits", few)
    monkeypatch.setattr(training, "CLIENTS", 8)
    monkeypatch.setattr(training, "PUBLIC", 0)
    given = ["audit", "dp-fedavg-c", *FAST, "--train", "300", "--report", "audit.html", "--json"]
    assert main(given) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["canaries"]["canaries"] == 300 and told["canaries"]["unit"] == "client"
    (row,) = told["canaries"]["rows"]
    assert row["observer"] == "world" and row["verdict"] == "pass"
    assert row["lower_bound"] <= row["claimed"]
    assert told["report"] == "audit.html"
    assert "Canaries told apart" in (here / "audit.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("dp-fedavg-c", "--train", "10"), "audit: canaries = 10, allowed is"),
        (("dp-fedsamm",), "audit: Method: 'dp-fedsamm' is unknown, allowed are"),
        (("dp-fedavg-c", "--set", "sigma"), "audit: --set 'sigma' is not understood"),
        (("fedavg", "--train"), "canaries can test no row of the statement"),
        (("dp-fedavg-c", "--report", "."), "is a directory, allowed is a file"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    given: tuple[str, ...], why: str, here: Path, capsys: Answer
) -> None:
    assert main(["audit", "--seconds", "0.2", *given]) == 2
    said = capsys.readouterr().err.strip()
    assert why in said and "Traceback" not in said and "\n" not in said


def test_a_run_file_can_ask_for_canaries(here: Path, capsys: Answer) -> None:
    asked = ("--set", "audit.canaries=50", "--out", "run", "--json")
    assert main(["run", "a.toml", "--method", "dp-fedavg-c", "--seeds", "0", *asked]) == 0
    capsys.readouterr()
    assert "[audit]\ncanaries = 50" in (here / "run/public/run.toml").read_text()
    assert json.loads((here / "run/private/canaries.json").read_text())["canaries"] == 50
    for wrong, why in (
        ("audit.canaries=x", "allowed is a whole number"),
        ("audit.canaries=50.5", "allowed is a whole number"),
        ("audit.many=50", "allowed are canaries, unit, view"),
        ("audit.unit=client", "canaries is missing"),
    ):
        assert main(["run", "a.toml", "--set", wrong, "--out", "other"]) == 2
        assert why in capsys.readouterr().err
        assert not (here / "other").exists()
