"""A run that is killed goes on to the uninterrupted run's bits, metrics and ledger."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import small
from confide.cohorts import Epoch, Fixed
from confide.engine import checkpoint, directory, loop, running
from confide.engine.checkpoint import CheckpointError
from confide.engine.loop import RunFailed
from confide.engine.rounds import Local, Upload
from confide.engine.running import Run, run
from confide.ledger import Ledger
from confide.local import Scaffold
from small import Anything, Private, federation, mlp, plain, total

SCAFFOLD = Anything(
    plain(
        Local(Scaffold(0.1), 1, Epoch(10, True), remembers=True),
        Fixed(4),
        upload={"update": Upload(), "control": Upload()},
    ),
    T=4,
)


class Killed(BaseException):
    """What stands for a kill."""


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


POINTS: list[tuple[Any, str]] = [
    (Ledger, "intend"),
    (loop.Loop, "totals"),
    (loop.Loop, "publish"),
    (Ledger, "done"),
    (loop.Loop, "accept"),
    (loop.Loop, "evaluate"),
    (directory.Directory, "write_lines"),
    (running, "save_checkpoint"),
    (checkpoint.torch, "save"),
]


def killing(what: Callable[..., Any], when: int, after: bool) -> Callable[..., Any]:
    """The same function, that is killed before or after its n-th call."""
    calls = 0

    def killed(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == when and not after:
            raise Killed
        out = what(*given, **named)
        if calls == when:
            raise Killed
        return out

    return killed


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """The runs that nobody killed."""
    place = tmp_path_factory.mktemp("whole")
    methods = {"private": Private(), "scaffold": SCAFFOLD}
    return {name: go(place / name, method) for name, method in methods.items()}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("owner", "name"), POINTS, ids=[name for _, name in POINTS])
@pytest.mark.parametrize("kind", ["private", "scaffold"])
def test_every_commit_point(
    kind: str, owner: Any, name: str, after: bool, wholes: dict[str, Run],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    method = wholes[kind].method
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killing(getattr(owner, name), 2, after))
        with pytest.raises(Killed):
            go(tmp_path / "run", method)
    same(tmp_path / "run", wholes[kind], go(tmp_path / "run", method, resume=True))


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


def test_a_round_that_comes_out_otherwise_is_not_released_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(running, "save_checkpoint", killing(running.save_checkpoint, 1, False))
        with pytest.raises(Killed):
            go(out, Private())
    digest = loop.digest
    monkeypatch.setattr(loop, "digest", lambda *v: digest(*v)[::-1])
    with pytest.raises((RunFailed, ValueError, Exception), match=r"other bits|other inputs|equal"):
        go(out, Private(), resume=True)


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from small import Private, federation, mlp
from confide.engine.running import run
run(Private(T={rounds}), federation(), model=mlp(), workers=2, evaluate_every=1,
    checkpoint_every=2, out=sys.argv[1], resume=sys.argv[2] == "resume")
"""


@pytest.mark.slow
def test_five_real_kills(tmp_path: Path) -> None:
    rounds = 30
    script = tmp_path / "run.py"
    tests = str(Path(small.__file__).parent)
    script.write_text(SCRIPT.format(tests=tests, rounds=rounds))
    whole = go(tmp_path / "whole", Private(T=rounds), workers=2)
    out = tmp_path / "killed"
    kills = 0
    while kills < 5:
        resume = "resume" if (out / "private" / "run.json").exists() else "new"
        process = subprocess.Popen(
            [sys.executable, str(script), str(out), resume], start_new_session=True
        )
        wait_for_rounds(out, 4 * (kills + 1), process)
        if process.poll() is not None:
            break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    assert kills == 5
    same(out, whole, go(out, Private(T=rounds), resume=True))


def wait_for_rounds(out: Path, rounds: int, process: Any) -> None:
    """Until the run's metrics have this many lines, or it ends."""
    path = out / "public" / "metrics.jsonl"
    for _ in range(6000):
        if process.poll() is not None:
            return
        if path.exists() and len(path.read_text().splitlines()) >= rounds:
            return
        time.sleep(0.01)
    raise AssertionError(json.dumps({"rounds": rounds, "never reached in": str(out)}))
