"""Methods beyond the five papers on MNIST: 1,000 clients of 60 digits, an MLP of 32."""

from __future__ import annotations

from typing import Any

from trials import Ordering, Study, Trial, Values

from confide.engine.spending import Budget

CLIENT = Budget(1.5, 1e-4, "client", "world")
GRID: Values = {"C": (0.3, 0.5), "beta": (0.5, 0.8)}
LOCAL: dict[str, Any] = {
    "T": 60, "C": 0.3, "E": 3, "B": 10, "momentum": 0.0, "decay": 0.0,
}  # fmt: skip


def trial(name: str, method: str, grid: Values, **settings: Any) -> Trial:
    """At the quick start's budget, which sets the noise."""
    return Trial(
        name, method, {**LOCAL, **settings}, clients=1000, model="mlp", budget=CLIENT, grid=grid
    )


STUDY = Study(
    paper="beyond",
    heading="Beyond the five papers",
    note="The quick start's clients, clip and budget. Turns (dp-bandmf) are about zero-out, coins "
    "(dp-fedavg-c) about add-remove, so their equal epsilons do not say the same.",
    trials=(
        trial("dp-bandmf", "dp-bandmf", GRID, b=10, beta=0.5),
        trial("dp-bandmf, one band", "dp-bandmf", GRID, b=1, C=0.5, beta=0.8, T=20),
        trial("dp-fedavg-c", "dp-fedavg-c", GRID, q=0.1, beta=0.5),
    ),
    left="minutes for each run",
    orderings=(
        Ordering("correlated noise over turns beats coins", "dp-bandmf", "dp-fedavg-c",
                 ("client", "world")),
    ),
)  # fmt: skip
