"""A method trained on real digits with canaries among its units: what only a run can show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from confide.audit.judging import LAYER, OneRun
from confide.audit.whole import WORST
from confide.data import load
from confide.data.dataset import Dataset
from confide.engine.canaries import Planting
from confide.engine.rounds import Method
from confide.engine.running import run

CLIENTS, RECORDS, PUBLIC = 100, 60, 100
"""Few enough for a minute, with as many records each as the methods' batches need."""


def trained(
    method: Method,
    *,
    canaries: int = 2000,
    rounds: int = 20,
    seed: int = 0,
    workers: int | None = None,
) -> OneRun:
    """Train the first rounds of the method's plan, and hear its canaries."""
    done = run(
        method,
        digits(),
        clients=CLIENTS,
        model="mlp",
        rounds=rounds,
        seed=seed,
        device="cpu",
        workers=workers,
        public=PUBLIC,
        evaluate_every=rounds,
        audit=Planting(canaries),
    )
    assert done.audit is not None
    return done.audit


def joined(found: dict[str, Any], one: OneRun) -> dict[str, Any]:
    """An audit's answer with what a run's canaries say beside it; the worse of both decides."""
    told = one.data(private=True)
    del told["coins"], told["scores"]
    out = {**found, "canaries": told}
    rows = told["rows"]
    if WORST[one.verdict] < WORST[found["verdict"]]:
        worst = min(rows, key=lambda row: WORST[row["verdict"]], default=None)
        out["verdict"] = one.verdict
        if worst is not None:
            out |= {
                "observer": worst["observer"],
                "claimed": {"epsilon": worst["claimed"], "delta": worst["delta"]},
                "lower_bound": worst["lower_bound"],
                "confidence": 0.999 if one.verdict == "fail" else 0.95,
                "via": f"{LAYER}: {worst['via']}",
                "power": worst["power"],
            }
    mine = [f"{LAYER}: {row['words']}" for row in rows if row["verdict"] != "pass"]
    out["faults"] = [*found["faults"], *mine]
    return out


def digits() -> Dataset:
    """The first training digits."""
    whole = load("mnist")
    some = CLIENTS * RECORDS + PUBLIC
    return replace(whole, x_train=whole.x_train[:some], y_train=whole.y_train[:some], columns={})
