"""Noise that is correlated over rounds: its law, what it costs, and where it proves nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil, inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from confide.accounting import gdp
from confide.accounting.relations import Refused
from confide.aggregates import Mean
from confide.cells import Cell
from confide.channels import Sum
from confide.cohorts import Cohort, Fixed, Poisson, Spaced
from confide.engine.adapting import planned
from confide.engine.rounds import Past, Round, Sizes
from confide.randomness import Key
from confide.stages import Clip, Correlated, Gaussian, TopK
from confide.stages.correlated import Echoes
from confide.statements import state

SIZES = Sizes(clients=60, records=20, layers=(40,))
C_3 = (1.0, 0.5, -0.25)


def echoes(c: tuple[float, ...], seed: int) -> Echoes:
    key = Key.from_seed(seed)
    return Echoes(c, (key.stream(t, None, "correlated update") for t in count()))


TURNS = Spaced(3)


def a_round(
    cohort: Cohort = TURNS, c: tuple[float, ...] = C_3, std: float = 2.0, clip: float = 0.5
) -> Round:
    return Round(
        cohort=cohort,
        upload=(Clip(clip),),
        channel=Sum(),
        aggregate=Mean(1.0),
        publish=(Correlated(std, c),),
    )


def world_cell(plan: Sequence[tuple[Round, int]], sizes: Sizes = SIZES) -> Cell:
    return state(plan, sizes, delta=1e-5).cell("client", "world")


# The law ----------------------------------------------------------------------------------------


def test_the_noise_undone_by_the_band_is_standard_normal_and_fresh_in_every_round() -> None:
    rounds, length = 40, 500
    brought = echoes(C_3, 5)
    n = np.array([brought.normal((length,)) for _ in range(rounds)])
    band = np.zeros((rounds, rounds))
    for away, value in enumerate(C_3):
        band += value * np.eye(rounds, k=-away)
    z = band @ n
    key = Key.from_seed(5)
    recorded = [key.stream(t, None, "correlated update").normal((length,)) for t in range(rounds)]
    assert np.abs(z - np.array(recorded)).max() < 1e-12
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3
    # Jointly: no correlation between rounds beyond what so many independent values show.
    between = np.corrcoef(z) - np.eye(rounds)
    assert np.abs(between).max() < 5 / sqrt(length)
    within = np.corrcoef(n)
    assert np.mean(np.diag(within, k=-1)) < -0.2, "the noises themselves are correlated"


@given(st.integers(0, 12), st.integers(1, 6))
def test_who_begins_later_hears_the_same_bits(t: int, bands: int) -> None:
    c = (1.0, *np.linspace(0.6, 0.1, bands - 1))
    first, later = echoes(c, 9), echoes(c, 9)
    for _ in range(t):
        first.normal((7,))
    ours, theirs = first.normal((7,)), later.reach(t, 7).normal((7,))
    assert ours.tobytes() == theirs.tobytes()


def test_noise_is_made_once_and_always_of_one_length() -> None:
    brought = echoes(C_3, 1)
    brought.reach(2, 4).normal((4,))
    with pytest.raises(ValueError, match="made already, allowed is once"):
        brought.reach(2, 4)
    with pytest.raises(ValueError, match="publishes 5 numbers, allowed are the 4"):
        brought.normal((5,))


# What it costs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 30, 31])
def test_a_client_pays_for_its_turns_with_the_length_of_the_band(rounds: int) -> None:
    cell = world_cell([(a_round(), rounds)])
    turns = ceil(rounds / 3)
    mu = sqrt(turns) * 0.5 * sqrt(sum(v * v for v in C_3)) / 2.0
    assert cell.participations == turns
    assert cell.relation == "zero-out"
    assert cell.epsilon == pytest.approx(gdp.epsilon(mu, 1e-5), rel=1e-4)
    assert cell.epsilon >= gdp.epsilon(mu, 1e-5)


@given(
    st.lists(st.floats(-2, 2), min_size=0, max_size=5),
    st.integers(1, 14),
    st.integers(0, 5),
    st.integers(0, 10**6),
)
def test_no_schedule_and_no_updates_move_the_run_further_than_it_pays_for(
    rest: list[float], rounds: int, extra: int, seed: int
) -> None:
    """The whole run as one Gaussian release: ‖C Delta‖ of random updates, by matrices."""
    c = (1.0, *rest)
    b, random = len(c) + extra, np.random.default_rng(seed)
    band = np.zeros((rounds, rounds))
    for away, value in enumerate(c):
        band += value * np.eye(rounds, k=-away)
    moved, start = np.zeros((rounds, 4)), int(random.integers(b))
    for t in range(start, rounds, b):
        direction = random.normal(size=4)
        moved[t] = direction / np.linalg.norm(direction)
    paid = np.linalg.norm(c) * sqrt(ceil(rounds / b))
    assert np.linalg.norm(band @ moved) <= paid * (1 + 1e-12)


def test_closer_participations_would_cost_more_so_they_are_refused() -> None:
    band = np.eye(2) + np.eye(2, k=-1)  # c = (1, 1), in both of two rounds
    both = np.linalg.norm(band @ np.ones((2, 1)))
    assert both > np.linalg.norm([1, 1]) * sqrt(2), "what two turns far apart would cost"
    for cohort in (Spaced(2), Poisson(0.1), Fixed(6)):
        with pytest.raises(Refused, match="c has 3 numbers, allowed with the cohort"):
            world_cell([(a_round(cohort), 4)])


def test_one_band_is_plain_gaussian_noise() -> None:
    plain = replace(a_round(), publish=(Gaussian(2.0),))
    one = world_cell([(a_round(c=(1.0,)), 12)]).epsilon
    assert one == pytest.approx(world_cell([(plain, 12)]).epsilon, rel=1e-6)


# Where it proves nothing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        a_round(c=(1.0, -0.25, 0.5)),  # as long, and so the same cost
        replace(a_round(), publish=(Gaussian(2.0),)),
        a_round(Spaced(4)),
    ],
)
def test_another_band_another_noise_or_other_turns_in_between_prove_nothing(other: Round) -> None:
    cell = world_cell([(a_round(), 4), (other, 1), (a_round(), 4)])
    assert cell.epsilon == inf
    assert "goes on from round to round" in cell.reason


def test_another_scale_in_between_is_paid_for_round_by_round() -> None:
    cell = world_cell([(a_round(), 3), (a_round(std=1.0), 3)])
    mus = [0.5 * sqrt(sum(v * v for v in C_3)) / std for std in (2.0, 1.0)]
    least = gdp.epsilon(sqrt(sum(mu * mu for mu in mus)), 1e-5)
    assert least <= cell.epsilon < inf


def test_without_a_bound_or_behind_a_later_map_it_is_like_any_noise() -> None:
    open_ = replace(a_round(), upload=())
    assert "no l2 bound" in world_cell([(open_, 3)]).reason
    kept = replace(a_round(), publish=(Correlated(2.0, C_3), TopK(3)))
    assert world_cell([(kept, 3)]).epsilon == world_cell([(a_round(), 3)]).epsilon
    assert world_cell([(a_round(std=0.0), 3)]).epsilon == inf


def test_a_method_that_adapts_has_no_such_row() -> None:
    @dataclass(frozen=True)
    class Adapting:
        adapts = True

        def round(self, past: Past) -> Round | None:
            return a_round() if past.t < 6 else None

    cell = planned(Adapting(), [(a_round(), 6)], SIZES).cell("client", "world")
    assert cell.epsilon == inf and "no filter is proved" in cell.reason


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"upload": (Clip(0.5), Correlated(2.0, C_3))}, "at upload of update, allowed is publish"),
        ({"publish": (Correlated(2.0, C_3), Correlated(2.0, C_3))}, "allowed is once"),
    ],
)
def test_it_stands_once_at_publish(changed: dict[str, object], part: str) -> None:
    with pytest.raises(Refused, match=part):
        world_cell([(replace(a_round(), **changed), 3)])  # type: ignore[arg-type]


@pytest.mark.parametrize("c", [(), (0.5, 1.0), (1.0, inf), (float("nan"),), (-1.0,)])
def test_a_band_that_cannot_be_undone_is_refused(c: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="allowed are finite numbers"):
        Correlated(1.0, c)


# The turns --------------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(0, 30), st.integers(0, 1000))
def test_everybody_has_one_turn_in_b_rounds(b: int, more: int, seed: int) -> None:
    units, cohort = b + more, Spaced(b)
    turns = [
        cohort.draw(Key.from_seed(seed).stream(0, None, "turns"), units, t) for t in range(2 * b)
    ]
    assert sorted(np.concatenate(turns[:b])) == list(range(units))
    for t in range(b):
        assert np.array_equal(turns[t], turns[t + b])
        assert abs(len(turns[t]) - cohort.expected(units)) < 1
    assert cohort.size(units) == (None if units % b else units // b)


def test_there_are_no_more_groups_than_clients() -> None:
    with pytest.raises(ValueError, match="b = 7, allowed is at most the number of units, 6"):
        Spaced(7).rate(6)
    with pytest.raises(ValueError, match="b = 0"):
        Spaced(0)
