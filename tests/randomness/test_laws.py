from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from confide.randomness.inversion import Law, cumulative
from confide.randomness.laws import CountLaw, Decay, SkellamLaw

PRECISION = 500


def gaussian(sigma: str) -> tuple[Law, object]:
    s = Fraction(float(sigma))
    return Decay(1 / (2 * s**2), 2, both_sides=True), lambda x: mpmath.exp(
        -mpmath.mpf(x * x) * s.denominator**2 / (2 * s.numerator**2)
    )


def laplace(scale: str, both_sides: bool = True) -> tuple[Law, object]:
    t = Fraction(float(scale))
    return (
        Decay(1 / t, 1, both_sides=both_sides),
        lambda x: (
            mpmath.exp(-mpmath.mpf(abs(x)) * t.denominator / t.numerator)
            if both_sides or x >= 0
            else mpmath.mpf(0)
        ),
    )


def skellam(variance: str) -> tuple[Law, object]:
    v = Fraction(float(variance))
    return SkellamLaw(v), lambda x: mpmath.besseli(abs(x), mpmath.mpf(v.numerator) / v.denominator)


def count(trials: int, p: float) -> tuple[Law, object]:
    q = Fraction(p)
    return (
        CountLaw(trials, q),
        lambda x: (
            mpmath.binomial(trials, x)
            * mpmath.mpf(q.numerator) ** x
            * mpmath.mpf(q.denominator - q.numerator) ** (trials - x)
        ),
    )


LAWS = {
    "gaussian 0.01": gaussian("0.01"),
    "gaussian 0.5": gaussian("0.5"),
    "gaussian 3.7": gaussian("3.7"),
    "gaussian 60": gaussian("60"),
    "laplace 0.05": laplace("0.05"),
    "laplace 1": laplace("1"),
    "laplace 12.3": laplace("12.3"),
    "geometric 7.5": laplace("7.5", both_sides=False),
    "skellam 1e-9": skellam("1e-9"),
    "skellam 0.3": skellam("0.3"),
    "skellam 20": skellam("20"),
    "skellam 150.7": skellam("150.7"),
    "count 1": count(1, 0.5),
    "count 1 rare": count(1, 1e-5),
    "count 7": count(7, 0.3),
    "count 200": count(200, 0.5),
    "count 3000 rare": count(3000, 0.001),
    "count 500 often": count(500, 0.99),
    "count 9 tie": count(9, 0.5),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("bits", [96, 192])
def test_the_distribution_function_is_enclosed(name: str, bits: int) -> None:
    """Every bound against sums of the defining formula, far beyond the range of the law."""
    law, weight = LAWS[name]
    values = cumulative(law, bits)
    assert values.width <= 1 << 32  # what a table needs at 96 bits
    with mpmath.workprec(PRECISION):
        first, last = values.start, values.start + len(values.lower) - 1
        reach = len(values.lower) + 60
        support = range(first - reach, last + reach)
        if isinstance(law, CountLaw):
            support = range(law.trials + 1)
        weights = {x: weight(x) for x in support}
        total = mpmath.fsum(weights.values())
        scale = mpmath.mpf(2) ** bits / total
        running = mpmath.fsum(w for x, w in weights.items() if x < first)
        for x, value in enumerate(values.lower, first):
            running += weights.get(x, mpmath.mpf(0))
            assert value <= running * scale <= value + values.width, x
        outside = mpmath.fsum(w for x, w in weights.items() if x > last)
        assert outside * scale <= 4


def test_equal_laws_share_a_hash() -> None:
    assert hash(Decay(Fraction(1, 2), 2, True)) == hash(Decay(Fraction(2, 4), 2, True))
    assert hash(SkellamLaw(Fraction(1))) == hash(SkellamLaw(Fraction(1)))
    assert hash(CountLaw(4, Fraction(1, 2))) == hash(CountLaw(4, Fraction(1, 2)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [
        Decay(Fraction(1, 2 * 16384**2), 2, both_sides=True),
        Decay(Fraction(1, 1024), 1, both_sides=True),
        SkellamLaw(Fraction(2**28)),
        CountLaw(2**32, Fraction(1, 2)),
    ],
)
def test_the_widest_tables_stay_tight(law: Law) -> None:
    assert cumulative(law, 96).width <= 1 << 32
