"""Rounds that hang together by echoes or memory, attacked by what was published before."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, product
from math import sqrt

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

import exact_laws
from confide.aggregates import Mean, ModeConnectivity
from confide.channels import Each, Shuffle, Sum
from confide.cohorts import All, Poisson, Spaced
from confide.engine.rounds import Local, Round, Sizes, Upload
from confide.engine.uploads import joined
from confide.local import Scaffold
from confide.randomness import Key, Stream
from confide.stages import Clip, Correlated, Gaussian, Laplace, Stage
from confide.stages.correlated import Echoes
from confide.statements import Cell, state

DELTA = 0.02
Values = NDArray[np.float64]


# Echoes -----------------------------------------------------------------------------------------

RUNS = 200_000
Choice = Callable[[list[Values]], Values]


def streams(seed: int) -> Iterator[Stream]:
    key = Key.from_seed(seed)
    return (key.stream(t, None, "correlated update") for t in count())


def always(seen: list[Values]) -> Values:
    return np.ones(RUNS)


def towards(seen: list[Values]) -> Values:
    """As far as allowed, on the side on which the runs so far have come out."""
    return np.sign(sum(seen, start=np.full(RUNS, 1e-9)))


def only_if_high(seen: list[Values]) -> Values:
    """Nothing, but where the last answer was high."""
    return np.where(seen[-1] > 0, 1.0, 0.0) if seen else np.ones(RUNS)


def others(seen: list[Values]) -> Values:
    """What everybody else sends: follows what was published, in both worlds alike."""
    return np.tanh(seen[-1]) if seen else np.zeros(RUNS)


def moved(own: Choice, seen: list[Values], t: int, turns: tuple[int, ...]) -> Values:
    return own(seen) if t in turns else np.zeros(RUNS)


def log_ratios(
    stage: Correlated, T: int, turns: tuple[int, ...], own: Choice, scale: float | None = None
) -> Values:
    """log P/Q of the published rounds, where they were drawn in the world with the unit.

    Every entry of the vectors is a run of its own, with noise by the engine's own recurrence. The
    ratio is that of two normal laws of T variables with the covariance of these noises. With a
    `scale`, a second number leaves under Laplace noise in each round, and is followed too.
    """
    noise, beside, seen = Echoes(stage.c, streams(7)), np.random.default_rng(1), list[Values]()
    # n = (band)^-1 z, so the inverse covariance is band' band.
    band = sum(v * np.eye(T, k=-away) for away, v in enumerate(stage.c)) / stage.std
    with_unit, without = np.zeros((T, RUNS)), np.zeros((T, RUNS))
    ratios = np.zeros(RUNS)
    for t in range(T):
        common, unit = others(seen), moved(own, seen, t, turns)
        x = torch.from_numpy(common + unit)
        y = stage(x, lambda purpose: noise, noise).numpy()
        with_unit[t], without[t] = y - common - unit, y - common
        seen.append(y)
        if scale is not None:
            more, drawn = moved(own, seen, t, turns), beside.laplace(scale=scale, size=RUNS)
            ratios += (np.abs(drawn + more) - np.abs(drawn)) / scale
            seen.append(drawn + more)
    return ratios + (((band @ without) ** 2).sum(0) - ((band @ with_unit) ** 2).sum(0)) / 2


def delta_at(ratios: Values, epsilon: float) -> float:
    """E_P (1 - e^(epsilon - L))+, less five standard errors."""
    losses = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - ratios)))
    return float(losses.mean() - 5 * losses.std() / sqrt(len(losses)))


def in_turns(b: int, stage: Correlated, T: int, scale: float | None = None) -> Cell:
    uploads = {"update": Upload((Clip(1.0),))}
    publish: dict[str, tuple[Stage, ...]] = {"update": (stage,)}
    if scale is not None:
        uploads["bit"] = Upload((Clip(1.0),), length=1, data="train", value=len)
        publish["bit"] = (Laplace(scale),)
    r = Round(Spaced(b), upload=uploads, channel=Sum(), aggregate=Mean(1.0), publish=publish)
    return state([(r, T)], Sizes(2 * b, 5, (1,)), delta=DELTA).cell("client", "world")


@pytest.mark.parametrize("scale", [None, 3.0])
@pytest.mark.parametrize("own", [always, towards, only_if_high])
@pytest.mark.parametrize(
    ("b", "c", "T", "turns"),
    [
        (2, (1.0, 0.7), 6, (0, 2, 4)),
        (2, (1.0, -0.9), 4, (1, 3)),
        (3, (1.0, 0.6, 0.4), 4, (0, 3)),
        (3, (1.5, -0.5), 5, (0, 3)),
    ],
)
def test_an_adaptive_adversary_finds_no_more_than_a_participation_pays_for(
    own: Choice, b: int, c: tuple[float, ...], T: int, turns: tuple[int, ...], scale: float | None
) -> None:
    stage = Correlated(2.0, c)
    cell = in_turns(b, stage, T, scale)
    ratios = log_ratios(stage, T, turns, own, scale)
    assert abs(np.mean(np.exp(-ratios)) - 1) < 0.05, "it is a ratio of laws"
    assert delta_at(ratios, cell.epsilon) <= DELTA
    if own is not only_if_high and turns[-1] + len(c) <= T and len(turns) == cell.participations:
        assert delta_at(ratios, cell.epsilon) > 0.8 * DELTA, "and no less"


def test_the_attack_finds_two_turns_within_one_band() -> None:
    """What the fold refuses: turns next to each other, charged as if they were b apart."""
    stage = Correlated(2.0, (1.0, 0.7))
    cell = in_turns(2, stage, 3)
    assert cell.participations == 2
    assert delta_at(log_ratios(stage, 3, (0, 1), always), cell.epsilon) > 1.2 * DELTA


# Memory -----------------------------------------------------------------------------------------

GRID = np.linspace(-14, 14, 801)


def normal(mean: Values | float, std: float) -> Values:
    """Masses on the grid."""
    return stats.norm.pdf(GRID, mean, std) * (GRID[1] - GRID[0])


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize(("q", "std"), [(0.2, 1.0), (0.5, 0.7), (0.8, 2.0)])
def test_coins_amplify_clients_that_remember_whether_they_were_drawn(
    q: float, std: float, follows: bool
) -> None:
    """Two rounds; what a client sends in the second depends on its coin in the first."""
    r = Round(
        cohort=Poisson(q),
        local=Local(Scaffold(0.1), remembers=True),
        upload=(Clip(1.0),),
        channel=Sum(),
        aggregate=Mean(1.0),
        publish=(Gaussian(std),),
    )
    cell = state([(r, 2)], Sizes(2, 5, (1,)), delta=DELTA).cell("client", "world")
    assert cell.relation == "add-remove"
    side = np.where(GRID > 0, 1.0, -1.0)[:, None] if follows else np.ones((len(GRID), 1))

    def second(value: float) -> Values:
        return (1 - q) * normal(0.0, std) + q * normal(value * side, std)

    nothing = np.outer(normal(0.0, std), normal(0.0, std))
    most = 0.0
    for drawn, not_drawn in product((1.0, -1.0, 0.0), repeat=2):
        sent = q * normal(1.0, std)[:, None] * second(drawn)
        sent += (1 - q) * normal(0.0, std)[:, None] * second(not_drawn)
        most = max(most, exact_laws.delta(sent, nothing, cell.epsilon))
    assert 0.99 * DELTA < most <= DELTA * 1.0001


# Models joined along curves ---------------------------------------------------------------------

MODELS = np.linspace(-8, 8, 161)


def on_models(value: float, stage: Stage) -> Values:
    """The law of a noisy model, on a coarse grid: what is lost by rounding is lost to all."""
    assert isinstance(stage, Gaussian | Laplace)
    if isinstance(stage, Gaussian):
        weights = stats.norm.pdf(MODELS, value, stage.std)
    else:
        weights = stats.laplace.pdf(MODELS, value, stage.scale)
    return weights / weights.sum()


@pytest.mark.parametrize("curve", ["polygon", "bezier"])
@pytest.mark.parametrize("channel", [Each(), Shuffle()])
@pytest.mark.parametrize("noise", [Gaussian(1.5), Laplace(2.0)])
def test_where_a_curve_bends_tells_no_more_than_the_models_it_joins(
    noise: Stage, channel: Each | Shuffle, curve: str
) -> None:
    """The engine's own joining of two models, for every pair on a grid at once."""
    how = ModeConnectivity(steps=4, eta=0.4, curve=curve)
    r = Round(
        cohort=All(),
        upload={"model": Upload((Clip(1.0), noise))},
        channel=channel,
        aggregate=how,
    )
    cell = state([(r, 1)], Sizes(2, 5, (1,)), delta=DELTA).cell("client", "world")
    assert cell.relation == "replace-one"

    def downhill(w: torch.Tensor, coins: Stream, B: int) -> torch.Tensor:
        """Public records like two steep valleys."""
        return torch.sin(3 * w) + 0.2 * w

    first, second = (
        torch.from_numpy(side.ravel()) for side in np.meshgrid(MODELS, MODELS, indexing="ij")
    )
    ends = [
        joined(models, how, downhill, Key.from_seed(4).stream(0, None, "curve")).numpy()
        for models in ([first, second], [second, first])[: 2 if isinstance(channel, Shuffle) else 1]
    ]
    most = 0.0
    for other in (1.0, 0.0, -1.0):
        laws: list[Values] = []
        for value in (1.0, -1.0):
            mass = np.outer(on_models(value, noise), on_models(other, noise)).ravel() / len(ends)
            law = sum(np.bincount(np.round((end + 20) * 20).astype(int), mass, 801) for end in ends)
            laws.append(np.asarray(law))
        most = max(most, exact_laws.delta(laws[0], laws[1], cell.epsilon))
    assert 0 < most <= DELTA * 1.001
    # A claim for the sum, had it been made, would be below this.
    mean = replace(r, aggregate=Mean(), channel=Sum())
    assert (
        cell.epsilon
        > state([(mean, 1)], Sizes(2, 5, (1,)), delta=DELTA).cell("client", "world").epsilon
    )


# Where a run ends -------------------------------------------------------------------------------


def test_an_end_that_follows_the_answers_is_stated_by_the_plan_alone() -> None:
    """A server that lets the model diverge as soon as the answers have said more than usual."""
    r = Round(
        All(), upload=(Clip(1.0),), channel=Sum(), aggregate=Mean(1.0), publish=(Gaussian(2.0),)
    )
    T, mu, random = 12, 0.5, np.random.default_rng(2)

    def epsilon(rounds: int) -> float:
        return state([(r, rounds)], Sizes(2, 5, (1,)), delta=DELTA).cell("client", "world").epsilon

    ratios, goes_on = np.zeros(RUNS), np.ones(RUNS, bool)
    by_its_end, by_the_plan, plan = np.zeros(RUNS), np.zeros(RUNS), epsilon(T)
    for t in range(1, T + 1):
        ratios += mu * random.normal(size=RUNS) + mu**2 / 2
        now = epsilon(t)
        ends = goes_on & ((ratios > now) | (t == T))
        by_its_end += np.where(ends, np.maximum(0.0, -np.expm1(np.minimum(0.0, now - ratios))), 0)
        by_the_plan += np.where(ends, np.maximum(0.0, -np.expm1(np.minimum(0.0, plan - ratios))), 0)
        goes_on &= ~ends
    assert by_its_end.mean() > 1.5 * DELTA, "what a statement of the rounds made would promise"
    assert by_the_plan.mean() <= DELTA
