"""UDP-FL and its baselines on MNIST: 10 clients of 6,000 digits (the paper's), and 100 of 600."""

from __future__ import annotations

from typing import Any

from trials import Ordering, Study, Trial, Values

T = 45
CHOSEN: dict[str, Any] = {"T": T, "c": 1.0, "eta": 0.5}
NBAFL: dict[str, Any] = {"K": 10, "epsilon": 8.0, "delta": 1e-5}
LONG: Values = {"T": (45, 150), "c": (0.3, 1.0), "eta": (0.25, 0.5, 1.0, 2.0)}
SHORT: Values = {"c": (0.3, 1.0, 3.0), "eta": (0.25, 0.5, 1.0)}


def ours(
    name: str,
    method: str = "udp-fl-c",
    clients: int = 10,
    grid: Values | None = None,
    **settings: Any,
) -> Trial:
    """At the paper's 10 clients and q = 0.05, with an MLP and 1,000 public digits."""
    return Trial(
        name, method, {**CHOSEN, **settings}, clients=clients, model="mlp", delta=1e-5,
        public=1000 / 60000, grid=grid or {},
    )  # fmt: skip


def plain(name: str, grid: Values, **settings: Any) -> Trial:
    """Without privacy: ten of a hundred clients in a round."""
    return Trial(name, name, {"T": T, "m": 10, **settings}, model="mlp", grid=grid)


STUDY = Study(
    paper="udp-fl",
    heading="UDP-FL (Feng et al. 2024)",
    note="The paper has 150 rounds; a search chose between as many and 45 where they are cheap.",
    further=tuple(range(6, 9)),
    trials=(
        ours("udp-fl, gaussian", "udp-fl", T=15, eta=0.2, grid={"T": (15,), "eta": (0.05, 0.2)}),
        ours("udp-fl, gaussian, ε = 100", "udp-fl", eta=0.1, T=15, epsilon=100.0),
        ours("udp-fl-c, gaussian", grid=LONG, T=150, eta=2.0),
        ours("udp-fl-c, laplace", noise="laplace", grid=LONG, T=150, eta=2.0),
        ours(
            "udp-fl-c, staircase", noise="staircase", c=10.0, eta=2.0,
            grid={"c": (1.0, 10.0), "eta": (2.0, 5.0, 10.0)},
        ),
        ours("udp-fl-c, mode connectivity", aggregate="mode-connectivity", grid=SHORT, c=3.0),
        ours(
            "udp-fl-c, scaffold", local="scaffold", c=3.0, eta=1.0, q=1.0,
            grid={**SHORT, "q": (0.05, 1.0)},
        ),
        ours(
            "udp-fl-c, own budgets", c=3.0, eta=1.0,
            epsilon=(8.0,) * 5 + (4.0,) * 5, grid=SHORT,
        ),
        ours("udp-fl-c, 100 clients", clients=100, at_most=12, eta=1.0, grid=SHORT),
        Trial("nbafl", "nbafl", {"K": 10}, clients=10, model="mlp", delta=0.01),
        Trial(
            "nbafl-c", "nbafl-c", {**NBAFL, "C": 1.0, "eta": 1.0}, clients=10, model="mlp",
            delta=1e-5, grid={"C": (0.3, 1.0), "eta": (0.25, 0.5, 1.0)},
        ),
        plain("fedavg", {"eta": (0.05, 0.1, 0.2)}, eta=0.1),
        plain("fedsgd", {"eta": (0.25, 0.5, 1.0)}, eta=0.25),
        plain("fedprox", {"eta": (0.05, 0.1, 0.2), "mu": (0.01, 0.1)}, E=1, eta=0.1, mu=0.01),
        plain("scaffold", {"eta": (0.05, 0.1, 0.2)}, E=5, B=60, eta=0.2),
    ),
    orderings=(
        Ordering("the staircase beats Gaussian noise", "udp-fl-c, staircase", "udp-fl-c, gaussian"),
        Ordering("Laplace noise beats Gaussian noise", "udp-fl-c, laplace", "udp-fl-c, gaussian"),
        Ordering("mode connectivity beats the mean",
                 "udp-fl-c, mode connectivity", "udp-fl-c, gaussian"),
    ),
)  # fmt: skip
