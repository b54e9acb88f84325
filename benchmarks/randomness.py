"""How fast the keyed noises are, beside generators that an adversary can undo.

Ours are an AES-256 keystream, and the integer noises follow their law exactly; torch and numpy draw
from generators with small or recoverable state and in floating point.

`python benchmarks/randomness.py [--json PATH [--add]] [--only TEXT] [--repeats N] [--docs]`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from measure import Benchmark, Comparison, Missing, Work, main

from confide.randomness.exact import DiscreteGaussian, GriddedLaplace, Skellam
from confide.randomness.streams import Key, Stream

SEED = 1
COUNT = 1_000_000


def keyed(draw: Callable[[Stream], object]) -> Callable[[], Work]:
    def make() -> Work:
        stream = Key.from_seed(SEED).stream(0, None, "benchmark")
        return lambda: draw(stream)

    return make


def torch_normal(name: str) -> Work:
    try:
        import torch
    except ImportError:
        raise Missing("not installed") from None
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(SEED)
    dtype = getattr(torch, name)
    return lambda: torch.randn(COUNT, dtype=dtype, generator=generator)


def numpy_draw(draw: Callable[[np.random.Generator], object]) -> Callable[[], Work]:
    def make() -> Work:
        generator = np.random.default_rng(SEED)
        return lambda: draw(generator)

    return make


def comparisons() -> Iterator[Comparison]:
    for dtype in (np.float32, np.float64):
        name = dtype.__name__
        yield Comparison(
            f"normal {name}",
            keyed(lambda stream, dtype=dtype: stream.normal(COUNT, dtype)),
            "torch.randn, one thread",
            lambda name=name: torch_normal(name),
            values=COUNT,
        )
    for sigma in (30.0, 1e6):
        yield Comparison(
            f"discrete Gaussian, exact, sigma = {sigma:g}",
            keyed(lambda stream, sigma=sigma: DiscreteGaussian(sigma).draw(stream, COUNT)),
            "numpy normal, rounded: not exact",
            numpy_draw(lambda g, sigma=sigma: np.rint(g.normal(0, sigma, COUNT)).astype(np.int64)),
            values=COUNT,
        )
    for variance in (900.0, 1e8):
        yield Comparison(
            f"Skellam, exact, variance = {variance:g}",
            keyed(lambda stream, variance=variance: Skellam(variance).draw(stream, COUNT)),
            "numpy Poisson less Poisson: not exact",
            numpy_draw(
                lambda g, mean=variance / 2: g.poisson(mean, COUNT) - g.poisson(mean, COUNT)
            ),
            values=COUNT,
        )
    values = np.zeros(COUNT)
    yield Comparison(
        "Laplace on a grid, no floating-point holes",
        keyed(lambda stream: GriddedLaplace(1.0).add(stream, values)),
        "numpy Laplace added: open to Mironov's attack",
        numpy_draw(lambda g: values + g.laplace(0, 1, COUNT)),
        values=COUNT,
    )


if __name__ == "__main__":
    main(Benchmark("randomness", "Randomness", comparisons, (SEED,)), __doc__)
