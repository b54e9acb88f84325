from __future__ import annotations

import copy
import hashlib
import itertools
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from confide.randomness import polar, streams
from confide.randomness.streams import BLOCK, GROUP, KEY_BYTES, Key, Stream, encode_index
from goodness import LEAST_P, chi_square, kolmogorov

KEY = Key.from_seed(20240607)


def stream(purpose: str) -> Stream:
    return KEY.stream(0, None, purpose)


class Scripted(Stream):
    """A stream that returns given words first."""

    def __init__(self, *words: int) -> None:
        self._script = b"".join(word.to_bytes(8, "little") for word in words)
        super().__init__(bytes(32))

    def _take(self, n: int) -> np.ndarray:
        head, self._script = self._script[:n], self._script[n:]
        return np.concatenate([np.frombuffer(head, np.uint8), super()._take(n - len(head))])


# Keys ------------------------------------------------------------------------------------------


def test_a_seed_is_hashed_in_full() -> None:
    seeds = [0, 1, -1, 255, 256, -256, 2**32, 2**32 + 1, 2**64, 2**64 + 1, 2**300, -(2**300)]
    assert len({Key.from_seed(seed).material for seed in seeds}) == len(seeds)
    assert Key.from_seed(7) == Key.from_seed(7)
    assert Key.from_seed(7).source == "public seed"


@given(st.integers(), st.integers())
def test_distinct_seeds_give_distinct_keys(a: int, b: int) -> None:
    assert (Key.from_seed(a) == Key.from_seed(b)) == (a == b)


@pytest.mark.parametrize("seed", [1.0, True, "1", None])
def test_a_seed_that_is_no_integer_is_refused(seed: object) -> None:
    with pytest.raises(TypeError, match=r"seed=.* must be an integer"):
        Key.from_seed(seed)  # type: ignore[arg-type]


def test_a_system_key_is_fresh_and_never_copied() -> None:
    one, other = Key.from_system(), Key.from_system()
    assert one.source == "operating system"
    assert one.material != other.material
    for spread in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="never copied or pickled"):
            spread(one)
    assert pickle.loads(pickle.dumps(KEY)) == KEY


def test_no_text_of_a_key_shows_its_bytes() -> None:
    key = Key.from_system()
    for text in (repr(key), str(key), f"{key}"):
        assert text == "Key(<32 bytes>, source='operating system')"


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="31 bytes"):
        Key(bytes(31), "operating system")


# Streams ---------------------------------------------------------------------------------------

INDICES = st.tuples(
    st.integers(0, 2**64 - 1), st.none() | st.integers(0, 2**64 - 1), st.text(min_size=1)
)


@given(INDICES, INDICES)
def test_distinct_indices_have_distinct_encodings(
    a: tuple[int, int | None, str], b: tuple[int, int | None, str]
) -> None:
    assert (encode_index(*a) == encode_index(*b)) == (a == b)


def test_indices_that_a_careless_encoding_would_confuse() -> None:
    indices = [
        (1, 11, "a"),
        (11, 1, "a"),
        (0, None, "a"),
        (0, 0, "a"),
        (0, 0, "\0a"),
        (0, 0, "a\0"),
        (256, 0, "a"),
        (1, 2, "3noise"),
        (1, 23, "noise"),
    ]
    assert len({KEY.stream(*index).bytes(16) for index in indices}) == len(indices)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ((-1, None, "x"), "round=-1"),
        ((0, -1, "x"), "client=-1"),
        ((0, 2**64, "x"), "client="),
        ((True, None, "x"), "round=True"),
        ((0, None, ""), "purpose is empty"),
    ],
)
def test_bad_indices_are_refused(index: tuple[int, int | None, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        KEY.stream(*index)


def test_a_stream_is_the_cipher_in_counter_mode() -> None:
    index = (5).to_bytes(8, "big") + b"\1" + (9).to_bytes(8, "big") + b"noise"
    subkey = hashlib.blake2b(
        index, key=KEY.material, digest_size=32, person=b"confide stream"
    ).digest()
    block = Cipher(algorithms.AES(subkey), modes.ECB()).encryptor()
    expected = b"".join(block.update(n.to_bytes(16, "big")) for n in range(4))
    assert KEY.stream(5, 9, "noise").bytes(64) == expected


def test_draws_of_a_seed_never_change() -> None:
    # Reproducibility across releases: a published seed must keep meaning the same run.
    drawn = stream("golden")
    assert drawn.bytes(8).hex() == "8a8072436426c63b"
    assert drawn.integers(1000, 4).tolist() == [357, 816, 647, 72]
    assert drawn.permutation(5).tolist() == [2, 4, 3, 0, 1]
    np.testing.assert_allclose(drawn.normal(2), [0.971506852321087, 1.3780934097981923], rtol=1e-14)


@pytest.mark.parametrize("before", [0, 5, 16, 100])
@pytest.mark.parametrize("n", [0, 3, 32, 4 * GROUP])
def test_parts_set_apart_are_the_stream(before: int, n: int) -> None:
    whole, split = stream("apart"), stream("apart")
    assert split.bytes(before) == whole.bytes(before)
    part, other = split.set_apart(n), split.set_apart(7)
    rest = split.bytes(9)  # the last is drawn first
    assert (part.bytes(n), other.bytes(7), rest) == (whole.bytes(n), whole.bytes(7), whole.bytes(9))


@pytest.mark.parametrize("count", [2, BLOCK, GROUP + 6, 2 * GROUP + BLOCK + 10])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_normal_values_do_not_depend_on_how_many_are_made_at_a_time(
    count: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = stream("groups").normal(count, dtype)
    monkeypatch.setattr(streams, "GROUP", BLOCK)
    np.testing.assert_array_equal(stream("groups").normal(count, dtype), together)


def test_tangents_make_the_normal_values_of_cosines_and_sines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    for fast in (True, False):
        monkeypatch.setattr(polar, "fast_tangent", lambda fast=fast: fast)
        made.append(stream("tangents").normal(3 * GROUP))
    assert np.abs(made[0] - made[1]).max() < 4e-15
    radius, angle = np.full(5, 2.0), np.array([0.0, 0.25, 0.5, 0.75, 1.0]) * math.pi
    cosine, sine = np.empty(5), np.empty(5)
    monkeypatch.setattr(polar, "fast_tangent", lambda: True)
    polar.polar(radius, angle.copy(), cosine, sine)
    np.testing.assert_allclose(cosine, 2 * np.cos(2 * angle), atol=1e-15)
    np.testing.assert_allclose(sine, 2 * np.sin(2 * angle), atol=1e-15)


def test_a_stream_depends_on_its_calls_only() -> None:
    def calls(s: Stream) -> list[np.ndarray]:
        return [s.normal(5), s.signs(3), s.uint64((2, 2)), s.choose(9, 4), s.normal(3, np.float32)]

    first, second = stream("calls"), stream("calls")
    stream("other").normal(100)
    for a, b in zip(calls(first), calls(second), strict=True):
        np.testing.assert_array_equal(a, b)
    assert first.bytes(8) == second.bytes(8)


@given(st.lists(st.integers(0, 70), max_size=6))
def test_pieces_join_to_one_keystream(sizes: list[int]) -> None:
    pieces = stream("pieces")
    assert b"".join(pieces.bytes(n) for n in sizes) == stream("pieces").bytes(sum(sizes))


def test_a_large_draw_is_the_same_keystream() -> None:
    n = (1 << 20) + 1001
    parts = stream("large")
    whole = stream("large").bytes(2 * n)
    assert parts.bytes(n) + parts.bytes(n) == whole


def test_streams_share_no_block() -> None:
    blocks = [
        KEY.stream(round_, client, purpose).bytes(16 * 32)[16 * i : 16 * i + 16]
        for round_, client, purpose in itertools.product(
            range(20), [None, *range(9)], ["noise", "mask"]
        )
        for i in range(32)
    ]
    assert len(set(blocks)) == len(blocks)


def test_streams_are_uncorrelated() -> None:
    n, streams = 20_000, 40
    values = np.stack([KEY.stream(r, c, "x").normal(n) for r in range(4) for c in range(10)])
    correlation = np.corrcoef(values)[np.triu_indices(streams, 1)]
    assert kolmogorov(correlation * np.sqrt(n), stats.norm.cdf) > LEAST_P


def test_the_module_does_not_load_torch() -> None:
    modules = ("streams", "exact", "keyfile", "floating")
    code = "import sys, " + ", ".join(f"confide.randomness.{name}" for name in modules) + "\n"
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Draws -----------------------------------------------------------------------------------------

DRAWS = {
    "uniform": (lambda s, n: s.uniform(n), stats.uniform.cdf),
    "exponential": (lambda s, n: s.exponential(n), stats.expon.cdf),
    "normal": (lambda s, n: s.normal(n), stats.norm.cdf),
    "normal32": (lambda s, n: s.normal(n, np.float32), stats.norm.cdf),
}


@pytest.mark.parametrize("name", DRAWS)
def test_continuous_laws(name: str) -> None:
    draw, cdf = DRAWS[name]
    assert kolmogorov(draw(stream(name), 400_001), cdf) > LEAST_P


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_normal_tails_out_to_five_sigma(dtype: type) -> None:
    n = 6_000_000
    values = np.abs(stream("tails").normal(n, dtype))
    for sigma in (1, 2, 3, 4, 4.5, 5):
        expected = 2 * n * stats.norm.sf(sigma)
        count = int((values > sigma).sum())
        both = (stats.poisson.sf(count - 1, expected), stats.poisson.cdf(count, expected))
        assert min(both) > LEAST_P, (sigma, count, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_normal_values_are_independent(dtype: type) -> None:
    n = 1 << 19
    values = stream("independent").normal(n, dtype).astype(np.float64)
    scores = []
    # 1 << 14 is the distance of the two values that one radius and one angle make.
    for lag in (1, 2, 3, 7, 64, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 1 << 15):
        a, b = values[:-lag], values[lag:]
        for f in (lambda x: x, lambda x: (x**2 - 1) / np.sqrt(2)):
            scores.append(float((f(a) * f(b)).mean() * np.sqrt(n - lag)))
    assert stats.chi2.sf(np.sum(np.square(scores)), len(scores)) > LEAST_P


def test_the_two_values_of_a_pair_are_jointly_normal() -> None:
    half = 1 << 14
    values = stream("pair").normal((20, 2, half))
    cells = np.floor(stats.norm.cdf(values) * 8).astype(int)
    counts = np.bincount((cells[:, 0] * 8 + cells[:, 1]).ravel(), minlength=64)
    assert chi_square(counts, np.full(64, 1 / 64)) > LEAST_P


@pytest.mark.parametrize("shape", [0, 1, 2, 3, (2, 3), (0, 4), 1 << 15, (1 << 15) + 1])
def test_shapes(shape: int | tuple[int, ...]) -> None:
    s = stream("shapes")
    expected = (shape,) if isinstance(shape, int) else shape
    for dtype in (np.float64, np.float32):
        assert s.normal(shape, dtype).shape == expected
        assert s.normal(shape, dtype).dtype == dtype
    for drawn in (s.uint64, s.uniform, s.exponential, s.signs):
        assert drawn(shape).shape == expected
    assert s.integers(7, shape).shape == s.bernoulli(0.3, shape).shape == expected


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_extreme_words_stay_finite_and_in_range(word: int) -> None:
    u = Scripted(word).uniform(1)[0]
    assert u == (2.0**-53 if word == 0 else 1.0)
    e = Scripted(word).exponential(1)[0]
    assert e == (65 * np.log(2) if word == 0 else 0.0)
    assert not np.signbit(e)
    for dtype in (np.float64, np.float32):
        assert np.all(np.isfinite(Scripted(word, word).normal(2, dtype)))
    assert abs(Scripted(0, 0).normal(1)[0]) > 9.4


def test_words_are_fair() -> None:
    words = stream("words").uint64(1 << 17)
    assert (
        chi_square(np.bincount(words.view(np.uint8), minlength=256), np.full(256, 1 / 256))
        > LEAST_P
    )
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).sum(axis=0)
    z = (ones - len(words) / 2) / np.sqrt(len(words) / 4)
    assert stats.chi2.sf((z**2).sum(), 64) > LEAST_P


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 64, 1000])
def test_integers_are_fair(bound: int) -> None:
    counts = np.bincount(stream("integers").integers(bound, 200_000), minlength=bound)
    assert len(counts) == bound
    assert chi_square(counts, np.full(bound, 1 / bound)) > LEAST_P or bound == 1


def test_integers_redraw_the_words_that_would_favour_some() -> None:
    # 2**64 = 1 modulo 3, so the last word alone must go; 2**63 + 1 throws away almost half.
    assert Scripted(2**64 - 1, 5).integers(3, 1).tolist() == [2]
    assert Scripted(2**64 - 2).integers(3, 1).tolist() == [2]
    assert Scripted(2**63 - 1, 2**63, 12).integers(2**63 - 1, 3).tolist() == [0, 1, 12]
    assert Scripted(2**64 - 1).integers(2**63, 1).tolist() == [2**63 - 1]


@pytest.mark.parametrize("bound", [0, -1, 2**63 + 1, True])
def test_bad_bounds_are_refused(bound: int) -> None:
    with pytest.raises(ValueError, match="bound="):
        stream("x").integers(bound, 1)


def test_permutations_are_fair() -> None:
    s = stream("permutations")
    ranks = {order: i for i, order in enumerate(itertools.permutations(range(4)))}
    counts = np.zeros(24, np.int64)
    for _ in range(12_000):
        counts[ranks[tuple(s.permutation(4).tolist())]] += 1
    assert chi_square(counts, np.full(24, 1 / 24)) > LEAST_P
    assert sorted(s.permutation(1000).tolist()) == list(range(1000))


def test_a_permutation_with_a_tie_is_drawn_again() -> None:
    assert Scripted(5, 9, 5, 3, 1, 2).permutation(3).tolist() == [1, 2, 0]


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 5])
def test_every_subset_is_equally_likely(k: int) -> None:
    s = stream(f"choose {k}")
    subsets = list(itertools.combinations(range(5), k))
    counts = dict.fromkeys(subsets, 0)
    for _ in range(200 * len(subsets)):
        counts[tuple(s.choose(5, k).tolist())] += 1
    assert list(counts) == subsets
    if len(subsets) > 1:
        p = chi_square(np.array(list(counts.values())), np.full(len(subsets), 1 / len(subsets)))
        assert p > LEAST_P


@given(st.integers(0, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_a_sample_is_distinct_and_ascending(sizes: tuple[int, int]) -> None:
    n, k = sizes
    sample = stream("sample").choose(n, k)
    assert len(sample) == k
    assert np.all(np.diff(sample) > 0)
    assert np.all((sample >= 0) & (sample < n))


def test_a_sample_larger_than_its_source_is_refused() -> None:
    with pytest.raises(ValueError, match="k=3 must be in"):
        stream("x").choose(2, 3)


@pytest.mark.parametrize("p", [0.001, 0.1, 0.5, 0.9, 1 / 3])
def test_bernoulli_frequency(p: float) -> None:
    n = 1_000_000
    hits = int(stream("bernoulli").bernoulli(p, n).sum())
    assert stats.binomtest(hits, n, p).pvalue > LEAST_P


def test_bernoulli_compares_every_word_of_p() -> None:
    third = 1 / 3  # 0x5555555555555400 / 2**64: it ends within the first word
    assert third == 0x5555555555555400 * 2.0**-64
    assert Scripted(0x55555555555553FF).bernoulli(third, 1).tolist() == [True]
    assert Scripted(0x5555555555555400, 0).bernoulli(third, 1).tolist() == [False]
    small = 2.0**-70  # the words 0 and 2**58
    assert Scripted(0, 2**58 - 1).bernoulli(small, 1).tolist() == [True]
    assert Scripted(0, 2**58).bernoulli(small, 1).tolist() == [False]
    assert Scripted(1).bernoulli(small, 1).tolist() == [False]
    least = 5e-324
    assert Scripted(*[0] * 16, 2**14).bernoulli(least, 1).tolist() == [False]
    assert Scripted(*[0] * 16, 2**14 - 1).bernoulli(least, 1).tolist() == [True]


def test_bernoulli_of_nothing_and_of_all() -> None:
    s = stream("sure")
    assert not s.bernoulli(0.0, 1000).any()
    assert s.bernoulli(1.0, 1000).all()


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan"), float("inf")])
def test_bad_probabilities_are_refused(p: float) -> None:
    with pytest.raises(ValueError, match="p="):
        stream("x").bernoulli(p, 1)


def test_signs_are_fair_and_independent() -> None:
    signs = stream("signs").signs(1 << 19)
    assert set(np.unique(signs).tolist()) == {-1, 1}
    patterns = np.packbits(signs > 0)
    assert chi_square(np.bincount(patterns, minlength=256), np.full(256, 1 / 256)) > LEAST_P


def test_bad_shapes_and_dtypes_are_refused() -> None:
    with pytest.raises(ValueError, match="shape="):
        stream("x").normal((2, -1))
    with pytest.raises(ValueError, match="dtype="):
        stream("x").normal(2, np.float16)  # type: ignore[arg-type]


def test_a_key_is_32_bytes() -> None:
    assert len(Key.from_system().material) == len(KEY.material) == KEY_BYTES == 32
