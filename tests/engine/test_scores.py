"""What is measured on the held-out records, found again by numpy."""

from typing import Any

import numpy as np
import pytest
import torch

from confide.cohorts import Epoch
from confide.data import Dataset, federate
from confide.engine.rounds import Local
from confide.engine.running import run
from confide.engine.trainers import Scores
from confide.local import SGD
from confide.models import build
from small import Anything, federation, mlp, plain

ONCE = Anything(plain(Local(SGD(0.05), 1, Epoch(10, True))), T=2)
WAYS: list[dict[str, Any]] = [{"workers": 1}, {"workers": 2}, {"strategy": "cohort"}]


def waves() -> Dataset:
    """Series of 48 hours and the 24 after them, more than are evaluated at once."""
    random = torch.Generator().manual_seed(1)
    phase = 6 * torch.rand(700, 1, generator=random)
    series = torch.sin(phase + torch.arange(72) / 4) + 0.1 * torch.randn(700, 72, generator=random)
    x, y = series[:, None, None, :48].contiguous(), series[:, 48:].contiguous()
    return Dataset("waves", x[:100], y[:100], x[100:], y[100:], classes=None)


@pytest.mark.parametrize("way", WAYS, ids=["in process", "workers", "cohort"])
def test_a_regression_has_its_mean_absolute_and_root_mean_squared_error(way: Any) -> None:
    data = waves()
    module = build("wind-cnn", data.shape, data.outputs, 0)
    dealt = federate(data, 5, None, 0)
    done = run(ONCE, dealt, model=module, device="cpu", dtype="float64", **way)
    module.double().load_state_dict(dict(done.parameters))
    with torch.no_grad():
        off = (module(data.x_test.double()) - data.y_test).numpy()
    row = done.metrics[-1]
    assert row["error"] == pytest.approx(np.abs(off).mean(), rel=1e-9)
    assert row["rmse"] == pytest.approx(np.sqrt((off**2).mean()), rel=1e-9)
    assert row["loss"] == pytest.approx((off**2).mean(), rel=1e-9)
    assert "accuracy" not in row and done.accuracy is None


@pytest.mark.parametrize("way", WAYS, ids=["in process", "workers", "cohort"])
def test_a_classification_has_its_accuracy_and_loss(way: Any) -> None:
    done = run(ONCE, federation(), model=mlp(), device="cpu", dtype="float64", **way)
    module, data = mlp().double(), federation().data
    module.load_state_dict(dict(done.parameters))
    with torch.no_grad():
        logits = module(data.x_test.double())
    row = done.metrics[-1]
    right = float((logits.argmax(1) == data.y_test).double().mean())
    assert row["accuracy"] == done.accuracy == right
    loss = torch.nn.functional.cross_entropy(logits, data.y_test)
    assert row["loss"] == pytest.approx(float(loss), rel=1e-9)
    assert not row.keys() & {"error", "rmse"}


def test_predictions_without_any_error_are_still_a_regression() -> None:
    assert Scores(4, of_numbers=True).figures() == {"error": 0, "rmse": 0, "loss": 0}
