"""The sums of a cohort's gradients as one compiled function of one shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._inductor import config
from torch.fx.experimental.proxy_tensor import make_fx

from confide.engine.sums import Picked, Sums, with_rows

Function = Callable[..., Any]

FIXED: dict[str, Any] = {"deterministic": True} if hasattr(config, "deterministic") else {}
"""No kernel is chosen by timing it: a run that is resumed must add up in the same order."""


class CompiledSums:
    """`Sums` for batches of one number of rows and columns; smaller ones are padded.

    Batches that would be mostly padding, or have more columns, are summed without compiling.
    """

    def __init__(self, sums: Sums) -> None:
        """Nothing is compiled yet."""
        self._sums = sums
        self._made: dict[object, Function] = {}

    def __call__(
        self,
        w: Tensor,
        picked: Picked,
        lengths: Sequence[int],
        columns: int | None,
        shape: tuple[int, int],
    ) -> Tensor:
        """The first rows of a call of this shape."""
        rows, width = shape
        work, wide = picked.places.shape
        if 2 * work <= rows or 2 * wide <= width or wide > width:
            return self._sums(w, picked, lengths, columns)

        def sums(w: Tensor, *parts: Tensor) -> Tensor:
            return self._sums(w, Picked(*parts), lengths, columns)

        given = (with_rows(w, rows), *picked.padded(rows, width).tensors())
        key = (tuple(lengths), columns, tuple((tuple(g.shape), g.dtype) for g in given))
        if key not in self._made:
            self._made[key] = compiled(sums, given)
        return self._made[key](*given)[:work]


def compiled(function: Function, given: tuple[Tensor, ...]) -> Function:
    """Traced through vmap and grad first, so that the compiler sees plain operations only."""
    try:
        trace = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)
        made = torch.compile(trace(*given), dynamic=False, fullgraph=True, options=FIXED)
        made(*given)  # the work is done at the first call
    except torch.OutOfMemoryError:
        raise
    except Exception as why:
        said = [line.strip() for line in str(why).splitlines() if line.strip()]
        # What a compiler's own process says ends with the reason.
        reason = said[-1 if said[0].endswith(":") else 0] if said else type(why).__name__
        raise ValueError(
            f"strategy: the model's gradients cannot be compiled ({reason}); "
            "allowed is strategy = 'cohort'."
        ) from why
    return made
