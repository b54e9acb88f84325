"""The result files of a study, from the lines of its runs (batch.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from batch import LOOKS, Job, jobs_of, told
from judging import judged, promise, sign, summary
from trials import HELD_BACK, SEARCH_SEED, Figures, Study, Trial

Lines = Mapping[str, Figures]


def merge(study: Study, lines: Lines, folder: Path) -> list[Path]:
    """Write what the lines say about the study: its search, its promises and its runs."""
    written: list[Path] = []
    searched = search_of(study, lines)
    if searched:
        written.append(folder / f"search_{study.paper}.json")
        kept = read(written[-1]).get("trials", {})
        names = [one.name for one in study.trials if one.grid]
        both = {name: {**kept, **searched}[name] for name in names if name in {**kept, **searched}}
        scored = f"{HELD_BACK} held-back training records at most, seed {SEARCH_SEED}"
        write(written[-1], {"scored on": scored, "trials": both})
    if any(job.key in lines for job in jobs_of(study, "report")):
        written.append(folder / f"methods_{study.paper}.json")
        kept = {one["name"]: one for one in read(written[-1]).get("trials", [])}
        write(written[-1], body(study, lines, kept))
    return written


def read(path: Path) -> Figures:
    """A result file, or nothing where there is none."""
    return json.loads(path.read_text()) if path.exists() else {}


def write(path: Path, found: Figures) -> None:
    """A result file that one can read."""
    path.write_text(json.dumps(found, indent=1) + "\n")


def search_of(study: Study, lines: Lines) -> dict[str, Figures]:
    """Every trial with the combinations that were tried, the best first."""
    found: dict[str, Figures] = {}
    for job in jobs_of(study, "search"):
        if job.key not in lines:
            continue
        one = lines[job.key]
        trial = found.setdefault(job.trial.name, {"machine": one["machine"], "rows": []})
        trial["rows"].append({**job.values, **outcome(one)})
    for trial in found.values():
        trial["rows"].sort(key=rank)
    return found


def outcome(one: Figures) -> Figures:
    """What a combination came to."""
    if one["figures"] is None:
        return {"failed": one["failed"]}
    told = ("metric", "score", "loss", "rounds", "seconds")
    return {name: one["figures"][name] for name in told}


def rank(row: Figures) -> float:
    """The best first, and last what failed."""
    return float("inf") if "failed" in row else -sign(row["metric"]) * row["score"]


def body(study: Study, lines: Lines, kept: Mapping[str, Figures]) -> Figures:
    """The result file: trials and orderings in the order of the study."""
    report = jobs_of(study, "report")
    found: dict[str, Figures] = {}
    for one in study.trials:
        known = [lines[job.key] for job in report if job.trial == one and job.key in lines]
        done = [line for line in known if line["figures"] is not None]
        failed = [f"{line['name']}: {line['failed']}" for line in known if line["figures"] is None]
        if len(done) + len(failed) < len(study.seeds) or not done:
            continue
        runs = [line["figures"] for line in done]
        found[one.name] = {
            **summary(told(one), runs, promised(study, one, lines, kept)),
            "note": one.note,
            "failed": failed,
            "machines": unlike(line["machine"] for line in done),
        }
    ready = [o for o in study.orderings if o.better in found and o.worse in found]
    return {
        "paper": study.paper,
        "heading": study.heading,
        "note": study.note,
        "trials": list(found.values()),
        "orderings": [judged(ordering, found) for ordering in ready],
        "left": study.left,
        "not run": [trial.name for trial in study.trials if trial.name not in found],
    }


def promised(
    study: Study, trial: Trial, lines: Lines, kept: Mapping[str, Figures]
) -> Figures | None:
    """The promise of the looks, or the one that was made earlier of this very trial."""
    keys = [Job("look", study.paper, trial, seed).key for seed in LOOKS]
    looks = [lines[key]["figures"] for key in keys if key in lines]
    if len(looks) == len(LOOKS) and None not in looks:
        return promise(looks)
    old = kept.get(trial.name, {})
    same = all(old.get(name) == value for name, value in told(trial).items())
    return old.get("promise") if same else None


def unlike(machines: Iterable[Figures]) -> list[Figures]:
    """Every machine once."""
    found: list[Figures] = []
    for one in machines:
        if one not in found:
            found.append(one)
    return found
