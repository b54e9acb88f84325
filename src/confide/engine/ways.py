"""How the step of a cohort is run: compiled or not, and what its matrix products are made of."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

import torch


@dataclass(frozen=True)
class Way:
    """Whether the gradients are compiled, and what matrix products are made of."""

    compiled: bool
    products: Literal["float32", "tf32", "bf16"] = "float32"

    def words(self, dtype: torch.dtype) -> str:
        """For the printed strategy."""
        name = str(dtype).removeprefix("torch.")
        kind = name if self.products == "float32" else f"{name}, products in {self.products}"
        return f"{'compiled' if self.compiled else 'eager'}, {kind}"

    @contextmanager
    def rules(self) -> Generator[None]:
        """The same kernels in every run, and no tensor cores that nobody asked for."""
        tf32 = self.products == "tf32"
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        flags = torch.backends.cudnn.flags(
            enabled=True, benchmark=False, deterministic=True, allow_tf32=tf32
        )
        try:
            with flags:
                yield
        finally:
            torch.set_float32_matmul_precision(before)


WAYS = {
    "cohort": Way(compiled=False),
    "compiled": Way(compiled=True),
    "tf32": Way(compiled=True, products="tf32"),
    "bf16": Way(compiled=True, products="bf16"),
}


def way_of(strategy: str, device: torch.device) -> Way:
    """The way of this name; by default the fastest one with the full precision of its numbers."""
    if strategy == "auto":
        return WAYS["compiled" if device.type == "cuda" else "cohort"]
    if strategy not in WAYS:
        names = ("auto", *WAYS)
        near = get_close_matches(strategy, names, 1, 0)[0]
        raise ValueError(
            f"strategy = {strategy!r}, allowed on {device.type} are {', '.join(names)}; "
            f"did you mean {near!r}?"
        )
    return WAYS[strategy]
