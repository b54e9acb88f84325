import time

import numpy as np
import pytest
import torch

from confide.data import Dataset, Pixels, load

X, Y = torch.zeros(4, 3), torch.tensor([0, 1, 1, 0])


def test_the_bundled_mnist_is_the_whole_one():
    data = load("mnist")
    assert data.shape == (1, 28, 28) and data.outputs == data.classes == 10
    assert data.x_train.shape == (60_000, 1, 28, 28) and data.x_test.shape == (10_000, 1, 28, 28)
    assert data.y_train[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert torch.bincount(data.y_train).tolist() == counts
    assert "CC BY-SA" in data.licence and "0.1307" in data.preparation
    back = (data.pixels.restore(data.x_train[:100]) * 255).numpy()
    assert np.abs(back - back.round()).max() < 1e-3 and back.min() > -1e-3 and back.max() < 255.001
    assert abs(float(data.x_train.mean())) < 1e-3 and abs(float(data.x_train.std()) - 1) < 1e-3


def test_mnist_is_there_at_once():
    load("mnist")
    best = min(_seconds() for _ in range(3))
    assert best < 1.5, f"{best:.2f} s"  # 0.3 s on a quiet machine


def _seconds() -> float:
    start = time.process_time()
    load("mnist")
    return time.process_time() - start


def test_the_fingerprint_sees_every_array():
    first = Dataset("a", X, Y, X, Y, 2, {"c": np.zeros(4, np.int64)})
    assert first.fingerprint == Dataset("b", X, Y, X, Y, 2, first.columns).fingerprint
    others = [
        Dataset("a", X + 1, Y, X, Y, 2, first.columns),
        Dataset("a", X, Y, X, 1 - Y, 2, first.columns),
        Dataset("a", X, Y, X, Y, 2, {"d": np.zeros(4, np.int64)}),
        Dataset("a", X, Y, X, Y, 2),
    ]
    assert len({data.fingerprint for data in [first, *others]}) == 5


def test_pixels_of_three_channels():
    pixels = Pixels((0.1, 0.2, 0.3), (0.5, 1.0, 2.0))
    images = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    scaled = pixels.scale(images)
    assert scaled.shape == (2, 3, 4, 5) and scaled.dtype == torch.float32
    expected = (images[1, 2, 3, 1] / 255 - 0.2) / 1.0
    assert float(scaled[1, 1, 2, 3]) == pytest.approx(expected, abs=1e-6)
    assert torch.allclose(
        pixels.restore(scaled)[1, :, 2, 3] * 255,
        torch.tensor(images[1, 2, 3], dtype=torch.float32),
        atol=1e-4,
    )


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ((X[:3], Y, X, Y, 2), "x_train has 3 records and y_train 4"),
        ((X, Y, X[:, :2], Y, 2), "x_test is torch.float32 .2,., allowed is float32"),
        ((X.double(), Y, X, Y, 2), "x_train is torch.float64"),
        ((X, Y, X, Y + 1, 2), "y_test holds labels from 1 to 2, allowed is 0 to 1"),
        ((X, Y.int(), X, Y, 2), "y_train is torch.int32 .4,., allowed for classes is int64"),
        ((X, Y, X, Y, None), "allowed for a regression is float32"),
        ((X, Y, X, Y, 2, {"c": np.zeros(3, np.int64)}), "column c has the shape .3,."),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, says):
    with pytest.raises(ValueError, match=says):
        Dataset("own", *arrays)


def test_it_prints_what_matters():
    assert repr(Dataset("own", X, Y, X, Y, 2)) == (
        "Dataset(own: 4 training and 4 test records of shape (3,), 2 classes)"
    )
    assert "regression" in repr(Dataset("own", X, X, X, X, None))
    assert Dataset("own", X, X, X, X, None).outputs == 3
