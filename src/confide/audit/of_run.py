"""The audit of a finished run: its stages at its settings, its books, attacks on what it left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from confide.accounting.relations import Refused
from confide.audit.attacked import outcomes, planned
from confide.audit.checks import Check, checks
from confide.audit.finished import Finished, of_directory, of_run
from confide.audit.outcome import Outcome
from confide.audit.whole import LAYERS, WORST, Audit, audit
from confide.engine.records import AUDIT, CANARIES
from confide.randomness import Key
from confide.report.fields import Fields, load

if TYPE_CHECKING:
    from confide.engine.running import Run

FOR_STAGES = 0.6
"""Of the time: what is left is for the books and the attacks."""


@dataclass(frozen=True, eq=False)
class RunAudit:
    """What was found about a run; `method` is the audit of its stages, where that is possible."""

    run: Finished
    method: Audit | None
    checks: tuple[Check, ...]
    outcomes: tuple[Outcome, ...]
    missing: tuple[str, ...]
    canaries: Mapping[str, Any] | None  # what those of the run tell, where it had some
    seconds: float

    @property
    def verdict(self) -> str:
        """The worst of all parts."""
        told = [one.verdict for one in (*self.checks, *self.outcomes)]
        if self.method is not None:
            told.append(self.method.verdict)
        if self.canaries is not None:
            told.append(self.canaries["verdict"])
        return min(told, key=WORST.__getitem__, default="pass")

    @property
    def faults(self) -> list[str]:
        """Everything that is not as it says, in words."""
        mine = [one.words for one in self.checks if one.verdict != "pass"]
        mine += [one.words() for one in self.outcomes if one.verdict != "pass"]
        if self.canaries is not None:
            mine += [row["words"] for row in self.canaries["rows"] if row["verdict"] != "pass"]
        return mine + ([] if self.method is None else self.method.row()["faults"])

    def row(self) -> dict[str, Any]:
        """The JSON object of the contract, with what there is about the run itself."""
        base = {} if self.method is None else self.method.row()
        return {
            **nothing_audited(),
            **base,
            **self.decisive(base),
            "method": self.run.method,
            "verdict": self.verdict,
            "seconds": self.seconds,
            "faults": self.faults,
            "run": {
                "dir": None if self.run.place is None else str(self.run.place),
                "rounds": self.run.rounds,
                "checks": [one.row() for one in self.checks],
                "attacks": [one.row() for one in self.outcomes],
                "canaries": self.canaries,
                "not_done": list(self.missing),
            },
        }

    def decisive(self, base: dict[str, Any]) -> dict[str, Any]:
        """The fields about the one finding that decides, where an attack on the run is it."""
        worst = min(self.outcomes, key=lambda o: (WORST[o.verdict], -o.lower_bound), default=None)
        if worst is None or (base and WORST[worst.verdict] >= WORST[base["verdict"]]):
            return {}
        row = worst.row()
        return {
            "observer": row["observer"],
            "claimed": {"epsilon": row["claimed"], "delta": row["delta"]},
            "lower_bound": row["lower_bound"],
            "confidence": 0.999 if worst.verdict == "fail" else 0.95,
            "via": f"{row['release']}: {row['via']}",
        }


def nothing_audited() -> dict[str, Any]:
    """The contract's fields where no stage was audited and no attack was possible."""
    return {
        "observer": "world",
        "claimed": {"epsilon": "inf", "delta": 0.0},
        "lower_bound": 0.0,
        "confidence": 0.95,
        "via": "",
        "power": "no stage was audited",
        "releases": [],
    }


def audit_run(
    run: Run | str | Path, *, seconds: float = 40.0, draws: int | None = None, seed: int = 0
) -> RunAudit:
    """Audit what a run left: a finished run, or its directory.

    The statement is derived once more and laid beside the ledger; the stages of the method are
    attacked at the run's settings; and who was in the run is guessed by all that was recorded.
    """
    began = perf_counter()
    done = of_directory(Path(run)) if isinstance(run, str | Path) else of_run(run)
    key = Key.from_seed(seed)
    compared = tuple(checks(done))
    plan = planned(done, key)
    missing = list(plan.missing)
    if done.place is not None and not done.private:
        missing.insert(0, "the ledger: private/ is not there")
    if done.place is None:
        missing.insert(0, "the ledger: the run has no directory")
    stages, why = audited(done, FOR_STAGES * seconds, draws, seed, plan.tests)
    if why:
        missing.insert(0, why)
    others = 0 if stages is None else stages.tests - plan.tests
    found = tuple(outcomes(done, plan, key, others))
    told = canaries_of(run, done)
    return RunAudit(done, stages, compared, found, tuple(missing), told, perf_counter() - began)


def canaries_of(run: Run | str | Path, done: Finished) -> dict[str, Any] | None:
    """What the run's own canaries say of its statement (layer 2), as it was written down."""
    if done.place is None:
        held = None if isinstance(run, str | Path) else run.audit
        return None if held is None else held.data(private=False)
    path = next((p for name in (CANARIES, AUDIT) if (p := done.place / name).is_file()), None)
    if path is None:
        return None
    told = Fields(path, load(path))
    rows = [Fields(path, one) for one in told.rows("rows")]
    verdicts = [told.text("verdict"), *(row.text("verdict") for row in rows)]
    wrong = next((word for word in verdicts if word not in WORST), None)
    if wrong is not None:
        raise told.wrong("verdict", wrong, ", ".join(WORST))
    return {
        "canaries": told.whole("canaries"),
        "unit": told.text("unit"),
        "words": told.text("words"),
        "verdict": min(verdicts, key=WORST.__getitem__),
        "rows": [dict(row.data) for row in rows],
    }


def audited(
    run: Finished, seconds: float, draws: int | None, seed: int, others: int
) -> tuple[Audit | None, str]:
    """The stages at the run's settings, with a small model; or why they cannot be audited."""
    books = run.books
    sizes = replace(books.sizes, layers=LAYERS)
    try:
        found = audit(books.method, sizes, seconds=seconds, draws=draws, seed=seed, others=others)
        return found, ""
    except (Refused, ValueError) as why:
        return None, f"the method's stages: {str(why).rstrip('.')}"
