"""docs/results.md, written from the result files: no number in it is typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from judging import runs_of
from measure import RESULTS
from trials import Figures

MOST = 1000
DOCS = Path(__file__).parent.parent / "docs" / "results.md"
HEAD = f"""# Results of the papers' methods

Written by `python benchmarks/methods.py docs` from the files `benchmarks/results/methods_*.json`:
no number here was typed. Scores are means over the seeds on held-out records, with 95 % intervals
by Student's t. A *promise* was made of three runs on held-back training records with other seeds:
what one more run reaches with 95 %, and at least two points less than their mean (a twentieth of
an error), in three times the time of the slowest. Every run keeps it or misses it by itself; a
promise below 20 % would be none. An ordering is judged by the differences seed by seed, at equal
proved statements; it is undecided while the interval of the difference holds 0. Proved rows are
those of the update, up to an ε of {MOST}: a larger one says nothing. Side releases have rows of
their own in each file.
"""
TRIALS = (
    "trial", "method", "held-out score", "seeds", "promised", "loss", "rounds", "seconds",
    "proved ε", "published ε", "",
)  # fmt: skip
ORDERINGS = ("the paper's claim", "better", "worse", "difference", "seeds", "equal at", "as found")


def document() -> Path:
    """Write the page anew."""
    DOCS.write_text(page())
    return DOCS


def page() -> str:
    """The page, a section for every paper."""
    text = [HEAD]
    for path in sorted(RESULTS.glob("methods_*.json")):
        text += section(json.loads(path.read_text()))
    return "\n".join(text)


def section(read: dict[str, Any]) -> list[str]:
    """What was found about a paper's methods."""
    trials = {one["name"]: one for one in read["trials"]}
    text = [f"## {read['heading']}\n", f"`python benchmarks/methods.py run {read['paper']}`"]
    text += [f"\n{read['note']}" if read["note"] else "", ""]
    text += table(TRIALS, [trial_cells(one) for one in trials.values()])
    if read["orderings"]:
        rows = [ordering_cells(one, trials[one["better"]]["metric"]) for one in read["orderings"]]
        text += table(ORDERINGS, rows)
    text += searched(RESULTS / f"search_{read['paper']}.json")
    every = [machine for one in trials.values() for machine in one["machines"]]
    machines = dict.fromkeys(", ".join(f"{k} {v}" for k, v in one.items()) for one in every)
    text += [f"Measured on: {told}.\n" for told in machines]
    failed = [why for one in trials.values() for why in one["failed"]]
    text += [f"Failed: {why}.\n" for why in failed]
    if read["not run"]:
        why = read["left"] and f" ({read['left']})"
        text += [f"Not run{why}: {'; '.join(read['not run'])}.\n"]
    return text


def searched(path: Path) -> list[str]:
    """How the settings were found."""
    if not path.exists():
        return []
    read = json.loads(path.read_text())
    told = "; ".join(
        f"{name}, the best of {len(one['rows'])}" for name, one in read["trials"].items()
    )
    return [f"Searched on {read['scored on']} (`{path.name}`): {told}.\n"]


def with_half(mean: float, half: float | None, percent: bool) -> str:
    """A mean with half the width of its interval."""
    scale, unit, digits = (100.0, " %", 2) if percent else (1.0, "", 4)
    width = "" if half is None else f" ± {scale * half:.{digits}f}"
    return f"{scale * mean:.{digits}f}{width}{unit}"


def promise_cell(one: Figures) -> str:
    """What was promised, and who missed it."""
    promise = one["promise"]
    if promise is None:
        return ""
    reach, error = promise["reach"], one["metric"] == "error"
    told = f"in {promise['within']:.0f} s"
    if reach is not None:
        told = (f"at most {reach:g} " if error else f"{100 * reach:.0f} % ") + told
    else:
        told = f"no accuracy, {told}"
    return told + (f" (MISSED: {'; '.join(one['missed'])})" if one["missed"] else "")


def trial_cells(one: Figures) -> tuple[str, ...]:
    """A trial's row in the document."""
    runs = runs_of(one)
    percent, first = one["metric"] == "accuracy", runs[0]
    rows = [c for c in first["proved"] if c["row"].endswith("/update") and c["epsilon"] < MOST]
    least = dict.fromkeys(c["row"].removesuffix("/update") for c in rows)
    told = [
        f"{row} {max(c['epsilon'] for c in rows if c['row'] == f'{row}/update'):.4g}"
        f" (δ {next(c['delta'] for c in rows if c['row'] == f'{row}/update'):.2g})"
        for row in least
    ]
    claim = first["published"]
    rounds = [run["rounds"] for run in runs]
    return (
        one["name"],
        one["method"],
        with_half(one["mean"], one["half"], percent),
        f"{len(runs)}",
        promise_cell(one),
        f"{one['loss_mean']:.4f}",
        f"{min(rounds)}" if min(rounds) == max(rounds) else f"{min(rounds)}..{max(rounds)}",
        f"{one['seconds_mean']:.0f}",
        "; ".join(told) or "nothing",
        "" if claim is None else f"{float(claim['epsilon']):.4g} ({claim['unit']})",
        one["note"],
    )


def ordering_cells(one: Figures, metric: str) -> tuple[str, ...]:
    """An ordering's row in the document."""
    told = " and ".join(dict.fromkeys(f"{float(e):.4g}" for e in one["epsilon"]))
    told = f"{'/'.join(one['row'])} ε {told}, δ {one['delta']:.2g}"
    gain = with_half(one["gain"], one["half"], metric == "accuracy")
    seeds = str(one["seeds"])
    return one["claim"], one["better"], one["worse"], gain, seeds, told, one["verdict"]


def table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of Markdown."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]
