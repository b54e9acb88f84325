"""UDP-FL's Table 1 on one weight, where what is released has laws that can be written down."""

from itertools import product
from math import exp

import numpy as np
import pytest

import exact_laws
from confide.cohorts import Fixed
from confide.engine.adapting import planned
from confide.engine.rounds import Round, Sizes
from confide.engine.spending import unrolled
from confide.methods.making import make
from confide.stages import Clip, Gaussian, Laplace
from confide.statements import Statement
from exact_laws import Law, draws, point, through

DELTA = 0.02
WRONG = DELTA * (1 + 1e-5)


def stated(name: str, sizes: Sizes, **settings: object) -> tuple[Round, Statement]:
    method = make(name, settings)
    plan = unrolled(method, sizes)
    return plan[0][0], planned(method, plan, sizes, delta=DELTA)


def delta(p: Law, q: Law, times: int, epsilon: float) -> float:
    """The least delta after so many rounds; what hardly ever happens counts as never."""
    keep = (p > 1e-12) | (q > 1e-12)
    return exact_laws.delta(often(p[keep], times), often(q[keep], times), epsilon)


def often(law: Law, times: int) -> Law:
    """So many independent releases, each told apart."""
    out = np.ones(1)
    for _ in range(times):
        out = np.outer(out, law).ravel()
    return out


# Local randomisers ------------------------------------------------------------------------------


def ordinal(level: int, k: int, epsilon: float) -> Law:
    """The exponential mechanism's law on k levels."""
    weights = np.exp(-epsilon * np.abs(np.arange(k) - level) / (k - 1))
    return weights / weights.sum()


def added(laws: list[Law]) -> Law:
    """The sum of independent levels."""
    out = np.ones(1)
    for law in laws:
        out = np.convolve(out, law)
    return out


@pytest.mark.parametrize("T", [1, 2, 3])
@pytest.mark.parametrize("name", ["ldp-fed", "ldp-fed-c"])
def test_ldp_fed_on_every_pair_of_levels(name: str, T: int) -> None:
    levels, epsilon, k = 5, 1.5, 2
    _, found = stated(
        name, Sizes(3, 10, (1,)), T=T, k=k, p=1.0, levels=levels, epsilon=epsilon, B=10
    )
    laws = [ordinal(level, levels, epsilon) for level in range(levels)]
    cell = found.cell("client", "server")
    for p, q in product(laws, repeat=2):
        assert delta(p, q, T, cell.epsilon) <= WRONG
    cell = found.cell("client", "world")
    for own, other, rest in product((laws[0], laws[1], laws[-1]), repeat=3):
        p, q = (
            sum(c * added([[x, rest, rest][i] for i in who]) for c, who in draws(Fixed(k), 3))
            for x in (own, other)
        )
        assert delta(p, q, T, cell.epsilon) <= WRONG


def coins(heads: list[float]) -> Law:
    """How many of these coins show heads."""
    return added([np.array([1 - h, h]) for h in heads])


@pytest.mark.parametrize("others", ["alike", "against", "in between"])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("ldp-fl", {"m": 300, "epsilon": 1.0}),
        ("ldp-fl-c", {"m": 300, "epsilon": 1.0, "p": 1.0}),
        ("ldp-fl-c", {"m": 20, "epsilon": 3.0, "p": 1.0}),
        ("cldp-sgd", {"k": 300, "epsilon_0": 1.0}),
        ("cldp-sgd", {"k": 40, "epsilon_0": 2.0}),
    ],
)
@pytest.mark.parametrize("T", [1, 2])
def test_two_values_of_one_weight_in_a_shuffled_cohort(
    name: str, settings: dict[str, float], others: str, T: int
) -> None:
    sizes = Sizes(400, 10, (1,))
    _, found = stated(name, sizes, T=T, **settings)
    epsilon = settings.get("epsilon", settings.get("epsilon_0", 0.0))
    k = int(settings.get("m", settings.get("k", 0)))
    up = exp(epsilon) / (1 + exp(epsilon))
    rest = {"alike": up, "against": 1 - up, "in between": 0.5}[others]
    laws = [coins([own] + [rest] * (k - 1)) for own in (up, 1 - up)]
    server = found.cell("client", "server")
    assert delta(*laws, T, server.epsilon) <= WRONG
    share, without = k / sizes.clients, coins([rest] * k)
    laws = [share * law + (1 - share) * without for law in laws]
    assert delta(*laws, T, found.cell("client", "world").epsilon) <= WRONG
    if k == 300 and T == 1 and others == "alike":
        assert server.epsilon < epsilon, "the crowd is worth something"


# Noise on reports and on batches ----------------------------------------------------------------


@pytest.mark.parametrize(("m", "T"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)])
def test_cofel_avg_c_on_one_layer(m: int, T: int) -> None:
    r, found = stated("cofel-avg-c", Sizes(3, 10, (1,)), T=T, m=m, k=1, C=1.0, epsilon=1.5)
    stages = tuple(s for s in r.uploads["update"].stages if isinstance(s, Clip | Laplace))
    high, low, nothing = (through(stages, point(v)) for v in (5.0, -5.0, 0.0))
    assert delta(high, low, T, found.cell("client", "server").epsilon) <= WRONG
    cell = found.cell("client", "world")
    assert cell.relation == ("zero-out" if m == 3 else "replace-one")
    for rest in (high, low, nothing):
        p, q = (
            sum(c * whole([own, rest, rest], who) for c, who in draws(Fixed(m), 3))
            for own in (high, nothing if m == 3 else low)
        )
        assert delta(p, q, T, cell.epsilon) <= WRONG


def whole(reports: list[Law], who: tuple[int, ...]) -> Law:
    law = point(0.0)
    for client in who:
        law = exact_laws.plus(law, reports[client])
    return law


def batch(r: Round, values: list[float], gradients: int) -> Law:
    """The noisy sum of a batch, looked at so often: the mean of the looks tells as much."""
    (noise,) = r.local.batch
    assert isinstance(noise, Gaussian) and isinstance(noise.std, float)
    less = (Gaussian(noise.std / gradients**0.5),)
    laws = draws(r.local.sampler, len(values))  # pyright: ignore[reportArgumentType]
    return sum(
        (
            chance * through(less, exact_laws.total(r.local.example, [values[i] for i in who]))
            for chance, who in laws
        ),
        start=0 * point(0.0),
    )


@pytest.mark.parametrize(
    ("name", "settings", "looks", "steps"),
    [
        ("rdp-pfl", {"L": 1, "B": 1}, 2, 1),
        ("rdp-pfl", {"L": 1, "B": 2}, 2, 1),
        ("rdp-pfl", {"L": 2, "B": 1, "alpha": 0.0}, 1, 2),
        ("rdp-pfl-c", {"L": 1, "B": 1}, 2, 1),
        ("rdp-pfl-c", {"L": 2, "B": 1}, 2, 2),
        ("als-dpfl-c", {"R_c": 1, "q": 0.3}, 1, 1),
        ("als-dpfl-c", {"R_c": 2, "q": 0.3, "T": 2, "most": 1}, 1, 2),
        ("als-dpfl-c", {"R_c": 2, "q": 0.7, "T": 2, "most": 1}, 1, 2),
    ],
)
@pytest.mark.parametrize("sigma", [1.0, 2.0])
def test_both_looks_at_a_batch_and_every_step_are_paid_for(
    name: str, settings: dict[str, object], looks: int, steps: int, sigma: float
) -> None:
    records = 3
    r, found = stated(
        name, Sizes(1, records, (1,)), **{"T": 1, "m": 1, "C": 1.0, "sigma": sigma, **settings}
    )
    cell, most = found.cell("record", "server"), 0.0
    for own, rest in product((5.0, -5.0), (5.0, -5.0, 0.0)):
        others = [rest] * (records - 1)
        beside = others if cell.relation == "add-remove" else [-own, *others]
        p, q = (batch(r, values, looks) for values in ([own, *others], beside))
        worst = delta(p, q, steps, cell.epsilon)
        assert worst <= WRONG
        most = max(most, worst)
    if cell.relation == "add-remove":
        assert most > 0.98 * DELTA, "and no more than that"


def test_a_rate_that_follows_the_number_of_records_needs_that_number_to_be_public() -> None:
    """With one record less, and a rate made of what is left, the row would not be true."""
    settings = {"T": 1, "m": 1, "C": 1.0, "sigma": 1.0, "L": 1, "B": 1}
    two, found = stated("rdp-pfl-c", Sizes(1, 2, (1,)), **settings)
    one, _ = stated("rdp-pfl-c", Sizes(1, 1, (1,)), **settings)
    epsilon = found.cell("record", "server").epsilon
    assert delta(batch(two, [5.0, 5.0], 2), batch(two, [5.0], 2), 1, epsilon) <= WRONG
    assert delta(batch(two, [-5.0, 5.0], 2), batch(one, [5.0], 2), 1, epsilon) > 2 * DELTA
    assert "These numbers are public" in found.words()
