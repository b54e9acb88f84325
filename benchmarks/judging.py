"""What the runs of a study say: whether a promise was kept, and whether a claimed ordering holds.

A promise is made of three runs on held-back training records: the accuracy that one more run
reaches with 95 %, at least two points below their mean, and three times the time of the slowest.
Runs with other seeds, on the test records, then keep it or miss it, each by itself.

An ordering is judged by the differences seed by seed, and only where both trials prove the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import ceil, floor, inf
from typing import Any

from trials import Figures, Ordering

from confide.report.seeds import spread

SAME = 1e-3
"""Two proved epsilons are equal when they differ by no more than this share: what a calibrated
noise may leave of its budget."""

POINTS, SHARE = 0.02, 0.05
"""The least margin of a promise: of an accuracy, and of an error as a share of it."""

GUESSED = 0.2
"""An accuracy below this one, twice that of guessing among ten, is no promise."""

SLOWER = 3.0
"""How much longer than the slowest look a run may take: machines are shared."""


def promise(looks: Sequence[Figures]) -> Figures:
    """What these looks at held-back records let one promise of the next run.

    A new run varies as one of the three does, on top of what their mean may be off: its interval by
    Student's t is sqrt(1 + 1/3) / sqrt(1/3) = 2 times as wide as that of the mean.
    """
    metric = looks[0]["metric"]
    scores, seconds = ([float(one[name]) for one in looks] for name in ("score", "seconds"))
    found = spread(scores)
    assert found.half is not None and len(scores) == 3
    reach: float | None
    if metric == "accuracy":
        reach = floor(100 * (found.mean - max(2 * found.half, POINTS))) / 100
        reach = reach if reach >= GUESSED else None
    else:
        reach = ceil(1000 * (found.mean + max(2 * found.half, SHARE * found.mean))) / 1000
    within = 10.0 * ceil(SLOWER * max(seconds) / 10)
    seeds = [one["seed"] for one in looks]
    return {
        "reach": reach, "within": within, "metric": metric, "scores": scores, "seconds": seconds,
        "seeds": seeds,
    }  # fmt: skip


def missed(promised: Figures, runs: Sequence[Figures]) -> list[str]:
    """Every run that broke the promise, in words."""
    if {one["seed"] for one in runs} & set(promised["seeds"]):
        raise ValueError("A promise is tested by runs with other seeds than those it was made of.")
    told: list[str] = []
    for one in runs:
        reach = promised["reach"]
        if reach is not None and sign(one["metric"]) * (one["score"] - reach) < 0:
            told.append(f"seed {one['seed']}: {one['metric']} {one['score']:.4f}")
        if one["seconds"] > promised["within"]:
            told.append(f"seed {one['seed']}: {one['seconds']:.0f} s")
    return told


def summary(trial: Figures, runs: Sequence[Figures], promised: Figures | None) -> Figures:
    """A trial with its runs, their mean and its interval, and whether its promise was kept.

    What is the same in every run stands once, in `every`.
    """
    score = spread([one["score"] for one in runs])
    every = {k: v for k, v in runs[0].items() if all(one[k] == v for one in runs)}
    return {
        **trial,
        "metric": runs[0]["metric"],
        "mean": score.mean,
        "half": score.half,
        "promise": promised,
        "missed": None if promised is None else missed(promised, runs),
        "loss_mean": spread([one["loss"] for one in runs]).mean,
        "seconds_mean": spread([one["seconds"] for one in runs]).mean,
        "every": every,
        "runs": [{k: v for k, v in one.items() if k not in every} for one in runs],
    }


def runs_of(found: Figures) -> list[Figures]:
    """The runs of a summary, each whole."""
    return [{**found["every"], **one} for one in found["runs"]]


def judged(ordering: Ordering, trials: Mapping[str, Figures]) -> Figures:
    """The differences of two trials, seed by seed, and what they say about the claim.

    "holds" and "the other way round" mean that the 95 % interval of the difference leaves out 0.
    """
    better, worse = (runs_of(trials[name]) for name in (ordering.better, ordering.worse))
    pairs = [(a, b) for a in better for b in worse if a["seed"] == b["seed"]]
    if not pairs:
        raise ValueError(f"Ordering {ordering.claim!r}: no seed was run with both trials.")
    up = sign(better[0]["metric"])
    gain = spread([up * (a["score"] - b["score"]) for a, b in pairs])
    both = [(proved(a, ordering.row), proved(b, ordering.row)) for a, b in pairs]
    epsilons = [max(pair[side][0] for pair in both) for side in (0, 1)]
    if not all(alike(first, second) for first, second in both):
        verdict = "not comparable: the proved statements differ"
    elif gain.half is None or abs(gain.mean) <= gain.half:
        verdict = "undecided"
    else:
        verdict = "holds" if gain.mean > 0 else "the other way round"
    return {
        **asdict(ordering),
        "gain": gain.mean,
        "half": gain.half,
        "seeds": len(pairs),
        "epsilon": ["inf" if epsilon == inf else epsilon for epsilon in epsilons],
        "delta": both[0][0][1],
        "verdict": verdict,
    }


def sign(metric: str) -> float:
    """Whether more is better."""
    return -1.0 if metric == "error" else 1.0


def proved(one: Figures, row: tuple[str, str]) -> tuple[float, float, str]:
    """Epsilon, delta and relation of the update's row, for the worst group of clients."""
    name = "/".join((*row, "update"))
    rows: list[dict[str, Any]] = one["proved"]
    found = [(c["epsilon"], c["delta"], c["relation"]) for c in rows if c["row"] == name]
    return max(found, default=(inf, 0.0, ""))


def alike(first: tuple[float, float, str], second: tuple[float, float, str]) -> bool:
    """Whether two statements are finite and equal but for what a search for noise leaves."""
    if first[1:] != second[1:] or inf in (first[0], second[0]):
        return False
    return abs(first[0] - second[0]) <= SAME * max(first[0], second[0])
