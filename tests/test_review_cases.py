"""24 ways in which a literal implementation over-claims, each refused or impossible."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import pytest
import torch

from catalogue import DIM, Cube, own, shared
from confide.accounting.account import epsilon
from confide.accounting.events import (
    GaussianDpEvent,
    MixedDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.relations import Relation
from confide.aggregates import Mean, MeanOfPresent, WeightedMean
from confide.channels import Each, Sum
from confide.claims import Claim
from confide.cohorts import All, Epoch, Fixed, Poisson
from confide.derive import Release, derive
from confide.engine import Local, Past, Released, Round, Sizes, Upload
from confide.randomness import Key
from confide.stages import Clip, Gaussian, Laplace, PerClient, TopK, TwoPoint
from confide.statements import Statement, state

SIZES = Sizes(clients=100, records=50, layers=(DIM,))
ONCE = Round(cohort=Poisson(0.1), upload=(Clip(1.0),), channel=Sum(), publish=(Gaussian(0.2),))
DPSGD = Round(
    cohort=Fixed(10),
    local=Local(steps=5, sampler=Poisson(0.1), example=(Clip(1.0),), batch=(Gaussian(2.0),)),
)


@dataclass(frozen=True)
class TwoGradients:
    gradients: int = 2
    losses: int = 0


def ways(r: Round, unit: str, observer: str, of: str = "update") -> tuple[Release, ...]:
    return derive(r, SIZES)[unit, observer, of]


def proved(r: Round, unit: str, observer: str, of: str = "update") -> list[Release]:
    return [way for way in ways(r, unit, observer, of) if not way.open]


def with_(r: Round, **changes: object) -> Round:
    given = {f.name: getattr(r, f.name) for f in fields(r)}
    return Round(**{**given, **changes})  # pyright: ignore


def test_c1_division_by_the_realised_size() -> None:
    cohort = with_(ONCE, aggregate=MeanOfPresent())
    assert all(way.relation is not Relation.ADD_REMOVE for way in proved(cohort, "client", "world"))
    local = Local(
        sampler=Poisson(0.1), example=(Clip(1.0),), batch=(Gaussian(2.0),), average=MeanOfPresent()
    )
    assert not [
        w
        for w in proved(with_(DPSGD, local=local), "record", "server")
        if w.relation is Relation.ADD_REMOVE
    ]
    assert not proved(with_(DPSGD, local=local), "client", "server")


def test_c2_weights_by_data_size() -> None:
    with pytest.raises(ValueError, match="without a public cap"):
        WeightedMean(cap=math.inf, by=1.0)
    weighted = with_(DPSGD, aggregate=WeightedMean(cap=60.0, by=600.0))
    (way, *_) = ways(weighted, "record", "server")
    assert "weights by data size tell" in way.reason


def test_c3_an_empty_cohort_still_releases_noise() -> None:
    streams = (Key.from_seed(1).stream(t, None, "cohort") for t in range(50))
    assert any(len(Poisson(0.01).draw(s, 100)) == 0 for s in streams)
    assert float(Gaussian(0.2)(torch.zeros(DIM), shared, own(0)).abs().min()) > 0


def test_c4_who_sees_the_cohort_gets_no_credit_for_it() -> None:
    shares = Round(cohort=Poisson(0.1), upload=(Clip(1.0), Gaussian(1.0)), channel=Sum(5))
    for way in proved(shares, "client", "server"):
        assert way.relation is Relation.ZERO_OUT
        assert isinstance(way.event, GaussianDpEvent)
    assert not proved(ONCE, "client", "server")


def test_c5_one_coin_composed_first_and_amplified_once() -> None:
    local = Local(TwoGradients(), 1, Poisson(0.01), example=(Clip(1.0),), batch=(Gaussian(1.0),))
    (way,) = proved(with_(DPSGD, local=local), "record", "server")
    assert isinstance(way.event, PoissonSampledDpEvent)
    assert way.event.event == GaussianDpEvent(pytest.approx(1 / math.sqrt(2), rel=1e-8))
    together = SelfComposedDpEvent(way.event, 1000)
    apart = SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 2000)
    # Review C5: 2.584 claimed by amplifying each release, 4.481 true.
    assert epsilon(apart, 1e-5, Relation.ADD_REMOVE).epsilon == pytest.approx(2.584, rel=2e-3)
    assert epsilon(together, 1e-5, Relation.ADD_REMOVE).epsilon == pytest.approx(4.481, rel=2e-3)


def test_c6_only_guaranteed_honest_survivors_count() -> None:
    r = Round(cohort=Fixed(10), upload=(Clip(1.0), Gaussian(1.0)), channel=Sum(survivors=4))
    (way,) = proved(r, "client", "server")
    assert way.event == GaussianDpEvent(pytest.approx(2.0, rel=2e-9))


def test_c7_a_nonlinear_step_after_the_noise() -> None:
    r = Round(cohort=Fixed(10), upload=(Clip(1.0), Gaussian(1.0), TopK(2)), channel=Sum())
    (way,) = proved(r, "client", "server")
    assert way.event == GaussianDpEvent(pytest.approx(1.0, rel=2e-9))


def test_c8_server_state_is_free_behind_the_noise_only() -> None:
    after = with_(ONCE, publish=(Gaussian(0.2), Cube()))
    before = with_(ONCE, publish=(Cube(), Gaussian(0.2)))
    assert proved(after, "client", "world")[0].event == proved(ONCE, "client", "world")[0].event
    assert not proved(before, "client", "world")


def test_c9_state_that_saw_raw_data_voids_record_sampling() -> None:
    local = Local(
        sampler=Poisson(0.1), example=(Clip(1.0),), batch=(Gaussian(2.0),), remembers=True
    )
    (way, *_) = ways(with_(DPSGD, local=local), "record", "server")
    assert "the client's own state has seen raw data" in way.reason
    assert not proved(with_(DPSGD, local=local), "client", "server")


def test_c10_two_uploads_of_one_client_are_both_charged() -> None:
    twice = {
        "update": Upload((Clip(3.0),)),
        "control": Upload((Clip(4.0),), data="train"),
    }
    noise = {"update": (Gaussian(1.2),), "control": (Gaussian(1.2),)}
    r = with_(ONCE, upload=twice, publish=noise)
    (way, *_) = proved(r, "client", "world")
    assert isinstance(way.event, PoissonSampledDpEvent)
    # sums are divided by the expected 10; S = sqrt(3^2 + 4^2) / 10 against noise of 1.2
    assert way.event.event == GaussianDpEvent(pytest.approx(1.2 / 0.5, rel=1e-8))
    assert not proved(with_(r, publish={"update": (Gaussian(1.2),)}), "client", "world")


def test_c11_every_number_that_leaves_is_a_release() -> None:
    raw = {"update": Upload((Clip(1.0), Gaussian(1.0))), "loss": Upload((), 1, data="train")}
    r = Round(cohort=All(), upload=raw)
    assert not proved(r, "client", "server")
    assert "loss: nothing has been done to hide it" in ways(r, "client", "server")[0].reason
    side = {"update": Upload((Clip(1.0), Gaussian(1.0))), "loss": Upload((), 1, data="test")}
    r = Round(cohort=All(), upload=side)
    assert proved(r, "record", "server")
    assert not proved(r, "client", "server")  # test data are the client's too
    assert not proved(r, "record", "server", "loss")


def test_c12_a_method_sees_only_what_was_released() -> None:
    allowed = {
        "t": "how many rounds were made, which everybody counts",
        "sizes": "the public numbers of the federation",
        "model": "the last released model",
        "earlier": "released models before it",
        "released": "what somebody saw, each with who it was",
        "validation": "released models judged on the server's own records, which no client holds",
    }
    assert {f.name for f in fields(Past)} == set(allowed)


def test_c13_search_over_settings_is_named_as_outside() -> None:
    assert "Settings chosen by looking at several runs" in statement(ONCE).words()


def test_c14_integer_buffers_cannot_pass() -> None:
    counter = torch.tensor([3])
    for stage in (Clip(1.0), Gaussian(1.0), Laplace(1.0)):
        with pytest.raises(TypeError, match="they can be neither clipped nor noised"):
            stage(counter, shared, own(0))


def test_c15_an_aggregate_without_a_proof_cannot_stand_in_a_round() -> None:
    with pytest.raises(TypeError, match=r"aggregate = .*allowed are Mean, MeanOfPresent"):
        with_(ONCE, aggregate=Cube())


def test_c16_floating_noise_and_the_key_are_stated() -> None:
    (way, *_) = proved(ONCE, "client", "world")
    assert any("floating point" in a for a in way.assumptions)
    words = statement(ONCE, key="public seed").words()
    assert "whoever knows it can undo the noise" in words


def test_c17_what_is_not_finite_is_zero_before_the_clip() -> None:
    x = torch.tensor([math.nan] * DIM)
    assert torch.equal(Clip(1.0)(x, shared, own(0)), torch.zeros(DIM))
    half = Clip(1.0)(torch.full((DIM,), 6e4, dtype=torch.float16), shared, own(0))
    assert half.dtype == torch.float32
    assert float(half.double().norm()) <= 1.0


def test_c18_clients_of_different_budgets_are_never_averaged() -> None:
    column = PerClient((1.0,) * 50 + (3.0,) * 50)
    s = statement(Round(cohort=All(), upload=(Clip(1.0), Gaussian(column))))
    groups = [c for c in s.cells if (c.unit, c.observer) == ("client", "server")]
    assert len(groups) == 2
    worst = s.cell("client", "server")
    assert worst.epsilon == max(c.epsilon for c in groups)
    assert worst.group == "50 clients like client 0"
    assert worst.delta == 1 / 1000
    assert s.cell("record", "server").delta == 1 / 50_000


def test_c19_a_decaying_clip_at_fixed_multiplier_is_one_event() -> None:
    def at(C: float) -> Round:
        return with_(ONCE, upload=(Clip(C),), publish=(Gaussian(0.2 * C),))

    events = {proved(at(C), "client", "world")[0].event for C in np.linspace(6.0, 2.0, 60)}
    assert len(events) == 1


def test_c20_the_sampler_emits_the_relation_and_the_curve() -> None:
    for sampler, relation in (
        (Poisson(0.1), Relation.ADD_REMOVE),
        (Fixed(5), Relation.REPLACE_ONE),
        (Epoch(5), Relation.REPLACE_ONE),
        (All(), Relation.REPLACE_ONE),
    ):
        local = Local(sampler=sampler, example=(Clip(1.0),), batch=(Gaussian(2.0),))
        (way,) = proved(with_(DPSGD, local=local), "record", "server")
        assert way.relation is relation
        sampled = not isinstance(sampler, Epoch | All)
        assert isinstance(way.event, GaussianDpEvent) is not sampled


def test_c21_no_two_places_share_noise() -> None:
    key = Key.from_seed(0)
    places = [(0, 0, "a"), (1, 0, "a"), (0, 1, "a"), (0, None, "a"), (0, 0, "b")]
    draws = [key.stream(*place).normal(1000) for place in places]
    r = np.corrcoef(draws)
    assert np.abs(r - np.eye(5)).max() < 5 / math.sqrt(1000)


def test_c22_a_cohort_cannot_depend_on_data() -> None:
    for sampler in (All, Poisson, Fixed, Epoch):
        assert list(inspect.signature(sampler.draw).parameters) == ["self", "stream", "units"]


def test_c23_the_view_of_a_member_is_named() -> None:
    r = Round(cohort=Fixed(10), upload=(Clip(1.0), Gaussian(1.0)), channel=Sum())
    (way,) = proved(r, "client", "server")
    assert any("the observer is not one of them" in a for a in way.assumptions)


def test_c24_no_unit_is_drawn_twice_at_once() -> None:
    for sampler in (Poisson(0.9), Fixed(40), Epoch(10)):
        drawn = sampler.draw(Key.from_seed(2).stream(0, None, "batch"), 50)
        assert len(np.unique(drawn)) == len(drawn)


def test_example_noise_under_a_poisson_batch_gets_joint_convexity_only() -> None:
    local = Local(sampler=Poisson(0.1), example=(Clip(1.0), Gaussian(2.0)))
    (way,) = proved(with_(DPSGD, local=local), "record", "server")
    assert way.relation is Relation.REPLACE_ONE
    assert way.event == MixedDpEvent(0.1, GaussianDpEvent(pytest.approx(1.0, rel=2e-9)))


def test_two_stage_sampling_gives_a_record_no_product_of_rates() -> None:
    for way in proved(with_(DPSGD, cohort=Poisson(0.1)), "record", "world"):
        assert way.chance == 0.1
        assert isinstance(way.event, SelfComposedDpEvent)
        assert way.event.event.sampling_probability == 0.1  # the batch's own rate


def test_a_capped_cohort_gets_no_amplification() -> None:
    capped = statement(with_(ONCE, cohort=Poisson(0.1, at_most=3)), rounds=10)
    cell = capped.cell("client", "world")
    assert (cell.relation, cell.participations) == ("zero-out", 3)


def test_what_only_the_server_saw_is_charged_when_it_is_passed_on() -> None:
    r = Round(cohort=All(), upload=(Clip(1.0), Gaussian(1.0)), channel=Each(), broadcast=True)
    assert ways(r, "client", "world") == ways(r, "client", "server")


def statement(r: Round, rounds: int = 10, key: str | None = None) -> Statement:
    return state([(r, rounds)], SIZES, key=key)


def test_a_claim_needs_its_own_bound_not_a_predecessors() -> None:
    """Style 3.1 (a): the second noise of this order proves z = 5, the first one 0.05."""
    c = Claim(Relation.REPLACE_ONE, length=DIM)
    for stage in (Clip(1.0), Gaussian(0.1), Clip(0.01), Gaussian(0.1)):
        c = stage.claim(c)
    assert c.event == GaussianDpEvent(pytest.approx(0.05, rel=2e-9))


def test_raw_memory_in_an_upload_is_not_covered_by_local_noise() -> None:
    """Second reader, A1: control variates and momentum carry raw data past the noise."""
    local = Local(sampler=Fixed(5), example=(Clip(1.0), Gaussian(20.0)), batch=(), remembers=True)
    r = with_(DPSGD, local=local)
    for unit in ("record", "client"):
        for observer in ("device", "server", "world"):
            assert not proved(r, unit, observer)


def test_a_step_that_looks_at_losses_is_not_covered_by_noise_on_gradients() -> None:
    local = Local(
        TwoGradients(losses=1), sampler=Fixed(5), example=(Clip(1.0),), batch=(Gaussian(2.0),)
    )
    (way, *_) = ways(with_(DPSGD, local=local), "record", "server")
    assert "looks at raw losses" in way.reason


def test_a_stage_without_a_proof_can_change_the_length() -> None:
    """Second reader, A10: what comes after it is charged for an unknown number of entries."""
    c = TwoPoint(1.0, 0.5).claim(Cube().claim(Claim(Relation.REPLACE_ONE, length=10)))
    assert c.open
    assert c.length is None


def test_a_client_whose_gradients_are_counted_shows_its_size() -> None:
    """Second reader, A16."""
    local = Local(sampler=Poisson(0.1), example=(Clip(1.0), Gaussian(2.0)))
    (way,) = ways(with_(DPSGD, local=local), "client", "device")
    assert "tells how many records" in way.reason
    fixed = Local(sampler=Fixed(5), example=(Clip(1.0), Gaussian(2.0)))
    (way,) = ways(with_(DPSGD, local=fixed), "client", "device")
    assert "a client's number of records is public" in way.assumptions


def test_a_client_without_enough_records_for_a_batch_is_told_apart() -> None:
    for sampler in (All(), Fixed(5), Epoch(5), Poisson(0.1)):
        local = Local(sampler=sampler, example=(Clip(1.0),), batch=(Gaussian(200.0),))
        (way,) = proved(with_(DPSGD, local=local), "client", "server")
        public = "a client's number of records is public" in way.assumptions
        assert public is not isinstance(sampler, Poisson)


def test_weighted_means_say_what_they_assume_everywhere() -> None:
    r = with_(DPSGD, local=Local(sampler=Fixed(5), example=(Clip(1.0),), batch=(Gaussian(2.0),)),
              aggregate=WeightedMean(cap=60.0, by=600.0))  # fmt: skip
    for way in (*proved(r, "record", "server"), *proved(r, "client", "world")):
        assert "data sizes are public" in way.assumptions


def test_methods_adapt_to_what_the_world_saw() -> None:
    seen = (Released(0, "norm", 1.0, "server"), Released(0, "norm", 2.0, "world"))
    past = Past(t=1, released=seen)
    assert past.values("norm") == [2.0]
    assert past.values("norm", seen_by="server") == [1.0, 2.0]


@pytest.mark.parametrize(
    "build",
    [
        lambda: Local(steps=2.5),  # pyright: ignore
        lambda: Local(step=TwoGradients(0)),
        lambda: Fixed(2.5),  # pyright: ignore
        lambda: All(at_most=math.nan),  # pyright: ignore
        lambda: Sum(math.nan),  # pyright: ignore
        lambda: Local(average=Mean()),
        lambda: Upload(data="public"),
        lambda: Round(cohort=All(), upload={}),
    ],
)
def test_numbers_that_cannot_be_are_refused(build: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"allowed (is|are)"):
        build()
