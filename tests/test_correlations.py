"""The strategy that leaves the least noise in the models, beside whole matrices."""

import numpy as np
import pytest
from numpy.typing import NDArray

from confide.correlations import error_of, least_error, root_of_sums, workload


def squared_error(c: tuple[float, ...], T: int, beta: float) -> float:
    """‖c‖^2 times the squared Frobenius norm of A C^-1, by matrices."""
    C, A = np.zeros((T, T)), np.zeros((T, T))
    for row in range(T):
        for column in range(row + 1):
            away = row - column
            C[row, column] = c[away] if away < len(c) else 0.0
            A[row, column] = sum(beta**i for i in range(away + 1))
    inside: NDArray[np.float64] = A @ np.linalg.inv(C)
    return float(np.dot(c, c) * (inside**2).sum())


@pytest.mark.parametrize(("T", "bands", "beta"), [(7, 3, 0.0), (20, 20, 0.0), (30, 5, 0.9)])
def test_the_error_is_that_of_the_matrices(T: int, bands: int, beta: float) -> None:
    rest = 0.7 * root_of_sums(bands)[1:]
    found = error_of(rest, workload(T, beta))[0]
    assert found == pytest.approx(np.log(squared_error((1.0, *rest), T, beta)), rel=1e-10)


def test_the_gradient_is_that_of_differences() -> None:
    rest, work, step = 0.7 * root_of_sums(6)[1:], workload(40, 0.5), 1e-6
    gradient = error_of(rest, work)[1]
    for place in range(len(rest)):
        moved = np.zeros_like(rest)
        moved[place] = step
        up, down = error_of(rest + moved, work)[0], error_of(rest - moved, work)[0]
        assert gradient[place] == pytest.approx((up - down) / (2 * step), rel=1e-4)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_more_bands_leave_less_noise_and_no_neighbour_is_better(beta: float) -> None:
    T, errors = 60, [np.inf]
    for bands in (1, 2, 5, 20):
        c = least_error(T, bands, beta)
        assert len(c) == bands and c[0] == 1.0
        errors.append(squared_error(c, T, beta))
        assert errors[-1] < errors[-2]
        for place in range(1, bands):
            for step in (-0.02, 0.02):
                near = tuple(v + step * (i == place) for i, v in enumerate(c))
                assert squared_error(near, T, beta) > errors[-1]


def test_there_are_no_more_bands_than_rounds() -> None:
    assert len(least_error(3, 10)) == 3
    assert least_error(1, 4) == (1.0,)
