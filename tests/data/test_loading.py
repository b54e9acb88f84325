import json
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from confide.data import load
from confide.data.catalogue import CATALOGUE
from confide.data.places import cache, roots

CONTRACT = (
    "mnist fashion-mnist emnist femnist cifar10 cifar100 medical-mnist lfw utkface adult cancer "
    "ipums wind digits"
)


def test_the_catalogue_is_the_contract_s():
    assert list(CATALOGUE) == CONTRACT.split()
    for entry in CATALOGUE.values():
        assert entry.licence and entry.home and entry.get and entry.ways


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    monkeypatch.delenv("CONFIDE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("confide.data.places.find_spec", lambda name: None)
    return tmp_path


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "mnist"])
def test_missing_data_says_how_to_get_it_and_where_it_was_looked_for(nowhere, name):
    with pytest.raises(ValueError, match=f"Data: {name} is not here; ") as refused:
        load(name)
    assert str(nowhere / "confide") in str(refused.value)
    assert CATALOGUE[name].get in str(refused.value)


def test_where_data_is_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("CONFIDE_DATA", str(tmp_path / "own"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert roots() == [tmp_path / "own", tmp_path / ".cache" / "confide"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache() == tmp_path / "cache" / "confide"


def test_the_cache_directory_is_searched(nowhere):
    (nowhere / "confide").mkdir()
    (nowhere / "confide" / "ipums.csv").write_text(
        "AGE,INCTOT\n" + "".join(f"{k},{k * 3000}\n" for k in range(20))
    )
    assert load("ipums").classes == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mnits", "name = 'mnits' is unknown, allowed are mnist, .* Did you mean mnist?"),
        ("./none.npz", "file './none.npz' does not exist, allowed are .npz"),
        ("none.csv", "file 'none.csv' does not exist"),
        ("/none", "file '/none' does not exist"),
    ],
)
def test_unknown_names(nowhere, name, says):
    with pytest.raises(ValueError, match=says):
        load(name)


def test_a_file_of_no_known_kind(tmp_path):
    (tmp_path / "data.txt").write_text("a")
    with pytest.raises(ValueError, match=r"is of no known kind, allowed are .npz"):
        load(str(tmp_path / "data.txt"))


def test_unknown_settings():
    with pytest.raises(ValueError, match=r"Data mnist: unknown setting 'tset', it has no settings"):
        load("mnist", tset=1)


@pytest.mark.parametrize(
    ("name", "module"),
    [("cancer", "sklearn.datasets"), ("owner/name", "datasets"), ("folder", "PIL.Image")],
)
def test_a_missing_package_is_named(monkeypatch, tmp_path, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    if name == "folder":
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "1.png").write_bytes(b"")
        name = str(tmp_path)
    with pytest.raises(ValueError, match=r"is not installed, .*pip install 'confide\[data\]'"):
        load(name)


# ---- scikit-learn


def test_breast_cancer():
    data = load("cancer")
    assert len(data.x_train) == 427 and len(data.x_test) == 142 and data.shape == (30,)
    assert data.labels == ("benign", "malignant") and int(data.y_train.sum()) == 159
    assert abs(float(data.x_train.mean())) < 1e-5


def test_digits():
    data = load("digits", test=0.1, seed=4)
    assert len(data.x_train) + len(data.x_test) == 1797 and data.shape == (1, 8, 8)
    assert float(data.x_train.max()) == 1.0 and float(data.x_train.min()) == 0.0


# ---- LEAF


def test_femnist_as_leaf_writes_it(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_DATA", str(tmp_path))
    for side, users in (("train", ("f1", "f2")), ("test", ("f2",))):
        (tmp_path / "femnist" / side).mkdir(parents=True)
        for user in users:
            held = {"x": [[0.5] * 784, [1.0] * 784], "y": [3, 61]}
            content = {"users": [user], "num_samples": [2], "user_data": {user: held}}
            path = tmp_path / "femnist" / side / f"all_data_{user}.json"
            path.write_text(json.dumps(content))
    data = load("femnist")
    assert data.classes == 62 and data.y_train.tolist() == [3, 61, 3, 61]
    assert data.columns["writer"].tolist() == [0, 0, 1, 1]
    assert len(data.x_test) == 2 and float(data.x_train.max()) == 1.0
    path.write_text(json.dumps({"user_data": {"f2": {"x": [[2.0] * 784], "y": [1]}}}))
    with pytest.raises(ValueError, match=r"is not of LEAF's layout .*outside 0 to 1"):
        load("femnist")
    path.unlink()
    with pytest.raises(ValueError, match=r"has no \.json files"):
        load("femnist")


# ---- Hugging Face, with a package of the same face


class Split:
    def __init__(self, kinds, **columns):
        self.features = {name: type(kind, (), {})() for name, kind in kinds.items()}
        self.columns = columns

    def __getitem__(self, name):
        return self.columns[name]

    def __len__(self):
        return len(next(iter(self.columns.values())))


@pytest.fixture
def hub(monkeypatch, nowhere):
    """Put a module `datasets` in place that gives what is in `held`."""
    held = {}

    def load_dataset(name, config=None):
        if name not in held:
            raise ConnectionError(f"cannot reach the hub\nfor {name}")
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


def pictures(count):
    images = [grey(k) for k in range(count)]
    who = [f"w{k % 2}" for k in range(count)]
    return Split(PICTURES, image=images, label=[k % 2 for k in range(count)], who=who)


def test_images_of_the_hub(hub):
    hub["owner/pictures"] = {"train": pictures(6), "test": pictures(2)}
    data = load("owner/pictures", columns=["who"])
    assert data.name == "owner/pictures" and data.shape == (1, 3, 4)
    assert (len(data.x_train), len(data.x_test), data.classes) == (6, 2, 2)
    assert data.columns["who"].tolist() == [0, 1, 0, 1, 0, 1]
    drawn = load("owner/pictures", held=None, test=0.5)
    assert len(drawn.x_test) == 4 or len(drawn.x_test) == 2


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
    hub["owner/gaps"] = {"train": Split(kinds, **columns)}
    with pytest.raises(ValueError, match=r"column 'age' has 1 values that are missing"):
        load("owner/gaps", test=0.5)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("owner/none", {}, "does not give it .ConnectionError: cannot reach the hub."),
        ("owner/pictures", {"train": "training"}, "train = 'training', allowed are train, test"),
        ("owner/pictures", {"target": "lable"}, "target = 'lable' .* Did you mean label?"),
        ("owner/pictures", {"image": "img"}, "image = 'img' is not a column"),
    ],
)
def test_what_the_hub_cannot_give(hub, name, options, says):
    hub["owner/pictures"] = {"train": pictures(6), "test": pictures(2)}
    with pytest.raises(ValueError, match=says) as refused:
        load(name, **options)
    assert "\n" not in str(refused.value)
