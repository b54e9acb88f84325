"""DP-FedSAM and its baselines on MNIST: 500 clients of 120 digits, Dirichlet 0.6, an MLP of 32."""

from __future__ import annotations

from typing import Any

from trials import Ordering, Study, Trial

from confide.engine.spending import Budget

SETTING: dict[str, Any] = {
    "clients": 500,
    "partition": {"kind": "dirichlet", "alpha": 0.6},
    "model": "mlp",
}
CLIENT = Budget(4.0, 1 / 5000, "client", "world")
STEPS: dict[str, Any] = {"T": 20, "E": 1, "B": 10, "momentum": 0.5, "decay": 0.0}
LOCAL: dict[str, Any] = {**STEPS, "q": 0.1, "C": 0.3}
ADAPTIVE = {"C_0": (0.1, 0.3, 1.0), "beta": (0.5, 0.8)}
RHO = {"rho": 0.05}
PRINTED = {
    "dp-fedavg": {},
    "dp-fedsam": RHO,
    "dp-fedsam-topk": RHO,
    "fed-smp-randk": {},
    "fed-smp-topk": {},
    "dp-fedavg-blur": {},
    "dp-fedavg-blurs": {},
}


def corrected(name: str, own: dict[str, Any]) -> Trial:
    """At the common budget, which sets its noise."""
    return Trial(name, name, {**LOCAL, "beta": 0.5, **own}, **SETTING, budget=CLIENT)


STUDY = Study(
    paper="dp-fedsam",
    heading="DP-FedSAM and its baselines (Shi et al. 2023)",
    note="Rates, the clip, the server's momentum and rho are the quick start's, searched on "
    "held-back training digits (benchmarks/quickstart.py); one local epoch. Corrected methods "
    "share the budget of epsilon 4 for a client to the world, Poisson cohorts of 50 on average.",
    further=tuple(range(6, 27)),
    trials=(
        *(corrected(f"{name}-c", own) for name, own in PRINTED.items()),
        Trial(
            "dp-fedavg-adaptive", "dp-fedavg-adaptive",
            {"T": 20, "q": 0.1, "E": 1, "B": 10, "C_0": 0.3, "beta": 0.5}, **SETTING,
            budget=CLIENT, note="beyond the paper", grid=ADAPTIVE,
        ),
        *(
            Trial(name, name, {**LOCAL, **own}, **SETTING, note="sigma 0.95 as printed")
            for name, own in PRINTED.items()
        ),
        Trial("fedsam", "fedsam", {**STEPS, "m": 50, **RHO}, **SETTING),
    ),
    orderings=tuple(
        Ordering(claim, better, worse, ("client", "world"))
        for claim, better, worse in (
            ("SAM over SGD", "dp-fedsam-c", "dp-fedavg-c"),
            ("top-k 0.4 over none", "dp-fedsam-topk-c", "dp-fedsam-c"),
            ("DP-FedSAM over Fed-SMP-randk", "dp-fedsam-c", "fed-smp-randk-c"),
            ("DP-FedSAM over Fed-SMP-topk", "dp-fedsam-c", "fed-smp-topk-c"),
            ("DP-FedSAM over BLUR", "dp-fedsam-c", "dp-fedavg-blur-c"),
            ("DP-FedSAM over BLUR with LUS", "dp-fedsam-c", "dp-fedavg-blurs-c"),
            ("an adaptive clip over a fixed one", "dp-fedavg-adaptive", "dp-fedavg-c"),
        )
    ),
)  # fmt: skip
