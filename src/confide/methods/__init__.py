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


Named = tuple[str, Entry]


def alone(name: str, where: str, paper: str, unit: str) -> Named:
    """A method that is sound as printed, or that promises nothing."""
    return name, Entry(f"confide.methods.{where}", paper, unit)


def pair(name: str, where: str, paper: str, unit: str) -> tuple[Named, Named]:
    """A method as printed, and its corrected sibling beside it."""
    place = f"confide.methods.{where}"
    printed = Entry(place, paper, unit, True, f"{name}-c")
    return (name, printed), (f"{name}-c", Entry(f"{place}C", paper, unit, False))


# fmt: off
CATALOGUE: dict[str, Entry] = dict((
    alone("fedavg", "fedavg:FedAvg", "McMahan et al. 2017", "none"),
    *pair("dp-fedavg", "dp_fedavg:DPFedAvg", "McMahan et al. 2018", "client"),
    alone("dp-fedavg-adaptive", "adaptive:DPFedAvgAdaptive", "Andrew et al. 2021", "client"),
    *pair("dp-fedsam", "dp_fedsam:DPFedSAM", "Shi et al. 2023", "client"),
    *pair("dp-fedsam-topk", "dp_fedsam:DPFedSAMTopK", "Shi et al. 2023", "client"),
    *pair("fed-smp-randk", "fed_smp:FedSMPRandK", "Hu et al. 2022", "client"),
    *pair("fed-smp-topk", "fed_smp:FedSMPTopK", "Hu et al. 2022", "client"),
    *pair("dp-fedavg-blur", "blur:DPFedAvgBlur", "Cheng et al. 2022", "client"),
    *pair("dp-fedavg-blurs", "blur:DPFedAvgBlurs", "Cheng et al. 2022", "client"),
    alone("fedsam", "fedsam:FedSAM", "Qu et al. 2022", "none"),
    alone("fedsgd", "fedsgd:FedSGD", "McMahan et al. 2017", "none"),
    alone("fedprox", "fedprox:FedProx", "Li et al. 2020", "none"),
    alone("scaffold", "scaffold:SCAFFOLD", "Karimireddy et al. 2020", "none"),
    alone("dp-scaffold", "dp_scaffold:DPScaffold", "Noble et al. 2022", "record"),
    *pair("fed-sdp", "fed_sdp:FedSDP", "Wei et al. 2021", "client"),
    *pair("fed-cdp", "fed_cdp:FedCDP", "Wei et al. 2021", "record"),
    *pair("fed-cdp-decay", "fed_cdp:FedCDPDecay", "Wei et al. 2021", "record"),
    alone("dssgd", "dssgd:DSSGD", "Shokri and Shmatikov 2015", "none"),
    alone("fed-pruned", "fed_pruned:FedPruned", "Wei et al. 2021", "none"),
    *pair("udp-fl", "udp_fl:UDPFL", "Feng et al. 2024", "record"),
    *pair("nbafl", "nbafl:NbAFL", "Wei et al. 2020", "record"),
    *pair("udp", "udp:UDP", "Wei et al. 2022", "record"),
    *pair("udp-crd", "udp_crd:UDPCRD", "Wei et al. 2022", "record"),
    *pair("udp-lei", "udp_lei:UDPLei", "Wei et al. 2022", "record"),
    *pair("udp-optimal", "udp_optimal:UDPOptimal", "Wei et al. 2022", "record"),
    *pair("ldp-fed", "ldp_fed:LDPFed", "Truex et al. 2020", "client"),
    *pair("ldp-fl", "ldp_fl:LDPFL", "Sun et al. 2021", "client"),
    alone("cldp-sgd", "cldp_sgd:CLDPSGD", "Girgis et al. 2021", "client"),
    *pair("cofel-avg", "cofel_avg:COFELAvg", "Lian et al. 2021", "client"),
    *pair("rdp-pfl", "rdp_pfl:RDPPFL", "Wei et al. 2023", "record"),
    *pair("als-dpfl", "als_dpfl:ALSDPFL", "Ling et al. 2023", "record"),
    alone("dp-bandmf", "dp_bandmf:DPBandMF", "Choquette-Choo et al. 2023", "client"),
    *pair("cpsgd", "cpsgd:CpSGD", "Agarwal et al. 2018", "client"),
    *pair("dp-fedsnlc", "dp_fedsnlc:DPFedSNLC", "Zhang et al. (DP-FedAGS)", "client"),
    *pair("dp-fedags", "dp_fedags:DPFedAGS", "Zhang et al. (DP-FedAGS)", "client"),
))
# fmt: on


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
