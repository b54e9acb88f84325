"""The systems of UDP-FL's Table 1 on MNIST, each at a number of clients that suits its noise."""

from __future__ import annotations

from typing import Any

from trials import Study, Trial, Values

RATES = (0.05, 0.1, 0.2)
BOUNDS: Values = {"C": (0.01, 0.02, 0.05), "eta": (0.1, 0.2)}
FEWER: Values = {"C": (0.02, 0.05), "eta": (0.1, 0.2)}
STEPS: Values = {"C": (0.3, 1.0), "eta": (0.05, 0.1, 0.3)}
NOISY: Values = {"C": (0.1, 0.3), "eta": (0.25, 0.5)}


def trial(name: str, clients: int, grid: Values, **settings: Any) -> Trial:
    """An MLP of 32, digits dealt evenly; the noise is the settings', so the statement is found."""
    return Trial(name, name, settings, clients=clients, model="mlp", grid=grid)


LOCAL: dict[str, Any] = {"E": 2, "B": 20, "eta": 0.2}
FED: dict[str, Any] = {"T": 30, "p": 0.1, "C": 0.05, "levels": 41, **LOCAL}

STUDY = Study(
    paper="udp-fl-table1",
    heading="The systems of UDP-FL's Table 1",
    note="The epsilons of the local randomisers are as large as learning needs: they need many "
    "clients, their statements are large, and where they are small little is learned. Their "
    "epsilons differ, so no orderings are judged.",
    trials=(
        trial("ldp-fed", 100, BOUNDS, k=50, epsilon=2.0, **FED),
        trial("ldp-fed-c", 100, FEWER, k=100, epsilon=3000.0, **FED),
        trial("ldp-fl", 200, {"eta": RATES}, m=200, T=20, **LOCAL),
        trial("ldp-fl-c", 200, FEWER, m=200, T=30, p=0.05, C=0.05, epsilon=2000.0, **LOCAL),
        trial("cldp-sgd", 2000, {"eta": (0.5, 1.0)}, k=1000, T=60, C=1.0, epsilon_0=4.0, eta=0.5),
        trial("cofel-avg", 100, {"eta": RATES}, m=20, T=30, C=1.0, epsilon=50.0, **LOCAL),
        trial(
            "cofel-avg-c",
            100,
            {"C": (5.0, 20.0), "eta": RATES},
            m=50,
            T=30,
            C=20.0,
            epsilon=400.0,
            **{**LOCAL, "eta": 0.05},
        ),
        trial("rdp-pfl", 100, STEPS, m=20, T=40, C=1.0, eta=0.3),
        trial("rdp-pfl-c", 100, STEPS, m=20, T=40, C=1.0, eta=0.3),
        trial("als-dpfl", 10, NOISY, R_c=800, C=0.3, eta=0.5),
        trial("als-dpfl-c", 10, NOISY, R_c=800, C=0.3, eta=0.5),
    ),
)
