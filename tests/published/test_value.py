import copy
import json
import math
import operator
from collections.abc import Callable

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from confide import published
from confide.accounting import events
from confide.accounting.relations import Relation
from confide.claims import Claim, Noise
from confide.published import Published, dp_fedsam, udp_fl

PRINTED = dp_fedsam.eq_16_epsilon(0.1, 0.95, 300, 1 / 500)

UNARY = [operator.neg, operator.pos, abs, math.floor, math.ceil, round]
BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    divmod,
    operator.pow,
    operator.matmul,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]


@pytest.mark.parametrize("operation", UNARY)
def test_unary_arithmetic_is_refused_in_a_sentence(operation: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="not a proved number"):
        operation(PRINTED)


@pytest.mark.parametrize("other", [1, 2.5, 1j, np.float64(2.0), np.ones(3), PRINTED])
@pytest.mark.parametrize("operation", BINARY)
def test_arithmetic_and_order_are_refused_on_both_sides(
    operation: Callable[[object, object], object], other: object
) -> None:
    for left, right in ((PRINTED, other), (other, PRINTED)):
        with pytest.raises(TypeError, match="not a proved number"):
            operation(left, right)


@pytest.mark.parametrize(
    "conversion",
    [
        float,
        int,
        complex,
        math.trunc,
        math.isfinite,
        math.exp,
        math.sqrt,
        np.float64,
        np.isfinite,
        range,
    ],
)
def test_it_converts_to_no_number(conversion: Callable[[object], object]) -> None:
    with pytest.raises(TypeError):
        conversion(PRINTED)


def test_it_enters_no_array_of_numbers() -> None:
    with pytest.raises(TypeError):
        np.asarray([PRINTED], dtype=float)
    with pytest.raises(TypeError):
        sum([PRINTED])
    with pytest.raises(TypeError):
        max(PRINTED, 1.0)


def test_it_is_no_number_and_no_event() -> None:
    assert not isinstance(PRINTED, (int, float, complex, events.DpEvent))
    assert PRINTED.value != PRINTED


@pytest.mark.parametrize("accountant", [RdpAccountant, PLDAccountant])
@pytest.mark.parametrize(
    "event",
    [
        PRINTED,
        events.GaussianDpEvent(PRINTED),
        events.LaplaceDpEvent(PRINTED),
        events.PoissonSampledDpEvent(0.1, events.GaussianDpEvent(PRINTED)),
        events.PoissonSampledDpEvent(PRINTED, events.GaussianDpEvent(1.0)),
        events.SelfComposedDpEvent(events.GaussianDpEvent(1.0), PRINTED),
    ],
    ids=["as event", "gaussian", "laplace", "sampled gaussian", "as rate", "as count"],
)
def test_no_accountant_accepts_one(
    accountant: Callable[[], dp.PrivacyAccountant], event: dp.DpEvent
) -> None:
    with pytest.raises(TypeError):
        accountant().compose(event)


@pytest.mark.parametrize("bound", ["l1", "l2", "linf"])
def test_no_claim_is_bounded_by_one(bound: str) -> None:
    with pytest.raises(TypeError):
        Claim(Relation.ADD_REMOVE, **{bound: PRINTED})


def test_no_claim_is_scaled_or_covered_by_one() -> None:
    with pytest.raises(TypeError):
        Claim(Relation.ADD_REMOVE, l2=1.0).scaled(PRINTED)
    with pytest.raises(TypeError):
        Noise("gaussian", PRINTED).times(2)
    with pytest.raises(TypeError):
        Noise("gaussian", 1.0).plus(Noise("gaussian", PRINTED))


def test_no_answer_is_asked_for_at_a_published_budget() -> None:
    accountant = RdpAccountant().compose(events.GaussianDpEvent(1.0))
    with pytest.raises(TypeError):
        accountant.get_delta(PRINTED)
    with pytest.raises(TypeError):
        accountant.get_epsilon(PRINTED)


def test_a_published_value_is_no_symbol_of_another_formula() -> None:
    with pytest.raises(TypeError, match=r"sigma is published .*; it must be a real number"):
        udp_fl.appendix_b_gaussian(2, 10, PRINTED)


def test_the_row_beside_a_statement() -> None:
    row = PRINTED.row()
    assert row == {
        "epsilon": PRINTED.value,
        "delta": 1 / 500,
        "unit": "client",
        "source": f"{PRINTED.source}: {PRINTED.note}",
    }
    assert json.loads(json.dumps(row)) == row
    sigma = published.fed_cdp.lemma_1_sigma(0.5, 1e-5)
    with pytest.raises(ValueError, match=r"σ = .* is not an epsilon"):
        sigma.row()
    epsilons = [
        published.fed_cdp.moments_epsilon(0.01, 6.0, 100, 1e-5),
        published.fed_cdp.table_6("fed-cdp", "mnist", 100),
        published.fed_cdp.definition_3(1.0, 1e-4, 0.1)[0],
        udp_fl.section_4_1_epsilon(lambda a: udp_fl.table_3_gaussian(a, 1.0, 9.0), 3, 1e-5),
    ]
    assert [p.row()["delta"] for p in epsilons] == [1e-5, 1e-5, 1e-5, 1e-5]


def test_it_can_not_be_changed() -> None:
    with pytest.raises(AttributeError):
        PRINTED.value = 1.0
    assert copy.deepcopy(PRINTED) == PRINTED


def test_it_says_where_it_comes_from() -> None:
    assert str(PRINTED) == "published ε = 10.8526 (DP-FedSAM, eq. (16); unit client)"
    assert str(udp_fl.table_3_staircase_nu(2, 1)).startswith("published nu = 0.68394-0.871587j")


@pytest.mark.parametrize("text", ["symbol", "source", "formula_text"])
def test_a_value_without_its_origin_is_refused(text: str) -> None:
    fields = {"symbol": "ε", "source": "a paper, eq. (1)", "formula_text": "ε = 1"}
    with pytest.raises(ValueError, match=f"{text} is ''"):
        Published(1.0, **(fields | {text: ""}), unit="record")


@pytest.mark.parametrize("value", [math.nan, complex(0, math.nan)])
def test_nan_is_no_published_value(value: complex) -> None:
    with pytest.raises(ValueError, match="NaN"):
        Published(value, "ε", "a paper", "ε", "record")


@pytest.mark.parametrize("value", [True, "1", None, PRINTED])
def test_only_a_number_is_a_published_value(value: object) -> None:
    with pytest.raises(TypeError, match="must be a number"):
        Published(value, "ε", "a paper", "ε", "record")


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="unit is 'user'"):
        Published(1.0, "ε", "a paper", "ε", "user")


CALLS: dict[str, tuple[Callable[..., object], dict[str, float]]] = {
    "theorem_1": (udp_fl.theorem_1, {"alpha": 2, "lam": 1, "nu": 0.4}),
    "theorem_7": (udp_fl.theorem_7_scale, {"alpha": 2, "Delta": 1, "gamma": 0.1}),
    "gaussian": (udp_fl.table_3_gaussian, {"alpha": 2, "Delta": 1, "sigma": 1}),
    "sigma": (udp_fl.table_3_gaussian_sigma, {"alpha": 2, "Delta": 1, "delta": 1e-5}),
    "eq_10": (
        published.udp_crd.eq_10_sigma,
        {"sensitivity": 1, "q": 1, "T": 10, "epsilon": 4, "delta": 1e-3},
    ),
    "eq_16": (dp_fedsam.eq_16_epsilon, {"q": 0.1, "sigma": 1, "T": 10, "delta": 1e-3}),
    "eq_2": (published.dp_fedags.eq_2_sigma, {"sensitivity": 1, "epsilon": 0.1}),
    "moments": (
        published.fed_cdp.moments_epsilon,
        {"q": 0.1, "sigma": 6, "steps": 3, "delta": 1e-5},
    ),
    "sigma_U": (published.nbafl.sigma_U, {"C": 1, "m": 9, "L": 2, "epsilon": 5, "delta": 0.01}),
    "lemma_2": (published.girgis.lemma_2_upper, {"alpha": 2, "gamma": 1, "N": 10}),
}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, True, "1", None])
@pytest.mark.parametrize(
    ("call", "symbol"), [(call, symbol) for call, (_, values) in CALLS.items() for symbol in values]
)
def test_each_symbol_is_checked_and_named(call: str, symbol: str, bad: object) -> None:
    formula, values = CALLS[call]
    shown = "lambda" if symbol == "lam" else symbol
    assert isinstance(formula(**values), Published)
    with pytest.raises((TypeError, ValueError), match=f"{shown} is"):
        formula(**(values | {symbol: bad}))


@pytest.mark.parametrize(
    ("call", "symbol", "bad"),
    [
        ("theorem_1", "alpha", 1),
        ("theorem_1", "nu", 1),
        ("theorem_1", "lam", 0),
        ("eq_10", "q", 1.1),
        ("eq_10", "q", 0),
        ("eq_10", "delta", 1.0),
        ("eq_10", "T", 10.0),
        ("eq_10", "T", 0),
        ("lemma_2", "alpha", 1),
        ("lemma_2", "alpha", 2.5),
    ],
)
def test_edges_are_refused(call: str, symbol: str, bad: float) -> None:
    formula, values = CALLS[call]
    shown = "lambda" if symbol == "lam" else symbol
    with pytest.raises((TypeError, ValueError), match=f"{shown} is {bad}; it must be"):
        formula(**(values | {symbol: bad}))
