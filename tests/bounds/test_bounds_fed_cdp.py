"""Proposition 2 of Fed-CDP on a model for which it is exact, and on draws."""

import numpy as np
import pytest

from confide.bounds import fed_cdp


def test_a_linear_model_keeps_its_class_below_the_bound_and_loses_it_above() -> None:
    # Scores w_j · x: the gradient of g_y - g_j by w has length ‖x‖ sqrt 2, everywhere.
    random = np.random.default_rng(3)
    x, w = random.normal(size=4), random.normal(size=(3, 4))
    scores = w @ x
    label = int(scores.argmax())
    bound = fed_cdp.proposition_2(scores.tolist(), label, float(np.sqrt(2) * np.linalg.norm(x)))
    second = int(np.argsort(scores)[-2])
    worst = np.zeros_like(w)
    worst[label], worst[second] = -x, x
    worst /= np.linalg.norm(worst)
    for share, kept in ((1 - 1e-9, True), (1 + 1e-9, False)):
        moved = (w + share * bound.value * worst) @ x
        assert (moved[label] > moved[second]) == kept
    assert "not a privacy statement" in str(bound)


def test_one_slope_for_each_class() -> None:
    bound = fed_cdp.proposition_2([3.0, 1.0, 2.0], 0, [9.0, 0.5, 4.0])
    assert bound.value == 0.25
    assert fed_cdp.proposition_2([0.0, 1.0], 0, 1.0).value == -1.0  # the class is wrong already


@pytest.mark.parametrize("d", [1, 7, 500])
def test_the_expected_length_of_noise(d: int) -> None:
    drawn = np.random.default_rng(d).normal(scale=6 * 4, size=(4000, d))
    lengths = np.linalg.norm(drawn, axis=1)
    error = 4 * lengths.std() / np.sqrt(len(lengths))  # four standard errors of the mean
    assert abs(lengths.mean() - fed_cdp.expected_noise(6, 4, d)) < error


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="at least 2 classes"):
        fed_cdp.proposition_2([1.0], 0, 1.0)
    with pytest.raises(ValueError, match="it must have 2, or 1"):
        fed_cdp.proposition_2([1.0, 0.0], 0, [1.0])
