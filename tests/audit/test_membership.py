"""Layer 3's parts: the attacks, who is asked about, what a statement allows, what scores refute."""

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import ndtr, ndtri

from confide.aggregates import ModeConnectivity
from confide.audit import attacked, membership
from confide.audit.candidates import LEAST, owners, pairs_of, unseen
from confide.audit.ceilings import of_replacing
from confide.audit.claimed import Row, rows
from confide.audit.membership import (
    Candidates,
    Evidence,
    GradientAlignment,
    LossThreshold,
    Step,
    spread,
)
from confide.audit.outcome import Outcome, Question, area, judged
from confide.channels import Shuffle, Sum
from confide.cohorts import All, Poisson
from confide.data import federate
from confide.engine.rounds import Round, Sizes, Upload
from confide.engine.taps import Seen
from confide.randomness import Key
from confide.stages import Clip, Gaussian
from small import digits

KEY = Key.from_seed(0)


def evidence(steps: list[Step] | None = None, **more: Any) -> Evidence:
    """A linear model w.x with half the squared error: the gradient is (w.x - y) x."""

    def losses(w: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x @ w - y) ** 2 / 2

    def gradients(w: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x @ w - y).unsqueeze(1) * x

    def read(order: Any) -> Any:
        return (steps[t] for t in order) if steps else ()

    known: dict[str, Any] = {"rounds": len(steps or []), "steps": read if steps else None, **more}
    return Evidence("world", torch.zeros(3), losses, gradients, **known)


def axes(*clients: int) -> Candidates:
    """One record along each axis, with the target 1."""
    return Candidates(torch.eye(3), torch.ones(3), np.array(clients))


def test_a_small_loss_is_a_large_score() -> None:
    model = torch.tensor([1.0, 0.5, 0.0])
    found = LossThreshold().run(replace(evidence(), model=model), axes(0, 0, 0))
    assert found.tolist() == [0.0, -0.125, -0.5]


def test_who_pulled_the_model_is_found_by_the_direction() -> None:
    w = torch.zeros(3)
    moved = torch.tensor([3.0, 4.0, 0.0])  # a step against the first two records' gradients
    found = GradientAlignment().run(evidence([Step(w, {None: moved})]), axes(0, 1, 2))
    np.testing.assert_allclose(found, [0.6, 0.8, 0.0])


def test_a_client_s_own_move_says_nothing_about_others() -> None:
    w = torch.zeros(3)
    moves: dict[int | None, torch.Tensor] = {
        0: torch.tensor([1.0, 0, 0]), 1: torch.tensor([1.0, 0, 0])
    }  # fmt: skip
    found = GradientAlignment().run(evidence([Step(w, moves)]), axes(0, 1, 2))
    np.testing.assert_allclose(found, [1.0, 0.0, 0.0])


def test_only_rounds_in_which_its_client_took_part_count() -> None:
    w, back = torch.zeros(3), torch.tensor([-1.0, 0, 0])
    steps = [
        Step(w, {None: -back}, frozenset({0, 1})),
        Step(w, {None: back}, frozenset({1})),
        Step(w, {None: torch.full((3,), torch.nan)}, frozenset({2})),
    ]
    found = GradientAlignment().run(evidence(steps), axes(0, 1, 2))
    np.testing.assert_allclose(found, [1.0, 0.0, 0.0])


def test_rounds_beyond_what_it_may_compute_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    w, way = torch.zeros(3), torch.tensor([1.0, 0, 0])
    read: list[int] = []

    def steps(order: Any) -> Any:
        for t in order:
            read.append(t)
            yield Step(w, {None: way})

    monkeypatch.setattr(membership, "GRADIENT_VALUES", 5 * 3)  # five gradients: two rounds of three
    found = GradientAlignment().run(replace(evidence(), steps=steps, rounds=8), axes(0, 1, 2))
    assert read == [0, 4, 2] and found.tolist() == [1.0, 0.0, 0.0]


def test_every_beginning_of_the_order_is_spread_over_the_run() -> None:
    assert spread(1) == [0] and spread(0) == []
    assert sorted(spread(13)) == list(range(13))
    assert spread(8) == [0, 4, 2, 6, 1, 5, 3, 7]


# Who is asked about -----------------------------------------------------------------------------


def dealt(kind: dict[str, Any] | None = None, seed: int = 0, **more: Any) -> Any:
    return federate(digits(), 6, kind, seed, **more)


def plan_of(r: Round, T: int = 3) -> list[tuple[Round, int]]:
    return [(r, T)]


PLAIN = plan_of(Round(All()))


def test_records_set_aside_by_a_coin_are_the_outsiders() -> None:
    pairs = pairs_of(dealt(validation=0.4), 240, PLAIN, False, KEY.stream(0, None, "a"))
    assert pairs is not None and pairs.by_coin and len(pairs) >= LEAST
    assert "set aside" in pairs.words
    assert len(pairs.everyone()) == 2 * len(pairs)
    again = pairs_of(dealt(validation=0.4), 240, PLAIN, False, KEY.stream(0, None, "a"))
    assert again is not None and torch.equal(again.everyone().x, pairs.everyone().x)


@pytest.mark.parametrize(
    ("kind", "more", "validates"),
    [
        (None, {}, False),  # all records are dealt out
        ({"kind": "dirichlet", "alpha": 0.5}, {"validation": 0.4}, False),
        (None, {"validation": 0.4}, True),
        ({"kind": "iid", "records": 60, "overlap": True}, {"validation": 0.4}, False),
    ],
)
def test_otherwise_test_records_stand_for_them(
    kind: dict[str, Any] | None, more: dict[str, Any], validates: bool
) -> None:
    pairs = pairs_of(dealt(kind, **more), 240, PLAIN, validates, KEY.stream(0, None, "a"))
    assert pairs is not None and not pairs.by_coin
    assert pairs.words == "test records"
    tests = {bytes(row.numpy().data) for row in digits().x_test}
    assert all(bytes(row.numpy().data) in tests for row in pairs.outsiders.x)


def test_records_that_the_server_looks_at_are_nobody_s_outsiders() -> None:
    held = dealt(validation=0.2, public=0.2)
    joined = plan_of(
        Round(All(), upload={"model": Upload()}, channel=Shuffle(), aggregate=ModeConnectivity())
    )
    owner = owners(held, 240)
    assert set(unseen(held, owner, PLAIN, False)) == {*held.validation, *held.public}
    assert set(unseen(held, owner, joined, False)) == set(held.validation)
    assert set(unseen(held, owner, PLAIN, True)) == set(held.public)


def test_which_of_two_records_was_in_is_a_fair_coin() -> None:
    """Over seeds of the run: who stands beside whom does not tell which of them was dealt."""
    first = total = 0
    places = {bytes(row.numpy().data): i for i, row in enumerate(digits().x_train)}
    for seed in range(60):
        pairs = pairs_of(
            dealt(seed=seed, validation=0.4), 240, PLAIN, False, KEY.stream(0, None, "a")
        )
        assert pairs is not None
        for a, b in zip(pairs.members.x, pairs.outsiders.x, strict=True):
            first += places[bytes(a.numpy().data)] < places[bytes(b.numpy().data)]
            total += 1
    assert abs(first / total - 0.5) < 4 * 0.5 / total**0.5


def test_too_few_are_refused() -> None:
    small = replace(digits(), x_test=digits().x_test[:20], y_test=digits().y_test[:20])
    assert (
        pairs_of(federate(small, 6, None, 0), 240, PLAIN, False, KEY.stream(0, None, "a")) is None
    )


# What a statement allows ------------------------------------------------------------------------

SIZES = Sizes(1000, 10, (50,))


def row_of(r: Round, unit: str, observer: str, T: int) -> Row:
    found = rows(plan_of(r, T), SIZES, None)
    return next(row for row in found if (row.cell.unit, row.cell.observer) == (unit, observer))


def test_replacing_one_is_what_an_attack_compares() -> None:
    row = row_of(Round(All(), upload=(Clip(1.0), Gaussian(4.0))), "client", "server", 1)
    assert row.cell.relation == "replace-one"
    curve = of_replacing(row.curve(), row.relation)
    for alarms in (0.001, 0.01, 0.1, 0.5):
        truth = float(ndtr(ndtri(alarms) + 0.5))  # mu = 2C / sigma
        assert 1 - curve(alarms) == pytest.approx(truth)


def test_a_client_more_or_less_is_two_steps_away() -> None:
    r = Round(Poisson(1.0), upload=(Clip(1.0),), channel=Sum(), publish=(Gaussian(4e-3),))
    row = row_of(r, "client", "world", 1)  # noise of 4 on a sum that is divided by 1000
    assert row.cell.relation == "add-remove"
    curve = of_replacing(row.curve(), row.relation)
    for alarms in (0.0, 0.001, 0.01, 0.1, 0.5, 1.0):
        truth = float(ndtr(ndtri(alarms) + 0.5))
        assert truth <= 1 - curve(alarms) <= truth + 0.05


# What scores refute -----------------------------------------------------------------------------


def question(epsilon: float, by_coin: bool) -> Question:
    """A client's row to the server: mu = 0.02, or 2 / 1.5, or nothing."""
    sigma = 100.0 if epsilon < 1 else 1.5
    row = row_of(Round(All(), upload=(Clip(1.0), Gaussian(sigma))), "client", "server", 1)
    if epsilon == inf:
        return Question("attack", replace(row.cell, epsilon=inf), None, "others", by_coin)
    return Question("attack", row.cell, row.curve(), "others", by_coin)


def normal(shift: float, n: int, seed: int) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    return draw.normal(shift, 1, n), draw.normal(0, 1, n)


def told(epsilon: float, by_coin: bool, shift: float, n: int = 400, seed: int = 0) -> Outcome:
    return judged(question(epsilon, by_coin), normal(shift, n, seed), 50, KEY.stream(seed, 0, "t"))


def test_a_coin_s_guesses_refute_and_an_estimate_only_warns() -> None:
    certain = told(0.1, True, 8.0)
    assert certain.verdict == "fail" and certain.lower_bound > certain.claimed
    assert "refuted at level 0.1 % by pairs" in certain.words()
    doubt = told(0.1, False, 8.0)
    assert doubt.verdict == "warn" and doubt.lower_bound == 0 and doubt.estimate > doubt.claimed
    assert "look too small" in doubt.words()


def test_where_nothing_is_claimed_nothing_is_refuted() -> None:
    leak = told(inf, True, 8.0)
    assert leak.verdict == "pass" and leak.lower_bound > 1
    assert leak.row()["claimed"] == "inf" and "nothing is claimed" in leak.words()


@pytest.mark.parametrize("by_coin", [True, False])
def test_blind_attacks_refute_nothing(by_coin: bool) -> None:
    verdicts = [told(0.1, by_coin, 0.0, 120, seed).verdict for seed in range(40)]
    assert verdicts.count("pass") >= 39 and "fail" not in verdicts


def test_an_attack_within_what_is_allowed_refutes_nothing() -> None:
    """Scores of the very Gaussian release that is claimed, mu = 2C / sigma."""
    allowed = question(2.0, True)
    for seed in range(20):
        found = judged(allowed, normal(2 / 1.5, 300, seed), 50, KEY.stream(seed, 0, "t"))
        assert found.verdict == "pass"
        assert found.metrics["auc"][0] <= found.ceiling["auc"] + 0.05


def test_the_area_is_the_share_of_pairs_in_order() -> None:
    ins, outs = normal(0.7, 60, 3)
    ins[:5] = outs[:5]  # ties count half
    share = ((ins[:, None] > outs).mean() + (ins[:, None] >= outs).mean()) / 2
    value, low, high = area(ins, outs)
    assert value == pytest.approx(share) and low < value < high


def test_its_interval_covers_as_often_as_it_says() -> None:
    truth = float(ndtr(0.7 / 2**0.5))
    inside = 0
    for seed in range(200):
        _, low, high = area(*normal(0.7, 100, seed))
        inside += low <= truth <= high
    assert inside >= 180


# What the rounds show ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vectors", "moves"),
    [
        ({"upload update": torch.ones(2, 3)}, {4: torch.ones(3), 7: torch.ones(3)}),
        (
            {"upload model": torch.ones(2, 3)},
            {4: torch.full((3,), -1.0), 7: torch.full((3,), -1.0)},
        ),
        ({"sum update": torch.full((3,), 5.0)}, {None: torch.full((3,), 5.0)}),
        ({"upload update": torch.ones(2, 4)}, {None: torch.full((3,), 0.5)}),  # rotated, say
        ({"shuffled update": torch.ones(2, 3)}, {None: torch.full((3,), 0.5)}),
    ],
)
def test_a_step_is_each_client_s_own_where_that_is_seen(
    vectors: dict[str, torch.Tensor], moves: dict[int | None, torch.Tensor]
) -> None:
    seen = Seen(0, torch.full((3,), 2.0), vectors, (4, 7))
    step = attacked.step_of(seen, torch.full((3,), 2.5))
    assert set(step.moves) == set(moves) and step.members == {4, 7}
    assert all(torch.equal(step.moves[k], moves[k]) for k in moves)
