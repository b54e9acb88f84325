"""Noise drawn by threads before it is asked for, from the streams that would draw it anyway."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.engine.pool import Begun, Part, Pool
from confide.randomness import Stream
from confide.randomness.streams import GROUP, WORD_BYTES, Shape, count_of
from confide.stages import Clip, ClipLayers, Gaussian
from confide.stages.normal import words_of
from confide.stages.stage import Shared, Stage

T = TypeVar("T")


class Ahead(Generic[T]):
    """Results in order, each made in parts; the next one is always under way.

    Works that draw from one stream are made one after the other. Only those whose streams were set
    `apart` may be begun while one before them is not finished.
    """

    def __init__(
        self, pool: Pool, works: Iterator[tuple[Sequence[Part], T]], apart: bool = False
    ) -> None:
        """Begin with the first."""
        self._pool, self._works, self._apart = pool, works, apart
        self._next = self._begun()

    def take(self) -> T:
        """The next result; the threads go on to the one after it, if they may, meanwhile."""
        if self._next is None:
            raise RuntimeError("noise was asked for more often than the step says")
        begun, result = self._next
        if self._apart:
            self._next = self._begun()
            begun.finish()
        else:
            begun.finish()
            self._next = self._begun()
        return result

    def _begun(self) -> tuple[Begun, T] | None:
        work = next(self._works, None)
        return None if work is None else (self._pool.begin(work[0]), work[1])


class Drawn(Stream):
    """A stream of which only normal values, or their words, are wanted: a vector's, in pieces."""

    def __init__(self, source: Ahead[NDArray[Any]]) -> None:
        """What has been begun."""
        self._source = source
        self._left: NDArray[Any] = np.empty(0)

    def normal(
        self, shape: Shape, dtype: type[np.float64] | type[np.float32] = np.float64
    ) -> NDArray[np.floating]:
        """The next values, in memory that the noise of the step after the next one takes."""
        return self._next(count_of(shape)).reshape(shape)

    def uint64(self, shape: Shape) -> NDArray[np.uint64]:
        """The words that a GPU makes the next values of."""
        return self._next(count_of(shape)).reshape(shape)

    def _next(self, count: int) -> NDArray[Any]:
        if not len(self._left):
            self._left = self._source.take()
        given, self._left = self._left[:count], self._left[count:]
        return given


def values(
    stream: Stream, size: int, times: int
) -> Iterator[tuple[Sequence[Part], NDArray[np.float64]]]:
    """So many vectors of normal values, in two places in turn: the stream's, split by its words."""
    rooms = np.empty((2, words_of(size)))
    for number in range(times):
        room = rooms[number % 2]
        pieces = [room[start : start + GROUP] for start in range(0, len(room), GROUP)]
        parts = [partial(stream.set_apart(WORD_BYTES * len(p)).fill_normal, p) for p in pieces]
        yield parts, room[:size]


def words(
    stream: Stream, size: int, times: int
) -> Iterator[tuple[Sequence[Part], NDArray[np.uint64]]]:
    """The words of so many vectors, in memory that a GPU reads."""
    for _ in range(times):
        room = torch.empty(words_of(size), dtype=torch.int64).pin_memory().numpy().view(np.uint64)
        yield [partial(fill, room, stream)], room


def fill(room: NDArray[np.uint64], stream: Stream) -> None:
    """Take as many words as fit."""
    room[:] = stream.uint64(len(room))


def ahead_of(stages: Sequence[Stage], own: Stream, times: int, like: Tensor, pool: Pool) -> Stream:
    """What these stages draw from in each of so many steps: Gaussian noise is drawn ahead."""
    gaussians = sum(isinstance(stage, Gaussian) for stage in stages)
    if not gaussians or not all(isinstance(s, Gaussian | Clip | ClipLayers) for s in stages):
        return own
    times *= gaussians
    if like.is_cuda:
        return Drawn(Ahead(pool, words(own, like.numel(), times)))
    return Drawn(Ahead(pool, values(own, like.numel(), times), apart=True))


def noise_of(
    stages: Sequence[Stage], examples: int, total: Tensor, shared: Shared, own: Stream
) -> None:
    """Add what these stages add to `examples` gradients."""
    nothing = torch.zeros_like(total)
    for _ in range(examples):
        for stage in stages:
            total += stage(nothing, shared, own)
