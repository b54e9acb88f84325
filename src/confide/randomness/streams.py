"""One keyed source of randomness: every draw of a run is a function of (round, client, purpose).

A `Key` is 32 secret (or, in a simulation, public) bytes. `key.stream(round, client, purpose)`
hashes the three indices under the key with BLAKE2b into a subkey of its own, and AES-256 in counter
mode expands the subkey. Draws therefore depend on nothing else: not on the order in which clients
are visited, on the number of workers, or on a resume. As long as BLAKE2b is a pseudo-random
function and AES-256 a pseudo-random permutation, nobody without the key can tell the streams from
independent uniform bits.

Equal indices mean equal noise: two *different* vectors released under one index betray their
difference. A release that is repeated after a crash must be repeated bit for bit.
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from confide.randomness.polar import polar, tail

KEY_BYTES = 32
WORD_BYTES = 8
Shape = int | tuple[int, ...]
Source = Literal["public seed", "operating system"]

PAIRS = 1 << 14  # of normal values in a block: the order of the words in the stream
BLOCK = 2 * PAIRS
GROUP = 4 * BLOCK  # values made at a time: few enough for the cache, and for threads in turn
_ZEROS = memoryview(bytes(1 << 20))  # what the cipher turns into its keystream, piece by piece
_COUNTED = 16  # bytes that one count of the cipher makes
_HEADROOM = 16  # some releases of `cryptography` demand room for a block more than they write


@dataclass(frozen=True, repr=False)
class Key:
    """The root of all randomness of a run; `source` says where it came from, for the statement."""

    material: bytes
    source: Source

    def __post_init__(self) -> None:
        """Refuse a key of another length."""
        if len(self.material) != KEY_BYTES:
            raise ValueError(
                f"Key: material has {len(self.material)} bytes; it must have {KEY_BYTES}."
            )

    @classmethod
    def from_seed(cls, seed: int) -> Key:
        """Derive a reproducible key from all bits of a public seed: for simulations only."""
        if isinstance(seed, bool) or not isinstance(cast(object, seed), int):
            raise TypeError(f"Key.from_seed: seed={seed!r} must be an integer.")
        digits = seed.to_bytes(seed.bit_length() // 8 + 1, "big", signed=True)
        digest = hashlib.blake2b(digits, digest_size=KEY_BYTES, person=b"confide seed")
        return cls(digest.digest(), "public seed")

    @classmethod
    def from_system(cls) -> Key:
        """Draw a secret key from the operating system: for deployments."""
        return cls(os.urandom(KEY_BYTES), "operating system")

    def stream(self, round: int, client: int | None, purpose: str) -> Stream:
        """Return the stream of these indices, from its start; equal indices give equal draws."""
        index = encode_index(round, client, purpose)
        subkey = hashlib.blake2b(
            index, key=self.material, digest_size=KEY_BYTES, person=b"confide stream"
        )
        return Stream(subkey.digest())

    def __repr__(self) -> str:
        """Show where the key came from and none of its bytes."""
        return f"Key(<{KEY_BYTES} bytes>, source={self.source!r})"

    def __reduce__(self) -> tuple[type[Key], tuple[bytes, Source]]:
        """Let a public key travel to workers, and keep a secret one out of every checkpoint."""
        if self.source != "public seed":
            raise TypeError(
                "Key: a secret key is never copied or pickled, because the copy would outlive the "
                "run; hand on its KeyFile."
            )
        return Key, (self.material, self.source)


def encode_index(round: int, client: int | None, purpose: str) -> bytes:
    """Encode the indices of a stream so that distinct indices have distinct encodings.

    The two numbers have fixed width, a flag tells client 0 from no client, and the purpose, the
    only part of variable length, comes last: the encoding can be read back, so it is one-to-one.
    """
    if not purpose:
        raise ValueError("Key.stream: purpose is empty; it must name what the draws are for.")
    flag, number = (b"\0", 0) if client is None else (b"\1", client)
    return _eight_bytes("round", round) + flag + _eight_bytes("client", number) + purpose.encode()


def _eight_bytes(name: str, value: int) -> bytes:
    if isinstance(value, bool) or not 0 <= value < 1 << 64:
        raise ValueError(f"Key.stream: {name}={value!r} must be an integer in [0, 2**64).")
    return operator.index(value).to_bytes(8, "big")


class Stream:
    """An endless keystream with vectorised draws; each draw takes up where the last one ended.

    Not safe to share between threads: give every thread indices of its own.
    """

    def __init__(self, subkey: bytes) -> None:
        """Start the keystream of a 32-byte subkey that no other stream has."""
        self._subkey = subkey
        self._begin(0)

    def _begin(self, place: int) -> None:
        # Counter 0 is safe for every stream because no two streams share a subkey.
        block, within = divmod(place, _COUNTED)
        counter = modes.CTR(block.to_bytes(_COUNTED, "big"))
        self._cipher = Cipher(algorithms.AES(self._subkey), counter).encryptor()
        self._place = place - within
        self._take(within)

    def set_apart(self, n: int) -> Stream:
        """Return a stream of the next n bytes, for another thread; this one goes on after them."""
        part = Stream(self._subkey)
        part._begin(self._place)
        self._begin(self._place + count_of(n))
        return part

    def _take(self, n: int) -> NDArray[np.uint8]:
        self._place += n
        out = np.empty(n + _HEADROOM, np.uint8)
        for start in range(0, n, len(_ZEROS)):
            self._cipher.update_into(_ZEROS[: n - start], out.data[start:])
        return out[:n]

    def bytes(self, n: int) -> bytes:
        """Return n bytes."""
        return self._take(count_of(n)).tobytes()

    def uint64(self, shape: Shape) -> NDArray[np.uint64]:
        """Return uniform 64-bit words."""
        return (
            self._take(8 * count_of(shape)).view("<u8").astype(np.uint64, copy=False).reshape(shape)
        )

    def uniform(self, shape: Shape) -> NDArray[np.float64]:
        """Return multiples of 2**-53, uniform in (0, 1]: never 0, so logarithms are finite."""
        steps = (self.uint64(shape) >> np.uint64(11)) + np.uint64(1)
        return steps.astype(np.float64) * 2.0**-53

    def exponential(self, shape: Shape) -> NDArray[np.float64]:
        """Return exponential values of mean 1."""
        u = np.empty(count_of(shape))
        tail(self.uint64(len(u)), u)
        np.log(u, out=u)
        return np.abs(u, out=u).reshape(shape)

    def normal(
        self, shape: Shape, dtype: type[np.float64] | type[np.float32] = np.float64
    ) -> NDArray[np.floating]:
        """Return standard normal values by the polar form of two independent ones (Box-Muller).

        The radius has 64 random bits whatever the dtype, so that the tail of 10**7 float32 values
        is not cut where it would show; the angle has as many as the dtype resolves.
        """
        if dtype not in (np.float64, np.float32):
            raise ValueError(f"Stream.normal: dtype={dtype!r} must be numpy float64 or float32.")
        count = count_of(shape)
        out = np.empty(count + count % 2, dtype)
        self.fill_normal(out)
        return out[:count].reshape(shape)

    def fill_normal(self, out: NDArray[np.floating]) -> None:
        """Fill an array of even length: block after block of two halves, several at a time."""
        whole = len(out) // BLOCK * BLOCK
        for start in range(0, whole, GROUP):
            part = out[start : min(start + GROUP, whole)]
            self._fill_blocks(part.reshape(-1, 2, PAIRS))
        if whole < len(out):
            self._fill_blocks(out[whole:].reshape(1, 2, -1))

    def _fill_blocks(self, out: NDArray[np.floating]) -> None:
        """Each block takes words for its radii, then for its angles."""
        blocks, _, pairs = out.shape
        radius, half = np.empty((blocks, pairs)), np.empty((blocks, pairs), out.dtype)
        if out.dtype == np.float64:
            words = self.uint64(out.shape)
            tail(words[:, 0], radius)
            angles = words[:, 1]
            angles >>= np.uint64(11)
            np.copyto(half, angles.view(np.int64))
            half *= math.pi * 2.0**-53
        else:
            few = self._take(12 * blocks * pairs).reshape(blocks, -1)
            tail(few[:, : 8 * pairs].view("<u8").astype(np.uint64), radius)
            angles = few[:, 8 * pairs :].view("<u4") >> np.uint32(8)
            np.multiply(angles, np.float32(math.pi * 2.0**-24), out=half)
        np.log(radius, out=radius)
        radius *= -2.0
        np.sqrt(radius, out=radius)
        polar(radius.astype(out.dtype, copy=False), half, out[:, 0], out[:, 1])

    def integers(self, bound: int, shape: Shape) -> NDArray[np.int64]:
        """Return integers exactly uniform in [0, bound), by redrawing words that favour some."""
        if isinstance(bound, bool) or not 1 <= bound <= 1 << 63:
            raise ValueError(f"Stream.integers: bound={bound!r} must be in [1, 2**63].")
        words = self.uint64(count_of(shape))
        last = np.uint64((1 << 64) - (1 << 64) % bound - 1)  # the largest word that favours none
        self._redraw(words, lambda w: w > last)
        return (words % np.uint64(bound)).astype(np.int64).reshape(shape)

    def _redraw(
        self, words: NDArray[np.uint64], bad: Callable[[NDArray[np.uint64]], NDArray[np.bool_]]
    ) -> None:
        wrong = np.flatnonzero(bad(words))
        while len(wrong):
            words[wrong] = self.uint64(len(wrong))
            wrong = wrong[bad(words[wrong])]

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Return a uniform permutation of range(n): the order of n distinct words.

        Independent words are exchangeable, also given that no two are equal, so every order has the
        same probability; draws with a tie are thrown away whole.
        """
        while True:
            words = self.uint64(count_of(n))
            order = np.argsort(words)
            ranked = words[order]
            if not np.any(ranked[1:] == ranked[:-1]):
                return order.astype(np.int64, copy=False)

    def choose(self, n: int, k: int) -> NDArray[np.int64]:
        """Return k of range(n), every k-subset equally likely, in ascending order.

        The first k distinct values of a uniform sequence are a uniform ordered sample; for more
        than half of range(n), the beginning of a permutation is cheaper.
        """
        if not 0 <= k <= n:
            raise ValueError(f"Stream.choose: k={k} must be in [0, n], and n={n}.")
        if 2 * k > n:
            return np.sort(self.permutation(n)[:k])
        drawn = np.empty(0, np.int64)
        firsts = np.empty(0, np.int64)
        while len(firsts) < k:
            drawn = np.concatenate([drawn, self.integers(n, k - len(firsts) + 8)])
            firsts = np.sort(np.unique(drawn, return_index=True)[1])
        return np.sort(drawn[firsts[:k]])

    def bernoulli(self, p: float, shape: Shape) -> NDArray[np.bool_]:
        """Return True with probability exactly p: a float is a fraction with a finite expansion.

        A uniform real in binary is compared with p word by word, and only draws that agree with p
        in every word so far (one in 2**64) need another.
        """
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"Stream.bernoulli: p={p!r} must be in [0, 1].")
        count = count_of(shape)
        if p == 1.0:
            return np.ones(count, np.bool_).reshape(shape)
        top, bottom = float(p).as_integer_ratio()
        below = np.zeros(count, np.bool_)
        undecided = np.arange(count)
        while top and len(undecided):
            word, top = divmod(top << 64, bottom)
            drawn = self.uint64(len(undecided))
            below[undecided] = drawn < np.uint64(word)
            undecided = undecided[drawn == np.uint64(word)]
        return below.reshape(shape)

    def signs(self, shape: Shape) -> NDArray[np.int8]:
        """Return -1 or +1, each with probability 1/2."""
        count = count_of(shape)
        bits = np.unpackbits(self._take(-(-count // 8)), count=count).view(np.int8)
        bits *= 2
        bits -= 1
        return bits.reshape(shape)


def count_of(shape: Shape) -> int:
    """Return how many values a shape holds; refuse a negative size."""
    sizes = (shape,) if isinstance(shape, int) else shape
    if any(isinstance(size, bool) or size < 0 for size in sizes):
        raise ValueError(f"Stream: shape={shape!r} must have no negative size.")
    return math.prod(sizes)
