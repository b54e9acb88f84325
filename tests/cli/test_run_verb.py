"""`confide run` as a person and a script call it: answers, directories, refusals, exit statuses."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from confide.cli import main
from confide.engine.directory import Directory

ONE = ("--method", "dp-fedavg-c", "--seeds", "7")
FIELDS = {
    "method", "data", "model", "rounds", "clients", "seed", "accuracy", "loss", "seconds",
    "examples_per_second", "statement", "published", "dir",
}  # fmt: skip
PUBLIC = {
    "model.safetensors",
    "statement.json",
    "metrics.jsonl",
    "report.html",
    "run.toml",
    "run.json",
}


def ask(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> dict[str, Any]:
    assert main(["run", *words, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["run", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    assert err.startswith("confide run: ")
    return err


def test_methods_times_seeds_in_one_answer(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, "a.toml", "--out", "out")
    assert answer.keys() == {"runs", "report", "report_private"}
    runs = answer["runs"]
    assert [(r["method"], r["seed"]) for r in runs] == [
        ("dp-fedavg-c", 0), ("dp-fedavg-c", 1), ("fedavg", 0), ("fedavg", 1),
    ]  # fmt: skip
    assert all(run.keys() == FIELDS for run in runs)
    assert [run["rounds"] for run in runs] == [4, 4, 3, 3]
    cells = {(c["unit"], c["observer"]): c["epsilon"] for c in runs[0]["statement"]}
    assert 0 < cells["client", "world"] < 10 and cells["client", "server"] == "inf"
    assert Path(answer["report"]) == Path("out/public/report.html")
    assert Path(answer["report_private"]) == Path("out/private/report.html")
    # Equal data, and equal draws for equal seeds.
    (first, again) = (ask(capsys, "a.toml", "--out", name)["runs"] for name in ("b", "c"))
    assert [r["accuracy"] for r in first] == [r["accuracy"] for r in runs]
    assert [r["loss"] for r in first] == [r["loss"] for r in again]


def test_what_lies_in_a_run_directory(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(capsys, "a.toml", *ONE, "--out", "out")
    assert {path.name for path in Path("out").iterdir()} == {"public", "private"}
    assert {path.name for path in Path("out/public").iterdir()} == PUBLIC
    private = {path.name for path in Path("out/private").iterdir()}
    assert private >= {"run.toml", "run.json", "summary.json", "checkpoint.pt", "ledger.sqlite"}
    assert "report.html" in private
    assert Path("out/private").stat().st_mode & 0o077 == 0
    assert "seeds = [7]" in Path("out/private/run.toml").read_text()
    assert "seeds" not in Path("out/public/run.toml").read_text()
    for path in Path("out/public").iterdir():
        if path.suffix in (".json", ".jsonl", ".toml"):
            text = path.read_text()
            assert "seed" not in text.replace("public seed", "").replace("whoever knows it", ""), (
                path
            )
            assert str(here) not in text, path
    told = json.loads(Path("out/private/summary.json").read_text())
    assert told["seed"] == 7


def test_a_budget_sets_the_noise(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = ask(capsys, "a.toml", *ONE, "--budget", "2,1e-3", "--out", "out")["runs"]
    cells = {(c["unit"], c["observer"]): c for c in run["statement"]}
    assert 2 * (1 - 2e-3) <= cells["client", "world"]["epsilon"] <= 2
    assert cells["client", "world"]["delta"] == 1e-3
    assert "ε at most 2 at δ" in Path("out/public/report.html").read_text().replace(
        "\N{NO-BREAK SPACE}", " "
    )


def test_a_budget_beside_a_noise_ends_the_run_in_time(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noise = ("--set", "sigma=1.0", "--set", "T=40")
    assert (
        main(["run", "a.toml", *ONE, *noise, "--budget", "6,1e-3", "--out", "out", "--json"]) == 0
    )
    out, err = capsys.readouterr()
    (run,) = json.loads(out)["runs"]
    assert 0 < run["rounds"] < 40
    assert "one more would exceed epsilon 6" in err
    cells = {(c["unit"], c["observer"]): c["epsilon"] for c in run["statement"]}
    assert cells["client", "world"] <= 6
    assert "The run ended early" in Path("out/public/report.html").read_text()


def test_a_finished_run_is_shown_again(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = ask(capsys, "a.toml", "--out", "out")
    assert ask(capsys, "--resume", "out") == first


def test_people_get_one_table(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "a.toml", "--out", "out"]) == 0
    out, err = capsys.readouterr()
    (line,) = [line for line in out.splitlines() if line.strip().startswith("dp-fedavg-c ")]
    assert "±" in line and "∞" in line
    assert "report, may be given away: out/public/report.html" in out
    assert "private/report.html" in out
    assert "1/4 dp-fedavg-c seed 0: round 4/4, accuracy" in err
    assert "{" not in out


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--metod", "x"], ["--metod", "Did you mean --method?"]),
        (["a.toml", "--method", "dp-fedav"], ["'dp-fedav'", "confide methods", "Did you mean dp-fedavg?"]),
        (["nothing.toml"], ["'nothing.toml' does not exist"]),
        (["quikstart"], ["'quikstart'", "Did you mean quickstart?"]),
        (["a.toml", "--rounds", "-3"], ["--rounds", "'-3'", "at least 1"]),
        (["a.toml", "--clients", "0"], ["--clients", "'0'", "at least 1"]),
        (["a.toml", "--seeds", "a"], ["--seeds 'a'", "0,1,2"]),
        (["a.toml", "--seeds", "1,1"], ["seeds", "1 twice"]),
        (["a.toml", "--budget", "abc"], ["epsilon = 'abc'", "a number"]),
        (["a.toml", "--budget", "1,2,3,4,5"], ["EPSILON[,DELTA[,UNIT[,VIEW]]]"]),
        (["a.toml", *ONE, "--budget", "2,0.1,clinet"], ["unit = 'clinet'", "record and client"]),
        (["a.toml", "--budget", "2"], ["Method fedavg", "has none"]),
        (["a.toml", *ONE, "--budget", "0.01,1e-9", "--set", "sigma=1.0"], ["not even one round fits"]),
        (["a.toml", "--set", "sgima=1"], ["sgima", "Did you mean sigma?"]),
        (["a.toml", "--set", "dp-fedavg-c.sgima=1"], ["'sgima'", "Did you mean sigma?"]),
        (["a.toml", "--set", "modle.name=x"], ["'modle'", "Did you mean model?"]),
        (["a.toml", "--set", "sigma"], ["KEY=VALUE"]),
        (["a.toml", "--set", "rounds=3"], ["an option or a line of the run file sets it"]),
        (["a.toml", "--set", "model.name=cnn9"], ["'cnn9'"]),
        (["a.toml", "--set", "data.partition.kind=dirichle"], ["Did you mean dirichlet?"]),
        (["a.toml", "--set", "q=2"], ["q = 2"]),
        (["a.toml", "--data", "mnst"], ["'mnst'", "Did you mean mnist?"]),
        (["a.toml", "--workers", "0"], ["--workers", "'0'"]),
        (["--resume", "nowhere"], ["nowhere", "not the directory of a run"]),
        (["--resume", "nowhere", "--rounds", "3"], ["--rounds with --resume", "--device and --workers"]),
        (["a.toml", "--out", "a.toml"], ["--out", "a.toml cannot be made"]),
        (["a.toml", "--out", "a.toml/x"], ["--out", "a.toml/x cannot be made: Not a directory"]),
    ],
    ids=lambda v: " ".join(v)[-50:] if isinstance(v, list) else str(v),
)  # fmt: skip
def test_bad_calls_get_one_sentence_and_make_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], parts: list[str]
) -> None:
    before = sorted(here.iterdir())
    told = refused(capsys, *words)
    for part in parts:
        assert part in told
    assert [path for path in sorted(here.iterdir()) if path not in before] in ([], [here / "runs"])
    assert not [path for path in here.rglob("*") if path.name in ("public", "private")]


def test_a_gpu_that_is_not_there_is_said_in_one_sentence(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    none = "device = 'cuda', but torch sees no CUDA GPU; allowed here are auto and cpu."
    for words in (("--device", "cuda"), ("--set", "run.device=cuda")):
        assert none in refused(capsys, "a.toml", *ONE, *words, "--out", "out")
        assert not Path("out").exists()
    told = refused(capsys, "a.toml", *ONE, "--device", "gpu")
    assert all(part in told for part in ("--device", "'gpu'", "auto", "cpu", "cuda"))
    ask(capsys, "a.toml", "--out", "out")
    Path("out/fedavg-s1/public/run.json").unlink()
    assert none in refused(capsys, "--resume", "out", "--device", "cuda")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('methods = ["fedavg"]\nronds = 3', ["'ronds'", "Did you mean rounds?"]),
        ('methods = ["fedavg"', ["'b.toml' is not TOML"]),
        ('methods = ["fedavg"]\n[data]\nname = 3', ["[data]: name = 3", "a text"]),
        ('methods = ["fedavg"]\n[data]\nclients = 0', ["clients", "0"]),
        ('methods = ["fedavg"]\n[method.fedavg]\nT = "x"', ["[method.fedavg]: T = 'x'", "whole number"]),
        ('methods = ["fedavg"]\n[method.fedsam]\nT = 3', ["[method.fedsam]", "none of its methods"]),
        ('methods = ["fedavg"]\n[run]\ndtype = "half"', ["dtype = 'half'", "float64"]),
        ('methods = ["fedavg"]\n[run]\nevaluate_every = 0', ["evaluate_every = 0"]),
        ('methods = ["fedavg"]\n[budget]\ndelta = 0.1', ["[budget]: epsilon is missing"]),
        ('methods = ["fedavg"]\nbudget = 3', ["[budget] = 3", "a table"]),
        ("methods = []", ["methods = []", "at least one"]),
        ("methods = [3]", ["methods = [3]"]),
        ('methods = ["fedavg", "fedavg"]', ["fedavg twice"]),
        ('methods = ["fedavg"]\nrounds = 0', ["rounds = 0"]),
        ('methods = ["fedavg"]\nseeds = []', ["seeds = []"]),
        ("seeds = [1]", ["methods is missing"]),
    ],
    ids=lambda v: v.replace("\n", " ")[-40:] if isinstance(v, str) else "",
)  # fmt: skip
def test_bad_run_files_get_one_sentence(
    here: Path, capsys: pytest.CaptureFixture[str], text: str, parts: list[str]
) -> None:
    (here / "b.toml").write_text(text)
    told = refused(capsys, "b.toml")
    for part in parts:
        assert part in told


def test_a_directory_that_holds_a_run_is_not_written_over(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(capsys, "a.toml", *ONE, "--out", "out")
    model = Path("out/public/model.safetensors").read_bytes()
    told = refused(capsys, "a.toml", *ONE, "--out", "out")
    assert "out holds a run already, allowed is a new directory, or --resume out" in told
    assert Path("out/public/model.safetensors").read_bytes() == model


def test_a_disk_that_is_full_is_a_failed_run(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "out/public/metrics.jsonl")

    monkeypatch.setattr(Directory, "write_lines", full)
    assert main(["run", "a.toml", *ONE, "--out", "out"]) == 3
    err = capsys.readouterr().err.splitlines()[-1]
    assert err == "confide run: No space left on device (out/public/metrics.jsonl)."


def test_a_persons_own_method_and_its_mistakes(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from confide import All, Round\n\n"
        "@dataclass(frozen=True)\nclass Mine:\n"
        "    T: int = 2\n"
        "    def round(self, past):\n"
        "        return None if past.t == self.T else Round(cohort=All())\n\n"
        "class Wrong(Mine):\n"
        "    def round(self, past):\n        return 1 / 0\n"
    )
    answer = ask(capsys, "a.toml", "--method", "mine.py:Mine", "--seeds", "0", "--out", "out")
    assert answer["runs"][0]["rounds"] == 2
    assert str(here) not in Path("out/public/run.toml").read_text()
    told = refused(capsys, "a.toml", "--method", "mine.py:Wrong", "--out", "other")
    assert "mine.py line 12: ZeroDivisionError: division by zero" in told


def started(here: Path, *words: str) -> subprocess.Popen[str]:
    call = "import sys; from confide.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", call, "run", *words], cwd=here, text=True, env=os.environ,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_ctrl_c_ends_after_the_round_and_resume_reaches_the_same_bits(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = ("a.toml", *ONE, "--set", "T=400", "--set", "run.evaluate_every=1")
    going = started(here, *long, "--out", "out")
    path = here / "out" / "private" / "checkpoint.pt"
    while not path.exists():
        assert going.poll() is None, going.communicate()
        time.sleep(0.02)
    going.send_signal(signal.SIGINT)
    out, err = going.communicate(timeout=60)
    assert going.returncode == 130
    assert "stopping after this round, so that it is kept" in err
    assert err.splitlines()[-1] == "interrupted; to go on: confide run --resume out"
    assert out == "" and "Traceback" not in err
    assert not (here / "out" / "public" / "run.json").exists()
    ask(capsys, "--resume", "out")
    ask(capsys, *long, "--out", "whole")
    for name in ("model.safetensors", "metrics.jsonl", "statement.json"):
        assert Path("out/public", name).read_bytes() == Path("whole/public", name).read_bytes()
