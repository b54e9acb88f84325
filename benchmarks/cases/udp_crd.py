"""UDP and CRD on MNIST at the paper's setting: 50 clients of 800 digits, an MLP of 256."""

from __future__ import annotations

from typing import Any

from trials import Ordering, Study, Trial

from confide.engine.spending import Budget

SETTING: dict[str, Any] = {
    "clients": 50,
    "partition": {"kind": "iid", "records": 800},
    "model": "mlp256",
    "delta": 0.001,
}
RECORD = Budget(8.0, 0.001, "record", "server")
STUDY = Study(
    paper="udp-crd",
    heading="UDP and CRD (Wei et al. 2022)",
    trials=(
        Trial("udp-c", "udp-c", {"T": 60}, **SETTING, budget=RECORD),
        Trial("udp-crd-c", "udp-crd-c", {"T": 60}, **SETTING, budget=RECORD),
    ),
    orderings=(Ordering("CRD beats a fixed T", "udp-crd-c", "udp-c"),),
)
