import gzip
import hashlib

import numpy as np
import pytest
import torch

from confide.data import load
from confide.data.checksums import OFFICIAL
from confide.data.idx import EMNIST_LABELS, PARTS, read_idx


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def write(folder, name, array):
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / f"{name}.gz", "wb") as file:
        file.write(idx(array))


IMAGES = np.random.default_rng(0).integers(0, 256, (6, 4, 5)).astype(np.uint8)
LABELS = np.array([0, 1, 2, 9, 1, 0], np.uint8)


def four(folder, compress=True):
    for name, array in zip(PARTS, (IMAGES, LABELS, IMAGES[:2], LABELS[:2]), strict=True):
        if compress:
            write(folder, name, array)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(idx(array))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-cache"))
    monkeypatch.setattr("confide.data.places.find_spec", lambda name: None)
    return tmp_path


@pytest.mark.parametrize("folder", ["FashionMNIST/raw", "fashion-mnist"])
def test_fashion_mnist_of_either_layout(here, folder):
    four(here / folder)
    data = load("fashion-mnist", verify=False)
    assert data.shape == (1, 4, 5) and data.classes == 10
    assert data.y_train.tolist() == LABELS.tolist()
    back = data.pixels.restore(data.x_train)[:, 0] * 255
    assert torch.allclose(back, torch.tensor(IMAGES).float(), atol=1e-3)
    assert data.licence == "MIT" and data.labels[9] == "ankle boot"


def test_unofficial_files_are_refused(here):
    four(here / "fashion-mnist")
    with pytest.raises(ValueError, match=r"has MD5 .*, allowed is the official file's .*verify"):
        load("fashion-mnist")


def test_official_files_are_accepted(here, monkeypatch):
    four(here / "fashion-mnist")
    sums = {
        path.name: hashlib.md5(path.read_bytes()).hexdigest()
        for path in (here / "fashion-mnist").iterdir()
    }
    monkeypatch.setitem(OFFICIAL, "fashion-mnist", sums)
    assert len(load("fashion-mnist").x_train) == 6


def test_a_folder_of_idx_files_of_one_s_own(here):
    four(here / "mine", compress=False)
    data = load(str(here / "mine"))
    assert data.name == "mine" and data.classes == 10 and len(data.x_test) == 2


def emnist(folder, split, labels):
    for side in ("train", "test"):
        write(folder, f"emnist-{split}-{side}-images-idx3-ubyte", IMAGES)
        write(folder, f"emnist-{split}-{side}-labels-idx1-ubyte", labels)


def test_emnist_is_turned_the_right_way(here):
    emnist(here / "EMNIST" / "raw", "byclass", np.array([0, 10, 36, 61, 1, 2]))
    data = load("emnist")
    assert data.classes == 62 and data.shape == (1, 5, 4)
    assert "".join(data.labels[k] for k in data.y_train) == "0Aaz12"
    back = torch.round(data.pixels.restore(data.x_train)[:, 0] * 255).numpy()
    assert np.array_equal(back, IMAGES.transpose(0, 2, 1))


def test_emnist_s_other_splits(here):
    emnist(here / "emnist", "letters", np.array([1, 26, 2, 3, 4, 5]))
    data = load("emnist", split="letters")
    assert data.classes == 26 and data.y_train.tolist() == [0, 25, 1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"emnist-byclass-train-images-idx3-ubyte does not exist"):
        load("emnist")
    with pytest.raises(ValueError, match=r"split = 'letter', allowed are .* Did you mean letters?"):
        load("emnist", split="letter")


def test_a_part_of_emnist(here):
    emnist(here / "emnist", "digits", np.arange(6))
    data = load("emnist", split="digits", part=0.5, seed=3)
    assert len(data.x_train) == len(data.x_test) == 3
    assert data.fingerprint == load("emnist", split="digits", part=0.5, seed=3).fingerprint
    pairs = {label: IMAGES[label].T for label in range(6)}
    for x, y in zip(data.x_train, data.y_train.tolist(), strict=True):
        back = torch.round(data.pixels.restore(x)[0] * 255).numpy()
        assert np.array_equal(back, pairs[y])


def test_emnist_s_numbers_of_classes():
    sizes = {split: len(labels) for split, labels in EMNIST_LABELS.items()}
    assert sizes == {
        "byclass": 62, "bymerge": 47, "balanced": 47, "letters": 26, "digits": 10, "mnist": 10
    }  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "is not an idx file"),
        (b"\0\0\x09\x01\0\0\0\1a", "is not an idx file"),
        (idx(IMAGES)[:-1], "holds 119 bytes, allowed are the 120 of its shape"),
    ],
)
def test_damaged_idx_files(tmp_path, raw, says):
    path = tmp_path / "some-idx3-ubyte"
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=says):
        read_idx(path)


def test_damaged_compression(tmp_path):
    path = tmp_path / "some-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(idx(IMAGES))[:-10])
    with pytest.raises(ValueError, match=r"cannot be read"):
        read_idx(path)
