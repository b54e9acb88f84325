"""Layer 1: the noise of a real round under the microscope.

A few clients with different records go through rounds of the method by the engine's own code, under
several keys. What every stage added, where its bits came from, and every field that left a client
are looked at; nothing is trained for the purpose, and nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import chi2

from confide.audit import message
from confide.audit.chains import clips, ran, same
from confide.audit.faults import SEERS, Fault, against, told_once
from confide.audit.laws import is_continuous, is_noise
from confide.audit.message import Field
from confide.audit.rehearsal import Rehearsal, Seen
from confide.audit.residuals import Draw, Seat, Test, by_seat, draws, every_test, told
from confide.audit.sources import (
    gaps,
    global_states,
    grid_of,
    key_faults,
    moved,
    off_grid,
    poor,
    reseeded,
)
from confide.audit.twins import Call
from confide.engine.client import shared_streams
from confide.engine.rounds import Method
from confide.randomness import Key
from confide.stages import Correlated
from confide.stages.noises import FLOATING
from confide.statements import Statement

KEYS = 3
REPLAYS = 1000
"""Runs from here on are single stages that work once more, by streams of their own."""
ENOUGH = 4000
"""Numbers from each stage, so that a tenth of the standard deviation shows."""
MOST_REPLAYS = 4000


@dataclass(frozen=True)
class Forensics:
    """What was found about the noise and the messages of a method."""

    faults: tuple[Fault, ...]
    fields: tuple[Field, ...]
    grids: tuple[str, ...]
    tests: int
    draws: int
    power: str
    seconds: float

    @property
    def verdict(self) -> str:
        """`fail`, `warn` or `pass`."""
        levels = {fault.level for fault in self.faults}
        return "fail" if "fail" in levels else "warn" if "warn" in levels else "pass"

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "verdict": self.verdict,
            "tests": self.tests,
            "draws": self.draws,
            "power": self.power,
            "grids": list(self.grids),
            "faults": [fault.row() for fault in self.faults],
            "message": [field.row() for field in self.fields],
        }


def forensics(
    method: Method,
    statement: Statement,
    *,
    clients: int = 100,
    seed: int = 0,
    sure: float = 0.001,
    likely: float = 0.05,
) -> Forensics:
    """Look at the noise of a method's first two rounds and its last one.

    `statement` is what is said of it; `sure` and `likely` are the levels of FAIL and WARN for all
    tests of this function together. The same seed finds the same.
    """
    began = perf_counter()
    try:
        found = looked_at(method, statement, clients, Key.from_seed(seed), sure, likely)
    except (ValueError, TypeError, RuntimeError) as why:
        words = f"its rounds cannot be made with a small model: {why}"
        found = Forensics(
            (Fault("rehearsal", words, "told"),), (), (), 0, 0, "was not looked at", 0
        )
    return replace(found, seconds=perf_counter() - began)


def looked_at(
    method: Method, statement: Statement, clients: int, key: Key, sure: float, likely: float
) -> Forensics:
    """Make the rounds, and look."""
    show = Rehearsal.of(method, clients, key)
    turns = tuple(sorted({0, min(1, show.rounds - 1), show.rounds - 1}))
    before = global_states()
    runs = [list(show.play(run, turns)) for run in range(KEYS)]
    drawn_from = moved(before, global_states())
    calls = list(show.notes.calls)
    ends = tuple(sorted({0, turns[-1]}))
    faults = [*ran(runs, calls, statement), *clips(show, statement)]
    faults += generators(show, {seen.t: seen for seen in runs[0]}, ends, drawn_from, statement)
    others = {seen.t: seen for seen in show.play(KEYS, ends, other=True)}
    noisy = [call for call in calls if is_noise(call.stage, call.given.numel())]
    kinds = kinds_of(noisy)
    coins = np.random.default_rng(key.stream(0, None, "coins").uint64(4))
    found = draws(noisy, coins)
    found += draws(replayed(show, kinds, found), coins)
    tests = list(every_test(found, show.sizes.layers, REPLAYS))
    faults += refuted(tests, statement, sure, likely)
    faults += frozen(found, kinds, statement)
    faults += sources(kinds, key, statement)
    faults += [Fault("key", words, against(statement, SEERS["batch"])) for words in key_faults()]
    fields = message.fields_of(at_turns(runs, others), statement)
    faults += [
        Fault("message", field.fault, "fail" if field.against else "told")
        for field in fields
        if field.fault
    ]
    return Forensics(
        faults=tuple(told_once(faults)),
        fields=fields,
        grids=tuple(dict.fromkeys(grid_words(kinds))),
        tests=len(tests),
        draws=sum(len(one.scores) for one in found),
        power=power(found, len(tests), sure),
        seconds=0.0,
    )


def at_turns(
    runs: Sequence[Sequence[Seen]], others: Mapping[int, Seen]
) -> list[tuple[list[Seen], Seen]]:
    """The first and the last of the rounds: under every key, and on other records."""
    return [
        ([seen for run in runs for seen in run if seen.t == t], other)
        for t, other in others.items()
    ]


# Where the noise comes from ---------------------------------------------------------------------


def generators(
    show: Rehearsal,
    first: Mapping[int, Seen],
    turns: tuple[int, ...],
    drawn_from: Sequence[str],
    statement: Statement,
) -> Iterator[Fault]:
    """These rounds once more under the same key, with all global generators seeded anew."""
    level = against(statement, SEERS["batch"])
    for who in drawn_from:
        yield Fault("generator", f"a round draws from {who} global generator", level)
    written = len(show.notes.calls)
    with reseeded(20_261):
        again = list(show.play(0, turns))
    del show.notes.calls[written:]
    for once, twice in ((first[seen.t], seen) for seen in again):
        pairs = [
            (name, f"client {client}'s", vector, twice.sent[client].get(name))
            for client, vectors in once.sent.items()
            for name, vector in vectors.items()
        ]
        for name, vector in once.published.items():
            pairs.append((name, "the published", vector, twice.published.get(name)))
        for name, whose, vector, other in pairs:
            if other is None or not same(vector, other):
                words = f"{whose} `{name}` is another one under the same key, in round {once.t}"
                words += ": not all of its noise is the key's"
                yield Fault("generator", words, level, about=name)


def kinds_of(calls: Sequence[Call]) -> list[Call]:
    """One call of each stage, and of each form that it has in other rounds or for other clients."""
    found: dict[tuple[Seat, str], Call] = {}
    for call in calls:
        found.setdefault((call.seat, repr(call.stage)), call)
    return list(found.values())


def sources(kinds: Sequence[Call], key: Key, statement: Statement) -> Iterator[Fault]:
    """What each stage reads, and on what grid its results lie."""
    for call in kinds:
        level = against(statement, SEERS[call.place])
        where = told(call.seat, type(call.stage).__name__)
        if isinstance(call.stage, Correlated):
            continue  # its stream is made of several of the key's
        if words := poor(call, key):
            yield Fault("seed", f"{where} {words}", level)
        if words := off_grid(call, key):
            yield Fault("lattice", f"{where} {words}", level)
        rows = [c for c in statement.cells if c.observer in SEERS[call.place]]
        proved = [c for c in rows if c.status == "proved"]
        floats = grid_of(call) is None and is_continuous(call.stage, call.given.numel())
        if floats and proved and not any(FLOATING in c.assumptions for c in proved):
            words = "is drawn in floating point, and no row of the statement says that it assumes"
            yield Fault("lattice", f"{where} {words} real arithmetic", level)


def grid_words(kinds: Sequence[Call]) -> Iterator[str]:
    """What is found about the values that each noise can lead to."""
    for call in kinds:
        grid, where = grid_of(call), told(call.seat, type(call.stage).__name__)
        if grid is not None:
            yield f"{where}: on a grid of {grid:.3g}, whatever it is given"
        elif is_continuous(call.stage, call.given.numel()):
            kind, (least, most) = str(call.came.dtype).removeprefix("torch."), gaps(call)
            yield (
                f"{where}: {kind} values {least:.2g} to {most:.2g} apart, so which of them can "
                "come out hangs on what it is given; the statement assumes real arithmetic"
            )


# Tests ------------------------------------------------------------------------------------------


def replayed(show: Rehearsal, kinds: Sequence[Call], found: Sequence[Draw]) -> list[Call]:
    """Stages that added few numbers work again on the same vector until there are enough."""
    notes, written, have = show.notes, len(show.notes.calls), by_seat(found)
    for call in kinds:
        mine = have.pop(call.seat, None)
        if mine is None or isinstance(call.stage, Correlated):
            continue
        missing = ENOUGH - sum(len(one.scores) for one in mine)
        for i in range(min(MOST_REPLAYS, -(-missing // len(mine[0].scores)))):
            notes.run = REPLAYS + i
            notes.begin(call.t, call.client)
            own = show.key.stream(i, call.client, f"replay {call.seat}")
            call.stage(call.given.clone(), shared_streams(show.key, call.t), own)
    out = notes.calls[written:]
    del notes.calls[written:]
    return out


def refuted(
    tests: Sequence[Test], statement: Statement, sure: float, likely: float
) -> Iterator[Fault]:
    """The tests that fail at these levels, all together; what is furthest off comes first."""
    for test in sorted(tests, key=lambda one: -one.size):
        seers = sorted({seer for place, _, _ in test.seats for seer in SEERS[place]})
        level, about = against(statement, seers), told(test.seats[0])
        if test.p <= sure / len(tests):
            yield Fault(test.kind, test.words, level, about)
        elif test.p <= likely / len(tests) and level == "fail":
            yield Fault(test.kind, f"{test.words}, at level {likely:.2g}", "warn", about)


def frozen(found: Sequence[Draw], kinds: Sequence[Call], statement: Statement) -> Iterator[Fault]:
    """Entries to which continuous noise adds the same thing under every key."""
    continuous = {c.seat for c in kinds if is_continuous(c.stage, c.given.numel())}
    turns: dict[tuple[object, ...], list[Draw]] = {}
    for one in found:
        if one.run < KEYS and one.seat in continuous:
            turns.setdefault((one.seat, one.t, one.client, one.times), []).append(one)
    for mine in turns.values():
        stack, one = np.stack([draw.scores for draw in mine]), mine[0]
        still = int((stack == stack[0]).all(0).sum())
        if still and len(mine) == KEYS:
            who = "the server" if one.client is None else f"client {one.client}"
            words = f"{told(one.seat, one.name)} adds the same under every key to {still} of "
            words += f"{stack.shape[1]} entries (round {one.t}, {who})"
            yield Fault("frozen", words, against(statement, SEERS[one.seat[0]]), told(one.seat))


def power(found: Sequence[Draw], tests: int, sure: float) -> str:
    """How much of a stage's standard deviation may be missing before that is seen, mostly."""
    counts = [sum(len(one.scores) for one in mine) for mine in by_seat(found).values()]
    if not counts:
        return "there is no noise to look at"
    n = min(counts)
    low = sqrt(float(chi2.ppf(sure / tests / 2, n)) / n)
    share = 1 - low / sqrt(float(chi2.ppf(0.95, n)) / n)
    return f"would have caught any stage with {share:.0%} of its noise missing, 19 times in 20"
