"""UDP-FL over SCAFFOLD on the power of seven wind farms: ten clients, 48 hours ahead (Figure 5)."""

from __future__ import annotations

from typing import Any

from trials import Ordering, Study, Trial, Values

SETTING: dict[str, Any] = {"clients": 10, "data": "wind", "model": "wind-cnn"}
NOISY: dict[str, Any] = {"K": 10, "epsilon": 8.0, "delta": 1e-5}
OURS: dict[str, Any] = {**NOISY, "T": 30, "I": 1, "local": "scaffold"}
GRID: Values = {"q": (0.05, 1.0), "c": (0.1, 1.0), "eta": (0.2, 1.0)}


def ours(name: str, noise: str, grid: Values, **settings: Any) -> Trial:
    """The corrected form at the paper's clients, with its clip and its rates searched."""
    return Trial(
        name, "udp-fl-c", {**OURS, "noise": noise, **settings}, **SETTING, delta=1e-5, grid=grid
    )


STUDY = Study(
    paper="udp-fl-wind",
    heading="UDP-FL over SCAFFOLD on wind power (Feng et al. 2024, Figure 5)",
    note="The score is the mean absolute error, as a share of a farm's capacity. Records of all "
    "farms are dealt evenly: seven farms, and the paper's ten clients. The paper's clip is 10 and "
    "its q 0.05; who remembers control variates gets no credit for drawing records, so that "
    "q = 1 may be better. Test records are of later hours than all training records, and the "
    "errors on them are far above those on the held-back ones of which promises are made.",
    trials=(
        Trial(
            "scaffold", "scaffold", {"T": 30, "m": 10, "E": 2, "B": 20, "eta": 0.3}, **SETTING,
            grid={"eta": (0.03, 0.1, 0.3)},
        ),
        Trial(
            "udp-fl, scaffold", "udp-fl", {**OURS, "T": 15, "q": 0.05, "c": 0.1, "eta": 0.5},
            **SETTING, delta=1e-5, grid={"c": (0.1, 1.0, 10.0), "eta": (0.01, 0.1, 0.5)},
        ),
        ours("udp-fl-c, scaffold, gaussian", "gaussian", GRID, q=1.0, c=0.1, eta=1.0),
        ours("udp-fl-c, scaffold, laplace", "laplace", GRID, q=1.0, c=0.1, eta=1.0),
        ours(
            "udp-fl-c, scaffold, staircase", "staircase",
            {"c": (1.0,), "eta": (0.05, 0.2)}, q=1.0, c=1.0, eta=0.2, T=15,
        ),
        Trial(
            "nbafl-c", "nbafl-c", {**NOISY, "T": 30, "C": 0.1, "eta": 0.2}, **SETTING, delta=1e-5,
            grid={"C": (0.1, 0.3, 1.0), "eta": (0.2, 0.5)},
        ),
    ),
    orderings=(
        Ordering("the staircase beats Gaussian noise, over SCAFFOLD",
                 "udp-fl-c, scaffold, staircase", "udp-fl-c, scaffold, gaussian"),
        Ordering("UDP-FL over SCAFFOLD beats NbAFL", "udp-fl-c, scaffold, gaussian", "nbafl-c"),
    ),
)  # fmt: skip
