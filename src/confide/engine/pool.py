"""Threads beside the one that made them, and how many cores there are for them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

Part = Callable[[], object]


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pool(ThreadPoolExecutor):
    """Threads that work while the one that made them does, and then together with it."""

    def __init__(self, threads: int) -> None:
        """So many, besides the one that waits for them."""
        # One thread of torch's in each: a sum's rounding depends on how many share it.
        super().__init__(threads, initializer=torch.set_num_threads, initargs=(1,))
        self.threads = threads

    def begin(self, parts: Sequence[Part]) -> Begun:
        """Let every thread take part after part; each is done once."""
        left = deque(parts)
        return Begun(self, left, min(self.threads, len(left)))


class Begun:
    """Parts of a work, done by whichever thread is free."""

    def __init__(self, pool: Pool, left: deque[Part], threads: int) -> None:
        """The threads begin."""
        self._left = left
        self._others = [pool.submit(self._work) for _ in range(threads)]

    def finish(self) -> None:
        """Do what nobody has begun, and wait for the rest."""
        self._work()
        for other in self._others:
            other.result()

    def _work(self) -> None:
        while True:
            try:
                part = self._left.popleft()
            except IndexError:
                return
            part()
