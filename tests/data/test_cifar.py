import os
import pickle

import numpy as np
import pytest
import torch

from confide.data import load
from confide.data.cifar import BATCHES, read_batch

IMAGES = np.random.default_rng(0).integers(0, 256, (4, 3072)).astype(np.uint8)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_DATA", str(tmp_path))
    return tmp_path


def old_pickle(content) -> bytes:
    """As Python 2 with an old numpy wrote it: protocol 2, and numpy's old module names."""
    written = pickle.dumps(content, 2)
    return written.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def test_cifar10(here):
    folder = here / "cifar-10-batches-py"
    folder.mkdir()
    for number, name in enumerate((*BATCHES, "test_batch")):
        content = {"data": IMAGES, "labels": [number, 0, 1, 2], "batch_label": name}
        (folder / name).write_bytes(old_pickle(content))
    data = load("cifar10", verify=False)
    assert data.x_train.shape == (20, 3, 32, 32) and data.x_test.shape == (4, 3, 32, 32)
    assert data.y_train[::4].tolist() == [0, 1, 2, 3, 4]
    back = torch.round(data.pixels.restore(data.x_test) * 255).numpy()
    assert np.array_equal(back, IMAGES.reshape(4, 3, 32, 32))
    with pytest.raises(ValueError, match=r"has MD5"):
        load("cifar10")


def test_cifar100(here):
    folder = here / "cifar-100-python"
    folder.mkdir()
    for name in ("train", "test"):
        content = {"data": IMAGES, "fine_labels": [0, 99, 5, 7], "coarse_labels": [1, 19, 2, 3]}
        (folder / name).write_bytes(old_pickle(content))
    assert load("cifar100", verify=False).classes == 100
    coarse = load("cifar100", verify=False, labels="coarse")
    assert coarse.classes == 20 and coarse.y_train.tolist() == [1, 19, 2, 3]
    with pytest.raises(ValueError, match=r"labels = 'course', allowed are fine, coarse"):
        load("cifar100", labels="course")


class Evil:
    def __reduce__(self):
        return os.system, ("exit 1",)


class Sly:
    def __reduce__(self):
        return np.load, ("some file",)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (pickle.dumps({"data": Evil(), "labels": []}), "it names .*system"),
        (pickle.dumps({"data": Sly(), "labels": []}), "it names numpy.*load"),
        (pickle.dumps({"data": IMAGES}, 2), "KeyError"),
        (pickle.dumps([1, 2]), "TypeError"),
        (pickle.dumps({"data": IMAGES, "labels": [1]}), "images and labels do not fit"),
        (pickle.dumps({"data": IMAGES.astype(float), "labels": [1] * 4}), "do not fit"),
        (b"nothing of a pickle", "UnpicklingError"),
        (b"", "EOFError"),
    ],
)
def test_pickles_are_not_trusted(tmp_path, content, says):
    path = tmp_path / "data_batch_1"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=says):
        read_batch(path, "labels")
