"""Worker processes: where they begin, what they cannot be sent, and how they end."""

import multiprocessing as mp
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import small
from confide.cohorts import Epoch
from confide.engine.rounds import Local, Past, Round, Upload
from confide.engine.running import Run, run
from confide.engine.workers import WorkerDied
from confide.local import SGD, Course, Gradient
from small import Anything, Private, federation, mlp, plain, total


def go(method: Any, **options: Any) -> Run:
    return run(method, federation(), **{"model": mlp(), "workers": 2, "seed": 3, **options})


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
from contextlib import suppress
from dataclasses import dataclass
from confide.engine import workers
from confide.engine.rounds import Local
from confide.engine.running import run
from confide.local import SGD
from small import Anything, Private, federation, mlp, plain

@dataclass(frozen=True)
class Own(SGD):
    "A step that has no module but this."

workers.start_here = lambda: {start!r}
done = run({method}, federation(), model=mlp(), workers=2, seed=3)
print(sum(float(v.double().sum()) for v in done.parameters.values()))
print(done.strategy)
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize(
    ("place", "method", "same"),
    [
        ("script", "Private(T=2)", Private(T=2)),
        (
            "notebook",
            "Anything(plain(Local(Own(0.1, 0.5))))",
            Anything(plain(Local(SGD(0.1, 0.5)))),
        ),
    ],
)
def test_they_begin_anywhere(
    start: str, place: str, method: str, same: Any, tmp_path: Path
) -> None:
    """A script has no main guard; a notebook's main module has no file, and what it defines."""
    text = PROGRAM.format(tests=str(Path(small.__file__).parent), start=start, method=method)
    script = tmp_path / "script.py"
    script.write_text(text)
    words, given = ([script], None) if place == "script" else (["-"], text)
    out = subprocess.run(
        [sys.executable, *words], input=given, capture_output=True, text=True, timeout=120
    )
    assert out.returncode == 0 and not out.stderr, out.stderr
    value, strategy = out.stdout.splitlines()
    here = go(same, workers=1).parameters.values()
    assert float(value) == sum(float(v.double().sum()) for v in here)
    if (start, place) == ("spawn", "notebook"):
        # A process that was not forked cannot know a class that only the notebook has.
        assert "one process" in strategy and "no worker processes: " in strategy
        assert "Own" in strategy
    else:
        assert "2 worker processes" in strategy


def first_value(done: Any) -> Tensor:
    return done.update[:1].clone()


def with_value(value: Callable[[Any], Tensor]) -> Round:
    seen = {"update": Upload(), "seen": Upload((), 1, "train", value=value)}
    return plain(Local(SGD(0.1)), upload=seen)


def test_a_round_that_cannot_travel_is_run_by_one_process_which_says_so() -> None:
    done = go(Anything(with_value(lambda done: first_value(done))))
    assert "one process" in done.strategy and "no worker processes: " in done.strategy
    assert "\n" not in done.strategy
    several = go(Anything(with_value(first_value)))
    assert "2 worker processes" in several.strategy
    assert total(done.parameters) == total(several.parameters)


class Fades:
    """Something that is packed here and cannot be unpacked there."""

    def __call__(self, done: Any) -> Tensor:
        return first_value(done)

    def __reduce__(self) -> Any:
        return not_there, ()


def not_there() -> Fades:
    if mp.parent_process() is not None:
        raise AttributeError("nothing of this name")
    return Fades()


@dataclass(frozen=True)
class Turns:
    """A method whose second round takes something else of the clients."""

    later: Any
    noise_field = None

    def round(self, past: Past) -> Round | None:
        value = first_value if past.t == 0 else self.later
        return None if past.t == 2 else with_value(value)


@pytest.mark.parametrize("later", [lambda done: first_value(done), Fades()])
def test_a_later_round_that_cannot_travel_names_the_remedy(later: Any) -> None:
    with pytest.raises(ValueError, match=r"cannot travel .* allowed is workers = 1\.$") as wrong:
        go(Turns(later))
    assert "\n" not in str(wrong.value)
    assert not mp.active_children()
    assert go(Turns(later), workers=1).rounds == 2


@dataclass(frozen=True)
class Deadly(SGD):
    """Kills the process that takes the file away."""

    file: str = ""

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        if mp.parent_process() is not None:
            with suppress(FileNotFoundError):  # only one of several processes can
                os.unlink(self.file)
                os.kill(os.getpid(), signal.SIGKILL)
        super().__call__(w, gradient, course)


def test_a_worker_that_dies_is_named_and_the_run_goes_on_later(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    method = Anything(plain(Local(Deadly(0.1, file=str(tmp_path / "there")), 1, Epoch(10, True))))
    with pytest.raises(WorkerDied, match=r"ended by signal 9; .* The run can be resumed\.$"):
        go(method, out=tmp_path / "run")
    assert not mp.active_children()
    done = go(method, out=tmp_path / "run", resume=True)
    assert total(done.parameters) == total(go(method).parameters)


@dataclass(frozen=True)
class Clumsy(SGD):
    """A step with a mistake in it."""

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        raise KeyError("eta")


def test_a_mistake_in_a_worker_is_told_with_its_kind() -> None:
    with pytest.raises(WorkerDied, match="a worker process failed: KeyError: 'eta'"):
        go(Anything(plain(Local(Clumsy()))))


def test_a_process_without_children_of_its_own_does_the_work_itself() -> None:
    answers: Any = mp.get_context("fork").SimpleQueue()

    def inside() -> None:
        torch.set_num_threads(1)
        done = go(Private(T=1))
        answers.put((done.strategy, total(done.parameters)))

    # Daemonic processes, such as those of a pool, may have none.
    process = mp.get_context("fork").Process(target=inside, daemon=True)
    process.start()
    words, model = answers.get()
    process.join()
    assert "one process" in words and "no worker processes: " in words
    assert model == total(go(Private(T=1), workers=1).parameters)
