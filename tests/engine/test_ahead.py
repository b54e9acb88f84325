"""Noise that threads draw ahead is that of the stream, whoever draws which part of it."""

import threading
import time

import numpy as np
import pytest
import torch

from confide.engine.ahead import Ahead, Drawn, ahead_of, values, words
from confide.engine.pool import Pool
from confide.randomness import Key
from confide.randomness.streams import BLOCK, GROUP
from confide.stages import Clip, Gaussian, Laplace

KEY = Key.from_seed(7)


@pytest.mark.parametrize("size", [1, 2, GROUP, 2 * GROUP + BLOCK + 3])
@pytest.mark.parametrize("threads", [1, 3])
def test_vectors_are_those_of_the_stream(size: int, threads: int) -> None:
    own, alone = KEY.stream(0, 0, "batch"), KEY.stream(0, 0, "batch")
    with Pool(threads) as pool:
        ahead = Ahead(pool, values(own, size, 3))
        for _ in range(3):
            np.testing.assert_array_equal(ahead.take(), alone.normal(size))
        with pytest.raises(RuntimeError, match="more often"):
            ahead.take()


def test_a_stage_adds_the_same_noise_ahead_or_not() -> None:
    stages, x = (Clip(1.0), Gaussian(0.5)), torch.ones(GROUP + 5)
    alone = KEY.stream(0, 0, "batch")
    with Pool(2) as pool:
        ahead = ahead_of(stages, KEY.stream(0, 0, "batch"), 2, x, pool)
        for _ in range(2):
            assert torch.equal(stages[1](x, None, ahead), stages[1](x, None, alone))


def test_a_gpu_gets_the_words_of_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)  # there may be no GPU here
    own, alone = KEY.stream(0, 0, "batch"), KEY.stream(0, 0, "batch")
    with Pool(2) as pool:
        drawn = Drawn(Ahead(pool, words(own, 7, 2)))
        for _ in range(2):
            np.testing.assert_array_equal(drawn.uint64(8), alone.uint64(8))


def test_works_of_one_stream_are_never_made_at_once() -> None:
    at_work, most = 0, 0

    def draw() -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        time.sleep(0.01)
        at_work -= 1

    with Pool(3) as pool:
        ahead = Ahead(pool, (([draw], number) for number in range(6)))
        assert [ahead.take() for _ in range(6)] == list(range(6))
    assert most == 1


def test_only_gaussian_noise_is_drawn_ahead() -> None:
    own = KEY.stream(0, 0, "batch")
    with Pool(1) as pool:
        assert ahead_of((Clip(1.0), Laplace(1.0)), own, 2, torch.ones(3), pool) is own
        assert ahead_of((Clip(1.0),), own, 2, torch.ones(3), pool) is own


def test_who_waits_draws_too() -> None:
    done: list[int] = []
    held = threading.Event()
    with Pool(1) as pool:
        pool.submit(held.wait)  # the only thread is busy
        begun = pool.begin([lambda i=i: done.append(i) for i in range(5)])
        threading.Timer(0.05, held.set).start()
        begun.finish()
    assert done == [0, 1, 2, 3, 4]


def test_what_goes_wrong_in_a_thread_is_told() -> None:
    def fail() -> None:
        raise OverflowError("in a part")

    with Pool(1) as pool, pytest.raises(OverflowError, match="in a part"):
        pool.begin([fail, fail]).finish()
