"""The packed real data sets, where CONFIDE_DATA has them."""

import numpy as np
import pytest
import torch

from confide.cohorts import Epoch, Fixed
from confide.data import federate, load
from confide.data.checksums import PACKED
from confide.engine.rounds import Local
from confide.engine.running import run
from confide.local import SGD
from confide.models import build
from small import Anything, plain

pytestmark = pytest.mark.data

SHAPES = [
    ("femnist", (1, 28, 28), 10, 5_397, 600),
    ("cifar10", (3, 32, 32), 10, 18_000, 10_000),
    ("medical-mnist", (1, 64, 64), 6, 6_000, 1_500),
    ("lfw", (3, 32, 32), 62, 2_268, 755),
    ("utkface", (3, 32, 32), 5, 4_800, 1_200),
    ("adult", (105,), 2, 32_561, 16_281),
    ("wind", (1, 1, 48), None, 3_038, 763),
]
MODELS = {
    "femnist": "leaf-cnn",
    "cifar10": "simple-cnn",
    "medical-mnist": "cnn4",
    "lfw": "cnn2-flat",
    "utkface": "cnn2",
    "adult": "tabular",
    "wind": "wind-cnn",
}


@pytest.mark.parametrize(("name", "shape", "classes", "train", "test"), SHAPES)
def test_every_set_is_what_it_should_be(name, shape, classes, train, test):
    data = load(name)
    assert (data.shape, data.classes) == (shape, classes)
    assert (len(data.x_train), len(data.x_test)) == (train, test)
    assert torch.isfinite(data.x_train).all() and torch.isfinite(data.x_test).all()
    assert abs(float(data.x_train.mean())) < 1.1 and 0.05 < float(data.x_train.std()) < 2
    if classes:
        assert len(torch.unique(data.y_train)) == classes == len(data.labels)
    module = build(MODELS[name], data.shape, data.outputs, 0)
    assert module(data.x_train[:3]).shape == (3, data.outputs)


@pytest.mark.parametrize(
    ("name", "column", "clients"),
    [("femnist", "writer", 12), ("lfw", "person", 62), ("wind", "farm", 7)],
)
def test_natural_clients(name, column, clients):
    federation = federate(load(name), None, {"kind": "column", "column": column}, 0)
    assert len(federation.clients) == clients
    assert federation.sizes.min() > 10


def test_adult_of_fed_cdp_has_the_papers_inputs_and_clients():
    data = load("adult", test=0.25)
    assert len(data.x_train) == 36_631 and data.shape == (105,)
    partition = {"kind": "classes", "classes": 2, "records": 300, "overlap": True}
    federation = federate(data, 1000, partition, 0)
    assert np.all(federation.sizes == 300) and federation.copies > 8


def test_a_changed_file_is_refused(monkeypatch):
    monkeypatch.setitem(PACKED, "lfw62.npz", "0" * 64)
    with pytest.raises(ValueError, match=r"have SHA-256 .*, allowed is 000"):
        load("lfw")
    assert len(load("lfw", verify=False).x_train) == 2_268


@pytest.mark.parametrize("target", ["age", "gender", "race"])
def test_utkface_s_targets(target):
    data = load("utkface", target=target)
    assert np.array_equal(data.columns[target], data.y_train.numpy())


def test_the_farms_learn_to_predict_their_wind():
    data = load("wind", step=96)
    farms = federate(data, None, {"kind": "column", "column": "farm"}, 0)
    local = Local(SGD(0.1, momentum=0.9), 2, Epoch(16, partial=True))
    done = run(Anything(plain(local), T=3), farms, workers=1)
    mean = data.y_train.mean()
    blind = float((data.y_test - mean).square().mean().sqrt())
    assert done.metrics[-1]["rmse"] < blind
    assert done.metrics[-1]["error"] < float((data.y_test - mean).abs().mean())


@pytest.mark.parametrize(
    ("name", "model"), [("femnist", "cnn2"), ("lfw", "cnn2"), ("adult", "svm")]
)
def test_real_sets_are_learned(name, model):
    clients = federate(load(name), 10, {"kind": "dirichlet", "alpha": 1.0}, 0)
    local = Local(SGD(0.1), 1, Epoch(20, partial=True))
    done = run(Anything(plain(local, Fixed(5)), T=3), clients, model=model, workers=1)
    majority = torch.bincount(clients.data.y_test).max() / len(clients.data.y_test)
    assert done.accuracy > float(majority)
