"""Every method of a paper trained for real, with seeds, intervals, promises and claimed orderings.

`python benchmarks/methods.py run [PAPER ...] [--stage search|look|report ...] [--out FILE]` makes
the runs of what `benchmarks/cases/PAPER.py` (with `_` for `-`) calls `STUDY`, and adds a line to
FILE after each; a batch that was cut off, as by `--seconds`, goes on where it stopped. Stages:

* `search` tries every combination of the trials' grids, on held-back training records with a seed
  that is not reported; the stages after it use what it finds best. It is written into the study by
  hand, and a test compares the two.
* `look` runs every trial three times on held-back training records: the promise is made of them.
* `report` runs every trial on the test records, with three seeds of its own, and the trials of
  orderings with more.

`python benchmarks/methods.py merge FILE ...` writes `results/search_PAPER.json` and
`results/methods_PAPER.json` from such files: machine, commit, settings, each seed's figures and
statement, the mean with its 95 % interval by Student's t, the promise and who missed it, and for
each ordering the difference of the paired seeds at equal proved statements.

`python benchmarks/methods.py docs` writes `docs/results.md` from the files `methods_*.json`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from batch import STAGES, Job, in_order, jobs_of, lines_of, settled, work
from measure import RESULTS, facts
from merging import merge
from results_page import document
from trials import Figures, Study

CASES = Path(__file__).parent / "cases"


def study(paper: str) -> Study:
    """The study of a paper, by the name of its file."""
    found = import_module(f"cases.{paper.replace('-', '_')}").STUDY
    assert isinstance(found, Study) and found.paper == paper
    return found


def papers() -> list[str]:
    """The papers with a study."""
    return sorted(path.stem.replace("_", "-") for path in CASES.glob("[a-z]*.py"))


def machine(gpu: int, commit: str | None) -> Figures:
    """The machine, with its accelerator if it is used."""
    import torch

    more = {"accelerator": torch.cuda.get_device_name()} if gpu else {}
    return {**facts(), **({"commit": commit} if commit else {}), **more}


def run(given: argparse.Namespace) -> int:
    """The runs of some studies, stage after stage; 1 if some could not be made in time."""
    studies = [study(paper) for paper in given.paper or papers()]
    stages = given.stage or STAGES

    def plan(lines: Mapping[str, Figures]) -> list[Job]:
        """With a search among the stages, the others are run with what it finds."""
        found = [
            job
            for one in studies
            for stage in stages
            for job in jobs_of(
                settled(one, lines) if stage != "search" and "search" in stages else one, stage
            )
            if not given.only or job.trial.name in given.only
        ]
        return in_order(found, studies)

    told = machine(given.gpu, given.commit)
    left = work(plan, given.out, given.jobs, given.gpu, given.seconds, told)
    print(f"{left} runs are left")
    return 1 if left else 0


def main() -> int:
    """Make runs, merge them into the results, or write the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("run", help="make runs")
    one.add_argument("paper", nargs="*", help=f"of {', '.join(papers())}; by default all")
    one.add_argument("--stage", action="append", choices=STAGES, help="by default all, in order")
    one.add_argument("--only", action="append", metavar="NAME", help="only this trial")
    one.add_argument("--out", type=Path, default=Path("runs/methods.jsonl"))
    one.add_argument("--jobs", type=int, default=1, help="runs at once; times suffer")
    one.add_argument("--gpu", type=int, default=0, help="how many of them are for a GPU's runs")
    one.add_argument("--seconds", type=float, default=86_400.0, help="then stop")
    one.add_argument("--commit", help="what is measured, where that is not a checkout")
    two = verbs.add_parser("merge", help="write the result files")
    two.add_argument("file", nargs="+", type=Path)
    verbs.add_parser("docs", help="write docs/results.md")
    given = parser.parse_args()
    if given.verb == "docs":
        print(document())
        return 0
    if given.verb == "merge":
        lines = lines_of(given.file)
        for paper in papers():
            for path in merge(study(paper), lines, RESULTS):
                print(path)
        return 0
    unknown = [paper for paper in given.paper if paper not in papers()]
    if unknown:
        parser.error(f"{', '.join(unknown)}: there are {', '.join(papers())}")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    return run(given)


if __name__ == "__main__":
    sys.exit(main())
