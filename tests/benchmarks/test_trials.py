"""The frame of the methods' benchmark: promises, orderings, its list of runs, and its studies."""

import importlib.util
import json
import sys
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import mean, stdev
from types import ModuleType
from typing import Any

import pytest

from confide.engine.rounds import Sizes
from confide.engine.spending import unrolled
from confide.methods import CATALOGUE
from confide.methods.making import make

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and the cases look it up
    spec.loader.exec_module(module)
    return module


names = ("trials", "measure", "judging", "batch", "merging", "results_page")
trials, _, judging, batch, merging, results_page = (
    loaded(name, BENCHMARKS / f"{name}.py") for name in names
)
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
    return judging.summary({"name": "a"}, runs, None)


def verdict(better: Any, worse: Any) -> str:
    ordering = trials.Ordering("a beats b", "a", "b")
    return judging.judged(ordering, {"a": better, "b": worse})["verdict"]


def looks(scores: list[float], metric: str = "accuracy", seconds: float = 4.0) -> Any:
    seeds = (1001, 1002, 1003)
    told = {"metric": metric, "seconds": seconds}
    return [{**told, "seed": seed, "score": s} for seed, s in zip(seeds, scores, strict=True)]


def test_the_interval_of_a_mean_is_students() -> None:
    one = figures([0.6, 0.7, 0.8])
    # 4.302653 is the 97.5 % quantile with two degrees of freedom.
    assert (one["mean"], one["half"]) == pytest.approx((0.7, 4.302653 * 0.1 / 3**0.5))
    assert [run["score"] for run in judging.runs_of(one)] == [0.6, 0.7, 0.8]


def test_a_promise_is_what_one_more_run_reaches() -> None:
    """By Student's t with two degrees of freedom, rounded away from what was seen."""
    scores = [0.85, 0.86, 0.90]
    width = 4.302653 * stdev(scores) * (1 + 1 / 3) ** 0.5
    made = judging.promise(looks(scores))
    assert made["reach"] == pytest.approx(mean(scores) - width, abs=0.01)
    assert made["reach"] <= mean(scores) - width and made["within"] == 20
    assert judging.promise(looks([0.9, 0.9, 0.9]))["reach"] == 0.88
    assert judging.promise(looks([0.3, 0.1, 0.2]))["reach"] is None
    assert 0.21 <= judging.promise(looks([0.2, 0.2, 0.2], "error"))["reach"] <= 0.211


def test_every_run_keeps_or_misses_a_promise_by_itself() -> None:
    made = judging.promise(looks([0.9, 0.9, 0.9]))
    run = {"metric": "accuracy", "seconds": 20.0}
    kept = [{**run, "seed": 3, "score": 0.88}, {**run, "seed": 4, "score": 0.95}]
    assert judging.missed(made, kept) == []
    late = {**run, "seed": 5, "score": 0.9, "seconds": 20.1}
    assert judging.missed(made, [*kept, late]) == ["seed 5: 20 s"]
    low = {**run, "seed": 5, "score": 0.879}
    assert judging.missed(made, [*kept, low]) == ["seed 5: accuracy 0.8790"]
    error = judging.promise(looks([0.2, 0.2, 0.2], "error"))
    high = {"metric": "error", "seconds": 1.0, "seed": 3, "score": 0.3}
    assert judging.missed(error, [high]) == ["seed 3: error 0.3000"]
    with pytest.raises(ValueError, match="other seeds"):
        judging.missed(made, [{**run, "seed": 1001, "score": 0.9}])


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


def test_runs_with_no_seed_in_common_are_not_compared() -> None:
    (run, *_) = judging.runs_of(figures([0.1, 0.2, 0.3]))
    other = judging.summary({}, [{**run, "seed": 9}], None)
    with pytest.raises(ValueError, match="no seed"):
        verdict(figures([0.8, 0.9, 0.7]), other)


def small_study(**changed: Any) -> Any:
    one = trials.Trial("a", "udp-c", {"T": 1}, grid={"eta": (1.0, 2.0)})
    other = trials.Trial("b", "udp-c", {"T": 1})
    ordering = trials.Ordering("a beats b", "a", "b")
    return trials.Study("p", "P", [replace(one, **changed), other], [ordering], further=(6,))


def lines(study: Any) -> Any:
    """A line for every run of a study: larger rates score more."""
    found: dict[str, Any] = {}
    for stage in batch.STAGES:
        for job in batch.jobs_of(study, stage):
            score = 0.9 + 0.01 * job.trial.settings.get("eta", 0.0)
            run = figures([score])
            one = {**judging.runs_of(run)[0], "seed": job.seed, "rounds": 1, "published": None}
            answer = {"figures": one}
            found[job.key] = json.loads(json.dumps(batch.line(job, answer, {"cpu": "c"}, 1)))
    return found


def test_the_runs_of_a_study() -> None:
    study = small_study()
    counts = {stage: len(batch.jobs_of(study, stage)) for stage in batch.STAGES}
    assert counts == {"search": 2, "look": 6, "report": 8}
    every = [job for stage in batch.STAGES for job in batch.jobs_of(study, stage)]
    assert len({job.key for job in every}) == len(every)
    seeds = {stage: {j.seed for j in every if j.stage == stage} for stage in batch.STAGES}
    assert not seeds["look"] & (seeds["search"] | seeds["report"])
    assert not seeds["search"] & seeds["report"]


def test_a_run_counts_as_long_as_its_trial_stays(tmp_path: Path) -> None:
    """Another note or grid changes no run; another setting does."""
    study = small_study()
    file = tmp_path / "runs.jsonl"
    text = "".join(json.dumps(one) + "\n" for one in lines(study).values())
    file.write_text(text + text[:50])  # a last line that was cut off
    known = batch.lines_of([file])
    for changed, same in (({"note": "x", "grid": {}}, True), ({"settings": {"T": 2}}, False)):
        (job, *_) = batch.jobs_of(small_study(**changed), "report")
        assert (job.key in known) is same


def test_the_result_files_are_made_of_the_runs(tmp_path: Path) -> None:
    study = small_study()
    assert merging.merge(study, {}, tmp_path) == []
    searched, found = merging.merge(study, lines(study), tmp_path)
    rows = json.loads(searched.read_text())["trials"]["a"]["rows"]
    assert [row["eta"] for row in rows] == [2.0, 1.0]
    read = json.loads(found.read_text())
    assert [(len(one["runs"]), one["missed"]) for one in read["trials"]] == [(4, []), (4, [])]
    assert read["orderings"][0]["seeds"] == 4 and read["not run"] == []
    assert results_page.section(read)[0] == "## P\n"
    # A promise that was made stays with its trial, and goes when the trial changes.
    report = {k: v for k, v in lines(study).items() if v["stage"] == "report"}
    merging.merge(study, report, tmp_path)
    assert json.loads(found.read_text()) == read
    other = small_study(settings={"T": 2})
    report = {k: v for k, v in lines(other).items() if v["stage"] == "report"}
    merging.merge(other, report, tmp_path)
    assert json.loads(found.read_text())["trials"][0]["promise"] is None


def test_what_follows_a_search_uses_what_it_found() -> None:
    """Nothing of a trial is run before its search is over; a failed combination is over."""
    study = small_study()
    first, last = batch.jobs_of(study, "search")
    every = lines(study)
    assert [one.name for one in batch.settled(study, {}).trials] == ["b"]
    assert not batch.settled(study, {first.key: every[first.key]}).orderings
    done = batch.settled(study, {first.key: every[first.key], last.key: every[last.key]})
    assert [one.settings.get("eta") for one in done.trials] == [2.0, None]
    assert done.orderings == list(study.orderings)
    failed = {**every[last.key], "figures": None, "failed": "Diverged"}
    done = batch.settled(study, {first.key: every[first.key], last.key: failed})
    assert done.trials[0].settings["eta"] == 1.0
    assert not batch.settled(replace(study, like="a"), {}).trials
    shared = batch.settled(replace(study, like="a"), every)
    assert [one.settings["eta"] for one in shared.trials] == [2.0, 2.0]


def test_a_gpu_is_kept_for_what_it_is_for() -> None:
    ordinary = batch.jobs_of(small_study(), "look")
    heavy = batch.jobs_of(small_study(accelerated=True), "look")[0]
    assert batch.chosen([*ordinary, heavy], True, True) is heavy
    assert batch.chosen([heavy, *ordinary[1:]], False, True) is ordinary[1]
    assert batch.chosen([heavy], False, True) is None
    assert batch.chosen([heavy], False, False) is heavy
    assert batch.chosen(ordinary, True, True) is ordinary[0]


def test_the_order_of_the_runs() -> None:
    study = small_study()
    every = [job for stage in reversed(batch.STAGES) for job in batch.jobs_of(study, stage)]
    told = [(job.stage, job.trial.name, job.seed) for job in batch.in_order(every, [study])]
    assert [stage for stage, *_ in told[:2]] == ["search"] * 2
    assert [name for _, name, _ in told[2:14]] == ["a"] * 6 + ["b"] * 6
    assert [seed for *_, seed in told[14:]] == [6, 6]


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_can_be_planned(path: Path) -> None:
    study = loaded(f"case_{path.stem}", path).STUDY
    assert study.paper == path.stem.replace("_", "-")
    assert list(study.seeds) == [3, 4, 5] and not {0, 1, 2, 3, 4, 5} & set(study.further)
    for trial in study.trials:
        assert unrolled(make(trial.method, trial.settings), Sizes(trial.clients, 100, (20, 10)))


def test_every_method_is_in_a_study() -> None:
    studied = {t.method for path in STUDIES for t in loaded(f"case_{path.stem}", path).STUDY.trials}
    assert studied >= set(CATALOGUE)


RESULTS = BENCHMARKS / "results"


def test_every_method_made_a_promise_and_ran_three_times() -> None:
    """A promise may say in words that no accuracy is reached."""
    files = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("methods_*.json"))]
    trained = {
        one["method"]
        for read in files
        for one in read["trials"]
        if one["promise"] is not None and len(one["runs"]) >= 3
    }
    assert set(CATALOGUE) <= trained, sorted(set(CATALOGUE) - trained)


def test_the_page_is_made_of_the_result_files() -> None:
    """`python benchmarks/methods.py docs` makes it anew."""
    assert results_page.DOCS.read_text() == results_page.page()


SEARCHES = sorted(RESULTS.glob("search_*.json"))


@pytest.mark.parametrize("path", SEARCHES, ids=lambda path: path.stem)
def test_settings_are_what_the_search_found(path: Path) -> None:
    """No trial has settings that its search did not find best."""
    paper = path.stem.removeprefix("search_")
    study = loaded(f"case_{paper}", BENCHMARKS / "cases" / f"{paper.replace('-', '_')}.py").STUDY
    found = json.loads(path.read_text())["trials"]
    for trial in study.trials:
        if trial.grid and trial.name in found:
            best = found[trial.name]["rows"][0]
            assert {name: trial.settings[name] for name in trial.grid} == {
                name: best[name] for name in trial.grid
            }, trial.name
