"""Differentially private federated learning that one can check."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confide import methods
    from confide.accounting import calibrate, epsilon
    from confide.aggregates import Mean, MeanOfPresent, WeightedMean
    from confide.audit import audit
    from confide.channels import Each, Shuffle, Sum
    from confide.cohorts import All, Epoch, Fixed, Poisson, Spaced
    from confide.data import Dataset, Federation, federate, load
    from confide.engine import Local, Method, Past, Round, Sizes, Upload
    from confide.engine.running import Run, run
    from confide.engine.spending import Budget
    from confide.ledger import Ledger
    from confide.randomness import Key
    from confide.stages import (
        Assume,
        BallRandomizer,
        Binomial,
        Clip,
        ClipLayers,
        Correlated,
        DiscreteGaussian,
        Gaussian,
        Laplace,
        Mask,
        Ordinal,
        PerClient,
        Quantize,
        RadialStaircase,
        RandK,
        RandomizedResponse,
        Rotate,
        Scale,
        Skellam,
        Stage,
        Staircase,
        TopK,
        TwoPoint,
        Unrotate,
    )
    from confide.statements import Statement, state

__version__ = "0.1.0.dev0"

__all__ = [
    "All",
    "Assume",
    "BallRandomizer",
    "Binomial",
    "Budget",
    "Clip",
    "ClipLayers",
    "Correlated",
    "Dataset",
    "DiscreteGaussian",
    "Each",
    "Epoch",
    "Federation",
    "Fixed",
    "Gaussian",
    "Key",
    "Laplace",
    "Ledger",
    "Local",
    "Mask",
    "Mean",
    "MeanOfPresent",
    "Method",
    "Ordinal",
    "Past",
    "PerClient",
    "Poisson",
    "Quantize",
    "RadialStaircase",
    "RandK",
    "RandomizedResponse",
    "Rotate",
    "Round",
    "Run",
    "Scale",
    "Shuffle",
    "Sizes",
    "Skellam",
    "Spaced",
    "Stage",
    "Staircase",
    "Statement",
    "Sum",
    "TopK",
    "TwoPoint",
    "Unrotate",
    "Upload",
    "WeightedMean",
    "audit",
    "calibrate",
    "epsilon",
    "federate",
    "load",
    "methods",
    "run",
    "state",
]

# Looked up when a name is first used, so that `import confide` loads nothing heavy and
# accounting never loads torch.
_HOMES = {
    "confide.accounting": ("calibrate", "epsilon"),
    "confide.aggregates": ("Mean", "MeanOfPresent", "WeightedMean"),
    "confide.channels": ("Each", "Shuffle", "Sum"),
    "confide.cohorts": ("All", "Epoch", "Fixed", "Poisson", "Spaced"),
    "confide.data": ("Dataset", "Federation", "federate", "load"),
    "confide.engine": ("Local", "Method", "Past", "Round", "Sizes", "Upload"),
    "confide.engine.running": ("Run", "run"),
    "confide.engine.spending": ("Budget",),
    "confide.ledger": ("Ledger",),
    "confide.randomness": ("Key",),
    "confide.statements": ("Statement", "state"),
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'confide' has no attribute {name!r}")
    if name in ("audit", "methods"):  # packages; the first of them can also be called
        return import_module(f"confide.{name}")
    home = next((home for home, names in _HOMES.items() if name in names), "confide.stages")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])
