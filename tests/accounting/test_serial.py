"""Every event survives its text bit for bit, and nothing else has a text."""

import json
import math

import attrs
import numpy as np
import pytest
from dp_accounting import dp_event
from hypothesis import given
from hypothesis import strategies as st

from confide.accounting import events, serial

GAUSS = events.GaussianDpEvent(1.1)
ONE_OF_EACH = [
    dp_event.NoOpDpEvent(),
    dp_event.NonPrivateDpEvent(),
    dp_event.UnsupportedDpEvent(),
    dp_event.RandomizedResponseDpEvent(0.3, 7),
    GAUSS,
    events.LaplaceDpEvent(0.1 + 0.2),
    dp_event.DiscreteLaplaceDpEvent(0.25, 3),
    events.SelfComposedDpEvent(GAUSS, 10_000),
    events.ComposedDpEvent([GAUSS, events.ComposedDpEvent([]), events.PureDpEvent(1.0)]),
    events.PoissonSampledDpEvent(0.01, events.SelfComposedDpEvent(GAUSS, 3)),
    dp_event.SampledWithReplacementDpEvent(100, 7, GAUSS),
    events.SampledWithoutReplacementDpEvent(100, 7, GAUSS),
    dp_event.SingleEpochTreeAggregationDpEvent(2.0, [1, 2, 3]),
    dp_event.RepeatAndSelectDpEvent(GAUSS, 4.0, math.inf),
    dp_event.MixtureOfGaussiansDpEvent(1.5, (0.0, 1.0), (0.9, 0.1)),
    dp_event.ZCDpEvent(0.125),
    dp_event.TruncatedSubsampledGaussianDpEvent(1000, 0.1, 150, 1.0),
    events.LaplaceL2DpEvent(2.0),
    events.LaplaceBothDpEvent(2.0, 3.0, 12),
    events.StaircaseDpEvent(1.0, 0.25, 0.5, "l2", None),
    events.PureDpEvent(5e-324),
    events.ApproximateDpEvent(1.0, 1e-5),
    events.DiscreteGaussianDpEvent(4.0, 2.0, 10),
    events.SkellamDpEvent(100.0, 3.0),
    events.BinomialDpEvent(1024, 0.5, 8.0, 3.0, 1.0, 10),
    events.ShuffledDpEvent(1.0, 1000),
    events.MixedDpEvent(0.1, events.PoissonSampledDpEvent(0.5, GAUSS)),
    events.RandomParticipationDpEvent(0.1, 100, GAUSS),
]


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_every_event_round_trips(event):
    text = serial.dump(event)
    again = serial.load(text)
    assert again == event
    assert type(again) is type(event)
    assert serial.dump(again) == text
    json.loads(text, parse_constant=pytest.fail)  # strict JSON: no NaN or Infinity in it


def test_the_vocabulary_is_complete():
    named = [*vars(events).values(), *vars(dp_event).values()]
    defined = {one for one in named if isinstance(one, type) and issubclass(one, dp_event.DpEvent)}
    assert set(serial.KNOWN.values()) == defined - {dp_event.DpEvent}
    assert {type(event) for event in ONE_OF_EACH} == set(serial.KNOWN.values())


@given(st.floats(allow_nan=False).filter(lambda x: x != -math.inf))
def test_floats_are_exact(value):
    again = serial.load(serial.dump(events.GaussianDpEvent(value)))
    assert isinstance(again, events.GaussianDpEvent)
    assert again.noise_multiplier.hex() == value.hex()


@given(st.recursive(
    st.sampled_from([GAUSS, events.SkellamDpEvent(9.0, 1.0), events.OPEN]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(events.ComposedDpEvent),
        st.builds(events.SelfComposedDpEvent, inner, st.integers(1, 10**20)),
        st.builds(events.PoissonSampledDpEvent, st.floats(0, 1), inner),
    ),
))  # fmt: skip
def test_nested_events_round_trip(event):
    assert serial.load(serial.dump(event)) == event
    assert serial.is_unprotected(event) == ("NonPrivate" in repr(event))


def test_a_numpy_double_is_a_float_and_a_type_is_kept():
    assert serial.dump(events.GaussianDpEvent(np.float64(1.5))) == serial.dump(
        events.GaussianDpEvent(1.5)
    )
    whole = serial.load(serial.dump(dp_event.ZCDpEvent(1)))
    assert isinstance(whole, dp_event.ZCDpEvent)
    assert type(whole.rho) is int


@attrs.frozen
class HomemadeDpEvent(dp_event.DpEvent):
    noise: float = 1.0


class GaussianDpEvent(dp_event.DpEvent):  # the name of a known event, but another class
    pass


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (HomemadeDpEvent(), "HomemadeDpEvent.*not an event.*nearest"),
        (GaussianDpEvent(), "not an event"),
        (events.ComposedDpEvent([GAUSS, HomemadeDpEvent()]), "HomemadeDpEvent"),
        ("gaussian", "'str' is not an event"),
        (events.GaussianDpEvent(math.nan), "GaussianDpEvent.noise_multiplier is nan"),
        (events.GaussianDpEvent(-math.inf), "noise_multiplier is -inf"),
        (events.GaussianDpEvent(True), "noise_multiplier is True"),
        (events.GaussianDpEvent(np.float32(1)), "float32"),  # type: ignore[arg-type]
        (events.SelfComposedDpEvent(GAUSS, np.int64(2)), "int64"),  # type: ignore[arg-type]
        (dp_event.ZCDpEvent("inf"), "stands for the number infinity"),  # type: ignore[arg-type]
        (events.ComposedDpEvent({GAUSS}), "of type set"),  # type: ignore[arg-type]
    ],
)
def test_what_is_not_an_event_has_no_text(event, said):
    with pytest.raises(ValueError, match=said):
        serial.dump(event)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be JSON"),
        ("{", "must be JSON"),
        ("3", "object with a"),
        ("[]", "object with a"),
        ('{"noise_multiplier":1.0}', "object with a"),
        (
            '{"type":"GausianDpEvent","noise_multiplier":1.0}',
            "nearest known one is GaussianDpEvent",
        ),
        ('{"type":["GaussianDpEvent"],"noise_multiplier":1.0}', "not an event"),
        ('{"type":"GaussianDpEvent"}', "must have the fields"),
        ('{"type":"GaussianDpEvent","noise_multiplier":1.0,"dim":3}', "must have the fields"),
        ('{"type":"GaussianDpEvent","noise_multiplier":NaN}', "NaN"),
        ('{"type":"GaussianDpEvent","noise_multiplier":Infinity}', "Infinity"),
        ('{"type":"GaussianDpEvent","noise_multiplier":1e999}', "overflows"),
        ('{"type":"GaussianDpEvent","noise_multiplier":true}', "truth value"),
        ('{"type":"GaussianDpEvent","noise_multiplier":1,"noise_multiplier":2}', "twice"),
        ('{"type":"ComposedDpEvent","events":[{"a":1}]}', "object with a"),
        ('{"type":"ComposedDpEvent","events":{"tuple":3}}', "object with a"),
        ('{"type":"PureDpEvent","epsilon":-1.0}', "PureDpEvent cannot have .*epsilon"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_the_text_of_an_event_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        serial.load(text)
