"""Layer 3 on a finished run: every membership attack that what was recorded allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

import torch
from torch import Tensor

from confide.audit.bounds import Curve
from confide.audit.candidates import LEAST, Pairs, pairs_of
from confide.audit.ceilings import of_replacing
from confide.audit.finished import Finished
from confide.audit.membership import ATTACKS, Attack, Evidence, Step
from confide.audit.outcome import TESTS, Outcome, Question, judged
from confide.audit.planting import rows_of
from confide.cells import Cell
from confide.engine import taps
from confide.engine.taps import Seen
from confide.randomness import Key
from confide.stages import Assume

UNITS = ("record", "client")
OBSERVERS = ("world", "server")


@dataclass(frozen=True, eq=False)
class Planned:
    """The attacks that are possible, how many tests they make, and what is not possible."""

    pairs: Pairs | None
    attacks: tuple[tuple[Attack, Evidence], ...]
    missing: tuple[str, ...]

    @property
    def tests(self) -> int:
        """How many tests all of them make."""
        return len(self.attacks) * len(UNITS) * TESTS


def planned(run: Finished, key: Key, attacks: Sequence[Attack] = ATTACKS) -> Planned:
    """Which attacks have what they need; the others are named with what they miss."""
    if run.model is None:
        return nothing("membership attacks: the run left no model")
    if not run.private:
        return nothing("membership attacks: private/ is not there, whose seed says who was in")
    validates = bool(getattr(run.books.method, "validates", False))
    stream = key.stream(0, None, "members and outsiders")
    pairs = pairs_of(run.federation, run.records, run.books.plan, validates, stream)
    if pairs is None:
        return nothing(f"membership attacks: fewer than {LEAST} members or outsiders are there")
    seen = {one.observer: one for one in observed(run)}
    able: list[tuple[Attack, Evidence]] = []
    missing: list[str] = []
    for attack in attacks:
        if attack.needs == "model":
            able.append((attack, seen["world"]))
            continue
        for observer in OBSERVERS:
            one = seen.get(observer)
            if one is not None and one.steps is not None:
                able.append((attack, one))
            else:
                missing.append(
                    f"{attack.name} by the {observer}: it was not recorded "
                    f'(confide run --set run.taps=["{observer}"])'
                )
    return Planned(pairs, tuple(able), tuple(missing))


def nothing(why: str) -> Planned:
    """No attack at all, for this reason."""
    return Planned(None, (), (why,))


def observed(run: Finished) -> Iterator[Evidence]:
    """What each observer has: everybody the last model, and who was tapped its rounds."""
    last = run.evidence()
    recorded = () if run.place is None else taps.recorded(run.place)
    for observer in OBSERVERS:
        if run.place is not None and observer in recorded:
            steps = steps_of(run.place, observer, last.model)
            yield replace(last, observer=observer, steps=steps)
        elif observer == "world":
            yield last


def outcomes(run: Finished, plan: Planned, key: Key, others: int = 0) -> list[Outcome]:
    """Every possible attack against its rows; `others`: tests that the audit makes elsewhere.

    What a statement assumes about the data is not tested: where it assumes anything, the attacks
    estimate.
    """
    if plan.pairs is None:
        return []
    limits = limits_of(run)
    stages = [stage for r, _ in run.books.plan for _, _, stage in r.stages()]
    by_coin = plan.pairs.by_coin and not any(isinstance(stage, Assume) for stage in stages)
    everyone = plan.pairs.everyone()
    found: list[Outcome] = []
    for number, (attack, evidence) in enumerate(plan.attacks):
        scores = attack.run(evidence, everyone)
        for unit in UNITS:
            cell, curve = limits[unit, evidence.observer]
            question = Question(attack.name, cell, curve, plan.pairs.words, by_coin)
            sides = plan.pairs.of(unit, scores)
            stream = key.stream(number, UNITS.index(unit), "halves and coins of an attack")
            found.append(judged(question, sides, plan.tests + others, stream))
    return found


def limits_of(run: Finished) -> dict[tuple[str, str], tuple[Cell, Curve | None]]:
    """Each row about the update, and the curve that it leaves to an attack on the run."""
    return {
        (row.cell.unit, row.cell.observer): (
            row.cell,
            None if row.cell.epsilon == inf else of_replacing(row.curve(), row.relation),
        )
        for row in rows_of(run.books, run.rounds)
    }


# What the rounds show ---------------------------------------------------------------------------


def steps_of(place: Path, observer: str, last: Tensor) -> Callable[[Iterable[int]], Iterator[Step]]:
    """The rounds as this observer saw them; `last` is the model after the last one."""
    seen = list(taps.read(place, observer))

    def steps(order: Iterable[int]) -> Iterator[Step]:
        for t in order:
            if t < len(seen):
                after = seen[t + 1].received if t + 1 < len(seen) else last
                yield step_of(seen[t], after)

    return steps


def step_of(seen: Seen, after: Tensor) -> Step:
    """Each client's own move where the observer sees it, otherwise the move of all of them."""
    model = seen.received
    members = frozenset(seen.clients) if seen.clients else None
    for name in ("update", "model"):
        rows = seen.vectors.get(f"upload {name}")
        if rows is not None and rows.shape[1] == len(model):
            start = model if name == "model" else torch.zeros_like(model)
            pairs = zip(seen.clients, rows, strict=True)
            return Step(model, {client: row - start for client, row in pairs}, members)
    total = seen.vectors.get("sum update")
    if total is not None and len(total) == len(model):
        return Step(model, {None: total.to(model.dtype)}, members)
    return Step(model, {None: after - model}, members)
