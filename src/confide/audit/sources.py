"""Where noise comes from: the keyed cipher and nothing else, and a key that nobody can guess.

Statistics cannot tell a good generator from a bad one. These checks change one thing at a time and
look whether the noise follows: the key, the global generators, single bits of the stream.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from torch import Tensor

from confide.audit.laws import is_continuous
from confide.audit.twins import Call
from confide.engine.client import shared_streams
from confide.randomness import Key, Stream
from confide.randomness.exact import GriddedLaplace
from confide.randomness.streams import KEY_BYTES, encode_index
from confide.stages import Laplace
from confide.stages.bounds import number

ENOUGH_BITS = 128
FLIPS = 128
LEAST_SHARE = 0.05
"""Samplers look at a fifth of their bits or more; a short seed in a long draw is all but unseen."""
SEEDS, SEEDS_OF_OTHERS, DAY = 100_000, 3_000, 86_400
BIRTHDAYS = 1 << 18
"""So many keys of 32 random bits repeat but for probability e^-8; of 256 bits, never."""


# The generators of the whole process ------------------------------------------------------------


def global_states() -> tuple[bytes, ...]:
    """The states of torch's, numpy's and Python's own generators."""
    state: Any = np.random.get_state()
    return (
        torch.get_rng_state().numpy().tobytes(),
        state[1].tobytes() + repr(state[2:]).encode(),
        repr(random.getstate()).encode(),
    )


@contextmanager
def reseeded(seed: int) -> Generator[None]:
    """All three of them seeded anew, and afterwards as they were."""
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before[0])
        np.random.set_state(before[1])
        random.setstate(before[2])


OWNERS = ("torch's", "numpy's", "Python's")


def moved(before: tuple[bytes, ...], after: tuple[bytes, ...]) -> list[str]:
    """Whose generator was drawn from."""
    return [who for who, a, b in zip(OWNERS, before, after, strict=True) if a != b]


# What a stage reads -----------------------------------------------------------------------------


class Flipped(Stream):
    """A stream with one bit of what is taken turned over."""

    def __init__(self, source: Stream, bit: int) -> None:
        """Counted from the first."""
        self._source, self._bit, self._passed = source, bit, 0

    def _take(self, n: int) -> NDArray[np.uint8]:
        out = self._source._take(n)
        place = self._bit // 8 - self._passed
        if 0 <= place < n:
            out[place] ^= np.uint8(1 << self._bit % 8)
        self._passed += n
        return out


def poor(call: Call, key: Key) -> str:
    """Why the noise of this call can be guessed or made of less than it needs; empty: it is not."""
    d = call.given.numel()
    if not is_continuous(call.stage, d):
        return ""
    needed = max(min(ENOUGH_BITS // 8, 8 * d), d // 8)
    if call.taken < needed:
        return (
            f"takes {call.taken} bytes of the keyed stream for {d} coordinates (it needs {needed} "
            "at least): it is guessable, or made by another generator"
        )
    if d < ENOUGH_BITS // 8:
        return ""
    bits = 8 * call.taken
    places = np.unique(np.linspace(0, bits - 1, min(bits, FLIPS)).astype(np.int64))
    plain = again(call, key.stream(call.t, call.client, "flips"))
    felt = 0
    for place in places:
        stream = Flipped(key.stream(call.t, call.client, "flips"), int(place))
        felt += not torch.equal(again(call, stream), plain)
    share = felt / len(places)
    if share * bits < ENOUGH_BITS or share < LEAST_SHARE:
        return (
            f"hangs on {felt} of {len(places)} bits that were turned over, one by one, in the "
            f"{bits} that it takes from the keyed stream: its seed can be guessed"
        )
    return ""


def again(call: Call, own: Stream, x: Tensor | None = None) -> Tensor:
    """The same stage on the same vector, by this stream."""
    given = call.given if x is None else x
    shared = shared_streams(Key.from_seed(0), call.t)
    return call.stage(given.clone(), shared, own)


def grid_of(call: Call) -> float | None:
    """The grid that a stage says its results lie on; None: floating point."""
    words = str(getattr(call.stage, "grid_words", ""))
    if "grid of" not in words:
        return None
    if isinstance(call.stage, Laplace):
        return GriddedLaplace(number(call.stage.scale)).grid
    step: Any = getattr(call.stage, "step", None)
    return None if step is None else float(step)


def off_grid(call: Call, key: Key) -> str:
    """Whether results lie between the points of the grid that the stage says they lie on."""
    grid = grid_of(call)
    if grid is None:
        return ""
    came = again(call, key.stream(call.t, call.client, "grid"), call.given.double())
    place = came.double().numpy() / grid
    if np.all(np.abs(place - np.round(place)) <= 1e-6):
        return ""
    return f"leaves values between the points of its grid of {grid:.3g}"


def gaps(call: Call) -> tuple[float, float]:
    """The least and the largest distance of two neighbouring values where the results lie."""
    apart = np.spacing(np.abs(call.came.numpy()))
    return float(apart.min()), float(apart.max())


# The key ----------------------------------------------------------------------------------------


def derived(material: bytes, t: int, client: int | None, purpose: str, n: int) -> bytes:
    """The keystream, computed once more: BLAKE2b for the subkey, AES-256 of a counter."""
    index = encode_index(t, client, purpose)
    subkey = hashlib.blake2b(index, key=material, digest_size=32, person=b"confide stream")
    blocks = b"".join(i.to_bytes(16, "big") for i in range(-(-n // 16)))
    cipher = Cipher(algorithms.AES(subkey.digest()), modes.ECB()).encryptor()
    return cipher.update(blocks)[:n]


def key_faults() -> tuple[str, ...]:
    """What is wrong with how keys are made and streams derived; looked at once in a process."""
    return key_faults_of(Key.from_system, Key.from_seed, Key.stream)


@cache
def key_faults_of(
    system: Callable[[], Key],
    seed: Callable[[int], Key],
    stream: Callable[[Key, int, int | None, str], Stream],
) -> tuple[str, ...]:
    """The same of these three."""
    out = list(stream_faults(stream))
    one = system()
    if one.source != "operating system":
        out.append(f"a deployment's key says that it comes from a {one.source}")
    if len({system().material for _ in range(BIRTHDAYS)}) < BIRTHDAYS:
        out.append("keys of the operating system repeat: they have some 36 random bits or fewer")
    if (found := guessed(one)) is not None:
        out.append(f"a key of the operating system can be guessed: it is {found}")
    seeds = [5, 5 + (1 << 32), 5 + (1 << 64), 5 + (1 << 128), -5]
    if len({seed(number).material for number in seeds}) < len(seeds):
        out.append("seeds that differ in their high bits alone give the same key")
    return tuple(out)


def stream_faults(
    stream: Callable[[Key, int, int | None, str], Stream] = Key.stream,
) -> Iterator[str]:
    """Whether streams are those of the cipher, and hang on every byte of the key and the index."""
    material = bytes(range(KEY_BYTES))

    def first(changed: bytes, t: int, client: int | None, purpose: str) -> bytes:
        return stream(Key(changed, "public seed"), t, client, purpose).bytes(48)

    if first(material, 7, 3, "audit") != derived(material, 7, 3, "audit", 48):
        yield "the keyed stream is not AES-256 under a subkey of its own"
    turned = [material[:i] + bytes([material[i] ^ 1]) + material[i + 1 :] for i in range(KEY_BYTES)]
    streams = [first(m, 7, 3, "audit") for m in (material, *turned)]
    streams += [first(material, t, c, p) for t, c, p in OTHER_INDICES]
    if len(set(streams)) < len(streams):
        yield "two streams of different keys, rounds, clients or purposes are the same"


OTHER_INDICES = (
    (7 + (1 << 32), 3, "audit"), (7, 3 + (1 << 32), "audit"), (8, 3, "audit"), (7, 4, "audit"),
    (7, None, "audit"), (7, 0, "audit"), (3, 7, "audit"), (7, 3, "audit "), (7, 3, "shared audit"),
)  # fmt: skip


def guessed(key: Key, now: float | None = None) -> str | None:
    """The guess that finds this key: small seeds, the time of day, short numbers, known generators.

    A simulation's key is found, as it should be: its seed is public, and the statement says so.
    """
    material = key.material
    if material in seeded(SEEDS):
        return "that of a seed below 100,000"
    clock = time.time() if now is None else now
    recent = range(int(clock) - DAY, int(clock) + 2)
    fine = range(int(clock * 1000) - 5000, int(clock * 1000) + 5000)
    if any(Key.from_seed(second).material == material for second in (*recent, *fine)):
        return "that of the time of day"
    if sum(byte != 0 for byte in material) <= 8 or len(set(material)) <= 4:
        return "a number of 64 bits or fewer, with zeros around it"
    for name, bytes_of in GENERATORS.items():
        if any(bytes_of(seed) == material for seed in range(SEEDS_OF_OTHERS)):
            return f"what {name} gives for a seed below {SEEDS_OF_OTHERS}"
    return None


@cache
def seeded(seeds: int) -> frozenset[bytes]:
    """The keys of all small seeds."""
    return frozenset(Key.from_seed(seed).material for seed in range(seeds))


GENERATORS: dict[str, Callable[[int], bytes]] = {
    "numpy's default generator": lambda seed: np.random.default_rng(seed).bytes(KEY_BYTES),
    "numpy's old generator": lambda seed: np.random.RandomState(seed).bytes(KEY_BYTES),
    "Python's generator": lambda seed: random.Random(seed).randbytes(KEY_BYTES),
    "SHA-256": lambda seed: hashlib.sha256(str(seed).encode()).digest(),
}
