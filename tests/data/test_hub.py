"""Hugging Face: with a package of the same face, and with the real one without a network."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from confide.data import load
from confide.data.catalogue import CATALOGUE
from confide.data.places import hub_cache, locate


class Split:
    def __init__(self, kinds, **columns):
        self.features = {name: type(kind, (), {})() for name, kind in kinds.items()}
        self.columns = columns

    def __getitem__(self, name):
        return self.columns[name]

    def __len__(self):
        return len(next(iter(self.columns.values())))


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    monkeypatch.delenv("CONFIDE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def hub(monkeypatch, nowhere):
    """Put a module `datasets` in place that gives what is in `held`."""
    held = {}

    def load_dataset(name, config=None, *, cache_dir):
        assert cache_dir == str(hub_cache())
        if name not in held:
            raise ConnectionError(f"cannot reach the hub.\nfor {name}")
        return held[name]

    module = ModuleType("datasets")
    module.load_dataset = load_dataset
    module.__spec__ = ModuleSpec("datasets", None)
    monkeypatch.setitem(sys.modules, "datasets", module)
    monkeypatch.setattr(
        "confide.data.places.find_spec", lambda name: name if name == "datasets" else None
    )
    return held


def grey(value):
    return Image.new("L", (4, 3), value)


PICTURES = {"image": "Image", "label": "ClassLabel", "who": "Value"}


def pictures(count, kinds=PICTURES, **columns):
    images = [grey(k) for k in range(count)]
    who = [f"w{k % 2}" for k in range(count)]
    told = {"image": images, "label": [k % 2 for k in range(count)], "who": who} | columns
    return Split(kinds, **told)


def test_images_of_the_hub(hub):
    hub["owner/pictures"] = {"train": pictures(6), "test": pictures(2)}
    data = load("owner/pictures", columns=["who"])
    assert data.name == "owner/pictures" and data.shape == (1, 3, 4)
    assert (len(data.x_train), len(data.x_test), data.classes) == (6, 2, 2)
    assert data.columns["who"].tolist() == [0, 1, 0, 1, 0, 1]
    assert load("owner/pictures", columns="who").fingerprint == data.fingerprint
    drawn = load("owner/pictures", held=None, test=0.5)
    assert len(drawn.x_train) + len(drawn.x_test) == 6


def test_classes_that_are_words(hub):
    kinds = PICTURES | {"label": "Value"}
    train = pictures(6, kinds, label=list("babaca"))
    hub["owner/pictures"] = {"train": train, "test": pictures(2, kinds, label=list("ca"))}
    data = load("owner/pictures", target="label")
    assert data.labels == ("a", "b", "c")
    assert data.y_train.tolist() == [1, 0, 1, 0, 2, 0] and data.y_test.tolist() == [2, 0]
    alone = load("owner/pictures", target="label", held=None, test=0.5)
    assert alone.labels == ("a", "b", "c")


def test_a_known_name_from_the_hub(hub):
    hub["zalando-datasets/fashion_mnist"] = {"train": pictures(6), "test": pictures(2)}
    data = load("fashion-mnist")
    assert data.name == "fashion-mnist" and data.licence == "MIT"
    assert data.pixels.mean == (0.2860,)


def test_femnist_from_the_hub_has_writers(hub):
    images = [grey(k) for k in range(20)]
    kinds = {"image": "Image", "writer_id": "Value", "character": "ClassLabel"}
    writers = ["a"] * 10 + ["b"] * 10
    split = Split(kinds, image=images, writer_id=writers, character=[0, 1] * 10)
    hub["flwrlabs/femnist"] = {"train": split}
    data = load("femnist")
    assert np.bincount(data.columns["writer"]).tolist() == [8, 8]
    assert (len(data.x_train), len(data.x_test)) == (16, 4)


def test_a_table_of_the_hub(hub):
    kinds = {"age": "Value", "town": "Value", "ill": "ClassLabel"}
    columns = {"age": [1, 2, 3, None], "town": list("abab"), "ill": [0, 1, 0, 1]}
    full = {name: column[:3] for name, column in columns.items()}
    hub["owner/table"] = {"train": Split(kinds, **full), "test": Split(kinds, **full)}
    data = load("owner/table")
    assert data.shape == (3,) and data.classes == 2
    assert (len(data.x_train), len(data.x_test)) == (3, 3)
    assert load("owner/table", drop="town").shape == (1,)
    hub["owner/gaps"] = {"train": Split(kinds, **columns)}
    with pytest.raises(ValueError, match=r"column 'age' has 1 values that are missing"):
        load("owner/gaps", test=0.5)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("owner/none", {}, r"does not give it .ConnectionError: cannot reach the hub\)\."),
        ("owner/pictures", {"train": "training"}, "train = 'training', allowed are train, test"),
        ("owner/pictures", {"held": "tset"}, "held = 'tset', allowed are train, test"),
        ("owner/pictures", {"target": "lable"}, "target = 'lable' .* Did you mean label?"),
        ("owner/pictures", {"image": "img"}, "image = 'img' is not a column"),
        ("owner/pictures", {"columns": ["whom"]}, "columns = 'whom' .* Did you mean who?"),
        ("owner/pictures", {"columns": 3}, "columns = 3, allowed is a word or a list of words"),
        ("owner/pictures", {"mean": [0.5] * 3}, "mean = .*, allowed are 1 numbers, one for each"),
        ("owner/pictures", {"deviation": [0]}, "deviation = 0, allowed is a finite number above 0"),
        ("owner/pictures", {"test": 2}, "test = 2, allowed is a number between 0 and 1"),
    ],
)
def test_what_the_hub_cannot_give(hub, name, options, says):
    hub["owner/pictures"] = {"train": pictures(6), "test": pictures(2)}
    with pytest.raises(ValueError, match=says) as refused:
        load(name, **options)
    assert "\n" not in str(refused.value)


# ---- the real package


@pytest.fixture
def offline(nowhere, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    return datasets


def test_the_real_package_without_a_network_is_one_sentence(offline):
    with pytest.raises(ValueError, match=r"Data owner/none: Hugging Face does not give it") as why:
        load("owner/none")
    assert "\n" not in str(why.value)


def test_what_the_real_package_has_prepared_is_read_without_a_network(offline, nowhere):
    from datasets.packaged_modules.parquet.parquet import Parquet

    features = offline.Features(
        image=offline.Image(),
        label=offline.ClassLabel(names=["cat", "dog"]),
        who=offline.Value("string"),
    )
    files = {}
    for side, count in (("train", 6), ("test", 2)):
        rows = {
            "image": [grey(k) for k in range(count)],
            "label": [k % 2 for k in range(count)],
            "who": [f"w{k % 3}" for k in range(count)],
        }
        files[side] = [str(nowhere / f"{side}.parquet")]
        offline.Dataset.from_dict(rows, features=features).to_parquet(files[side][0])
    place = str(nowhere / "made")
    made = Parquet(cache_dir=place, data_files=files, dataset_name="fashion_mnist", hash="0")
    made.download_and_prepare()
    (config,) = (nowhere / "made" / "fashion_mnist").iterdir()
    entry = CATALOGUE["fashion-mnist"]
    assert not locate(entry.ways).here
    # As the package lays it out after a download.
    place = hub_cache() / "zalando-datasets___fashion_mnist" / "default"
    place.parent.mkdir(parents=True)
    config.rename(place)
    assert locate(entry.ways).here
    data = load("fashion-mnist", columns=["who"])
    assert (len(data.x_train), len(data.x_test)) == (6, 2) and data.labels == ("cat", "dog")
    assert data.y_train.tolist() == [0, 1, 0, 1, 0, 1]
    assert data.columns["who"].tolist() == [0, 1, 2, 0, 1, 2]
    brightness = data.pixels.restore(data.x_train)[:, 0, 0, 0] * 255
    assert brightness.round().tolist() == [0, 1, 2, 3, 4, 5]
