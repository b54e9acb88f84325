"""What a mutant is, and the checks that a person has who looks for one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from confide.accounting.relations import Refused
from confide.audit.accounts import Accounts
from confide.audit.mechanism import (
    DRAWS_APART,
    SURE,
    Effort,
    claimed,
    examined,
    families,
)
from confide.audit.recompute import recomputed
from confide.audit.sampling import judged
from confide.audit.targets import targets
from confide.cohorts import All, Fixed, Poisson
from confide.engine.rounds import Round, Sizes
from confide.engine.spending import Plan
from confide.randomness import Key
from confide.stages import Stage
from confide.statements import state

SIZES = Sizes(clients=20, records=20, layers=(8,) * 8)
DRAWS = 600
SCALAR = Sizes(clients=20, records=20, layers=(1,))
TESTS = 20
DELTA = 1e-5
Patched = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """A bug beside what it was made of; both answer in words what is found, None if nothing is."""

    name: str
    layer: str
    wrong: Callable[[], str | None]
    right: Callable[[], str | None]


@cache
def attacked(r: Round, sizes: Sizes = SIZES, draws: int = DRAWS, canary: str = "") -> str | None:
    """The audit of the mechanism: the words of a claim that is refuted at level 0.001.

    One canary that refutes it is enough. A weak bug takes more draws, and then only the canary that
    shows it.
    """
    target = list(targets(r, sizes))[-1]
    assert target.claimed, target.reason
    claim, key, effort = claimed(target, DELTA), Key.from_seed(4), Effort(1, draws)
    for number, one in enumerate(families(target)):
        if canary not in ("", one.name):
            continue
        first = number * DRAWS_APART
        for found in examined(target, one, key, first, effort, claim, DELTA, TESTS):
            if found.refuted <= SURE:
                return f"{found.via}, canary `{one.name}`: at least {found.lower_bound:.3g}"
    return None


def uploaded(*stages: Stage) -> Round:
    """What every client sends by itself."""
    return Round(cohort=All(), upload=stages)


def stage(name: str, right: tuple[Stage, ...], wrong: tuple[Stage, ...], **how: Any) -> Mutant:
    """A stage that claims what the right one proves and does something else."""
    return of_round(name, uploaded(*right), uploaded(*wrong), **how)


def of_round(name: str, right: Round, wrong: Round, **how: Any) -> Mutant:
    """The same anywhere in a round."""
    return Mutant(name, "mechanism", lambda: attacked(wrong, **how), lambda: attacked(right, **how))


def stated(plan: Plan, key: tuple[str, str, str]) -> float | str:
    """A row's epsilon, or the sentence with which the plan is refused."""
    try:
        return state(plan, SIZES).cell(*key).epsilon
    except (Refused, ValueError) as why:
        return str(why)


def derived(
    name: str,
    right: Plan | Round,
    wrong: Plan | Round | Callable[[], Plan | Round],
    key: tuple[str, str, str] = ("client", "world", "update"),
) -> Mutant:
    """A round whose bug the derivation sees: its row is larger than the right one's, or refused."""

    def found() -> str | None:
        before = stated(rounds(right), key)
        assert isinstance(before, float), before
        try:
            after = stated(rounds(wrong() if callable(wrong) else wrong), key)
        except (ValueError, TypeError) as why:
            return str(why)
        if isinstance(after, str):
            return after
        return f"{before:.4g} became {after:.4g}" if after > before * 1.001 else None

    def proved() -> str | None:
        before = stated(rounds(right), key)
        fine = isinstance(before, float) and before < float("inf")
        return None if fine else f"the right one has no row: {before}"

    return Mutant(name, "derivation", found, proved)


def rounds(thing: Plan | Round) -> Plan:
    """Ten rounds of the same, unless they are listed."""
    return [(thing, 10)] if isinstance(thing, Round) else list(thing)


def checked(plan: Plan, told: Plan, patched: Patched | None = None) -> str | None:
    """The rows of what the accountant was told, computed once more from what runs."""
    with pytest.MonkeyPatch.context() as patch:
        if patched is not None:
            patched(patch)
        statement = state(told, SIZES)
    found = Accounts(recomputed(plan, SIZES, statement), (), TESTS)
    assert any(one.least for one in found.rows) or found.faults
    return "; ".join(found.faults) or None


def told_another(name: str, plan: Plan | Round, told: Plan | Round) -> Mutant:
    """The accountant is told something else than what runs."""
    runs = rounds(plan)
    return Mutant(
        name, "accounts", lambda: checked(runs, rounds(told)), lambda: checked(runs, runs)
    )


def accounted(name: str, plan: Plan | Round, patched: Patched) -> Mutant:
    """A bug in the accounting itself."""
    runs = rounds(plan)
    return Mutant(
        name, "accounts", lambda: checked(runs, runs, patched), lambda: checked(runs, runs)
    )


def drawn(name: str, right: Poisson | Fixed, wrong: Poisson | Fixed) -> Mutant:
    """A sampler that draws otherwise than it is accounted."""

    def found(sampler: Poisson | Fixed) -> str | None:
        seen = judged("the cohort", sampler, 40, Key.from_seed(3))
        return seen.words() if seen.chance <= SURE / TESTS else None

    return Mutant(name, "samplers", lambda: found(wrong), lambda: found(right))


def refused(name: str, right: Callable[[], object], wrong: Callable[[], object]) -> Mutant:
    """What is not even begun, or ends with one sentence."""

    def said(begin: Callable[[], object]) -> str | None:
        try:
            begin()
        except (ValueError, TypeError, RuntimeError) as why:
            words = str(why)
            assert "\n" not in words
            return words
        return None

    return Mutant(name, "refusal", lambda: said(wrong), lambda: said(right))
