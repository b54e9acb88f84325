"""How runs end: early with their last model evaluated, or without a model but stated."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from confide.accounting.relations import Refused
from confide.cohorts import Epoch, Fixed
from confide.engine.ending import Diverged
from confide.engine.rounds import Local, Past, Round
from confide.engine.running import Run, run
from confide.ledger import Ledger
from confide.local import SGD
from confide.report import read_run
from confide.servers import Add
from small import Anything, Private, federation, mlp, plain


def go(method: Any, **options: Any) -> Run:
    return run(method, federation(), model=mlp(), workers=1, **options)


def test_the_last_model_is_evaluated_wherever_the_run_ends() -> None:
    once = plain(Local(SGD(0.1)), Fixed(3, at_most=2))
    done = go(Anything(once, T=20), evaluate_every=4)
    assert done.stopped is not None and (done.rounds, done.planned) == (5, 20)
    assert [row["round"] for row in done.metrics] == [4, 5]
    shorter = go(Anything(once, T=5), evaluate_every=5)
    assert done.metrics[-1]["accuracy"] == shorter.metrics[-1]["accuracy"]


class Explodes(Private):
    """Private, with a server whose second step is too large."""

    def round(self, past: Past) -> Round | None:
        """What a server does to what was published gives nothing more away."""
        made = super().round(past)
        return made if made is None or past.t != 1 else replace(made, server=Add(1e300))


def charged(place: Path) -> str:
    """What the ledger says that the world has learned."""
    with Ledger.open(place / "private" / "ledger.sqlite") as ledger:
        return repr(ledger.events("client/world/update"))


def test_a_diverged_run_is_stated_as_if_it_had_gone_on(tmp_path: Path) -> None:
    with pytest.raises(Diverged, match="round 1"):
        go(Explodes(T=4), out=tmp_path, evaluate_every=1)
    public = {path.name for path in (tmp_path / "public").iterdir()}
    assert public == {"failed.json", "statement.json", "metrics.jsonl"}
    told = read_run(tmp_path)
    assert told.failed is not None and told.failed.startswith("round 1: ")
    assert (told.rounds, told.covered, told.planned) == (1, 4, 4)
    assert told.accuracy is None and len(told.points) == 1
    paid = charged(tmp_path)
    go(Private(T=2), out=tmp_path / "two")
    assert paid == charged(tmp_path / "two"), "the ledger has what was released"
    whole = go(Private(T=4)).statement
    assert [c.epsilon for c in told.cells] == [c.epsilon for c in whole.cells]


def test_a_run_that_diverges_at_once_is_stated_too(tmp_path: Path) -> None:
    with pytest.raises(Diverged, match="round 0"):
        go(Anything(plain(Local(SGD(1e38), 40, Epoch(10, True)))), out=tmp_path)
    told = read_run(tmp_path)
    assert (told.rounds, told.covered) == (0, 3)
    assert told.cells and not told.points


def test_nothing_at_all_cannot_be_stated() -> None:
    with pytest.raises((ValueError, Refused), match="no rounds"):
        go(Private(T=0))
