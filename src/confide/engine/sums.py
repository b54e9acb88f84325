"""The gradient sums of many clients in one vmapped call, and how that call is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.func import functional_call, grad, vmap

from confide.engine.flat import Flat
from confide.engine.gradients import dropout
from confide.engine.gradients.clipping import Bound, clip_row
from confide.engine.gradients.plain import like
from confide.engine.rows import install
from confide.losses import Loss

Function = Callable[..., Any]


@dataclass(frozen=True)
class Way:
    """Whether the step is compiled, and what matrix products are made of."""

    compiled: bool
    products: Literal["float32", "tf32", "bf16"] = "float32"

    def words(self, dtype: torch.dtype) -> str:
        """For the printed strategy."""
        name = str(dtype).removeprefix("torch.")
        kind = name if self.products == "float32" else f"{name}, products in {self.products}"
        return f"{'compiled' if self.compiled else 'eager'}, {kind}"

    @contextmanager
    def rules(self) -> Iterator[None]:
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


@dataclass(frozen=True, eq=False)
class Picked:
    """One batch for each row: `places` of its records, of which the first `counts` are meant.

    `keys` and `batch` are the numbers that dropout masks are made of.
    """

    places: Tensor
    counts: Tensor
    keys: Tensor
    batch: Tensor


class Sums:
    """The sum of each row's gradients at its own w; `clip` bounds every example's first."""

    def __init__(self, flat: Flat, loss: Loss, x: Tensor, y: Tensor, way: Way) -> None:
        """For this model (whose dropout is replaced) and these records."""
        self._flat, self._loss, self._way = flat, loss, way
        self.x, self.y = x, y
        dropout.install(flat.module)
        self._masks = install(flat.module)

    def __call__(
        self, w: Tensor, picked: Picked, clip: Bound | None = None, columns: int | None = None
    ) -> Tensor:
        """One row for each client, from at most so many columns of examples at a time."""
        self._flat.module.train()
        row = self._summed if clip is None else self._clipped(clip)
        rows = vmap(row, in_dims=(0, 0, 0, 0, 0, 0, None))
        most = picked.places.shape[1]
        step = columns or max(most, 1)
        total: Tensor | None = None
        for start in range(0, max(most, 1), step):
            places = picked.places[:, start : start + step]
            here = torch.arange(start, start + places.shape[1], device=w.device)
            x, y = like(w, self.x[places]), self.y[places]
            part = rows(w, x, y, picked.counts, picked.keys, picked.batch, here)
            total = part if total is None else total + part
        assert total is not None
        # A row without examples was computed on some that are not its own.
        return torch.where((picked.counts > 0).unsqueeze(1), total, 0.0)

    def _summed(
        self, w: Tensor, x: Tensor, y: Tensor, count: Tensor, key: Tensor, batch: Tensor,
        here: Tensor,
    ) -> Tensor:  # fmt: skip
        def loss(views: dict[str, Tensor]) -> Tensor:
            losses = self._losses(views, x, y, key, batch, here)
            return torch.where(here < count, losses, 0.0).sum()

        views = self._flat.unique(self._flat.views(w))
        return self._flat.join(list(grad(loss)(views).values()))

    def _clipped(self, clip: Bound) -> Callable[..., Tensor]:
        def one(
            views: dict[str, Tensor], x: Tensor, y: Tensor, key: Tensor, batch: Tensor, at: Tensor
        ) -> Tensor:
            x, y, at = x.unsqueeze(0), y.unsqueeze(0), at.unsqueeze(0)
            return self._losses(views, x, y, key, batch, at).sum()

        each = vmap(grad(one), in_dims=(None, 0, 0, None, None, 0))
        stage = vmap(lambda row: clip_row(row, clip))

        def clipped(
            w: Tensor, x: Tensor, y: Tensor, count: Tensor, key: Tensor, batch: Tensor,
            here: Tensor,
        ) -> Tensor:  # fmt: skip
            views = self._flat.unique(self._flat.views(w))
            grads = each(views, x, y, key, batch, here)
            rows = stage(self._flat.join_rows(list(grads.values())))
            return torch.where((here < count).unsqueeze(1), rows, 0.0).sum(0)

        return clipped

    def _losses(
        self, views: dict[str, Tensor], x: Tensor, y: Tensor, key: Tensor, batch: Tensor,
        here: Tensor,
    ) -> Tensor:  # fmt: skip
        if self._masks is not None:
            self._masks.begin(key, batch, here)
        if self._way.products != "bf16":
            return self._loss(functional_call(self._flat.module, views, (x,)), y)
        with torch.autocast(x.device.type, torch.bfloat16, cache_enabled=False):
            outputs = functional_call(self._flat.module, views, (x,))
        return self._loss(outputs.to(x.dtype), y)

    @property
    def draws(self) -> bool:
        """Whether the model has dropout."""
        return self._masks is not None


class Compiler:
    """Functions of tensors, each traced and compiled once for the shapes that it is given."""

    def __init__(self) -> None:
        """Nothing is compiled yet."""
        self._made: dict[object, Function] = {}

    def __call__(self, name: object, function: Function, *given: Tensor) -> Any:
        """Run it; `name` tells functions apart that do different things."""
        key = (name, tuple((tuple(g.shape), g.dtype) for g in given))
        if key not in self._made:
            self._made[key] = compiled(function, given)
        return self._made[key](*given)


def compiled(function: Function, given: tuple[Tensor, ...]) -> Function:
    """Traced through vmap and grad first, so that the compiler sees plain operations only."""
    try:
        trace = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)
        return torch.compile(trace(*given), dynamic=False, fullgraph=True)
    except Exception as why:
        first = str(why).splitlines()[0] if str(why) else type(why).__name__
        raise ValueError(
            f"strategy: the model's step cannot be compiled ({first}); "
            "allowed is strategy = 'cohort'."
        ) from why
