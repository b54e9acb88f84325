"""The audit of a method: its first and its last round, every release, every canary, its noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from confide.accounting.relations import Refused
from confide.audit.accounts import Accounts, accounts
from confide.audit.forensics import Forensics, forensics
from confide.audit.mechanism import (
    LEAST_DRAWS,
    LIKELY,
    SURE,
    Effort,
    claimed,
    families,
    findings,
)
from confide.audit.targets import Target, targets
from confide.audit.verdict import Release, strongest
from confide.engine.adapting import planned
from confide.engine.rounds import Method, Round, Sizes
from confide.engine.spending import unrolled
from confide.randomness import Key
from confide.statements import Statement

LAYERS = (32,) * 8
"""Few enough coordinates for thousands of draws, in layers enough for a fault in one of them."""
DELTA = 1e-5
SAMPLERS = 2
"""Of a round: the cohort's and the batches'."""
WORST = {"fail": 0, "warn": 1, "pass": 2}


@dataclass(frozen=True)
class Audit:
    """What was found about every release of a method, its noise and its messages."""

    method: str
    statement: Statement
    releases: tuple[Release, ...]
    noise: Forensics
    accounts: Accounts
    seconds: float
    tests: int  # whose level all findings share

    @property
    def worst(self) -> Release:
        """The release that looks worst; among those that pass, the one that leaks most."""

        def rank(one: Release) -> tuple[float, float]:
            bound = 0.0 if one.strongest is None else one.strongest.lower_bound
            return WORST[one.verdict], -bound

        return min(self.releases, key=rank)

    @property
    def verdict(self) -> str:
        """`fail`, `warn` or `pass`."""
        told = (self.worst.verdict, self.noise.verdict, self.accounts.verdict)
        return min(told, key=WORST.__getitem__)

    def row(self) -> dict[str, Any]:
        """The JSON object of the contract."""
        worst = self.worst.row()
        return {
            "method": self.method,
            "observer": worst["observer"],
            "claimed": {"epsilon": worst["claimed"], "delta": DELTA},
            "lower_bound": worst["lower_bound"],
            "confidence": 0.999 if self.verdict == "fail" else 0.95,
            "via": worst["via"],
            "verdict": self.verdict,
            "power": self.worst.power(),
            "seconds": self.seconds,
            "faults": [
                *(one.words() for one in self.releases if one.verdict != "pass"),
                *(fault.words for fault in self.noise.faults),
                *self.accounts.faults,
            ],
            "releases": [one.row() for one in self.releases],
            "noise": self.noise.row(),
            "accounts": self.accounts.row(),
            "statement": self.statement.rows(),
        }


def audit(
    method: Method,
    sizes: Sizes | None = None,
    *,
    seconds: float = 40.0,
    draws: int | None = None,
    seed: int = 0,
    others: int = 0,
) -> Audit:
    """Attack the releases of a method's first and last round.

    A release's claim is the one that its stages derive at these sizes, for one round and a unit
    that takes part in it. With `draws` and the seed the audit is repeatable; without, it makes as
    many draws as fit into about so many seconds. `others`: tests that are made beside these, for
    the level of all together.
    """
    began = perf_counter()
    small = small_sizes(method) if sizes is None else sizes
    plan = unrolled(method, small)
    if not plan:
        raise Refused(f"{type(method).__name__}: it has no rounds, so there is nothing to audit.")
    both = edges([r for r, _ in plan])
    found: list[Target] = [target for r in both for target in targets(r, small)]
    key = Key.from_seed(seed)
    # All forensics are one test.
    tests = 2 * sum(len(families(target)) for target in found) + SAMPLERS * len(both) + 1 + others
    effort = Effort(seconds, draws).shared(len(found))
    releases: list[Release] = []
    for number, target in enumerate(found):
        mine = findings(target, key, effort, DELTA, tests, number)
        releases.append(
            Release(
                name=target.name,
                unit=target.unit,
                observer=target.observer,
                claimed=claimed(target, DELTA)[0],
                reason=target.reason,
                strongest=strongest(mine),
                draws=min((one.draws for one in mine), default=LEAST_DRAWS),
                tests=tests,
            )
        )
    statement = planned(method, plan, small)
    added_up = accounts(plan, small, statement, both, key, tests)
    noise = forensics(
        method,
        statement,
        clients=small.clients,
        seed=seed,
        sure=SURE / tests,
        likely=LIKELY / tests,
    )
    took = perf_counter() - began
    return Audit(type(method).__name__, statement, tuple(releases), noise, added_up, took, tests)


def small_sizes(method: Method) -> Sizes:
    """The clients and records of the method's paper, with a small model."""
    setting: Any = getattr(type(method), "setting", None)
    if setting is None:
        return Sizes(clients=100, records=100, layers=LAYERS)
    return replace(setting.sizes, layers=LAYERS)


def edges(rounds: list[Round]) -> list[Round]:
    """The first round and the last, if it is another one."""
    return rounds[:1] if rounds[-1] == rounds[0] else [rounds[0], rounds[-1]]
