"""Running totals are the exact sums."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from confide.ledger import totals


@given(st.lists(st.floats(1e-30, 1e30), min_size=1, max_size=30))
def test_totals_are_exact_sums(spends):
    total = totals.zero(1)
    for spend in spends:
        total = totals.add(total, (spend,))
    exact = sum(map(Fraction, spends))
    kept = Fraction(total[0]) + Fraction(total[1])
    # Each addition rounds only the low double, itself at most 2**-53 of the total, by 2**-53.
    assert abs(kept - exact) <= len(spends) * exact / 2**106
    (spent,) = totals.spent(total)
    assert abs(kept - Fraction(spent)) <= Fraction(math.ulp(spent)) / 2  # a nearest double
    assert totals.unpack(totals.pack(total)) == total


def test_the_last_planned_round_is_not_lost_to_rounding():
    naive, total = 0.0, totals.zero(1)
    for _ in range(100_000):
        naive, total = naive + 0.1, totals.add(total, (0.1,))
    assert naive > 10_000 * totals.SLACK  # plain doubles would refuse the plan
    assert totals.fits(total, (10_000.0,))
    assert not totals.fits(totals.add(total, (1e-7,)), (10_000.0,))


def test_a_cap_allows_its_own_rounding_and_no_more():
    assert totals.fits((1 + 1e-13, 0.0), (1.0,))
    assert not totals.fits((1 + 1e-11, 0.0), (1.0,))
    assert not totals.fits((1e-300, 0.0), (0.0,))
