"""`confide run` where a model diverges: status 3, one sentence, and what was spent stays spent."""

import json
from pathlib import Path
from typing import Any

import pytest

from confide.cli import main
from confide.ledger import Ledger


def ask(capsys: pytest.CaptureFixture[str], *words: str, status: int) -> dict[str, Any]:
    assert main(["run", "a.toml", *words, "--json"]) == status
    return json.loads(capsys.readouterr().out)


EXPLODES = """
from dataclasses import dataclass, replace
from confide.methods.dp_fedavg import DPFedAvgC
from confide.servers import Add

@dataclass(frozen=True)
class Explodes(DPFedAvgC):
    def round(self, past):
        made = super().round(past)
        return replace(made, server=Add(1e300)) if past.t == 2 else made
"""


def charged(place: Path) -> str:
    """What the ledger says that the world has learned."""
    with Ledger.open(place / "private" / "ledger.sqlite") as ledger:
        return repr(ledger.events("client/world/update"))


def test_a_diverged_run_has_a_report_and_no_model(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--set", "fedavg.eta=1e30", "--seeds", "3", "--out", "out")
    answer = ask(capsys, *words, status=3)
    assert [run["method"] for run in answer["runs"]] == ["dp-fedavg-c"]
    text = Path(answer["report"]).read_text()
    assert "The run failed and left no model" in text
    assert not Path("out/fedavg-s3/public/model.safetensors").exists()
    # It would fail again, so it is not tried again; what there is stays.
    before = Path("out/fedavg-s3/private/checkpoint.pt").exists()
    assert main(["run", "--resume", "out"]) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith("confide run: fedavg seed 3 failed: round 0: the model has values")
    assert "a smaller learning rate than eta = 1e+30" in err
    assert Path("out/fedavg-s3/private/checkpoint.pt").exists() == before


def test_what_a_diverging_run_spent_stays_spent(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "mine.py").write_text(EXPLODES)
    settings = ("--seeds", "7", "--set", "q=0.5", "--set", "E=1", "--set", "T=5")
    words = ("--method", "mine.py:Explodes", *settings, "--out", "out")
    assert main(["run", "a.toml", *words]) == 3
    err = capsys.readouterr().err.splitlines()
    (last,) = (line for line in err if "failed" in line)
    assert last is err[-1]
    assert last.startswith("confide run: Explodes seed 7 failed: round 2: the model has")
    assert "a smaller step than Add(eta=1e+300" in last
    assert last.endswith("What was spent stays spent.")
    told = json.loads(Path("out/public/failed.json").read_text())
    stated = json.loads(Path("out/public/statement.json").read_text())
    assert (told["rounds"], stated["rounds"]) == (2, 5)  # what it saw chose where it ended
    spent = charged(Path("out"))
    three = ("--method", "dp-fedavg-c", *settings, "--rounds", "3", "--out", "three")
    ask(capsys, *three, status=0)
    assert spent == charged(Path("three")), "the third was paid for"
    whole = ("--method", "dp-fedavg-c", *settings, "--out", "whole")
    (run,) = ask(capsys, *whole, status=0)["runs"]
    assert stated["statement"] == run["statement"]
    # Asked to go on, it neither trains nor pays again.
    assert main(["run", "--resume", "out"]) == 3
    assert capsys.readouterr().err.splitlines() == [last]
    assert charged(Path("out")) == spent
