import math

import pytest

from confide.published import girgis
from published.truths import shuffled_response_divergence


@pytest.mark.parametrize(
    ("alpha", "epsilon", "printed", "truth"),
    [
        (64, 1, 0.123423, 0.950276),
        (16, 2, 0.505392, 1.915381),
    ],
)
def test_lemma_2_is_below_the_truth_outside_its_condition(
    alpha: int, epsilon: float, printed: float, truth: float
) -> None:
    bound = girgis.lemma_2_upper(alpha, epsilon, 10)
    assert bound.value == pytest.approx(printed, abs=5e-7)
    assert shuffled_response_divergence(alpha, epsilon, 10) == pytest.approx(truth, abs=5e-7)
    assert "no bound at all" in bound.note


@pytest.mark.parametrize(
    ("alpha", "epsilon", "truth"),
    [(8, 1, 0.571066), (2, 5, 4.932878), (64, 0.5, 0.424754), (2, 1, 0.127433)],
)
def test_the_truth_that_it_is_compared_with(alpha: int, epsilon: float, truth: float) -> None:
    assert shuffled_response_divergence(alpha, epsilon, 10) == pytest.approx(truth, abs=5e-7)


def test_lemma_2_falls_with_the_order_although_a_divergence_never_does() -> None:
    values = [girgis.lemma_2_upper(alpha, 1, 10).value for alpha in (64, 256, 4096)]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize(("alpha", "epsilon"), [(2, 0.5), (3, 0.2)])
def test_within_its_condition_lemma_2_covers_randomised_response(
    alpha: int, epsilon: float
) -> None:
    clients = 2_000
    bound = girgis.lemma_2_upper(alpha, epsilon, clients)
    assert "pure local" in bound.note
    assert shuffled_response_divergence(alpha, epsilon, clients) <= bound.value


def test_lemma_3_in_the_papers_own_symbols() -> None:
    alpha, gamma, clients = 5, 0.7, 200
    excess = 10 * (math.e**gamma - 1) ** 2 / (clients * math.e**gamma)
    expected = math.log(1 + excess) / 4
    assert girgis.lemma_3_lower(alpha, gamma, clients).value == pytest.approx(expected, rel=1e-12)
    assert expected < girgis.lemma_2_upper(alpha, gamma, clients).value


def test_no_divergence_stays_none() -> None:
    assert girgis.lemma_2_upper(2, 0, 10).value == 0
    assert girgis.lemma_3_lower(2, 0, 10).value == 0


def test_huge_arguments_give_infinity_and_no_error() -> None:
    assert girgis.lemma_2_upper(2, 400, 10).value == math.inf
