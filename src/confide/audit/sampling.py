"""Whether cohorts and batches are drawn as they are accounted for.

The very sampler draws many times. What is odd in one half of the draws is counted in the other:
the unit that came most often must not come oftener than its rate, nor in two draws that follow each
other oftener than two coins would, and the commonest size must not be commoner than the coins make
it. Exact tails of the binomial law, so a refutation is valid at its level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from confide.cohorts import Fixed, Poisson
from confide.engine.rounds import Round, Sizes
from confide.randomness import Key

MOST_DRAWS, LEAST_DRAWS, MOST_VALUES = 1000, 60, 2_000_000


@dataclass(frozen=True)
class Drawn:
    """One sampler: the least chance, over its tests, of what was seen, if it is what it says."""

    what: str
    says: str
    chance: float  # of the oddest test, corrected for all of them
    seen: str

    def words(self) -> str:
        """One sentence."""
        return f"{self.what} ({self.says}): {self.seen}"


def samplers(r: Round, sizes: Sizes, key: Key) -> Iterator[Drawn]:
    """The cohort, and the batches where they are drawn by a coin."""
    cohort, sampler = r.cohort, r.local.sampler
    if isinstance(cohort, Poisson | Fixed):
        yield judged("the cohort", cohort, sizes.clients, key)
    if isinstance(sampler, Poisson | Fixed):
        yield judged("a client's batches", sampler, sizes.records, key)


def judged(what: str, sampler: Poisson | Fixed, units: int, key: Key) -> Drawn:
    """Draw, choose on one half, count on the other."""
    n = int(min(MOST_DRAWS, max(LEAST_DRAWS, MOST_VALUES / units)))
    taken = np.zeros((n, units), bool)
    for t in range(n):
        taken[t, sampler.draw(key.stream(t, None, f"drawn {what}"), units)] = True
    found = list(oddities(taken, sampler, units))
    chance, seen = min(found)
    return Drawn(what, sampler.words(units), min(1.0, chance * len(found)), seen)


def oddities(
    taken: NDArray[np.bool_], sampler: Poisson | Fixed, units: int
) -> Iterator[tuple[float, str]]:
    """Each test: how probable what was seen is, and what it was."""
    rate, half = sampler.rate(units), len(taken) // 2
    first, second = taken[:half], taken[half:]
    often = int(first.sum(0).argmax())
    times = int(second[:, often].sum())
    yield (
        float(binom.sf(times - 1, len(second), rate)),
        f"a unit came in {times / len(second):.0%} of the draws, its rate is {rate:.0%}",
    )
    even = taken[: len(taken) // 2 * 2]
    pairs = even[::2] & even[1::2]
    again = int(pairs[: len(pairs) // 2].sum(0).argmax())
    twice = int(pairs[len(pairs) // 2 :, again].sum())
    many = len(pairs) - len(pairs) // 2
    yield (
        float(binom.sf(twice - 1, many, rate * rate)),
        f"a unit came in {twice / many:.0%} of pairs of draws, two coins make {rate**2:.0%}",
    )
    sizes = taken.sum(1)
    if isinstance(sampler, Fixed):
        wrong = int((sizes != sampler.m).sum())
        yield (0.0 if wrong else 1.0), f"{wrong} draws had another size than {sampler.m}"
        return
    common = int(np.bincount(sizes[:half]).argmax())
    same = int((sizes[half:] == common).sum())
    share = float(binom.pmf(common, units, rate))
    yield (
        float(binom.sf(same - 1, len(second), share)),
        f"{same / len(second):.0%} of the draws had {common} units, coins make that {share:.0%}",
    )
