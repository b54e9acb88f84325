"""What the canaries of a finished run say about the rows of its statement, as data and in words."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.audit.bounds import Counts, Curve
from confide.audit.claimed import Row
from confide.audit.onerun import (
    LIKELY,
    MISSING,
    SURE,
    Coins,
    Found,
    Scores,
    caught,
    counted,
    crossing,
    examined,
    fitted,
)
from confide.audit.planting import rows_to_test
from confide.engine.books import Books
from confide.engine.canaries import LEAST, Canaries
from confide.engine.sightings import Sightings, scores
from confide.rounding import bound

LAYER = "canaries in the run"
Points = tuple[tuple[float, float], ...]
POINTS = 60
LEAST_RATE = 1e-4


@dataclass(frozen=True, eq=False)
class Judged:
    """One row of the statement, and what was found about it."""

    row: Row
    found: Found
    power: float | None  # the least share of missing noise that would have been refuted
    ceiling: Points  # FPR and the largest TPR that the claim allows
    points: Points  # FPR and TPR of the strongest score, as counted
    sure: Points  # the same, each with its worse 95 % limits

    @property
    def verdict(self) -> str:
        """`fail` and `warn` by a valid bound; an estimate's lower limit can only warn."""
        if self.found.refuted <= SURE:
            return "fail"
        over = self.found.estimate_low > self.row.cell.epsilon
        return "warn" if over or self.found.refuted <= LIKELY else "pass"

    def words(self) -> str:
        """One sentence."""
        cell, found = self.row.cell, self.found
        said = (
            f"claimed {bound(cell.epsilon, 4)}, at least {found.lower_bound:.3g} (valid, 95 %), "
            f"estimated at least {found.estimate_low:.3g} (99.9 %)"
        )
        if found.refuted <= LIKELY:
            level = "0.1 %" if found.refuted <= SURE else "5 %"
            return f"{said}: the claim is refuted at level {level} ({found.via})"
        if self.verdict == "warn":
            return f"{said}: the estimate is above the claim, which no valid bound refutes"
        return f"{said}; {self.told_power()}"

    def told_power(self) -> str:
        """What would have been caught."""
        if self.power is None:
            return f"too few canaries to catch sigma off by {MISSING[-1] * 100:.0f} %"
        return f"would have caught sigma off by {self.power * 100:.0f} % or more"

    def data(self) -> dict[str, Any]:
        """For JSON and the report: a row like those of every other layer, and its curves."""
        cell, found = self.row.cell, self.found
        return {
            "layer": LAYER,
            "release": f"all rounds, {cell.participations} of one {cell.unit}",
            "unit": cell.unit,
            "observer": cell.observer,
            "relation": cell.relation,
            "claimed": number(cell.epsilon),
            "delta": cell.delta,
            "lower_bound": found.lower_bound,
            "if_gaussian": number(found.if_gaussian),
            "estimate": number(found.estimate_low),
            "estimate_point": number(found.estimate),
            "canaries": found.canaries,
            "via": found.via,
            "tests": found.tests,
            "verdict": self.verdict,
            "power": self.told_power(),
            "words": self.words(),
            "ceiling": [list(point) for point in self.ceiling],
            "points": [list(point) for point in self.points],
            "sure": [list(point) for point in self.sure],
        }


@dataclass(frozen=True, eq=False)
class OneRun:
    """The audit that a run with canaries is."""

    canaries: Canaries
    rows: tuple[Judged, ...]
    seen: dict[str, dict[str, Scores]]

    @property
    def verdict(self) -> str:
        """The worst of all rows; where none could be tested, nothing has passed."""
        found = [row.verdict for row in self.rows] or ["warn"]
        return next((one for one in ("fail", "warn") if one in found), "pass")

    def words(self) -> str:
        """What everybody must know who sees the model."""
        return marked(self.canaries.count, self.canaries.unit)

    def data(self, *, private: bool) -> dict[str, Any]:
        """For JSON; what only the server saw, the scores and the coins are the owner's alone."""
        shown = [row for row in self.rows if private or row.row.cell.observer == "world"]
        out: dict[str, Any] = {
            "canaries": self.canaries.count,
            "unit": self.canaries.unit,
            "relation": str(self.canaries.relation),
            "words": self.words(),
            "verdict": self.verdict,
            "rows": [row.data() for row in shown],
        }
        if private:
            out["coins"] = self.canaries.coins.astype(int).tolist()
            out["scores"] = {
                view: {name: one.tolist() for name, one in told.items()}
                for view, told in self.seen.items()
            }
        return out


def marked(count: int, unit: str) -> str:
    """The mark of a run with canaries."""
    return (
        f"This run is an audit: it holds {count} canary {unit}s, each in with probability 1/2, and "
        "they are in its model and its statement."
    )


def judge(
    books: Books, sightings: Sightings, done: int, participations: NDArray[np.int64]
) -> OneRun:
    """Every row that these canaries are a case of, after so many rounds."""
    canaries = sightings.canaries
    seen = {view: scores(sightings.kept, view) for view in ("world", "server")}
    came = participations[canaries.owners]
    there = {"world": came >= 0, "server": came > 0}  # the server knows who never came
    known = [
        row
        for row in rows_to_test(books, canaries, done)
        if seen[row.cell.observer] and there[row.cell.observer].sum() >= LEAST
    ]
    tests = sum(counted(seen[row.cell.observer]) for row in known)
    judged: list[Judged] = []
    for row in known:
        view = row.cell.observer
        told = {name: values[there[view]] for name, values in seen[view].items()}
        narrow = row.at(int(came.max())) if view == "server" else row
        judged.append(one(narrow, told, canaries.coins[there[view]], tests))
    return OneRun(canaries, tuple(judged), {view: told for view, told in seen.items() if told})


def one(row: Row, told: dict[str, Scores], coins: Coins, tests: int) -> Judged:
    """One row: its claim against the guesses."""
    curve, delta = row.curve(), row.cell.delta
    found = examined(told, coins, curve, delta, tests)
    strongest = max(told.values(), key=lambda scores: fitted(scores, coins).mu)
    mu = min(fitted(strongest, coins).mu, crossing(curve))
    counted_points, sure = roc(strongest, coins)
    return Judged(
        row=row,
        found=found,
        power=caught(curve, mu, len(coins), tests),
        ceiling=ceiling_points(curve),
        points=counted_points,
        sure=sure,
    )


def ceiling_points(curve: Curve) -> Points:
    """What the claim allows: the TPR at most, for false-alarm rates on a logarithmic scale."""
    rates = np.logspace(np.log10(LEAST_RATE), 0, POINTS)
    return tuple((float(fpr), 1 - curve(float(fpr))) for fpr in rates)


def roc(scores: Scores, coins: Coins) -> tuple[Points, Points]:
    """Both rates at thresholds from the strictest on: as counted, and at their worse limits."""
    order = np.argsort(-scores, kind="stable")
    hits, alarms = np.cumsum(coins[order]), np.cumsum(~coins[order])
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    kept = np.unique(ends[np.unique(np.logspace(0, np.log10(len(ends)), POINTS).astype(int)) - 1])
    ins, outs = max(int(coins.sum()), 1), max(int((~coins).sum()), 1)
    counts = [Counts(int(alarms[at]), outs, ins - int(hits[at]), ins) for at in kept]
    limits = [one.limits(LIKELY) for one in counts]
    return (
        tuple((one.alarms / outs, 1 - one.misses / ins) for one in counts),
        tuple((fpr, 1 - fnr) for fpr, fnr in limits),
    )


def number(value: float) -> float | str:
    """As JSON holds it."""
    return value if isfinite(value) else "inf"
