"""The command as a person and a script meet it: answers, refusals, exit statuses."""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from confide.cli import VERBS, main

ROOT = Path(__file__).parents[2]
EXAMPLE = f"{ROOT / 'examples' / 'dp_fedavg.py'}:DPFedAvg"
ACCOUNT = ["account", "--noise", "gaussian", "--multiplier", "4", "--rate", "0.01"]


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def test_account_answers_with_every_default(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, *ACCOUNT, "--steps", "10000", "--delta", "1e-5")
    assert answer["epsilon"] == pytest.approx(0.946867, rel=1e-3)
    expected = {
        "delta": 1e-5,
        "accountant": "pld",
        "relation": "add-remove",
        "sampling": "poisson",
        "norm": "l2",
        "dim": None,
        "gamma": None,
        "multiplier": 4.0,
        "steps": 10000,
    }
    assert expected.items() <= answer.items()
    assert isinstance(answer["assumptions"], list)


def test_account_answers_the_other_way_round(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, *ACCOUNT, "--steps", "10000", "--epsilon", "0.946867")
    assert answer["delta"] == pytest.approx(1e-5, rel=0.02)


@pytest.mark.parametrize(
    ("noise", "more"),
    [
        ("gaussian", []),
        ("laplace", []),
        ("laplace", ["--norm", "l2", "--dim", "100"]),
        ("laplace", ["--norm", "both", "--dim", "100"]),
        ("staircase", []),
        ("staircase", ["--dim", "10"]),
        ("skellam", ["--dim", "16", "--grid", "256"]),
    ],
)
def test_calibrate_meets_its_target_and_account_agrees(
    capsys: pytest.CaptureFixture[str], noise: str, more: list[str]
) -> None:
    words = ["--noise", noise, *more, "--steps", "20"]
    found = ask(capsys, "calibrate", *words, "--epsilon", "3", "--delta", "1e-5")
    assert 3 * (1 - 1e-3) <= float(str(found["epsilon"])) <= 3
    again = ask(
        capsys, "account", *words, "--multiplier", repr(found["multiplier"]), "--delta", "1e-5"
    )
    assert again["epsilon"] == pytest.approx(found["epsilon"], rel=1e-9)
    assert again.keys() == found.keys()


def test_fixed_sampling_goes_with_replacement(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["account", "--noise", "gaussian", "--multiplier", "0.475", "--rate", "50/500"]
    answer = ask(capsys, *words, "--sampling", "fixed", "--steps", "300", "--delta", "0.002")
    assert answer["relation"] == "replace-one"
    assert answer["epsilon"] == pytest.approx(300.82, rel=1e-3)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["acount"], ["acount", "Did you mean account?"]),
        (["account", "--noise", "gausian", "--multiplier", "1", "--delta", "1e-5"], ["gausian", "gaussian"]),
        (["account", "--noise", "gaussian", "--multiplier", "-1", "--delta", "1e-5"], ["--multiplier", "'-1'", "above 0"]),
        (["account", "--noise", "gaussian", "--multiplier", "nan", "--delta", "1e-5"], ["--multiplier", "'nan'"]),
        (["account", "--noise", "gaussian", "--multiplier", "1", "--delta", "2"], ["delta", "2.0", "1"]),
        (["account", "--noise", "gaussian", "--multiplier", "1"], ["--delta --epsilon"]),
        ([*ACCOUNT, "--delta", "1e-5", "--relation", "replace-one"], ["replace-one", "poisson"]),
        ([*ACCOUNT, "--delta", "1e-5", "--sampling", "fixed"], ["0.01", "m/n"]),
        ([*ACCOUNT[:-1], "5/500", "--delta", "1e-5", "--sampling", "fixed", "--relation", "add-remove"], ["add-remove", "fixed"]),
        ([*ACCOUNT, "--delta", "1e-5", "--sampling", "shuffled"], ["shuffled", "poisson"]),
        ([*ACCOUNT, "--delta", "1e-5", "--steps", "0"], ["--steps", "'0'"]),
        ([*ACCOUNT, "--delta", "1e-5", "--rat", "1"], ["--rat"]),
        (["account", "--noise", "skellam", "--multiplier", "1", "--delta", "1e-5"], ["skellam", "grid"]),
        (["account", "--noise", "gaussian", "--norm", "l1", "--multiplier", "1", "--delta", "1e-5"], ["l1", "l2"]),
        (["calibrate", "--noise", "gaussian", "--epsilon", "0", "--delta", "1e-5"], ["--epsilon", "'0'"]),
        (["plan", "nothing.py:X"], ["nothing.py"]),
        (["plan", "dp-fedav"], ["'dp-fedav'", "FILE.py:NAME", "Did you mean dp-fedavg?"]),
        (["plan", EXAMPLE.replace("DPFedAvg", "DPFedAv")], ["DPFedAv", "Did you mean DPFedAvg?"]),
        (["plan", EXAMPLE, "--set", "sgima=1"], ["sgima", "Did you mean sigma?"]),
        (["plan", EXAMPLE, "--set", "sigma"], ["KEY=VALUE"]),
        (["plan", EXAMPLE, "--set", "sigma=-1"], ["Gaussian", "std", "at least 0"]),
        (["plan", EXAMPLE, "--clients", "0"], ["clients", "0"]),
        (["plan", EXAMPLE, "--layers", "a,b"], ["--layers"]),
        (["plan", EXAMPLE, "--rounds", "0"], ["--rounds 0"]),
        (["plan", EXAMPLE, "--delta", "0"], ["delta = 0.0", "between 0 and 1"]),
    ],
    ids=lambda v: " ".join(v)[-60:] if isinstance(v, list) else str(v),
)  # fmt: skip
def test_bad_calls_get_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], parts: list[str]
) -> None:
    told = refused(capsys, *words)
    for part in parts:
        assert part in told


def test_plan_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, "plan", EXAMPLE, "--set", "sigma=1.2", "--delta", "1e-5")
    assert answer.keys() == {"method", "settings", "round", "statement", "published"}
    rows = answer["round"]
    assert isinstance(rows, list)
    assert all(row.keys() == {"place", "vector", "stage", "claim"} for row in rows)
    assert [row["place"] for row in rows] == ["upload", "channel", "aggregate", "publish"]
    statement = answer["statement"]
    assert isinstance(statement, list)
    cells = {(c["unit"], c["observer"]): c for c in statement}
    assert cells["client", "server"]["epsilon"] == "inf"
    world = cells["client", "world"]
    q, z, T = 0.1, 1.2, 60
    check = ask(capsys, "account", "--noise", "gaussian", "--multiplier", str(z), "--rate", str(q),
                "--steps", str(T), "--delta", "1e-5")  # fmt: skip
    assert world["epsilon"] == pytest.approx(check["epsilon"], rel=1e-3)
    assert math.isfinite(world["epsilon"])


METHODS = {
    "broken": "raise RuntimeError('no')",
    "adaptive": """
from confide.cohorts import All
from confide.engine import Round
class M:
    clients, records, layers = 10, 10, (3,)
    def round(self, past):
        return past.values("loss")[-1]
""",
    "empty": """
class M:
    clients, records, layers = 10, 10, (3,)
    def round(self, past):
        return None
""",
    "other": "M = 3",
    "sizeless": """
from confide.cohorts import All
from confide.engine import Round
M = Round(cohort=All())
""",
}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("broken", ["does not load", "RuntimeError: no"]),
        ("adaptive", ["cannot be planned without data"]),
        ("empty", ["has no rounds"]),
        ("other", ["neither a Round nor a Method"]),
        ("sizeless", ["layers is not known"]),
    ],
)
def test_methods_that_cannot_be_planned_are_told_why(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, parts: list[str]
) -> None:
    (tmp_path / "m.py").write_text(METHODS[name])
    told = refused(capsys, "plan", f"{tmp_path / 'm.py'}:M")
    for part in parts:
        assert part in told


def test_a_method_without_an_end_is_told_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("confide.cli.plan.MOST_ROUNDS", 50)
    body = METHODS["empty"].replace("None", "Round(cohort=All())")
    (tmp_path / "m.py").write_text(
        "from confide.cohorts import All\nfrom confide.engine import Round\n" + body
    )
    told = refused(capsys, "plan", f"{tmp_path / 'm.py'}:M")
    assert "does not end within 50 rounds; give --rounds" in told


def test_a_round_alone_can_be_planned(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(METHODS["sizeless"])
    sizes = ["--clients", "10", "--records", "5", "--layers", "4,4", "--rounds", "3"]
    answer = ask(capsys, "plan", f"{tmp_path / 'm.py'}:M", *sizes)
    assert all(c["epsilon"] == "inf" for c in answer["statement"])  # pyright: ignore


COLUMNS = """
from dataclasses import dataclass
from confide import All, Clip, Gaussian, Round
from confide.stages import PerClient
@dataclass(frozen=True)
class M:
    clients = 6
    records = 5
    layers = (4,)
    adapts = {adapts}
    def round(self, past):
        if past.t == 3:
            return None
        return Round(All(), upload=(Clip(1.0), Gaussian(PerClient((4.0, 8.0) * 3))))
"""


@pytest.mark.parametrize("adapts", [False, True])
def test_a_plan_has_a_row_for_every_group_and_a_filters_cap(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, adapts: bool
) -> None:
    (tmp_path / "m.py").write_text(COLUMNS.format(adapts=adapts))
    answer = ask(capsys, "plan", f"{tmp_path / 'm.py'}:M")
    rows: list[dict[str, object]] = answer["statement"]  # pyright: ignore
    found = [r for r in rows if (r["unit"], r["observer"]) == ("client", "server")]
    assert [r["group"] for r in found] == ["3 clients like client 0", "3 clients like client 1"]
    assert {r["accountant"] for r in found} == {"GDP filter" if adapts else "gdp"}


@pytest.mark.parametrize("words", [["account", *ACCOUNT[1:], "--delta", "1e-5"], ["plan", EXAMPLE]])
def test_people_get_a_table(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(words) == 0
    out, _ = capsys.readouterr()
    assert "epsilon" in out
    assert "{" not in out


def command(*words: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """A fresh process, timed; the quicker of two, as other work may share the machine."""
    runs: list[tuple[subprocess.CompletedProcess[str], float]] = []
    call = "import sys; from confide.cli import main; sys.exit(main(sys.argv[1:]))"
    for _ in range(2):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", call, *words], capture_output=True, text=True, env=os.environ
        )
        runs.append((done, time.perf_counter() - began))
    return min(runs, key=lambda run: run[1])


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_help_shows_an_example(verb: str) -> None:
    done, _ = command(verb, "--help")
    assert done.returncode == 0
    assert f"confide {verb}" in done.stdout
    assert "example:" in done.stdout


def test_the_first_page() -> None:
    done, _ = command("--help")
    assert done.returncode == 0
    assert all(verb in done.stdout for verb in VERBS)
    version, _ = command("--version")
    assert version.stdout.startswith("confide ")


def test_accounting_needs_no_torch() -> None:
    code = (
        "import sys; import confide.accounting, confide.accounting.account, confide.claims, "
        "confide.ledger, confide.accounting.filters, confide.accounting.calibration; "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


RUN_FILE = """
methods = ["dp-fedavg-c", "fed-cdp-c"]
[data]
name = "mnist"
clients = 300
[model]
name = "mlp"
[budget]
epsilon = 2.0
delta = 1e-4
[method.dp-fedavg-c]
T = 20
"""


def test_a_method_of_a_run_file_is_planned_within_its_budget(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "study.toml"
    file.write_text(RUN_FILE)
    answer = ask(capsys, "plan", str(file), "--only", "dp-fedavg-c")
    assert (answer["method"], answer["settings"]["T"]) == ("dp-fedavg-c", 20)
    [world] = [
        row for row in answer["statement"] if (row["unit"], row["observer"]) == ("client", "world")
    ]
    assert 1.998 <= world["epsilon"] <= 2.0 and world["delta"] == 1e-4
    told = refused(capsys, "plan", str(file))
    assert "2 methods" in told and "dp-fedavg-c, fed-cdp-c" in told
    assert "Did you mean dp-fedavg-c?" in refused(capsys, "plan", str(file), "--only", "dp-fedav-c")
    assert "does not exist" in refused(capsys, "plan", str(tmp_path / "nothing.toml"))


def test_a_plan_for_another_model(capsys: pytest.CaptureFixture[str]) -> None:
    small = ask(capsys, "plan", "dp-fedavg-c", "--model", "mlp")
    large = ask(capsys, "plan", "dp-fedavg-c", "--model", "cnn2")
    assert small["statement"] == large["statement"], "what Gaussian noise proves has no dimension"
    assert small["round"] != large["round"]
    assert "allowed are" in refused(capsys, "plan", "dp-fedavg-c", "--model", "mpl")


def test_the_example_is_trained_and_audited(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["--clients", "60", "--rounds", "2", "--out", str(tmp_path / "run")]
    assert main(["run", "--method", EXAMPLE, *words, "--json"]) == 0
    [run] = json.loads(capsys.readouterr().out)["runs"]
    assert run["rounds"] == 2 and run["accuracy"] > 0
    rows = {(row["unit"], row["observer"]): row["epsilon"] for row in run["statement"]}
    assert 0 < rows["client", "world"] < 1 and rows["client", "server"] == "inf"
    answer = ask(capsys, "audit", EXAMPLE, "--seconds", "2")
    assert answer["verdict"] == "pass"
