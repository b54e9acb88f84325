"""UDP and CRD on MNIST: 50 clients of 800 digits, an MLP of 256, ε = 8, as in the paper; T = 100.

The learning rate was searched on held-back training digits (seed 1000, C = 0.3, T = 200, `udp-c`)
among 0.25, 0.5, 1 and 2, which reached 75.6, 83.0, 87.6 and 89.7 %. Every method has the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trials import Ordering, Study, Trial

from confide.engine.spending import Budget

IID = {"kind": "iid", "records": 800}
FOUR_DIGITS = {"kind": "classes", "classes": 4, "records": 800}
UNBALANCED = {"kind": "unbalanced", "low": 400, "high": 1200}
GRID = {"C": (0.3,), "eta": (0.25, 0.5, 1.0, 2.0)}
CHOSEN: dict[str, Any] = {"T": 100, "C": 0.3, "eta": 2.0}


def budget(epsilon: float) -> Budget:
    """What the paper's clients ask for."""
    return Budget(epsilon, 0.001, "record", "server")


def trial(name: str, method: str, grid: bool = False, **settings: Any) -> Trial:
    """At the paper's setting, with 1,000 digits at the server for those who follow them."""
    corrected = method.endswith("-c")
    return Trial(
        name, method, {**CHOSEN, **settings}, reach=0.85, clients=50, partition=IID, model="mlp256",
        validation=1000, delta=0.001, budget=budget(8.0) if corrected else None,
        grid=GRID if grid else {},
    )  # fmt: skip


def pair(words: str, **changed: Any) -> tuple[Trial, Trial, Ordering]:
    """UDP and CRD where something else is different, and the claim that CRD is better there too."""
    settings = changed.pop("settings", {})
    first, second = f"udp-c, {words}", f"udp-crd-c, {words}"
    fixed = replace(trial(first, "udp-c", **settings), **changed)
    adapting = replace(trial(second, "udp-crd-c", **settings), **changed)
    return fixed, adapting, Ordering(f"CRD beats a fixed T, {words}", second, first)


PAIRS = (
    pair("ε = 4", budget=budget(4.0)),
    pair("four digits each", partition=FOUR_DIGITS),
    pair("K = 30", settings={"K": 30}),
    pair("400 to 1,200 digits each", partition=UNBALANCED, settings={"weights": "size"}),
)
STUDY = Study(
    paper="udp-crd",
    heading="UDP and CRD (Wei et al. 2022)",
    note="T = 100; the paper begins with 200. The learning rate was searched on held-back training "
    "digits, once for all methods.",
    trials=(
        trial("udp", "udp"),
        trial("udp-crd", "udp-crd"),
        trial("udp-lei", "udp-lei"),
        trial("udp-c", "udp-c", grid=True),
        trial("udp-crd-c", "udp-crd-c"),
        trial("udp-crd-c, public trigger", "udp-crd-c", trigger="public"),
        trial("udp-lei-c", "udp-lei-c"),
        trial("udp-optimal-c", "udp-optimal-c", tries=2),
        trial("udp-optimal", "udp-optimal", tries=2),
        *(one for fixed, adapting, _ in PAIRS for one in (fixed, adapting)),
    ),
    orderings=(
        Ordering("CRD beats a fixed T, as printed (Fig. 8, 9)", "udp-crd", "udp"),
        Ordering("CRD beats a fixed T", "udp-crd-c", "udp-c"),
        Ordering("CRD beats a fixed T, public trigger", "udp-crd-c, public trigger", "udp-c"),
        Ordering("CRD beats Lei's approach", "udp-crd-c", "udp-lei-c"),
        Ordering("CRD beats the better of two T, once their search is paid for",
                 "udp-crd-c", "udp-optimal-c"),
        *(ordering for _, _, ordering in PAIRS),
    ),
)  # fmt: skip
