import math

import pytest

from confide.published.sampled_gaussian import log_moment
from published.truths import sampled_gaussian_moment


@pytest.mark.parametrize("alpha", [1.25, 2, 3.5, 7])
@pytest.mark.parametrize(("q", "sigma"), [(0.01, 4.0), (0.1, 0.95), (0.6, 2.0), (1.0, 1.5)])
def test_the_moment_is_the_integral(q: float, sigma: float, alpha: float) -> None:
    truth = sampled_gaussian_moment(q, sigma, alpha)
    assert math.exp(log_moment(q, sigma, alpha)) == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("alpha", [2.0, 2.5, 512])
def test_without_sampling_it_is_the_gaussian(alpha: float) -> None:
    assert log_moment(1.0, 3.0, alpha) == pytest.approx(alpha * (alpha - 1) / 18, rel=1e-9)


def test_both_routes_meet() -> None:
    between = log_moment(0.2, 1.1, 4 + 1e-9)
    assert between == pytest.approx(log_moment(0.2, 1.1, 4), rel=1e-7)
