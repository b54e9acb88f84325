"""What an attack's scores come to: how well it told members from outsiders, and what that refutes.

Half of the members and outsiders choose a threshold, the other half is counted. Where a coin of the
run decided who was in, every pair is a guess of a one-run test, and its bound is valid whatever the
run did. Otherwise the counts are an estimate: they can warn, never fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from confide.audit import onerun
from confide.audit.bounds import Counts, Curve, epsilon_of_counts, refutes, upper_limit
from confide.audit.mechanism import LIKELY, SURE
from confide.audit.membership import Scores
from confide.cells import Cell
from confide.randomness import Stream

Interval = tuple[float, float, float]
"""A value, and the limits of its 95 % interval."""
Halves = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Of the pairs: those that choose, and those that are counted."""

SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5)
"""False alarms at which thresholds are tried on the half that chooses."""
AT = 0.01
"""The share of false alarms at which the share of members found is told."""
NULL = {"auc": 0.5, "tpr": AT, "advantage": 0.0}
"""What a blind guess gets."""
TESTS = 2 * 2 + len(onerun.SHARES)
"""Of one attack on one row: two thresholds read both ways, and the guesses of pairs."""


@dataclass(frozen=True, eq=False)
class Question:
    """Which row of the statement an attack is to refute, and what members are compared with."""

    attack: str
    cell: Cell
    curve: Curve | None  # what the row allows; none where it claims nothing
    of: str
    by_coin: bool  # whether a coin of the run decided who was in


@dataclass(frozen=True, eq=False)
class Outcome:
    """One attack against one row of the statement."""

    question: Question
    pairs: int
    metrics: Mapping[str, Interval]
    ceiling: Mapping[str, float]  # what the statement allows
    lower_bound: float  # valid whatever the run is; 0 where no coin decided
    refuted: float  # the smaller level at which a valid test refutes the claim; 1 if it does not
    estimate: float  # the epsilon that the counts would prove, were they of independent draws
    via: str
    verdict: str

    @property
    def claimed(self) -> float:
        """The row's epsilon."""
        return self.question.cell.epsilon

    def words(self) -> str:
        """One sentence."""
        cell = self.question.cell
        auc, low, high = self.metrics["auc"]
        told = (
            f"{self.question.attack} by the {cell.observer} on {self.pairs:,} {cell.unit}s beside "
            f"{self.question.of}: AUC {auc:.3f} ({low:.3f} to {high:.3f}; a coin has 0.5)"
        )
        if self.claimed == inf:
            return f"{told}; nothing is claimed ({cell.reason})"
        found, most = self.metrics["tpr"], self.ceiling["tpr"]
        told += f"; at {AT:.0%} false alarms it finds {found[0]:.1%}, allowed are {most:.1%}"
        if self.verdict == "pass":
            kind = "" if self.question.by_coin else ", which only an estimate says"
            return f"{told}; epsilon {self.claimed:.4g} is not refuted{kind}"
        if self.refuted <= LIKELY:
            level = "0.1 %" if self.refuted <= SURE else "5 %"
            return f"{told}; claimed {self.claimed:.4g}: refuted at level {level} by {self.via}"
        return f"{told}; claimed {self.claimed:.4g}, which {self.via} lets look too small"

    def row(self) -> dict[str, Any]:
        """For JSON, with the fields of every other release that is audited."""
        cell = self.question.cell
        return {
            "release": self.question.attack,
            "unit": cell.unit,
            "observer": cell.observer,
            "claimed": "inf" if self.claimed == inf else self.claimed,
            "delta": cell.delta,
            "lower_bound": self.lower_bound,
            "estimate": self.estimate,
            "via": self.via,
            "draws": 2 * self.pairs,
            "metrics": {name: list(value) for name, value in self.metrics.items()},
            "null": NULL,
            "ceiling": dict(self.ceiling),
            "verdict": self.verdict,
            "words": self.words(),
        }


def judged(question: Question, sides: tuple[Scores, Scores], tests: int, stream: Stream) -> Outcome:
    """The verdict on one row; `tests` is how many the whole audit makes."""
    ins, outs = sides
    order = stream.permutation(len(ins))
    halves = order[: len(ins) // 2], order[len(ins) // 2 :]
    delta = question.cell.delta
    curve = question.curve or no_claim
    counted = best(sides, halves, delta)
    estimate = max((epsilon_of_counts(c, delta, SURE / tests) for c in counted), default=0.0)
    doubted = any(refutes(c, curve, SURE / tests) for c in counted)
    valid, via, level = 0.0, "an estimate by counts of members and outsiders", 1.0
    if question.by_coin:
        first = stream.integers(2, len(ins)).astype(np.bool_)
        scores = np.where(first, ins - outs, outs - ins)
        found = onerun.examined({"pairs": scores}, first, curve, delta, tests)
        valid, level = found.lower_bound, found.refuted
        via = found.via if level < 1 or not doubted else via
    verdict = "fail" if level <= SURE else "warn" if level <= LIKELY or doubted else "pass"
    return Outcome(
        question, len(ins), metrics(sides, halves), allowed(curve), valid, level, estimate, via,
        verdict,
    )  # fmt: skip


def no_claim(_: float) -> float:
    """The curve that allows everything."""
    return 0.0


def best(sides: tuple[Scores, Scores], halves: Halves, delta: float) -> list[Counts]:
    """The thresholds that look best on one half, for epsilon and for both errors, on the other."""
    ins, outs = (side[halves[0]] for side in sides)
    options = [float(t) for t in np.unique(np.quantile(outs, [1 - share for share in SHARES]))]

    def epsilon(t: float) -> float:
        return epsilon_of_counts(counts(ins, outs, t), delta, LIKELY)

    def advantage(t: float) -> float:
        return float((ins >= t).mean() - (outs >= t).mean())

    chosen = [max(options, key=aim) for aim in (epsilon, advantage)]
    return [counts(sides[0][halves[1]], sides[1][halves[1]], t) for t in chosen]


def counts(ins: Scores, outs: Scores, threshold: float) -> Counts:
    """Errors of saying "in" at or above a threshold."""
    return Counts(int((outs >= threshold).sum()), len(outs), int((ins < threshold).sum()), len(ins))


def metrics(sides: tuple[Scores, Scores], halves: Halves) -> dict[str, Interval]:
    """AUC, members found at few false alarms, and the advantage, each with its 95 % interval.

    Thresholds are chosen on the first half and counted on the second.
    """
    (ins, counted_ins), (outs, counted_outs) = (tuple(side[h] for h in halves) for side in sides)
    few = counts(counted_ins, counted_outs, float(np.quantile(outs, 1 - AT)))
    options = np.unique(np.concatenate([ins, outs]))
    gaps = [(ins >= t).mean() - (outs >= t).mean() for t in options]
    good = counts(counted_ins, counted_outs, float(options[int(np.argmax(gaps))]))
    return {
        "auc": area(*sides),
        "tpr": (1 - few.misses / few.ins, *found(few)),
        "advantage": difference(good),
    }


def found(one: Counts) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval of the share of members found."""
    hits = one.ins - one.misses
    return 1 - upper_limit(one.misses, one.ins, 0.025), upper_limit(hits, one.ins, 0.025)


def difference(one: Counts) -> Interval:
    """Members found less false alarms, between limits that hold for both at 95 %."""
    alarms, misses = one.alarms / one.outs, one.misses / one.ins
    most = one.limits(0.025)
    least = (
        1 - upper_limit(one.outs - one.alarms, one.outs, 0.0125),
        1 - upper_limit(one.ins - one.misses, one.ins, 0.0125),
    )
    return 1 - alarms - misses, 1 - sum(most), 1 - sum(least)


def area(ins: Scores, outs: Scores) -> Interval:
    """The area under the ROC curve with DeLong's 95 % interval."""
    above = np.searchsorted(np.sort(outs), ins, "left") / len(outs)
    upto = np.searchsorted(np.sort(outs), ins, "right") / len(outs)
    by_member = (above + upto) / 2
    below = np.searchsorted(np.sort(ins), outs, "left") / len(ins)
    least = np.searchsorted(np.sort(ins), outs, "right") / len(ins)
    by_outsider = 1 - (below + least) / 2
    value = float(by_member.mean())
    if min(len(ins), len(outs)) < 2:
        return value, 0.0, 1.0
    spread = sqrt(by_member.var(ddof=1) / len(ins) + by_outsider.var(ddof=1) / len(outs))
    reach = float(ndtri(0.975)) * spread
    return value, max(0.0, value - reach), min(1.0, value + reach)


def allowed(curve: Curve) -> dict[str, float]:
    """What the statement lets any attack reach."""
    grid = np.linspace(0, 1, 2001)
    most = np.array([1 - curve(float(a)) for a in grid])
    return {
        "auc": float(most[1:].mean()),  # a little above: the curve rises
        "tpr": 1 - curve(AT),
        "advantage": float((most - grid).max()),
    }
