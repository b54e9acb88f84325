"""UDP-FL and its baselines on MNIST: 10 clients of 6,000 digits (the paper's), and 100 of 600.

Three of the paper's 150 rounds in ten: what is compared are noises, aggregates and budgets.
"""

from __future__ import annotations

from typing import Any

from trials import Ordering, Study, Trial

T = 45
CHOSEN: dict[str, Any] = {"T": T, "c": 1.0, "eta": 0.5}
NBAFL: dict[str, Any] = {"K": 10, "epsilon": 8.0, "delta": 1e-5}


def ours(
    name: str,
    method: str = "udp-fl-c",
    clients: int = 10,
    reach: float | None = 0.8,
    **settings: Any,
) -> Trial:
    """At the paper's 10 clients and q = 0.05, with an MLP and 1,000 public digits."""
    return Trial(
        name, method, {**CHOSEN, **settings}, reach, clients=clients, model="mlp", delta=1e-5,
        public=1000 / 60000,
    )  # fmt: skip


def plain(name: str, reach: float = 0.95, **settings: Any) -> Trial:
    """Without privacy: ten of a hundred clients in a round."""
    return Trial(name, name, {"T": T, "m": 10, **settings}, reach, model="mlp")


STUDY = Study(
    paper="udp-fl",
    heading="UDP-FL (Feng et al. 2024)",
    note="Settings not searched; promised accuracies from a first look.",
    trials=(
        ours("udp-fl, gaussian", "udp-fl", reach=None, eta=0.05),
        ours("udp-fl-c, gaussian"),
        ours("udp-fl-c, laplace", noise="laplace"),
        ours("udp-fl-c, staircase", reach=0.45, noise="staircase", eta=5.0),
        ours("udp-fl-c, mode connectivity", aggregate="mode-connectivity"),
        ours("udp-fl-c, scaffold", local="scaffold"),
        ours("udp-fl-c, own budgets", epsilon=(8.0,) * 5 + (4.0,) * 5),
        ours("udp-fl-c, 100 clients", clients=100, at_most=12),
        Trial("nbafl", "nbafl", {"K": 10}, 0.95, clients=10, model="mlp", delta=0.01),
        Trial("nbafl-c", "nbafl-c", NBAFL, 0.7, clients=10, model="mlp", delta=1e-5),
        plain("fedavg"),
        plain("fedsgd", 0.8, eta=0.5),
        plain("fedprox", E=1, eta=0.1, mu=0.1),
        plain("scaffold", E=5, B=60),
    ),
    orderings=(
        Ordering("the staircase beats Gaussian noise", "udp-fl-c, staircase", "udp-fl-c, gaussian"),
        Ordering("Laplace noise beats Gaussian noise", "udp-fl-c, laplace", "udp-fl-c, gaussian"),
        Ordering("mode connectivity beats the mean",
                 "udp-fl-c, mode connectivity", "udp-fl-c, gaussian"),
    ),
)  # fmt: skip
