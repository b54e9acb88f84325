"""Noise drawn by threads before it is asked for, from the streams that would draw it anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from itertools import repeat
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.randomness import Stream
from confide.randomness.streams import Shape, count_of
from confide.stages import Clip, ClipLayers, Gaussian
from confide.stages.normal import words_of
from confide.stages.stage import Shared, Stage

T = TypeVar("T")


class Ahead(Generic[T]):
    """The results of some calls in order; the next one is always under way."""

    def __init__(self, pool: Executor, calls: Iterator[Callable[[], T]]) -> None:
        """Begin with the first."""
        self._pool, self._calls = pool, calls
        self._next: Future[T] | None = None
        self._begin()

    def take(self) -> T:
        """The next result."""
        if self._next is None:
            raise RuntimeError("noise was asked for more often than the step says")
        result = self._next.result()
        self._begin()
        return result

    def _begin(self) -> None:
        call = next(self._calls, None)
        self._next = None if call is None else self._pool.submit(call)


class Drawn(Stream):
    """A stream of which only normal values, or their words, are wanted: a vector's, in pieces."""

    def __init__(self, source: Ahead[NDArray[Any]]) -> None:
        """What has been begun."""
        self._source = source
        self._left: NDArray[Any] = np.empty(0)

    def normal(
        self, shape: Shape, dtype: type[np.float64] | type[np.float32] = np.float64
    ) -> NDArray[np.floating]:
        """The next values."""
        return self._next(count_of(shape)).reshape(shape)

    def uint64(self, shape: Shape) -> NDArray[np.uint64]:
        """The words that a GPU makes the next values of."""
        return self._next(count_of(shape)).reshape(shape)

    def _next(self, count: int) -> NDArray[Any]:
        if not len(self._left):
            self._left = self._source.take()
        given, self._left = self._left[:count], self._left[count:]
        return given


def drawn_for(stream: Stream, size: int, on_gpu: bool) -> NDArray[Any]:
    """What a Gaussian stage draws for a vector: values, or words in memory that a GPU reads."""
    if not on_gpu:
        return stream.normal((size,))
    words = stream.uint64(words_of(size)).view(np.int64)
    return torch.from_numpy(words).pin_memory().numpy().view(np.uint64)


def ahead_of(
    stages: Sequence[Stage], own: Stream, times: int, like: Tensor, pool: Executor
) -> Stream:
    """What these stages draw from in each of so many steps: Gaussian noise is drawn ahead."""
    gaussians = sum(isinstance(stage, Gaussian) for stage in stages)
    if not gaussians or not all(isinstance(s, Gaussian | Clip | ClipLayers) for s in stages):
        return own
    draw = partial(drawn_for, own, like.numel(), like.is_cuda)
    return Drawn(Ahead(pool, iter(repeat(draw, times * gaussians))))


def noise_of(
    stages: Sequence[Stage], examples: int, like: Tensor, shared: Shared, own: Stream
) -> Tensor:
    """The sum of what these stages add to `examples` gradients."""
    nothing = torch.zeros(like.shape, dtype=like.dtype)
    total = torch.zeros_like(nothing)
    for _ in range(examples):
        for stage in stages:
            total += stage(nothing, shared, own)
    return total
