"""The frame of the methods' benchmark: what it may call an ordering, and that its studies exist."""

import importlib.util
import sys
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from confide.engine.rounds import Sizes
from confide.engine.spending import unrolled
from confide.methods.making import make

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and the cases look it up
    spec.loader.exec_module(module)
    return module


trials: Any = loaded("trials", BENCHMARKS / "trials.py")
STUDIES = sorted((BENCHMARKS / "cases").glob("[a-z]*.py"))


def figures(
    scores: list[float],
    epsilon: float = 8.0,
    delta: float = 1e-3,
    relation: str = "add-remove",
    **more: Any,
) -> Any:
    row = "record/server/update"
    cell = {"row": row, "epsilon": epsilon, "delta": delta, "relation": relation}
    one = {"metric": "accuracy", "loss": 1.0, "seconds": 1.0, "proved": [cell], **more}
    runs = [{**one, "seed": seed, "score": score} for seed, score in enumerate(scores)]
    return trials.summary(trials.Trial("a", "udp-c", reach=0.5), runs)


def verdict(better: Any, worse: Any) -> str:
    ordering = trials.Ordering("a beats b", "a", "b")
    return trials.judged(ordering, {"a": better, "b": worse})["verdict"]


def test_the_interval_of_a_mean_is_students() -> None:
    one = figures([0.6, 0.7, 0.8])
    # 4.302653 is the 97.5 % quantile with two degrees of freedom.
    assert (one["mean"], one["half"]) == pytest.approx((0.7, 4.302653 * 0.1 / 3**0.5))
    assert one["reached"] and not figures([0.4, 0.5, 0.45])["reached"]


def test_an_ordering_is_judged_by_paired_seeds() -> None:
    assert verdict(figures([0.8, 0.7, 0.9]), figures([0.7, 0.6, 0.8])) == "holds"
    assert verdict(figures([0.7, 0.6, 0.8]), figures([0.8, 0.7, 0.9])) == "the other way round"
    assert verdict(figures([0.8, 0.7, 0.6]), figures([0.7, 0.8, 0.5])) == "undecided"
    assert verdict(figures([0.8]), figures([0.7])) == "undecided"


def test_an_error_is_better_when_it_is_smaller() -> None:
    small, large = (figures(s, metric="error") for s in ([0.1, 0.2, 0.3], [0.3, 0.4, 0.5]))
    assert verdict(small, large) == "holds"


@pytest.mark.parametrize(
    "told",
    [(8.1, 1e-3), (inf, 1e-3), (8.0, 1e-4), (8.0, 1e-3, "zero-out"), (8.0, 1e-3, "replace-one")],
)
def test_unequal_statements_are_not_compared(told: Any) -> None:
    other = figures([0.1, 0.2, 0.3], *told)
    assert verdict(figures([0.8, 0.9, 0.7]), other).startswith("not comparable")
    assert verdict(other, figures([0.8, 0.9, 0.7])).startswith("not comparable")


def test_nothing_proved_is_never_equal() -> None:
    bare = figures([0.8, 0.9, 0.7], proved=[])
    assert verdict(bare, bare).startswith("not comparable")


def test_a_study_knows_its_trials() -> None:
    with pytest.raises(ValueError, match="no trial 'b'; there are a"):
        trials.Study("p", "P", [trials.Trial("a", "udp")], [trials.Ordering("a beats b", "a", "b")])
    with pytest.raises(ValueError, match="stands twice"):
        trials.Study("p", "P", [trials.Trial("a", "udp"), trials.Trial("a", "udp-c")])


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_can_be_planned(path: Path) -> None:
    study = loaded(f"case_{path.stem}", path).STUDY
    assert study.paper == path.stem.replace("_", "-")
    assert list(study.seeds) == [0, 1, 2]
    for trial in study.trials:
        assert unrolled(make(trial.method, trial.settings), Sizes(trial.clients, 100, (20, 10)))
