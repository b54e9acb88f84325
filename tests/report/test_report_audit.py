"""The audit in a report: its verdict, every row and two pictures, by itself or with a run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from audit.run_mutants import CHANGES, ROUNDS, Changed
from confide.audit.trained import joined
from confide.engine.canaries import Planting
from confide.engine.running import Run, run
from confide.report import NotARun, record_of, write_report
from confide.report.audited import ATTACKS, CANARIES, STAGES, audited
from confide.report.auditing import SAID, write_audit
from confide.report.page import page
from small import Private, federation, mlp

BROKEN = Changed(how=CHANGES["noise in the first round only"], T=ROUNDS, q=0.25, sigma=2.0)


def trained(method: Private, out: Path | None = None) -> Run:
    """A small run with canaries."""
    planted = Planting(500)
    return run(
        method, federation(), model=mlp(), workers=1, device="cpu", out=out, audit=planted,
        evaluate_every=100,
    )  # fmt: skip


def release(**changes: Any) -> dict[str, Any]:
    """One release of a round, as `confide audit` answers."""
    return {
        "release": "the published aggregate", "unit": "client", "observer": "world",
        "claimed": 4.645, "lower_bound": 1.51, "estimate": 3.07, "verdict": "pass",
        "power": "would have caught sigma off by 40 % or more", "words": "claimed 4.645", **changes,
    }  # fmt: skip


def answer(**changes: Any) -> dict[str, Any]:
    """A whole answer."""
    return {
        "method": "dp-fedavg-c",
        "verdict": "pass",
        "releases": [release(), release(release="one client's upload", claimed="inf")],
        "faults": [],
        **changes,
    }


def text(markup: str) -> str:
    """What a person reads."""
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", markup, flags=re.S).split())


def test_the_page_of_a_refuted_method_says_so_first(tmp_path: Path) -> None:
    found = trained(BROKEN).audit
    assert found is not None
    told = joined(answer(faults=["a stream is used twice"]), found)
    assert told["verdict"] == "fail"
    written = write_audit(told, tmp_path / "audit.html").read_text("utf-8")
    words = text(written)
    assert words.index(SAID["fail"]) < words.index("the published aggregate")
    assert "a stream is used twice." in words and found.rows[0].words() in words
    assert "500 canary clients" in words
    assert written.count("<svg") == 2 and "<script" not in written and "://" not in written
    assert "Hits against false alarms below the ceiling" in written


def test_a_run_with_canaries_shows_its_audit_in_both_copies(tmp_path: Path) -> None:
    done = trained(Private(T=3, sigma=4.0), tmp_path / "run")
    for private in (False, True):
        out = write_report([tmp_path / "run"], tmp_path / f"{private}.html", private=private)
        words = text(out.read_text("utf-8"))
        assert "The audit of this run" in words and SAID["pass"] in words
        assert "This run is an audit: it holds 500 canary clients" in words
    assert "The audit of this run" in text(page([record_of(done)]))
    plain = run(Private(T=1), federation(), model=mlp(), workers=1)
    assert "audit" not in text(page([record_of(plain)]))


def test_every_layer_is_a_row(tmp_path: Path) -> None:
    found = trained(Private(T=3, sigma=4.0)).audit
    assert found is not None
    attack = release(release="loss threshold", metrics={"auc": [0.5, 0.4, 0.6]}, ceiling={"auc": 1})
    about = {"attacks": [attack], "not_done": ["gradient alignment: no taps"]}
    read = audited(joined(answer(run=about), found), tmp_path)
    assert [row.layer for row in read.rows] == [STAGES, STAGES, CANARIES, ATTACKS]
    assert [row.release for row in read.curves] == ["all rounds, 3 of one client"]
    assert read.notes[-1] == "Not done: gradient alignment: no taps."
    (curve,) = read.curves
    assert curve.ceiling[-1] == (1.0, 1.0)
    for counted, sure in zip(curve.points, curve.sure, strict=True):
        assert counted[0] <= sure[0] and counted[1] >= sure[1], "limits are on the worse side"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"verdict": "fine"}, "verdict"),
        ({"releases": [release(verdict=1)]}, "verdict"),
        ({"releases": [release(claimed="much")]}, "claimed"),
        ({"releases": [release(points=[[0.1]])]}, "points"),
        ({"releases": ["nothing"]}, "rows"),
    ],
)
def test_an_answer_in_disorder_is_one_sentence(
    changes: dict[str, Any], field: str, tmp_path: Path
) -> None:
    with pytest.raises(NotARun, match=field):
        audited(answer(**changes), tmp_path / "a.json")


def test_a_public_page_has_nothing_of_what_only_the_server_saw(tmp_path: Path) -> None:
    trained(Private(T=2, sigma=4.0), tmp_path / "run")
    told = json.loads((tmp_path / "run/public/audit.json").read_text())
    assert {row["observer"] for row in told["rows"]} == {"world"}
