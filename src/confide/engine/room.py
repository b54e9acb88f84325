"""How many clients move at once: as many rows and columns of examples as fit the memory."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, sqrt

import torch

from confide.cohorts import Epoch, Fixed, Poisson
from confide.data.dataset import Federation
from confide.engine.rounds import Local, Round

ROWS_ON_CPU, ROWS_ON_GPU = 32, 1024
"""More rows than this gain nothing."""

MEMORY_ON_CPU = 1 << 30
"""Bytes for one chunk."""

SHARE = 0.7
"""Of a device's memory, for one chunk; its total is the same in every run, what is free is not.

Of a device that processes share it is the part that this one may take.
"""

COPIES = 12
"""Vectors of the model's length that a row needs at the most: uploads are clipped in double."""


class Room:
    """The sizes of chunks and batches, which depend on no data: the same in every run.

    `try_out` takes the gradients of that many examples of one client, to see what they need.
    """

    def __init__(
        self,
        federation: Federation,
        vector: torch.Tensor,
        rows: int | None,
        try_out: Callable[[Local, int], object],
    ) -> None:
        """For models like this vector; `rows` bounds a chunk, which otherwise fits the memory."""
        self._clients = len(federation.clients)
        self._largest = max(1, *(len(held) for held in federation.clients))
        self._held = federation.data.x_train.nbytes
        self._size, self._device = vector.nbytes, vector.device
        self._most, self._try_out = rows, try_out
        self._needs: dict[tuple[bool, int], float] = {}

    def rows(self, r: Round) -> int:
        """How many clients a chunk has: the same in every round, so that one shape is compiled."""
        expected = r.cohort.expected(self._clients)
        if isinstance(r.cohort, Poisson):
            expected = min(self._clients, expected + 2 * sqrt(expected))
        expected = max(1, ceil(expected))
        return ceil(expected / ceil(expected / self._fit(r.local)[0]))

    def width(self, local: Local) -> int:
        """How many columns a batch has; only a Poisson batch is now and then larger."""
        match local.sampler:
            case Epoch(m) | Fixed(m):
                return min(m, self._largest)
            case Poisson(q):
                mean = q * self._largest
                return min(self._largest, max(1, ceil(mean + 3 * sqrt(mean))))
            case _:
                return self._largest

    def columns(self, local: Local) -> int | None:
        """How many columns go at a time, where not even one client's batch fits."""
        return self._fit(local)[1]

    def _fit(self, local: Local) -> tuple[int, int | None]:
        if self._most is not None:
            return self._most, None
        width, size = self.width(local), self._size
        budget, most = MEMORY_ON_CPU, ROWS_ON_CPU
        if self._device.type == "cuda":
            total = torch.cuda.get_device_properties(self._device).total_memory
            total *= torch.cuda.get_per_process_memory_fraction(self._device)
            budget, most = SHARE * (total - self._held), ROWS_ON_GPU
        need = self._need(local, width)
        rows = int(budget / (COPIES * size + width * need))
        if rows or not need:
            return max(1, min(rows, most)), None
        return 1, max(1, int((budget - COPIES * size) / need))

    def _need(self, local: Local, width: int) -> float:
        """The bytes that one example takes: measured on a GPU, guessed elsewhere."""
        if self._device.type != "cuda":
            return 4.0 * self._size if local.example else 0.0
        key = (bool(local.example), width)
        if key not in self._needs:
            columns = min(width, 8)
            before = torch.cuda.memory_allocated(self._device)
            torch.cuda.reset_peak_memory_stats(self._device)
            self._try_out(local, columns)
            peak = torch.cuda.max_memory_allocated(self._device)
            self._needs[key] = (peak - before) / columns
        return self._needs[key]
