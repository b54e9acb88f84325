"""One battery over orders of stages: all of one to three, and thousands of four.

It checks claims against what the stages do to vectors, and against each other: what is finite has a
reason, and making a method less private never makes its statement smaller.
"""

import itertools
import math
import random
from dataclasses import replace
from functools import cache

import pytest
import torch

from catalogue import (
    ASSUMPTION,
    CLIPS,
    DIM,
    NOISES,
    RANDOMIZERS,
    STAGES,
    UNPROVED,
    Cube,
    fold,
    inputs,
    run,
)
from confide.accounting.account import epsilon
from confide.accounting.events import OPEN, DpEvent
from confide.accounting.relations import Relation
from confide.claims import Claim
from confide.stages import (
    BallRandomizer,
    Binomial,
    Clip,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Mask,
    Ordinal,
    Quantize,
    RadialStaircase,
    RandK,
    RandomizedResponse,
    Rotate,
    Scale,
    Skellam,
    Stage,
    Staircase,
    TopK,
    TwoPoint,
)

Stages = tuple[Stage, ...]
DELTA = 1e-5
BOUNDING = (*CLIPS, ASSUMPTION, *RANDOMIZERS)


def start(relation: Relation = Relation.REPLACE_ONE) -> Claim:
    return Claim(relation, length=DIM)


@cache
def cost(event: DpEvent) -> float:
    """Epsilon of one release."""
    return math.inf if event == OPEN else epsilon(event, DELTA, Relation.REPLACE_ONE).epsilon


def orders(length: int) -> list[Stages]:
    return list(itertools.product(STAGES, repeat=length))


def sample(length: int, count: int, seed: int) -> list[Stages]:
    rng = random.Random(seed)
    return [tuple(rng.choice(STAGES) for _ in range(length)) for _ in range(count)]


ALL_SHORT = [order for n in (1, 2, 3) for order in orders(n)]
RANDOM_FOUR = sample(4, 5000, seed=11)


def setter(order: Stages, relation: Relation = Relation.REPLACE_ONE) -> int | None:
    """The place of the stage that set the event."""
    c = start(relation)
    for place, stage in enumerate(order):
        c = stage.claim(c)
        if not c.open:
            return place
    return None


def may_be_finite(order: Stages) -> bool:
    """In plain words: some noise stands behind a bound that nothing unproved has broken since."""
    bounded = noisy = False
    length = support = True  # how many entries there are, how many can differ
    for stage in order:
        if isinstance(stage, RANDOMIZERS_TYPES):
            if support or isinstance(stage, BallRandomizer):
                return True
            bounded = noisy = False
            continue
        if in_some_l2_ball(stage, length if noisy or isinstance(stage, Quantize) else support):
            bounded = True
        elif isinstance(stage, UNPROVED) or (noisy and isinstance(stage, TopK | Quantize | Clip)):
            bounded = False
        elif stage in NOISES:
            if bounded:
                return True
            noisy = True
            continue
        if isinstance(stage, UNPROVED):
            length = support = noisy = False
        elif isinstance(stage, Mask | RandK):
            support = True
        elif isinstance(stage, Rotate | Quantize) or (noisy and not isinstance(stage, Scale)):
            support = length
        noisy = noisy and isinstance(stage, Mask | RandK | Rotate | Scale)
    return False


def in_some_l2_ball(stage: Stage, entries_known: bool) -> bool:
    """An l2 bound; one on each entry is enough while their number is known."""
    per_entry = isinstance(stage, Quantize) or getattr(stage, "p", 2) == math.inf
    return (stage in CLIPS or stage == ASSUMPTION or per_entry) and (entries_known or not per_entry)


RANDOMIZERS_TYPES = tuple(type(s) for s in RANDOMIZERS)
# Noises that any l2 bound is enough for; the others also need a grid or a distance within a step.
EASY = (Gaussian, Laplace)


@pytest.mark.parametrize("relation", list(Relation))
def test_finite_only_where_a_proof_exists(relation: Relation) -> None:
    for order in (*ALL_SHORT, *RANDOM_FOUR):
        finite = not fold(order, start(relation)).open
        assert not finite or may_be_finite(order), order
        others = [s for s in order if s in NOISES and not isinstance(s, EASY)]
        if not others:
            assert finite == may_be_finite(order), order


def norms(x: torch.Tensor) -> tuple[float, float, float]:
    x = x.double()
    return float(x.abs().sum()), float(x.norm()), float(x.abs().max())


def check_bounds(order: Stages) -> int:
    """Run the order on hard inputs, with equal randomness; claims must hold. How many did."""
    c = fold(order, start())
    claimed = (c.l1, c.l2, c.linf)
    if ASSUMPTION in order or min(claimed) == math.inf:
        return 0
    try:
        outputs = [run(order, x) for x in inputs()]
    except ValueError as refused:  # grid noise on what is off its grid refuses to run
        assert "not on its grid" in str(refused)
        return 0
    for a, b in itertools.combinations(outputs, 2):
        for apart, bound in zip(norms(a - b), claimed, strict=True):
            assert apart <= 2 * bound * (1 + 1e-5), order
    if not c.noisy:
        for x in outputs:
            for size, bound in zip(norms(x), claimed, strict=True):
                assert size <= bound * (1 + 1e-5), order
    return 1


def test_bounds_hold_for_what_the_stages_do() -> None:
    # 1e-5: the stages run in float32 here, with sums of up to 16 entries.
    checked = sum(map(check_bounds, (*orders(1), *orders(2), *sample(3, 400, seed=5))))
    assert checked > 400


@pytest.mark.slow
def test_bounds_hold_for_what_the_stages_do_in_all_orders_of_three() -> None:
    assert sum(map(check_bounds, orders(3))) > 5000


def without(order: Stages, place: int) -> Stages:
    return order[:place] + order[place + 1 :]


def some_finite(count: int) -> list[Stages]:
    finite = [o for o in (*ALL_SHORT, *RANDOM_FOUR) if setter(o) is not None]
    return random.Random(3).sample(finite, count)


def more_or_equal(a: float, b: float) -> bool:
    """a >= b, up to the accuracy that the accountant promises."""
    return a >= b * (1 - 2e-3) or (a == math.inf)


def check_deletions(order: Stages) -> None:
    place = setter(order)
    assert place is not None
    now = cost(fold(order, start()).event)
    for i in range(place):
        shorter = without(order, i)
        if any(s in NOISES for s in order[:i]):
            break  # a clip makes noisy coordinates depend on each other, so its claim knows less
        if order[i] in CLIPS and setter(shorter) in (None, place - 1):
            assert more_or_equal(cost(fold(shorter, start()).event), now), (order, i)
    noises = [i for i, s in enumerate(order) if s in NOISES or isinstance(s, RANDOMIZERS_TYPES)]
    bare = tuple(s for i, s in enumerate(order) if i not in noises)
    assert fold(bare, start()).open
    unbounded = tuple(s for s in order if s not in BOUNDING and not isinstance(s, Quantize))
    assert fold(unbounded, start()).open


def check_insertion(order: Stages) -> None:
    """An unproved stage right before the noise that set the event undoes it."""
    place = setter(order)
    assert place is not None
    if isinstance(order[place], RANDOMIZERS_TYPES):
        return  # these need no bound
    broken = (*order[:place], Cube(), order[place])
    assert fold(broken, start()).open, order


def smaller_noise(stage: Stage) -> Stage:
    """The same noise with less of it, for each that can set an event."""
    match stage:
        case Gaussian(std):
            return Gaussian(std / 2)  # pyright: ignore
        case Laplace(scale):
            return Laplace(scale / 2)  # pyright: ignore
        case Skellam(step, variance):
            return Skellam(step, variance / 2)
        case DiscreteGaussian(step, sigma):
            return DiscreteGaussian(step, sigma / 2)
        case Binomial(step, trials):
            return Binomial(step, trials // 4 * 2)
        case Staircase(epsilon, delta):
            return Staircase(2 * epsilon, delta)
        case RadialStaircase(epsilon, delta):
            return RadialStaircase(2 * epsilon, delta)
        case RandomizedResponse(k, C, epsilon):
            return RandomizedResponse(k, C, 2 * epsilon)
        case TwoPoint(C, epsilon) | Ordinal(_, C, epsilon) | BallRandomizer(C, epsilon):
            return replace(stage, epsilon=2 * epsilon)  # pyright: ignore
        case _:
            raise AssertionError(stage)


def check_smaller_noise(order: Stages) -> None:
    place = setter(order)
    assert place is not None
    changed = (*order[:place], smaller_noise(order[place]), *order[place + 1 :])
    now = cost(fold(order, start()).event)
    assert more_or_equal(cost(fold(changed, start()).event), now), order


def test_less_protection_never_costs_less() -> None:
    for order in some_finite(250):
        check_deletions(order)
        check_insertion(order)
        check_smaller_noise(order)


@pytest.mark.slow
def test_less_protection_never_costs_less_in_thousands_of_orders() -> None:
    for order in some_finite(6000):
        check_deletions(order)
        check_insertion(order)
        check_smaller_noise(order)


def test_whatever_follows_the_noise_changes_nothing() -> None:
    for order in some_finite(3000):
        c = fold(order, start())
        for stage in STAGES:
            assert stage.claim(c).event == c.event, (order, stage)


def test_replacement_is_never_cheaper_than_zeroing_out() -> None:
    for order in some_finite(200):
        replaced, zeroed = (
            fold(order, start(r)) for r in (Relation.REPLACE_ONE, Relation.ZERO_OUT)
        )
        assert not zeroed.open
        assert more_or_equal(cost(replaced.event), cost(zeroed.event)), order
