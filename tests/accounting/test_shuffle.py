import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.accounting import shuffle
from confide.accounting.events import SelfComposedDpEvent, ShuffledDpEvent
from confide.accounting.losses import LossAccountant
from confide.accounting.relations import Refused, Relation


def enumerated(epsilon0, users, epsilon):
    """The sum over (C, A, D) as the definition reads, with 40 digits."""
    with mp.workdps(40):
        r = mp.e**epsilon0 / (1 + mp.e**epsilon0)
        chance = mp.e ** (-mp.mpf(epsilon0))
        first, second = {}, {}
        for clones in range(users):
            weight = mp.binomial(users - 1, clones) * chance**clones
            weight *= (1 - chance) ** (users - 1 - clones)
            for a in range(clones + 1):
                mass = weight * mp.binomial(clones, a) / 2**clones
                for d, coin in ((1, r), (0, 1 - r)):
                    key = (a + d, clones - a + 1 - d)
                    first[key] = first.get(key, 0) + mass * coin
                    second[key[::-1]] = second.get(key[::-1], 0) + mass * coin
        grown = mp.e ** mp.mpf(epsilon)
        return float(sum(max(p - grown * second.get(key, 0), 0) for key, p in first.items()))


@pytest.mark.parametrize("users", [1, 2, 10, 40])
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0])
def test_delta_is_the_sum_of_the_definition(users, epsilon0):
    for share in (0.0, 0.2, 0.7):
        exact = enumerated(epsilon0, users, share * epsilon0)
        assert shuffle.delta(epsilon0, users, share * epsilon0) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    ("users", "epsilon0", "expected"),
    [(1000, 1, 0.182412), (1000, 2, 0.545498), (10, 0.5, 0.4999585)],
)
def test_known_epsilons(users, epsilon0, expected):
    found = shuffle.epsilon(epsilon0, users, 1e-6)
    assert found == pytest.approx(expected, abs=1e-6)
    assert shuffle.delta(epsilon0, users, found) <= 1e-6


def test_ten_users_gain_nothing_by_an_independent_sum():
    assert enumerated(0.5, 10, 0.4999585) <= 1e-6 <= enumerated(0.5, 10, 0.49995)


def test_below_the_closed_form():
    users, delta, epsilon0 = 5000, 1e-6, 1.0
    a = 8 * math.sqrt(math.exp(epsilon0) * math.log(4 / delta) / users)
    c = 8 * math.exp(epsilon0) / users
    closed = math.log1p((1 - math.exp(-epsilon0)) / (1 + math.exp(-epsilon0)) * (a + c))
    assert 0 < shuffle.epsilon(epsilon0, users, delta) < closed


def test_groups_of_clone_counts_only_add(monkeypatch):
    exact = shuffle.delta(1.0, 3000, 0.05)
    monkeypatch.setattr(shuffle, "LARGEST_EXACT", 1 << 15)
    grouped = shuffle.delta(1.0, 3000, 0.05)
    assert exact < grouped < 1.5 * exact


@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 5), st.integers(2, 400), st.floats(0, 1))
def test_more_users_hide_better_and_never_worse_than_the_message(epsilon0, users, share):
    at = share * epsilon0
    assert shuffle.delta(epsilon0, users + 1, at) <= shuffle.delta(epsilon0, users, at) * (1 + 1e-9)
    assert shuffle.delta(epsilon0, users, epsilon0) == 0
    assert shuffle.epsilon(epsilon0, users, 1e-9) <= epsilon0


def test_rounds_compose_between_one_and_their_sum():
    def spent(rounds):
        event = SelfComposedDpEvent(ShuffledDpEvent(1.0, 1000), rounds)
        return LossAccountant(Relation.REPLACE_ONE).compose(event).get_epsilon(1e-6)

    one = shuffle.epsilon(1.0, 1000, 1e-6)
    assert one <= spent(1) <= one * 1.0001
    assert math.sqrt(8) * one < spent(10) < 10 * one


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_needs_a_finite_message(bad):
    with pytest.raises(Refused, match="epsilon"):
        shuffle.clones(bad, 10)
    with pytest.raises(Refused, match="users"):
        shuffle.clones(1.0, 0)
    with pytest.raises(Refused, match="delta"):
        shuffle.epsilon(1.0, 10, 0.0)
