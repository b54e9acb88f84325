import json
import math
from fractions import Fraction

import pytest

import confide.accounting as accounting
from confide.accounting import account, gdp, staircase
from confide.accounting.events import (
    GaussianDpEvent,
    LaplaceBothDpEvent,
    LaplaceDpEvent,
    LaplaceL2DpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    SkellamDpEvent,
    StaircaseDpEvent,
)
from confide.accounting.mechanisms import Given, read
from confide.accounting.relations import Refused, Relation


def event(multiplier, noise, **words):
    return read(Given(noise, **words)).event(multiplier)


def test_noises_and_their_defaults():
    assert event(2.0, "gaussian") == SelfComposedDpEvent(GaussianDpEvent(2.0), 1)
    assert event(2.0, "laplace").event == LaplaceDpEvent(2.0)
    assert event(2.0, "laplace", norm="l2", dim=7).event == LaplaceL2DpEvent(2.0, 7)
    assert event(2.0, "laplace", norm="l2").event == LaplaceL2DpEvent(2.0, None)
    assert event(2.0, "laplace", norm="both", dim=7).event == LaplaceBothDpEvent(2.0, 2.0, 7)
    gamma = staircase.optimal_gamma(0.5, cost="l2")
    assert event(2.0, "staircase").event == StaircaseDpEvent(0.5, gamma, 1.0, "l1", 1)
    given = event(2.0, "staircase", gamma=0.3, norm="l2", dim=9).event
    assert given == StaircaseDpEvent(0.5, 0.3, 1.0, "l2", 9)


@pytest.mark.parametrize(("grid", "dim", "l1"), [(3, 4, 6.0), (3, 400, 9.0), (100, 9, 300.0)])
def test_skellam_counts_in_grid_steps(grid, dim, l1):
    found = event(2.0, "skellam", grid=grid, dim=dim).event
    assert found == SkellamDpEvent((2.0 * grid) ** 2, grid, l1, dim)


def test_samplings_and_relations():
    words = read(Given("gaussian", rate=0.05, steps=7))
    assert (words.sampling, words.relation) == ("poisson", Relation.ADD_REMOVE)
    assert words.event(1.0) == SelfComposedDpEvent(
        PoissonSampledDpEvent(0.05, GaussianDpEvent(1.0)), 7
    )
    words = read(Given("gaussian", rate="50/1000", sampling="fixed"))
    assert (words.rate, words.relation) == (Fraction(1, 20), Relation.REPLACE_ONE)
    assert words.event(1.0).event == SampledWithoutReplacementDpEvent(20, 1, GaussianDpEvent(1.0))
    assert read(Given("gaussian", rate="1/8")).event(1.0).event.sampling_probability == 0.125
    words = read(Given("gaussian"))
    assert (words.sampling, words.relation) == ("none", Relation.ADD_REMOVE)
    assert read(Given("gaussian", relation="replace-one")).relation is Relation.REPLACE_ONE


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"noise": "gausian"}, "noise = gausian.*did you mean gaussian"),
        ({"noise": "uniform"}, "noise = uniform.*staircase"),
        ({"noise": "gaussian", "norm": "l1"}, "norm = l1.*l2 for gaussian"),
        ({"noise": "staircase", "norm": "both"}, "norm = both"),
        ({"noise": "gaussian", "gamma": 0.3}, "gamma = 0.3.*staircase"),
        ({"noise": "staircase", "gamma": 1.5}, "gamma = 1.5.*between 0 and 1"),
        ({"noise": "staircase", "gamma": math.nan}, "gamma"),
        ({"noise": "laplace", "grid": 3}, "grid = 3.*skellam"),
        ({"noise": "skellam", "grid": 3}, "dim is missing"),
        ({"noise": "skellam", "dim": 3}, "grid is missing"),
        ({"noise": "skellam", "dim": 3, "grid": 2.5}, "grid = 2.5.*whole"),
        ({"noise": "laplace", "dim": 0}, "dim = 0.*whole"),
        ({"noise": "laplace", "steps": 0}, "steps = 0.*whole"),
        ({"noise": "laplace", "steps": 1.0}, "steps = 1.0.*whole"),
        ({"noise": "laplace", "steps": True}, "steps"),
        ({"noise": "laplace", "sampling": "poison", "rate": 0.1}, "did you mean poisson"),
        ({"noise": "laplace", "sampling": "poisson"}, "rate is missing"),
        ({"noise": "laplace", "sampling": "none", "rate": 0.1}, "rate = 0.1.*none has no rate"),
        ({"noise": "laplace", "rate": 0.0}, "rate = 0.0.*above 0"),
        ({"noise": "laplace", "rate": 1.5}, "rate = 1.5.*at most 1"),
        ({"noise": "laplace", "rate": math.nan}, "rate = nan"),
        ({"noise": "laplace", "rate": "some"}, "rate = some.*m/n"),
        ({"noise": "laplace", "rate": "1/0"}, "rate = 1/0"),
        ({"noise": "laplace", "rate": 0.05, "sampling": "fixed"}, "m/n"),
        ({"noise": "laplace", "rate": "0.05", "sampling": "fixed"}, "m/n"),
        ({"noise": "laplace", "rate": 0.1, "relation": "replace-one"}, "poisson.*add-remove"),
        (
            {"noise": "laplace", "rate": "1/9", "sampling": "fixed", "relation": "add-remove"},
            "fixed.*replace-one",
        ),
        ({"noise": "laplace", "relation": "replace"}, "did you mean replace-one"),
    ],
)
def test_refusals_name_the_word_the_value_and_what_is_allowed(words, says):
    with pytest.raises(Refused, match=says):
        read(Given(**words))


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.nan, math.inf])
def test_refuses_a_multiplier_that_is_none(multiplier):
    with pytest.raises(Refused, match="multiplier"):
        event(multiplier, "gaussian")


def test_the_answer_repeats_every_word():
    words = read(Given("staircase", rate=0.01, steps=10))
    fields = words.fields(4.0, account.epsilon(words.event(4.0), 1e-5))
    assert set(fields) == {
        "epsilon",
        "delta",
        "accountant",
        "order",
        "relation",
        "sampling",
        "norm",
        "dim",
        "gamma",
        "multiplier",
        "steps",
        "assumptions",
    }
    assert fields["gamma"] == staircase.optimal_gamma(0.25, cost="l2")
    assert (fields["norm"], fields["dim"], fields["sampling"]) == ("l1", 1, "poisson")
    json.dumps(fields, allow_nan=False)


def test_infinity_is_a_word_in_the_fields():
    words = read(Given("staircase", norm="l2", dim=5, steps=10))
    answer = account.epsilon(StaircaseDpEvent(1.0, 0.4, 1.0, "l2", None), 1e-5)
    fields = words.fields(1.0, answer)
    assert fields["epsilon"] == "inf"
    assert fields["reason"]
    json.dumps(fields, allow_nan=False)


class Noise:
    def unit_event(self):
        return GaussianDpEvent(4.0)


def test_python_names_events_and_objects_agree():
    by_name = accounting.epsilon("gaussian", multiplier=4.0, rate=0.01, steps=100, delta=1e-5)
    by_event = accounting.epsilon(GaussianDpEvent(4.0), rate=0.01, steps=100, delta=1e-5)
    by_object = accounting.epsilon(Noise(), rate=0.01, steps=100, delta=1e-5)
    assert by_name == by_event == by_object
    once = accounting.epsilon(Noise(), delta=1e-5)
    assert once.epsilon == gdp.epsilon(0.25, 1e-5)
    fixed = accounting.epsilon(Noise(), rate="1/20", sampling="fixed", steps=9, delta=1e-5)
    assert fixed.relation is Relation.REPLACE_ONE


def test_python_refusals():
    with pytest.raises(Refused, match="multiplier is missing"):
        accounting.epsilon("gaussian", delta=1e-5)
    with pytest.raises(Refused, match="its own"):
        accounting.epsilon(Noise(), multiplier=1.0, delta=1e-5)
