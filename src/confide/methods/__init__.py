"""The methods by name, and each class under its own name: `confide.methods.FedAvg`.

Nothing is loaded before it is asked for, so that the list appears at once.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One method: where it is written, where it comes from, and whom its noise is about."""

    where: str  # "module:Class"
    paper: str
    unit: str  # "client" or "record"; "none" without any noise
    as_printed: bool = True
    corrected: str | None = None  # the sibling in which what the paper gets wrong is put right

    @property
    def module(self) -> str:
        """The module in which it is written."""
        return self.where.partition(":")[0]

    @property
    def class_name(self) -> str:
        """The name of its class."""
        return self.where.partition(":")[2]

    def load(self) -> type[Any]:
        """Its class."""
        return getattr(import_module(self.module), self.class_name)

    @property
    def summary(self) -> str:
        """The first line of its docstring, read without running anything."""
        spec = find_spec(self.module)
        assert spec is not None and spec.origin is not None
        parts = ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body
        written = next(
            part
            for part in parts
            if isinstance(part, ast.ClassDef) and part.name == self.class_name
        )
        return (ast.get_docstring(written) or "").partition("\n")[0]


CATALOGUE: dict[str, Entry] = {
    "fedavg": Entry("confide.methods.fedavg:FedAvg", "McMahan et al. 2017", "none"),
    "dp-fedavg": Entry(
        "confide.methods.dp_fedavg:DPFedAvg", "McMahan et al. 2018", "client", True, "dp-fedavg-c"
    ),
    "dp-fedavg-c": Entry(
        "confide.methods.dp_fedavg:DPFedAvgC", "McMahan et al. 2018", "client", False
    ),
    "dp-fedsam": Entry(
        "confide.methods.dp_fedsam:DPFedSAM", "Shi et al. 2023", "client", True, "dp-fedsam-c"
    ),
    "dp-fedsam-c": Entry("confide.methods.dp_fedsam:DPFedSAMC", "Shi et al. 2023", "client", False),
    "dp-fedsam-topk": Entry(
        "confide.methods.dp_fedsam:DPFedSAMTopK",
        "Shi et al. 2023",
        "client",
        True,
        "dp-fedsam-topk-c",
    ),
    "dp-fedsam-topk-c": Entry(
        "confide.methods.dp_fedsam:DPFedSAMTopKC", "Shi et al. 2023", "client", False
    ),
    "fed-smp-randk": Entry(
        "confide.methods.fed_smp:FedSMPRandK", "Hu et al. 2022", "client", True, "fed-smp-randk-c"
    ),
    "fed-smp-randk-c": Entry(
        "confide.methods.fed_smp:FedSMPRandKC", "Hu et al. 2022", "client", False
    ),
    "fed-smp-topk": Entry(
        "confide.methods.fed_smp:FedSMPTopK", "Hu et al. 2022", "client", True, "fed-smp-topk-c"
    ),
    "fed-smp-topk-c": Entry(
        "confide.methods.fed_smp:FedSMPTopKC", "Hu et al. 2022", "client", False
    ),
    "dp-fedavg-blur": Entry(
        "confide.methods.blur:DPFedAvgBlur", "Cheng et al. 2022", "client", True, "dp-fedavg-blur-c"
    ),
    "dp-fedavg-blur-c": Entry(
        "confide.methods.blur:DPFedAvgBlurC", "Cheng et al. 2022", "client", False
    ),
    "dp-fedavg-blurs": Entry(
        "confide.methods.blur:DPFedAvgBlurs",
        "Cheng et al. 2022",
        "client",
        True,
        "dp-fedavg-blurs-c",
    ),
    "dp-fedavg-blurs-c": Entry(
        "confide.methods.blur:DPFedAvgBlursC", "Cheng et al. 2022", "client", False
    ),
    "fedsam": Entry("confide.methods.fedsam:FedSAM", "Qu et al. 2022", "none"),
    "fed-cdp": Entry(
        "confide.methods.fed_cdp:FedCDP", "Wei et al. 2021", "record", True, "fed-cdp-c"
    ),
    "fed-cdp-c": Entry("confide.methods.fed_cdp:FedCDPC", "Wei et al. 2021", "record", False),
    "fed-cdp-decay": Entry(
        "confide.methods.fed_cdp:FedCDPDecay", "Wei et al. 2021", "record", True, "fed-cdp-decay-c"
    ),
    "fed-cdp-decay-c": Entry(
        "confide.methods.fed_cdp:FedCDPDecayC", "Wei et al. 2021", "record", False
    ),
}


def rows() -> list[dict[str, Any]]:
    """The `methods` field of the JSON contract."""
    return [
        {
            "name": name,
            "paper": entry.paper,
            "unit": entry.unit,
            "as_printed": entry.as_printed,
            "corrected": entry.corrected,
            "summary": entry.summary,
        }
        for name, entry in CATALOGUE.items()
    ]


def __getattr__(name: str) -> Any:
    """A method's class, loaded when it is first used."""
    for entry in CATALOGUE.values():
        if entry.class_name == name:
            return entry.load()
    raise AttributeError(f"module 'confide.methods' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The classes, and what the list is made of."""
    return sorted({"CATALOGUE", "Entry", "rows", *(e.class_name for e in CATALOGUE.values())})
