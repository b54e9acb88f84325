"""UDP-FL's Algorithm 3 as printed, and how far it is from what holds."""

import math

import pytest

from confide.accounting import staircase
from confide.published import harmonizer, udp_fl


def total(noise: str, z: float, delta: float, steps: int, clients: int | None = None) -> float:
    return min(
        steps * float(harmonizer.divergence(noise, z, clients, a).value.real)
        + math.log(1 / delta) / (a - 1)
        for a in harmonizer.ORDERS
    )


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "staircase"])
@pytest.mark.parametrize("clients", [None, 10])
def test_the_multiplier_is_the_least_within_the_budget(noise: str, clients: int | None) -> None:
    found = harmonizer.multiplier(noise, 8.0, 1e-5, 300, clients)
    z = float(found.value.real)
    assert found.unit == "record" and "Algorithm 3" in found.source
    assert total(noise, z, 1e-5, 300, clients) <= 8.0
    assert total(noise, z * (1 - 1e-6), 1e-5, 300, clients) > 8.0


def test_a_gaussian_multiplier_has_a_closed_form_over_all_orders() -> None:
    rho = (math.sqrt(math.log(1e5) + 8) - math.sqrt(math.log(1e5))) ** 2
    z = float(harmonizer.multiplier("gaussian", 8.0, 1e-5, 300).value.real)
    assert z == pytest.approx(math.sqrt(300 / (2 * rho)), rel=5e-3)
    assert z >= math.sqrt(300 / (2 * rho))


def test_without_its_logarithm_the_staircase_has_no_multiplier() -> None:
    """Theorem 1 is at least 1 in every step: 300 of them exceed any budget below that."""
    for lam in (1e-6, 0.1, 1.0):
        assert float(udp_fl.theorem_1(2, lam, 0.49).value.real) > 1
    printed = harmonizer.multiplier("staircase", 8.0, 1e-5, 300)
    assert "1/(α-1) log is put in" in printed.note


def test_the_staircases_multiplier_is_as_wrong_as_theorem_1() -> None:
    z = float(harmonizer.multiplier("staircase", 8.0, 1e-5, 300).value.real)
    curve = staircase.renyi(harmonizer.ORDERS, 1 / z, 1 / (1 + math.exp(1 / (2 * z))))
    truth = min(
        300 * float(one) + math.log(1e5) / (a - 1)
        for a, one in zip(harmonizer.ORDERS, curve, strict=True)
    )
    assert truth < 4  # for a scalar it takes more than twice the noise that 8 needs


def test_bad_arguments_and_budgets_out_of_reach_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="no staircase multiplier"):
        harmonizer.multiplier("staircase", 0.1, 1e-5, 10**6)
    with pytest.raises(ValueError, match="noise is 'cauchy'"):
        harmonizer.multiplier("cauchy", 1.0, 1e-5, 10)
    with pytest.raises(ValueError, match="epsilon is 0"):
        harmonizer.multiplier("gaussian", 0.0, 1e-5, 10)
