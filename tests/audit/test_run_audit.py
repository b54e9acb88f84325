"""The audit of a finished run: its books agree, its attacks stay within its statement."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import confide as cf
from confide.audit import attacked
from confide.audit.checks import Check, checks
from confide.audit.finished import Finished, of_directory, of_run
from confide.audit.membership import Candidates, Evidence, LossThreshold
from confide.audit.of_run import RunAudit, audit_run
from confide.cli import main
from confide.cohorts import Fixed
from confide.engine import safetensors, taps
from confide.engine.rounds import Local
from confide.local import SGD
from confide.randomness import Key
from confide.report.fields import NotARun
from small import Anything, Private, federation, mlp, plain

KEY = Key.from_seed(0)

RIGHT = """
methods = ["dp-fedavg-c"]
[data]
name = "tiny.npz"
clients = 20
validation = 0.5
[model]
name = "tabular"
[run]
workers = 1
taps = ["server", "world"]
[method.dp-fedavg-c]
T = 4
q = 0.5
E = 1
sigma = 1.0
"""

LYING = """
from dataclasses import dataclass
from confide.channels import Each
from confide.cohorts import All, Epoch
from confide.engine.rounds import Local, Round
from confide.local import SGD
from confide.stages import Clip, Gaussian


@dataclass(frozen=True)
class Silent(Gaussian):
    def __call__(self, x, shared, own):
        return x


@dataclass(frozen=True)
class Mine:
    T: int = 12

    def round(self, past):
        if past.t == self.T:
            return None
        local = Local(SGD(0.05), 12, Epoch(5))
        return Round(cohort=All(), local=local, upload=(Clip(100.0), Silent(20_000.0)))
"""


def data(where: Path) -> None:
    """Labels by the toss of a coin: whoever fits them has learned them by heart."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(520, 300)).astype(np.float32)
    y = draw.integers(0, 3, 520)
    np.savez(where / "tiny.npz", x_train=x[:400], y_train=y[:400], x_test=x[400:], y_test=y[400:])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run as it should be."""
    where = tmp_path_factory.mktemp("made")
    data(where)
    (where / "a.toml").write_text(RIGHT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(where)
        assert main(["run", "a.toml", "--out", "run", "--json"]) == 0
    return where / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy of it that may be spoiled."""
    return Path(shutil.copytree(made, tmp_path / "run"))


def told(place: Path) -> dict[str, Check]:
    return {one.name: one for one in checks(of_directory(place))}


def test_a_right_run_passes_in_every_part(made: Path) -> None:
    found = audit_run(made, draws=400)
    row = found.row()
    json.dumps(row, allow_nan=False)
    assert found.verdict == row["verdict"] == "pass" and row["faults"] == []
    assert row["run"]["not_done"] == [] and row["method"] == "dp-fedavg-c"
    assert [one["check"] for one in row["run"]["checks"]] == ["statement", "ledger", "release"]
    views = {(one["release"], one["observer"], one["unit"]) for one in row["run"]["attacks"]}
    assert views == {
        (attack, observer, unit)
        for attack, observer in (
            ("loss threshold", "world"),
            ("gradient alignment", "world"),
            ("gradient alignment", "server"),
        )
        for unit in ("record", "client")
    }
    for one in row["run"]["attacks"]:
        assert "set aside by a coin" in one["words"]
        assert one["metrics"]["auc"][1] <= one["ceiling"]["auc"]
    assert row["releases"], "the stages are audited too"
    needed = {"observer", "claimed", "lower_bound", "confidence", "via", "power", "seconds"}
    assert needed <= row.keys()


def without_noise(*more: str) -> Finished:
    """A run, in this folder, of a method whose noise stage adds nothing."""
    data(Path())
    Path("mine.py").write_text(LYING)
    words = ["run", "--method", "mine.py:Mine", "--data", "tiny.npz", "--clients", "20"]
    sets = [part for one in ("model.name=tabular", *more) for part in ("--set", one)]
    assert main([*words, *sets, "--workers", "1", "--out", "run"]) == 0
    return of_directory(Path("run"))


def test_a_run_whose_noise_is_missing_is_refuted_by_who_was_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = without_noise("data.validation=0.5", 'run.taps=["server"]')
    outcomes = attacked.outcomes(done, attacked.planned(done, KEY), KEY)
    by = {(o.question.attack, o.question.cell.observer, o.question.cell.unit): o for o in outcomes}
    for attack, observer in (("loss threshold", "world"), ("gradient alignment", "server")):
        refuted = by[attack, observer, "record"]
        assert refuted.claimed < 0.5 and refuted.verdict == "fail", refuted.words()
        assert refuted.refuted == 0.001 and "refuted at level 0.1 %" in refuted.words()
    assert RunAudit(done, None, (), tuple(outcomes), (), None, 0.0).verdict == "fail"


def test_against_test_records_it_can_only_warn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = without_noise()
    plan = attacked.planned(done, KEY)
    assert any("gradient alignment by the server" in why for why in plan.missing)
    outcomes = attacked.outcomes(done, plan, KEY)
    assert outcomes[0].verdict == "warn" and outcomes[0].estimate > outcomes[0].claimed
    assert all(o.lower_bound == 0 and o.verdict != "fail" for o in outcomes)


# What must agree --------------------------------------------------------------------------------


def rewritten(path: Path, change: Callable[[Any], Any]) -> None:
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def less(stated: Any) -> Any:
    row = next(r for r in stated["statement"] if (r["unit"], r["observer"]) == ("client", "world"))
    row["epsilon"] *= 0.99
    return stated


def more(stated: Any) -> Any:
    row = next(r for r in stated["statement"] if (r["unit"], r["observer"]) == ("client", "world"))
    row["epsilon"] *= 1.01
    return stated


def hidden(stated: Any) -> Any:
    """A row that proves nothing is left out."""
    return {**stated, "statement": [r for r in stated["statement"] if r["epsilon"] != "inf"]}


def promised(stated: Any) -> Any:
    for row in stated["statement"]:
        row["epsilon"] = 1.0 if row["epsilon"] == "inf" else row["epsilon"]
    return stated


def thrice(told: Any) -> Any:
    return {**told, "participations_most": 3}


def shorter(stated: Any) -> Any:
    return {**stated, "rounds": 3}


@pytest.mark.parametrize(
    ("change", "verdict", "words"),
    [
        (less, "fail", "the client's row to the world says"),
        (more, "warn", "the client's row to the world states more than is derived now"),
        (hidden, "fail", "is not written down"),
        (promised, "fail", "and nothing is derived"),
    ],
)
def test_a_statement_that_is_not_derived(
    change: Callable[[Any], Any], verdict: str, words: str, run: Path
) -> None:
    rewritten(run / "public" / "statement.json", change)
    found = told(run)["statement"]
    assert found.verdict == verdict and words in found.words


def test_a_statement_of_fewer_rounds_than_were_charged(run: Path) -> None:
    rewritten(run / "public" / "statement.json", shorter)
    found = told(run)
    assert found["ledger"].verdict == "fail"
    assert "4 rounds were charged, and the statement speaks of 3" in found["ledger"].words


def test_a_run_file_with_other_noise(run: Path) -> None:
    path = run / "private" / "run.toml"
    path.write_text(path.read_text().replace("sigma = 1.0", "sigma = 0.8"))
    found = told(run)
    assert found["statement"].verdict == found["ledger"].verdict == "fail"
    assert "charged for something else" in found["ledger"].words


def test_a_ledger_that_is_missing_or_was_edited(run: Path) -> None:
    path = run / "private" / "ledger.sqlite"
    with closing(sqlite3.connect(path)) as sql:
        sql.execute("DROP TRIGGER charges_DELETE")
        sql.execute("DELETE FROM charges WHERE n = 2")
        sql.commit()
    found = told(run)["ledger"]
    assert found.verdict == "fail" and "cannot be trusted" in found.words
    path.unlink()
    found = told(run)["ledger"]
    assert found.verdict == "fail" and "is missing" in found.words


def test_the_ledger_of_a_shorter_run(run: Path, made: Path, tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(RIGHT.replace("T = 4", "T = 2"))
    data(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert main(["run", "b.toml", "--out", "other", "--json"]) == 0
    for part in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"):
        (run / "private" / part).unlink(missing_ok=True)
    shutil.copy(tmp_path / "other" / "private" / "ledger.sqlite", run / "private")
    found = told(run)["ledger"]
    assert "the run made 4 rounds, and 2 were charged" in found.words


def test_a_model_that_was_never_released(run: Path) -> None:
    path = run / "public" / "model.safetensors"
    model = {name: value + 1e-3 for name, value in safetensors.read(path).items()}
    safetensors.write(path, model)
    found = told(run)["release"]
    assert found.verdict == "fail" and "the model after round 3 is not the one" in found.words


def test_a_tap_that_does_not_show_what_was_released(run: Path) -> None:
    path = taps.file_of(run / taps.FOLDER, "world", 2)
    seen = {name: value.clone() for name, value in safetensors.read(path).items()}
    seen["received"] += 1e-3
    safetensors.write(path, seen)
    assert "the model after round 1 is not the one" in told(run)["release"].words


def test_a_filter_s_limits_are_compared(tmp_path: Path) -> None:
    from small import Chooser

    done = cf.run(Chooser(T=3), federation(), model=mlp(), workers=1, out=tmp_path / "run")
    found = {one.name: one.verdict for one in checks(of_run(done))}
    assert found == {"statement": "pass", "ledger": "pass", "release": "pass"}


def test_more_participations_than_are_allowed(tmp_path: Path) -> None:
    method = Anything(plain(Local(SGD(0.1)), Fixed(2, at_most=2)), T=3)
    done = cf.run(method, federation(), model=mlp(), workers=1, out=tmp_path / "run")
    found = {one.name: one for one in checks(of_run(done))}
    assert found["participations"].verdict == "pass"
    rewritten(
        tmp_path / "run/private/summary.json", lambda told: {**told, "participations_most": 3}
    )
    found = {one.name: one for one in checks(of_run(done))}
    assert found["participations"].verdict == "fail"
    assert "took part 3 times at the most, allowed are 2" in found["participations"].words


# What is not there ------------------------------------------------------------------------------


def test_without_private_it_says_what_it_cannot_do(
    run: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made.parent)  # the public run file has the data file's bare name
    shutil.rmtree(run / "private")
    found = told(run)
    assert set(found) == {"statement"} and found["statement"].verdict == "pass"
    plan = attacked.planned(of_directory(run), KEY)
    assert plan.tests == 0 and "whose seed says who was in" in plan.missing[0]


def test_where_sizes_depend_on_the_seed_the_owner_s_directory_is_needed(
    run: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made.parent)
    shutil.rmtree(run / "private")
    path = run / "public" / "run.toml"
    path.write_text(
        path.read_text().replace("[data]", '[data]\npartition = {kind = "dirichlet", alpha = 0.5}')
    )
    with pytest.raises(NotARun, match="numbers of records depend on the seed"):
        of_directory(run)


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (("public/run.json",), "has not ended"),
        (("public",), "has not ended"),
        (("public/run.toml", "private/run.toml"), "no run.toml"),
        (("public/statement.json",), "cannot be read"),
        (("public/model.safetensors",), "cannot be read"),
        (("",), "there is no such directory"),
    ],
)
def test_what_is_not_a_whole_run_is_one_sentence(
    gone: tuple[str, ...], words: str, run: Path
) -> None:
    for part in gone:
        path = run / part
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(ValueError, match=words) as why:
        audit_run(run, draws=400)
    assert "\n" not in str(why.value)


def test_a_run_at_hand_needs_no_directory() -> None:
    done = cf.run(Private(T=2), federation(), model=mlp(), workers=1)
    found = attacked.planned(of_run(done), KEY)
    assert [attack.name for attack, _ in found.attacks] == ["loss threshold"]
    assert list(checks(of_run(done))) == []


def test_other_attacks_plug_in(made: Path) -> None:
    class Oracle:
        """Somebody who looks the records up."""

        name, needs = "a look-up", "model"

        def run(self, evidence: Evidence, records: Candidates) -> Any:
            return np.array([float(bytes(x.numpy().data) in known) for x in records.x])

    done = of_directory(made)
    held = np.concatenate(done.federation.clients)
    known = {bytes(x.numpy().data) for x in done.federation.data.x_train[held]}
    plan = attacked.planned(done, KEY, (LossThreshold(), Oracle()))
    outcomes = attacked.outcomes(done, plan, KEY)
    assert len(outcomes) == 4
    auc = {o.question.attack: o.metrics["auc"][0] for o in outcomes}
    assert auc["a look-up"] == 1.0 > auc["loss threshold"]


def test_the_package_is_the_function(made: Path) -> None:
    with pytest.raises(ValueError, match="unknown"):
        cf.audit("no-such-method")
    with pytest.raises(TypeError, match="is a Round"):
        cf.audit(cf.Round(cf.All()))  # pyright: ignore


def test_losses_that_a_method_sends_beside_do_not_hide_its_rows() -> None:
    done = cf.run(cf.methods.UDPCRD(T=2, K=4), federation(), model=mlp(), workers=1)
    finished = of_run(done)
    assert any(cell.of != "update" for cell in done.statement.cells)
    outcomes = attacked.outcomes(finished, attacked.planned(finished, KEY), KEY)
    assert [o.question.cell.unit for o in outcomes] == ["record", "client"]
    assert all(o.question.cell.of == "update" for o in outcomes)
