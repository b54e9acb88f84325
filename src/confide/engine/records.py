"""What a finished run leaves in its directory."""

from __future__ import annotations

import dataclasses
import platform
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from confide import __version__
from confide.engine.directory import Directory

if TYPE_CHECKING:
    from confide.engine.running import Run

MOST_CLIENTS_SHOWN = 60
AUDIT, CANARIES = "public/audit.json", "private/canaries.json"
"""What an audited run's canaries tell: as far as everybody saw it, and all of it."""


def write(directory: Directory, run: Run) -> None:
    """The model, the statement and the metrics in public; what could tell on clients in private.

    The last file says how the run ended: `run.json` that it is finished, `failed.json` that it has
    no model, though what it spent is stated all the same.
    """
    if run.failed is None:
        directory.write_model(run.parameters)
    directory.write_json("public/statement.json", statement(run))
    directory.write_lines("public/metrics.jsonl", list(run.metrics))
    directory.write_json("private/summary.json", private(run))
    if run.audit is not None:
        directory.write_json(AUDIT, run.audit.data(private=False))
        directory.write_json(CANARIES, run.audit.data(private=True))
    directory.write_json(f"public/{'run' if run.failed is None else 'failed'}.json", public(run))


def statement(run: Run) -> dict[str, Any]:
    """The rows, the published claim, and everything in words."""
    claim = run.published
    told = [] if run.audit is None else [run.audit.words()]
    return {
        "statement": run.statement.rows(),
        "published": None if claim is None else claim.row(),
        "words": [*told, *run.statement.words().splitlines()],
        "audit": None if run.audit is None else run.audit.words(),
        "rounds": run.statement.rounds,
    }


def public(run: Run) -> dict[str, Any]:
    """Nothing in here depends on data, but for the released model's figures on held-out records."""
    federation = run.federation
    return {
        "method": method_name(run.method),
        "paper": str(getattr(type(run.method), "paper", "")),
        "data": run.data,
        "data_source": federation.data.source,
        "licence": federation.data.licence,
        "model": run.model,
        "parameters": run.statement.sizes.dim,
        "rounds": run.rounds,
        "planned": run.planned,
        "clients": run.clients,
        "partition": federation.partition,
        "accuracy": run.accuracy,
        "loss": run.loss,
        "metric": "mean absolute error" if federation.data.classes is None else "accuracy",
        "strategy": run.strategy,
        "settings": settings(run.method),
        "budget": None if run.budget is None else dataclasses.asdict(run.budget),
        "stopped": run.stopped,
        "failed": run.failed,
        "versions": versions(),
        "machine": {"system": platform.system(), "processor": platform.machine()},
    }


def private(run: Run) -> dict[str, Any]:
    """What would tell how many clients came, how many records they have, and of which classes."""
    histogram = run.federation.histogram()
    shown = None if histogram is None else shown_of(histogram)
    return {
        "seed": run.seed,
        "seconds": run.seconds,
        "examples_per_second": run.examples_per_second,
        "examples": run.examples,
        "participations_most": run.participations,
        "labels": None if shown is None else shown.tolist(),
        "class_names": list(run.federation.data.labels) or None,
    }


def shown_of(histogram: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """At most sixty clients, evenly picked, those of like labels side by side."""
    if len(histogram) > MOST_CLIENTS_SHOWN:
        histogram = histogram[np.linspace(0, len(histogram) - 1, MOST_CLIENTS_SHOWN).astype(int)]
    return histogram[np.lexsort(histogram.T[::-1])[::-1]]


def method_name(method: Any) -> str:
    """Its name in the catalogue, or its class's."""
    return str(getattr(type(method), "name", type(method).__name__))


def settings(method: Any) -> dict[str, Any]:
    """The method's fields, as far as JSON can hold them."""
    plain = (str, int, float, bool, tuple, list, type(None))
    values = {f.name: getattr(method, f.name) for f in dataclasses.fields(method)}
    return {k: v if isinstance(v, plain) else repr(v) for k, v in values.items()}


def versions() -> dict[str, str]:
    """What it ran on."""
    return {
        "confide": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
