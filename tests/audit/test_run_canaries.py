"""Canaries inside real runs: right ones pass, bugs that only a run shows are refuted."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.run_mutants import CHANGES, PATCHES, ROUNDS, Changed, same_stream
from confide.accounting.relations import Refused
from confide.aggregates import Mean
from confide.audit.judging import OneRun
from confide.channels import Sum
from confide.cohorts import All, Epoch, Fixed, Poisson
from confide.engine.canaries import Planting
from confide.engine.rounds import Local, Method, Round
from confide.engine.running import Run, run
from confide.local import SGD
from confide.stages import Assume, Clip, Gaussian
from moments import Killed, Moments
from small import Anything, Private, federation, mlp, plain, total


def audited(method: Method, many: int = 500, **other: Any) -> Run:
    """A run of 8 clients with canaries beside them."""
    given: dict[str, Any] = {
        "workers": 1,
        "audit": Planting(many),
        "evaluate_every": 1000,
        **other,
    }
    return run(method, federation(), model=mlp(), device="cpu", **given)


def told(done: Run) -> OneRun:
    """What its canaries say."""
    assert done.audit is not None
    return done.audit


IN_BATCHES = Local(
    SGD(0.1), 2, Poisson(0.5), example=(Clip(1.0),), batch=(Gaussian(4.0),), average=Mean(by=20.0)
)
SHARES = Round(
    cohort=All(),
    local=Local(SGD(0.1), 1, Poisson(0.5)),
    upload=(Clip(1.0), Gaussian(0.5)),
    channel=Sum(),
)
STEPS = Local(SGD(0.1), 1, Epoch(10, partial=True))
EACH = Round(cohort=Fixed(30), local=STEPS, upload=(Clip(1.0), Gaussian(4.0)))

RIGHT: dict[str, tuple[Method, tuple[str, str, str]]] = {
    "sampled clients": (
        Private(T=ROUNDS, q=0.25, sigma=2.0),
        ("client", "world", "add-remove"),
    ),
    "noise on the examples' sum": (
        Anything(Round(cohort=All(), local=IN_BATCHES), T=8),
        ("record", "server", "add-remove"),
    ),
    "noise shares": (Anything(SHARES, T=4), ("client", "server", "zero-out")),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_run_passes_and_its_estimate_comes_near_the_claim(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    method, (unit, observer, relation) = RIGHT[name]
    shares: list[float] = []
    for seed in range(3):
        found = told(audited(method, seed=seed))
        assert found.verdict == "pass"
        for one in found.rows:
            assert one.found.lower_bound <= one.row.cell.epsilon
        (row,) = [r for r in found.rows if r.row.cell.observer == observer]
        cell = row.row.cell
        assert (cell.unit, cell.relation) == (unit, relation)
        assert row.power is not None and row.power <= 0.8, "it would see so much less noise"
        shares.append(row.found.estimate / cell.epsilon)
        record_property("power", f"{name}, seed {seed}: {row.words()}")
    assert 0.5 <= np.mean(shares) <= 1.2


SETTINGS: dict[str, tuple[dict[str, float], int]] = {
    "no noise in the last round": ({"q": 0.5, "sigma": 4.0}, 1000),
    "the same cohort in every round": ({"q": 0.1, "sigma": 2.0, "T": 60}, 1500),
    "ledger entries skipped": ({"q": 1.0, "sigma": 5.0, "T": 40}, 300),
}


@pytest.mark.parametrize("name", [*CHANGES, *PATCHES])
def test_a_bug_that_only_a_run_shows_is_refuted(
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    given, many = SETTINGS.get(name, ({"q": 0.25, "sigma": 2.0}, 500))
    settings: dict[str, Any] = {"T": ROUNDS, **given}
    if name in PATCHES:
        PATCHES[name](monkeypatch)
        method: Method = Private(**settings)
    else:
        method = Changed(how=CHANGES[name], **settings)
    found = told(audited(method, many))
    words = found.verdict if found.verdict == "fail" else ""
    record_property("mutant", ["canaries of a run", f"in a run: {name}", words])
    assert found.verdict == "fail", [row.words() for row in found.rows]


def test_the_server_is_audited_for_the_rounds_in_which_a_canary_came() -> None:
    method = Anything(EACH, T=10)
    found = told(audited(method, audit=Planting(60, "client", "server")))
    (row,) = [one for one in found.rows if one.row.cell.observer == "server"]
    assert 1 <= row.row.cell.participations < method.T
    assert found.canaries.relation == "replace-one"
    for one, value in ((True, 20.0), (False, -20.0)):
        canary = int(np.flatnonzero(found.canaries.coins == one)[0])
        assert [found.canaries.value(canary, t) for t in (0, 1)] == [value, -value]


def test_a_clients_noise_that_repeats_is_refuted_at_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = Anything(Round(cohort=All(), local=STEPS, upload=(Clip(1.0), Gaussian(8.0))), T=6)
    assert told(audited(method, 300)).verdict == "pass"
    same_stream("upload")(monkeypatch)
    (row,) = [r for r in told(audited(method, 300)).rows if r.row.cell.observer == "server"]
    assert row.verdict == "fail"


def kept(out: Path) -> list[bytes]:
    """Everything about canaries that a run leaves."""
    return [(out / name).read_bytes() for name in ("public/audit.json", "private/canaries.json")]


@pytest.mark.parametrize("unit", ["client", "record"])
def test_a_killed_run_goes_on_to_the_same_bits(unit: str, tmp_path: Path) -> None:
    local = Anything(Round(cohort=All(), local=IN_BATCHES), T=5)
    method = local if unit == "record" else Private(T=5, sigma=2.0)

    def go(out: Path, resume: bool = False) -> Run:
        return audited(method, 60, checkpoint_every=2, out=out, resume=resume)

    with pytest.MonkeyPatch.context() as patch:
        moments = Moments(patch)
        whole = go(tmp_path / "whole")
    for number in (moments.count // 2, moments.count - 3):
        out = tmp_path / str(number)
        with pytest.MonkeyPatch.context() as patch:
            Moments(patch, number)
            with pytest.raises(Killed):
                go(out)
        done = go(out, resume=True)
        assert total(done.parameters) == total(whole.parameters)
        assert kept(out) == kept(tmp_path / "whole")


def test_the_same_canaries_with_any_number_of_workers_and_as_rows() -> None:
    method = Private(T=3, sigma=2.0)
    one, two = (audited(method, 60, dtype="float64", workers=n) for n in (1, 2))
    rows = audited(method, 60, dtype="float64", strategy="cohort")
    assert total(one.parameters) == total(two.parameters)
    for name, first in told(one).seen["world"].items():
        assert np.array_equal(first, told(two).seen["world"][name])
        assert np.allclose(first, told(rows).seen["world"][name], rtol=0, atol=1e-9)


def test_an_audited_run_says_so_and_gives_no_coin_away(tmp_path: Path) -> None:
    done = audited(Private(T=2, sigma=2.0), 60, out=tmp_path / "run")
    stated = json.loads((tmp_path / "run/public/statement.json").read_text())
    assert "60 canary clients" in stated["audit"] and stated["words"][0] == stated["audit"]
    public = json.loads((tmp_path / "run/public/audit.json").read_text())
    private = json.loads((tmp_path / "run/private/canaries.json").read_text())
    assert "coins" not in public and "scores" not in public
    assert [row["observer"] for row in public["rows"]] == ["world"]
    assert private["coins"] == told(done).canaries.coins.astype(int).tolist()
    assert set(private["scores"]) == {"world", "server"}


def test_canaries_are_absent_unless_asked_for(tmp_path: Path) -> None:
    done = run(Private(T=1), federation(), model=mlp(), workers=1, out=tmp_path / "run")
    assert done.audit is None
    assert json.loads((tmp_path / "run/public/statement.json").read_text())["audit"] is None
    assert not (tmp_path / "run/private/canaries.json").exists()
    loads = "import sys, confide.engine.running; sys.exit('confide.audit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loads], check=False).returncode == 0


def test_half_of_the_canaries_are_in_and_each_has_its_own_coordinate() -> None:
    found = told(audited(Private(T=1, sigma=2.0), 2000)).canaries
    assert abs(int(found.coins.sum()) - 1000) < 4 * 500**0.5
    assert len(set(found.places.tolist())) == 2000
    out = np.flatnonzero(~found.coins)
    assert not set(found.present(np.arange(2008)) - 8) & set(out.tolist())


REFUSED: dict[str, tuple[Method, Planting, str]] = {
    "without noise": (Anything(plain(Local())), Planting(50), "can test no row"),
    "too many": (Private(), Planting(10_000), "allowed are at most the model's"),
    "noise in the steps only": (
        Anything(Round(cohort=All(), local=IN_BATCHES)),
        Planting(50, "client"),
        "noise in the local steps",
    ),
    "an assumption": (
        Anything(
            Round(
                cohort=All(),
                upload=(Assume(l2=1.0, why="eq. (1)"), Gaussian(3.0)),
            )
        ),
        Planting(50),
        "rests on an assumption",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_canaries_cannot_test_is_refused_before_anything_is_trained(name: str) -> None:
    method, wanted, why = REFUSED[name]
    with pytest.raises((Refused, ValueError), match=why):
        audited(method, audit=wanted)


@pytest.mark.parametrize(
    "given", [{"canaries": 10}, {"canaries": 99, "unit": "user"}, {"canaries": 99, "view": "all"}]
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"audit: \w+ = .*, allowed (is|are)"):
        Planting(**given)


def test_canary_records_stay_off_the_ways_that_have_no_single_gradients() -> None:
    with pytest.raises(ValueError, match="allowed with canary records"):
        audited(
            Anything(Round(cohort=All(), local=IN_BATCHES)),
            60,
            strategy="cohort",
            audit=Planting(60, "record"),
        )
