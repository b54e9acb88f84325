"""A run that is killed goes on to the uninterrupted run's bits, metrics and ledger."""

from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from confide.cohorts import Epoch, Fixed
from confide.engine import loop
from confide.engine.checkpoint import CheckpointError
from confide.engine.ending import RunFailed
from confide.engine.publishing import Publisher
from confide.engine.rounds import Local, Upload
from confide.engine.running import Run, run
from confide.ledger import Ledger, LedgerError
from confide.local import Scaffold
from moments import Killed, Moments
from small import Anything, Chooser, Private, federation, mlp, plain, total

SCAFFOLD = Anything(
    plain(
        Local(Scaffold(0.1), 1, Epoch(10, True), remembers=True),
        Fixed(4),
        upload={"update": Upload(), "control": Upload()},
    ),
    T=3,
)


def go(out: Path, method: Any, resume: bool = False, **options: Any) -> Run:
    given = {"model": mlp(), "workers": 1, "evaluate_every": 1, "checkpoint_every": 2, **options}
    return run(method, federation(), out=out, resume=resume, **given)


def charged(out: Path) -> dict[str, str]:
    """Everything that the ledger says was spent."""
    with Ledger.open(out / "private" / "ledger.sqlite") as ledger:
        ledger.verify()
        assert not ledger.pending()
        names = ("client/world/update", "record/world/update", "client/server/update")
        return {name: repr(ledger.events(name)) for name in names}


def same(out: Path, whole: Run, done: Run) -> None:
    """Model, metrics and ledger are those of the run that never stopped."""
    assert whole.dir is not None
    assert total(done.parameters) == total(whole.parameters)
    for name in ("model.safetensors", "metrics.jsonl", "statement.json"):
        assert (out / "public" / name).read_bytes() == (whole.dir / "public" / name).read_bytes()
    assert charged(out) == charged(whole.dir)


METHODS = {"private": Private(T=3), "scaffold": SCAFFOLD, "adapting": Chooser(T=3)}
"""Noise on the sum; memory of clients and a server's control; past answers and a filter."""


@pytest.mark.parametrize("kind", METHODS)
def test_every_commit_point(kind: str, tmp_path: Path) -> None:
    """Files are renamed into place, the ledger commits: nothing else outlives a kill."""
    method = METHODS[kind]
    with pytest.MonkeyPatch.context() as patch:
        moments = Moments(patch)
        whole = go(tmp_path / "whole", method)
    # For every round an intent and an end, metrics and a checkpoint after the second, and a model.
    assert moments.count >= 2 * (2 * whole.rounds + 2 + 5)
    for number in range(1, moments.count + 1):
        out = tmp_path / str(number)
        with pytest.MonkeyPatch.context() as patch:
            Moments(patch, number)
            with pytest.raises(Killed):
                go(out, method)
        begun = (out / "private" / "run.json").is_file()
        same(out, whole, go(out, method, resume=begun))


def test_a_finished_run_can_be_resumed_and_nothing_happens(tmp_path: Path) -> None:
    whole = go(tmp_path / "run", Private())
    again = go(tmp_path / "run", Private(), resume=True)
    assert total(again.parameters) == total(whole.parameters)
    assert again.metrics == whole.metrics


def test_a_run_with_other_settings_does_not_go_on(tmp_path: Path) -> None:
    go(tmp_path / "run", Private())
    with pytest.raises(CheckpointError, match="belongs to a run with other settings"):
        go(tmp_path / "run", Private(sigma=2.0), resume=True)
    with pytest.raises(ValueError, match="holds a run already"):
        go(tmp_path / "run", Private())
    with pytest.raises(ValueError, match="is not the directory of a run"):
        go(tmp_path / "nothing", Private(), resume=True)


def test_a_broken_checkpoint_is_one_sentence(tmp_path: Path) -> None:
    go(tmp_path / "run", Private())
    path = tmp_path / "run" / "private" / "checkpoint.pt"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointError, match=r"checkpoint\.pt is damaged") as wrong:
        go(tmp_path / "run", Private(), resume=True)
    assert "\n" not in str(wrong.value)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run whose first round was released, and that has no checkpoint yet."""
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        Moments(patch, 12)
        with pytest.raises(Killed):
            go(out, Private())
    return out


def test_a_round_that_comes_out_otherwise_is_not_released_again(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = Publisher.publish

    def otherwise(*given: Any) -> dict[str, Tensor]:
        return {name: vector + 1e-3 for name, vector in publish(*given).items()}

    monkeypatch.setattr(Publisher, "publish", otherwise)
    with pytest.raises(RunFailed, match="round 0: this round was released before with other bits"):
        go(killed, Private(), resume=True)


def test_the_noise_of_a_round_is_not_drawn_again_on_another_input(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = loop.digest
    monkeypatch.setattr(loop, "digest", lambda *v: digest(*v)[::-1])
    with pytest.raises(LedgerError, match="already, with other inputs"):
        go(killed, Private(), resume=True)
