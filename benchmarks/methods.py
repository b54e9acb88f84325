"""Every method of a paper trained for real, with seeds, intervals and the orderings it claims.

`python benchmarks/methods.py PAPER [--only NAME] [--seeds 0,1,2] [--device cpu] [--jobs 4]` trains
what `benchmarks/cases/PAPER.py` (with `_` for `-`) calls `STUDY`. After every trial it writes
`results/methods_PAPER.json`: machine, commit, settings, each seed's figures and statement, the mean
with its 95 % interval by Student's t, and for each ordering the difference of the paired seeds at
equal proved statements. With `--only`, trials of other names are kept from the file that is there.

`python benchmarks/methods.py PAPER --search [--only NAME]` tries every combination of the grids of
the trials, on held-back training records with a seed that is not reported, and writes
`results/search_PAPER.json`. What it finds best is then written into the study by hand.

`python benchmarks/methods.py --docs` writes `docs/results.md` from the files `methods_*.json`.

A study is a list of `Trial`s and `Ordering`s (benchmarks/trials.py).
"""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from measure import RESULTS, facts
from trials import (
    HELD_BACK,
    SEARCH_SEED,
    Figures,
    Study,
    candidates,
    judged,
    sign,
    summary,
    trained,
    tried,
)  # fmt: skip

CASES = Path(__file__).parent / "cases"
MOST = 1000
DOCS = Path(__file__).parent.parent / "docs" / "results.md"


def study(paper: str) -> Study:
    """The study of a paper, by the name of its file."""
    found = import_module(f"cases.{paper.replace('-', '_')}").STUDY
    assert isinstance(found, Study) and found.paper == paper
    return found


def papers() -> list[str]:
    """The papers with a study."""
    return sorted(path.stem.replace("_", "-") for path in CASES.glob("[a-z]*.py"))


def train(given: Study, only: list[str], seeds: list[int], at: Place, path: Path) -> None:
    """Every trial with every seed; the file is whole after each trial."""
    found = kept(path, given, only)
    chosen = [trial for trial in given.trials if not only or trial.name in only]
    with at.pool() as pool:
        waiting = {t.name: [pool.submit(trained, t, s, *at.given) for s in seeds] for t in chosen}
        for trial in chosen:
            runs: list[Figures] = []
            for one in waiting[trial.name]:
                runs.append(one.result())
                print(line(trial.name, runs[-1]), flush=True)
            found[trial.name] = {**summary(trial, runs), "machine": at.facts()}
            path.write_text(json.dumps(body(given, found), indent=1) + "\n")


def search(given: Study, only: list[str], at: Place, path: Path) -> None:
    """The grids of all trials that have one, the best first; the file is whole after each trial."""
    found: Figures = json.loads(path.read_text())["trials"] if only and path.exists() else {}
    chosen = [trial for trial in given.trials if trial.grid and (not only or trial.name in only)]
    with at.pool() as pool:
        waiting = {
            trial.name: [pool.submit(tried, trial, v, *at.given) for v in candidates(trial.grid)]
            for trial in chosen
        }
        for trial in chosen:
            rows = [one.result() for one in waiting[trial.name]]
            rows.sort(key=lambda row: sign(row["metric"]) * row["score"], reverse=True)
            print(trial.name, *rows, sep="\n", flush=True)
            found[trial.name] = rows
            scored = f"{HELD_BACK} held-back training records, seed {SEARCH_SEED}"
            told = {"machine": at.facts(), "scored on": scored, "trials": found}
            path.write_text(json.dumps(told, indent=1) + "\n")


@dataclass(frozen=True)
class Place:
    """Where runs are made, and how many at once."""

    device: str
    jobs: int

    @property
    def given(self) -> tuple[str, int | None]:
        """What a run is told."""
        return self.device, None if self.jobs == 1 else max(1, (os.cpu_count() or 1) // self.jobs)

    def pool(self) -> ProcessPoolExecutor:
        """A process for each run that is made at once."""
        return ProcessPoolExecutor(self.jobs, mp_context=get_context("spawn"))

    def facts(self) -> dict[str, str]:
        """The machine with its accelerator, if it is used."""
        import torch

        used = self.device != "cpu" and torch.cuda.is_available()
        more = {"accelerator": torch.cuda.get_device_name()} if used else {}
        return {**facts(), **more, "runs at once": str(self.jobs)}


def kept(path: Path, given: Study, only: list[str]) -> dict[str, Figures]:
    """With `only`, what an earlier call found about trials that are still in the study."""
    if not only or not path.exists():
        return {}
    names = {trial.name for trial in given.trials}
    old: list[Figures] = json.loads(path.read_text())["trials"]
    return {one["name"]: one for one in old if one["name"] in names}


def body(given: Study, found: dict[str, Figures]) -> Figures:
    """The result file: trials and orderings in the order of the study."""
    order = [trial.name for trial in given.trials if trial.name in found]
    ready = [o for o in given.orderings if o.better in found and o.worse in found]
    return {
        "paper": given.paper,
        "heading": given.heading,
        "note": given.note,
        "trials": [found[name] for name in order],
        "orderings": [judged(ordering, found) for ordering in ready],
        "not run": [trial.name for trial in given.trials if trial.name not in found],
    }


def line(name: str, one: Figures) -> str:
    """A run at a glance."""
    rows = ", ".join(
        f"{c['row']} {c['epsilon']:.4g}" for c in one["proved"] if c["row"].endswith("update")
    )
    return (
        f"{name}, seed {one['seed']}: {one['metric']} {one['score']:.4f}, {one['rounds']} rounds, "
        f"{one['seconds']:.1f} s; {rows or 'nothing is proved'}"
    )


def with_half(mean: float, half: float | None, percent: bool) -> str:
    """A mean with half the width of its interval."""
    scale, unit, digits = (100.0, " %", 2) if percent else (1.0, "", 4)
    width = "" if half is None else f" ± {scale * half:.{digits}f}"
    return f"{scale * mean:.{digits}f}{width}{unit}"


def trial_cells(one: Figures) -> tuple[str, ...]:
    """A trial's row in the document."""
    percent, first = one["metric"] == "accuracy", one["runs"][0]
    rows = [c for c in first["proved"] if c["row"].endswith("/update") and c["epsilon"] < MOST]
    least = dict.fromkeys(c["row"].removesuffix("/update") for c in rows)
    told = [
        f"{row} {max(c['epsilon'] for c in rows if c['row'] == f'{row}/update'):.4g}"
        f" (δ {next(c['delta'] for c in rows if c['row'] == f'{row}/update'):.2g})"
        for row in least
    ]
    promised = "" if one["reach"] is None else with_half(one["reach"], None, percent)
    if one["reached"] is False:
        promised += " (MISSED)"
    claim = first["published"]
    rounds = [run["rounds"] for run in one["runs"]]
    return (
        one["name"],
        one["method"],
        with_half(one["mean"], one["half"], percent),
        promised,
        f"{one['loss_mean']:.4f}",
        f"{min(rounds)}" if min(rounds) == max(rounds) else f"{min(rounds)}..{max(rounds)}",
        f"{one['seconds_mean']:.0f}",
        "; ".join(told) or "nothing",
        "" if claim is None else f"{claim['epsilon']} ({claim['unit']})",
        one["note"],
    )


TRIALS = (
    "trial", "method", "held-out score", "promised", "loss", "rounds", "seconds", "proved ε",
    "published ε", "",
)  # fmt: skip
ORDERINGS = ("the paper's claim", "better", "worse", "difference", "equal at", "as found")


def ordering_cells(one: Figures, metric: str) -> tuple[str, ...]:
    """An ordering's row in the document."""
    told = " and ".join(dict.fromkeys(f"{float(e):.4g}" for e in one["epsilon"]))
    told = f"{'/'.join(one['row'])} ε {told}, δ {one['delta']:.2g}"
    gain = with_half(one["gain"], one["half"], metric == "accuracy")
    return one["claim"], one["better"], one["worse"], gain, told, one["verdict"]


def table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of Markdown."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def document() -> None:
    """Write docs/results.md from the files: no number in it is typed."""
    text = [
        "# Results of the papers' methods\n",
        "Written by `python benchmarks/methods.py --docs` from the files "
        "`benchmarks/results/methods_*.json`: no number here was typed. Scores are means over the "
        "seeds on held-out records, with 95 % intervals by Student's t. An ordering is judged by "
        "the differences seed by seed, at equal proved statements; it is undecided while the "
        "interval of the difference holds 0. Proved rows are those of the update, up to an ε of "
        f"{MOST}: a larger one says nothing. Side releases have rows of their own in each file.\n",
    ]
    for path in sorted(RESULTS.glob("methods_*.json")):
        read: dict[str, Any] = json.loads(path.read_text())
        trials = {one["name"]: one for one in read["trials"]}
        text += [f"## {read['heading']}\n", f"`python benchmarks/methods.py {read['paper']}`"]
        text += [f"\n{read['note']}" if read["note"] else "", ""]
        text += table(TRIALS, [trial_cells(one) for one in trials.values()])
        if read["orderings"]:
            text += table(
                ORDERINGS,
                [ordering_cells(one, trials[one["better"]]["metric"]) for one in read["orderings"]],
            )
        machines = {", ".join(f"{k} {v}" for k, v in one["machine"].items()): None for one in
                    trials.values()}  # fmt: skip
        text += [f"Measured on: {told}.\n" for told in machines]
        if read.get("not run"):
            text += [f"In the study, and not run here: {'; '.join(read['not run'])}.\n"]
    DOCS.write_text("\n".join(text))
    print(DOCS)


def main() -> None:
    """Train a paper's methods, or write the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paper", nargs="?", choices=papers())
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="this trial; may be repeated"
    )
    parser.add_argument("--seeds", help="in place of the study's own, such as 0,1,2")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--jobs", type=int, default=1, help="runs at once; times suffer")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--search", action="store_true", help="try the grids, on held-back records")
    parser.add_argument("--docs", action="store_true", help="write docs/results.md and stop")
    given = parser.parse_args()
    if given.docs:
        return document()
    if given.paper is None:
        parser.error("PAPER is missing; or --docs")
    chosen, at = study(given.paper), Place(given.device, given.jobs)
    for name in given.only:
        if name not in [trial.name for trial in chosen.trials]:
            parser.error(f"--only {name}: there are {[trial.name for trial in chosen.trials]}")
    if given.search:
        path = given.json or RESULTS / f"search_{given.paper}.json"
        return search(chosen, given.only, at, path)
    seeds = [int(word) for word in given.seeds.split(",")] if given.seeds else list(chosen.seeds)
    path = given.json or RESULTS / f"methods_{given.paper}.json"
    return train(chosen, given.only, seeds, at, path)


if __name__ == "__main__":
    main()
