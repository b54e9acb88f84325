"""Whether a run's books agree: statement, run file, ledger, model and taps tell of the same run.

Each check is exact, not a test at some level: what is derived anew must be what was written down. A
statement may say more than is derived (another version was more careful), never less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from confide.accounting import serial
from confide.accounting.events import ComposedDpEvent, DpEvent, SelfComposedDpEvent
from confide.accounting.relations import Refused
from confide.audit.finished import Finished
from confide.cells import Cell
from confide.engine import spending, taps
from confide.engine.loop import digest
from confide.engine.rounds import published_of
from confide.ledger import Ledger, LedgerError
from confide.report.fields import Fields, NotARun, load
from confide.report.record import cell_of
from confide.servers import Add

SLACK = 1e-6
"""Relative, for an epsilon that another machine or library has rounded otherwise."""


@dataclass(frozen=True)
class Check:
    """One thing that two places must agree about."""

    name: str
    verdict: str  # "pass", "warn" or "fail"
    words: str

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {"check": self.name, "verdict": self.verdict, "words": self.words}


def checks(run: Finished) -> Iterator[Check]:
    """Everything that can be compared in the directory of a run."""
    if run.place is None:
        return
    stated = Fields(run.place / "public/statement.json", load(run.place / "public/statement.json"))
    rounds = stated.whole("rounds")
    yield from of_statement(run, stated, rounds)
    path = run.place / "private" / "ledger.sqlite"
    if run.private and not path.is_file():
        yield Check("ledger", "fail", f"{path} is missing: nothing shows what was spent")
    elif run.private:
        try:
            with Ledger.open(path, readonly=True) as ledger:
                yield from of_ledger(run, ledger, rounds)
        except LedgerError as why:
            yield Check("ledger", "fail", f"the ledger cannot be trusted: {str(why).rstrip('.')}")
    yield from of_participations(run)


# The statement ----------------------------------------------------------------------------------


def of_statement(run: Finished, stated: Fields, rounds: int) -> Iterator[Check]:
    """Every row as it is written, beside the row that the run file derives for these rounds."""
    try:
        derived = run.books.statement(rounds, published_of(run.books.method, run.books.sizes))
    except Refused as why:
        yield Check("statement", "fail", f"the run file derives no statement: {why}")
        return
    written = {
        key_of(cell): cell for cell in (cell_of(r, stated) for r in stated.rows("statement"))
    }
    wanted = {key_of(cell): cell for cell in derived.cells}
    wrong = [f"{name_of(key)} is not written down" for key in wanted if key not in written]
    wrong += [f"{name_of(key)} is derived from nothing" for key in written if key not in wanted]
    for key in wanted:
        if key in written and (why := differs(written[key], wanted[key])):
            wrong.append(f"{name_of(key)} {why}")
    if wrong:
        more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        yield Check("statement", "fail", f"the statement is not what the run file derives: "
                                         f"{'; '.join(wrong[:3])}{more}")  # fmt: skip
        return
    larger = [
        name_of(key)
        for key in wanted
        if written[key].epsilon > wanted[key].epsilon * (1 + SLACK) + SLACK
    ]
    if larger:
        yield Check("statement", "warn", f"{larger[0]} states more than is derived now")
        return
    words = f"all {len(wanted)} rows are derived again from the run file, for {rounds} rounds"
    yield Check("statement", "pass", words)


def key_of(cell: Cell) -> tuple[str, str, str, str]:
    """What a row is about."""
    return cell.unit, cell.observer, cell.of, cell.group


def name_of(key: tuple[str, str, str, str]) -> str:
    """A row in words."""
    unit, observer, of, group = key
    beside = f" ({of})" if of != "update" else ""
    return f"the {unit}'s row to the {observer}{beside}" + (f", {group}" if group else "")


def differs(written: Cell, derived: Cell) -> str:
    """How a row claims more than was derived; nothing if it does not."""
    if written.relation != derived.relation or written.delta > derived.delta * (1 + SLACK):
        return (
            f"says {written.relation} at delta {written.delta:g}, derived is "
            f"{derived.relation} at {derived.delta:g}"
        )
    if derived.epsilon == inf and written.epsilon < inf:
        return f"says {written.epsilon:.6g}, and nothing is derived: {derived.reason}"
    if written.epsilon < derived.epsilon * (1 - SLACK):
        return f"says {written.epsilon:.6g}, derived is {derived.epsilon:.6g}"
    missing = [a for a in derived.assumptions if a not in written.assumptions]
    return f"does not say that it assumes: {missing[0]}" if missing else ""


# The ledger -------------------------------------------------------------------------------------


def of_ledger(run: Finished, ledger: Ledger, rounds: int) -> Iterator[Check]:
    """The chain of entries, the charges beside the plan, and the digests of what was released."""
    head = ledger.verify()
    outputs = ledger.outputs()
    charged = max(outputs, default=-1) + 1
    wrong = list(unlike(run, ledger, charged))
    if sorted(outputs) != list(range(charged)):
        lost = next(t for t in range(charged) if t not in outputs)
        wrong.insert(0, f"round {lost} was never charged")
    if rounds < charged:
        wrong.insert(0, f"{charged} rounds were charged, and the statement speaks of {rounds}")
    if charged < run.rounds:
        wrong.insert(0, f"the run made {run.rounds} rounds, and {charged} were charged")
    if wrong:
        yield Check("ledger", "fail", f"the ledger is not the run's: {'; '.join(wrong[:3])}")
        return
    words = (
        f"{head.entry} entries follow each other, and every row was charged for {charged} rounds "
        "what the run file derives"
    )
    yield Check("ledger", "pass", words)
    yield from of_releases(run, outputs)


def unlike(run: Finished, ledger: Ledger, charged: int) -> Iterator[str]:
    """Accounts whose limits or charges are not those of the plan."""
    books = run.books
    expected = planned_events(run, charged)
    for name, cap in books.caps.items():
        try:
            found = ledger.cap(name)
        except LedgerError:
            yield f"there is no account {name}"
            continue
        if found.scope != cap.scope or not near(found.limits, cap.limits):
            yield f"the limit of {name} is not the one that is derived"
        if books.held is None and charged:
            told = serial.dump(ledger.events(name))
            if told != serial.dump(composed(expected[name])):
                yield f"{name} was charged for something else than the plan's rounds"


def near(found: Sequence[float], derived: Sequence[float]) -> bool:
    """Equal but for rounding, and nowhere larger."""
    return len(found) == len(derived) and all(
        abs(a - b) <= SLACK * b for a, b in zip(found, derived, strict=True)
    )


def planned_events(run: Finished, charged: int) -> dict[str, dict[str, tuple[DpEvent, int]]]:
    """For each account, the events that the plan's first rounds cost it, and how often."""
    out: dict[str, dict[str, tuple[DpEvent, int]]] = {}
    if run.books.held is not None:
        return out
    for r, times in spending.first_rounds(run.books.plan, charged) if charged else []:
        for charge in run.books.charges(r, 0):
            for name in charge.accounts:
                text = serial.dump(charge.event)
                known = out.setdefault(name, {})
                _, before = known.get(text, (charge.event, 0))
                known[text] = charge.event, before + times * charge.count
    return out


def composed(parts: dict[str, tuple[DpEvent, int]]) -> DpEvent:
    """As the ledger puts together what an account was charged for."""
    each = [
        event if count == 1 else SelfComposedDpEvent(event, count)
        for event, count in parts.values()
    ]
    return each[0] if len(each) == 1 else ComposedDpEvent(each)


# What was released ------------------------------------------------------------------------------


def of_releases(run: Finished, outputs: dict[int, str | None]) -> Iterator[Check]:
    """The models that are here, beside the digests of the releases that the ledger recorded."""
    plain = all(
        type(r.server) is Add and "control" not in r.uploads and r.passes_on is None
        for r, _ in run.books.plan
    )
    if not plain or run.place is None:  # a release's digest covers the server's state too
        return
    models: dict[int, Any] = {}
    if run.model is not None:
        models[run.rounds - 1] = run.flat().gather(run.model)
    if "world" in taps.recorded(run.place):
        models |= {s.round - 1: s.received for s in taps.read(run.place, "world") if s.round}
    wrong = [t for t, model in sorted(models.items()) if digest(model) != outputs.get(t)]
    if wrong:
        words = f"the model after round {wrong[0]} is not the one that the ledger saw released"
        yield Check("release", "fail", words)
    elif models:
        some = "the last model is" if len(models) == 1 else f"{len(models)} models are"
        yield Check("release", "pass", f"{some} what the ledger saw released, to the bit")


def of_participations(run: Finished) -> Iterator[Check]:
    """The most that a client took part, where the statement rests on a limit."""
    assert run.place is not None
    limits = [r.cohort.at_most for r, _ in run.books.plan if r.cohort.at_most is not None]
    path = run.place / "private" / "summary.json"
    if not limits or not path.is_file():
        return
    try:
        most = Fields(path, load(path)).whole("participations_most")
    except NotARun as why:
        yield Check("participations", "fail", str(why).rstrip("."))
        return
    verdict = "pass" if most <= max(limits) else "fail"
    words = f"a client took part {most} times at the most, allowed are {max(limits)}"
    yield Check("participations", verdict, words)
