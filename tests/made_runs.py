"""Run directories as the engine leaves them: true statements over plausible learning curves."""

import json
from collections.abc import Callable
from functools import cache
from math import exp, inf
from pathlib import Path
from typing import Any

import numpy as np

from confide.channels import Each, Sum
from confide.cohorts import All, Fixed, Poisson
from confide.engine import Local, Round, Sizes, Upload
from confide.published import dp_fedsam
from confide.stages import Clip, Gaussian, PerClient
from confide.statements import Statement, state

CLIENTS, ROUNDS = 1000, 60
EVALUATED = (1, 2, 4, 6, 8, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60)
SIZES = Sizes(clients=CLIENTS, records=60, layers=(25088, 32, 320, 10))
DIGITS = [str(digit) for digit in range(10)]


def noise_on_the_sum(sigma: float, clip: float = 0.3) -> Round:
    return Round(
        cohort=Poisson(0.1),
        upload=(Clip(clip),),
        channel=Sum(),
        publish=(Gaussian(sigma * clip / (0.1 * CLIENTS)),),
    )


def noise_in_examples() -> Round:
    local = Local(
        steps=10, sampler=Poisson(0.1), example=(Clip(1.0),), batch=(Gaussian(1.6),)
    )  # fmt: skip
    return Round(cohort=Fixed(100), local=local, channel=Each())


def own_budgets() -> Round:
    column = PerClient(tuple(8.0 + 4 * (client % 4) for client in range(CLIENTS)))
    loss = Upload((Clip(1.0), Gaussian(30.0)), length=1, data="test")
    uploads = {"update": Upload((Clip(1.0), Gaussian(column))), "loss": loss}
    return Round(cohort=All(), upload=uploads, channel=Each())


ROUND: dict[str, Callable[[], Round]] = {
    "fedavg": lambda: Round(cohort=Poisson(0.1), channel=Sum()),
    "dp-fedavg-c": lambda: noise_on_the_sum(2.4),
    "dp-fedsam-c": lambda: noise_on_the_sum(1.9),
    "fed-cdp": noise_in_examples,
    "dp-fedags": own_budgets,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "fedavg": {"q": 0.1, "K": 5, "eta": 0.1, "B": 10},
    "dp-fedavg-c": {"q": 0.1, "C": 0.3, "sigma": 2.4, "K": 5, "eta": 0.1, "momentum": 0.5},
    "dp-fedsam-c": {"q": 0.1, "C": 0.3, "sigma": 1.9, "rho": 0.5, "K": 5, "eta": 0.1},
    "fed-cdp": {"C": 1.0, "sigma": 1.6, "b": 6, "K": 10, "decay": None},
    "dp-fedags": {"C": 1.0, "sigma": "one of 4 per client"},
}
BUDGET = {"epsilon": 2.0, "delta": 1e-4, "unit": "client", "view": "world"}
BEST = {"fedavg": 0.972, "dp-fedavg-c": 0.906, "dp-fedsam-c": 0.917, "fed-cdp": 0.853}


@cache
def stated(method: str, rounds: int) -> Statement:
    claim = dp_fedsam.eq_16_epsilon(0.1, 1.9, rounds, 1e-4) if "sam" in method else None
    return state([(ROUND[method](), rounds)], SIZES, published=claim, key="public seed")


def number(value: float) -> float | str:
    return "inf" if value == inf else value


def spent(method: str, rounds: int) -> dict[str, float | str]:
    views: dict[str, float] = {}
    for cell in stated(method, rounds).cells:
        if cell.observer != "device" and cell.of == "update":
            view = f"{cell.unit}/{cell.observer}"
            views[view] = max(cell.epsilon, views.get(view, 0.0))
    return {view: number(epsilon) for view, epsilon in views.items()}


def points(method: str, seed: int) -> list[dict[str, Any]]:
    draw = np.random.default_rng(seed)
    top = BEST.get(method, 0.88) + 0.004 * draw.standard_normal()
    rows: list[dict[str, Any]] = []
    for t in EVALUATED:
        accuracy = top - (top - 0.12) * exp(-t / 7) + 0.004 * draw.standard_normal()
        rows.append(
            {
                "round": t,
                "accuracy": accuracy,
                "loss": 2.3 * exp(-t / 8) + 1.6 * (1 - top),
                "spent": spent(method, t),
            }
        )
    return rows


def dirichlet(clients: int = 60, classes: int = 10, alpha: float = 0.6) -> list[list[int]]:
    draw = np.random.default_rng(7)
    rows = [
        draw.multinomial(int(draw.integers(45, 75)), draw.dirichlet([alpha] * classes)).tolist()
        for _ in range(clients)
    ]
    return sorted(rows, key=lambda row: (row.index(max(row)), -max(row)))


def config(method: str) -> str:
    settings = SETTINGS[method].items()
    lines = [f"{k} = {json.dumps(v)}" for k, v in settings if v is not None]
    return "\n".join(
        [
            f'methods = ["{method}"]',
            "rounds = 60",
            "[data]",
            'name = "mnist"',
            "clients = 1000",
            'partition = {kind = "dirichlet", alpha = 0.6}',
            "[model]",
            'name = "mlp32"',
            *(["[budget]", "epsilon = 2", "delta = 1e-4"] if method == "dp-fedavg-c" else []),
            *(['unit = "client"', 'view = "world"'] if method == "dp-fedavg-c" else []),
            f"[method.{method}]",
            *lines,
        ]
    )


def run_json(method: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "method": method,
        "paper": "Shi, Liu, Wei, Shen, Wang, Tao: Make Landscape Flatter in Differentially Private "
        "Federated Learning, CVPR 2023"
        if "sam" in method
        else "McMahan, Ramage, Talwar, Zhang: Learning Differentially Private Recurrent Language "
        "Models, ICLR 2018",
        "data": "mnist",
        "data_source": "bundled; Y. LeCun, C. Cortes, C. Burges, The MNIST database, 1998",
        "licence": "CC BY-SA 3.0",
        "model": "mlp32",
        "parameters": SIZES.dim,
        "rounds": ROUNDS,
        "planned": ROUNDS,
        "clients": CLIENTS,
        "partition": "Dirichlet over classes, alpha 0.6",
        "accuracy": rows[-1].get("accuracy"),
        "loss": rows[-1]["loss"],
        "metric": "accuracy",
        "strategy": "2 workers of one thread, steps by hand, channels last",
        "versions": {"confide": "0.1.0", "python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6"},
        "settings": SETTINGS[method],
        "budget": BUDGET if method == "dp-fedavg-c" else None,
        "stopped": None,
        "failed": None,
        "machine": {"processor": "x86_64, 2 cores", "memory": "24 GiB", "system": "Linux 6.1"},
    }


def published(statement: Statement) -> dict[str, Any] | None:
    claim = statement.published
    if claim is None:
        return None
    return {"epsilon": claim.value, "delta": None, "unit": claim.unit, "source": claim.source}


SUMMARY: dict[str, Any] = {
    "seed": 424242,
    "seconds": 6.84,
    "examples_per_second": 263_412.7,
    "examples": 1_801_742,
    "participations_most": 16,
    "labels": dirichlet(),
    "class_names": DIGITS,
}


def write(place: Path, of: str, seed: int = 0, **changes: Any) -> Path:
    """A run directory; `changes` replace fields of run.json, or of the private summary."""
    summary = {name: changes.pop(name, value) for name, value in SUMMARY.items()}
    (place / "private").mkdir(parents=True)
    (place / "private" / "summary.json").write_text(json.dumps(summary))
    public = place / "public"
    public.mkdir(parents=True)
    rows = points(of, seed)
    if changes.get("metric") == "mean absolute error":
        rows = [{"error" if k == "accuracy" else k: v for k, v in row.items()} for row in rows]
    statement = stated(of, ROUNDS)
    whole = {
        "statement": statement.rows(),
        "published": published(statement),
        "words": statement.words().split("\n"),
        "rounds": ROUNDS,
    }
    ended = {**run_json(of, rows), **changes}
    (public / ("failed.json" if ended["failed"] else "run.json")).write_text(json.dumps(ended))
    (public / "statement.json").write_text(json.dumps(whole))
    (public / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (public / "run.toml").write_text(config(of) + "\n")
    return place
