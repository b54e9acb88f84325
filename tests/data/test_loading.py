import json
import sys

import pytest

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
