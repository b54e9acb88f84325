"""docs/benchmarks.md says what the result files say, and a missed goal is named as one."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def loaded(name: str) -> ModuleType:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look it up
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(BENCHMARKS))


measure: Any = loaded("measure")
contest: Any = loaded("contest")


def test_the_page_is_made_of_the_result_files():
    """`python benchmarks/engine.py --docs` makes it anew."""
    assert measure.DOCS.read_text() == measure.page()


@pytest.mark.parametrize(("ratio", "word"), [(2.1, "reached"), (1.8, "enough"), (1.6, "MISSED")])
def test_a_ratio_is_judged_by_its_goal(ratio: float, word: str):
    assert contest.verdict(ratio, (2.0, 1.7)).startswith(word)


def test_rounds_of_the_same_cohort_are_compared():
    """The first process of one side with the first of the other, round by round."""
    work = contest.Workload("W", "mlp", (1,), (1,), 1, 1, 2)
    about = {"way": "its", "examples": [4, 4], "first": 1.0, "peak_mib": 1.0}
    sides = [
        contest.Side(name, "plain.py", {"its": ()}, agrees=1e-10) for name in ("ours", "other")
    ]
    ours = contest.Timed(sides[0], "", [{**about, "seconds": [1.0, 2.0]}] * 2)
    other = contest.Timed(sides[1], "", [{**about, "seconds": [3.0, 2.0]}])
    (row,) = contest.rows("task", work, [ours, other], {("W", "other"): (2.0, 1.0)})
    assert (row.ratio, row.ratio_low, row.ratio_high) == (2.0, 1.0, 3.0)
    assert row.note.startswith("reached")
