"""Keys that can be guessed are guessed, and streams are those of the cipher."""

import hashlib
import random
import time

import numpy as np
import pytest
import torch

from confide.audit.sources import (
    global_states,
    guessed,
    key_faults,
    key_faults_of,
    moved,
    reseeded,
    stream_faults,
)
from confide.randomness import Key, Stream


def secret(material: bytes) -> Key:
    return Key(material, "operating system")


@pytest.mark.parametrize(
    ("material", "word"),
    [
        (Key.from_seed(77_123).material, "seed below"),
        (Key.from_seed(int(time.time()) - 3600).material, "time of day"),
        ((0x1234_5678).to_bytes(32, "big"), "64 bits"),
        ((0x1234_5678).to_bytes(32, "little"), "64 bits"),
        (b"\1\2\3\4" * 8, "64 bits"),
        (np.random.default_rng(1234).bytes(32), "numpy's default"),
        (np.random.RandomState(7).bytes(32), "numpy's old"),
        (random.Random(42).randbytes(32), "Python's"),
        (hashlib.sha256(b"99").digest(), "SHA-256"),
    ],
)
def test_a_weak_key_is_guessed(material: bytes, word: str) -> None:
    assert word in str(guessed(secret(material)))


def test_the_systems_keys_are_not_guessed() -> None:
    assert guessed(Key.from_system()) is None
    assert key_faults() == ()


def test_keys_of_few_bits_are_found() -> None:
    short = np.random.default_rng(5)

    def weak() -> Key:
        return secret(Key.from_seed(int(short.integers(1 << 32))).material)

    def low_word(seed: int) -> Key:
        return Key.from_seed(seed & 0xFFFFFFFF)

    found = " ".join(key_faults_of(weak, low_word, Key.stream))
    assert "keys of the operating system repeat" in found
    assert "seeds that differ in their high bits" in found


def other_generator(key: Key, t: int, client: int | None, purpose: str) -> Stream:
    return Key.from_seed(hash((key.material, t, client, purpose))).stream(0, 0, "x")


def without_client(key: Key, t: int, client: int | None, purpose: str) -> Stream:
    return key.stream(t, 3, purpose)


def test_streams_that_are_not_the_ciphers_are_found() -> None:
    assert tuple(stream_faults()) == ()
    assert "not AES-256" in " ".join(stream_faults(other_generator))
    assert "are the same" in " ".join(stream_faults(without_client))


def test_global_generators_are_watched_and_restored() -> None:
    before = global_states()
    with reseeded(5):
        torch.rand(1)
        np.random.random()
        random.random()
        assert moved(before, global_states()) == ["torch's", "numpy's", "Python's"]
    assert moved(before, global_states()) == []
