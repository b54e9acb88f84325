"""The systems of UDP-FL's Table 1 on MNIST, each at a number of clients that suits its noise."""

from __future__ import annotations

from typing import Any

from trials import Study, Trial


def trial(name: str, clients: int, reach: float | None = None, **settings: Any) -> Trial:
    """An MLP of 32, digits dealt evenly; the noise is the settings', so the statement is found."""
    return Trial(name, name, settings, reach, clients=clients, model="mlp")


LOCAL: dict[str, Any] = {"E": 2, "B": 20, "eta": 0.1}

STUDY = Study(
    paper="udp-fl-table1",
    heading="The systems of UDP-FL's Table 1",
    note="Settings not searched; epsilons of the local randomisers as large as learning needs, and "
    "promised accuracies from a first look. Local randomisers need many clients: their "
    "statements are large, and where they are small little is learned. Their epsilons differ, so "
    "no orderings are judged.",
    trials=(
        trial("ldp-fed", 100, 0.7, k=50, T=30, p=0.1, C=0.02, epsilon=2.0, levels=41, **LOCAL),
        trial(
            "ldp-fed-c", 100, 0.5, k=100, T=30, p=0.1, C=0.02, epsilon=3000.0, levels=41, **LOCAL
        ),
        trial("ldp-fl", 200, 0.85, m=200, T=20, **LOCAL),
        trial("ldp-fl-c", 200, 0.5, m=200, T=30, p=0.05, C=0.02, epsilon=2000.0, **LOCAL),
        trial("cldp-sgd", 2000, 0.5, k=1000, T=60, C=1.0, epsilon_0=4.0, eta=0.5),
        trial("cofel-avg", 100, 0.9, m=20, T=30, C=1.0, epsilon=50.0, **LOCAL),
        trial("cofel-avg-c", 100, 0.5, m=50, T=30, C=20.0, epsilon=400.0, **LOCAL),
        trial("rdp-pfl", 100, 0.8, m=20, T=40),
        trial("rdp-pfl-c", 100, 0.8, m=20, T=40),
        trial("als-dpfl", 10, 0.6, R_c=800),
        trial("als-dpfl-c", 10, 0.6, R_c=800),
    ),
)
