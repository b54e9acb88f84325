import gzip

import numpy as np
import pytest
import torch

from confide.data import load

ROWS = """age, city, pay, kind
20, Rome, 1.5, a
30, Oslo, 2.5, b
40, ?, 3.5, a
50, Rome, 4.5, b
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    lines = ROWS.splitlines()
    path.write_text("\n".join([lines[0], *(lines[1:] * 5)]))
    return path


def test_words_become_indicators_and_numbers_are_standardised(table):
    data = load(str(table), target="kind", test=0.2)
    assert (len(data.x_train), len(data.x_test)) == (16, 4)
    assert data.shape == (4,) and data.classes == 2 and data.labels == ("a", "b")
    age, cities, pay = data.x_train[:, 0], data.x_train[:, 1:3], data.x_train[:, 3]
    for numbers in (age, pay):
        assert float(numbers.mean()) == pytest.approx(0, abs=1e-6)
        assert float(numbers.std(correction=0)) == pytest.approx(1, abs=1e-6)
    # In the order Oslo, Rome; the unknown city is neither.
    city = torch.tensor(data.columns["city"])
    indicators = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert torch.equal(cities, indicators[city])
    assert "no statement covers" in data.preparation


def test_the_test_records_do_not_move_the_statistics(tmp_path):
    path = tmp_path / "split.csv"
    path.write_text("x,y,side\n0,0,train\n2,1,train\n1e6,1,test\n")
    data = load(str(path), target="y", split="side")
    assert data.x_train[:, 0].tolist() == [-1, 1]
    assert data.x_test[0, 0] == 1e6 - 1


def test_words_that_only_the_test_records_have(tmp_path):
    path = tmp_path / "split.csv"
    path.write_text("x,y,side\na,0,train\nb,1,train\nc,1,test\n")
    data = load(str(path), target="y", split="side")
    assert data.shape == (2,) and data.x_test.tolist() == [[0, 0]]


def test_a_constant_number_is_centred(tmp_path):
    path = tmp_path / "constant.csv"
    path.write_text("x,z,y\n" + "3,1,0\n3,2,1\n" * 10)
    data = load(str(path), target="y")
    assert torch.equal(data.x_train[:, 0], torch.zeros(16))


def test_natural_columns_and_dropped_ones(table):
    data = load(str(table), target="kind", columns=["age"], drop="pay")
    assert data.shape == (2,)
    assert set(data.columns) == {"city", "age"}
    assert sorted(set(data.columns["age"].tolist())) == [0, 1, 2, 3]


def test_a_regression(table):
    data = load(str(table), target="pay")
    assert data.classes is None and data.y_train.shape == (16, 1)
    assert set(data.y_train[:, 0].tolist()) <= {1.5, 2.5, 3.5, 4.5}
    assert load(str(table), target="age").classes == 4
    assert load(str(table), target="age", task="regression").classes is None


def test_compressed_and_parquet_are_the_same_table(table):
    compressed = table.with_suffix(".csv.gz")
    compressed.write_bytes(gzip.compress(table.read_bytes()))
    first = load(str(table), target="kind")
    assert load(str(compressed), target="kind").fingerprint == first.fingerprint
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    columns = {
        "age": [20, 30, 40, 50] * 5,
        "city": ["Rome", "Oslo", None, "Rome"] * 5,
        "pay": [1.5, 2.5, 3.5, 4.5] * 5,
        "kind": ["a", "b"] * 10,
    }
    path = table.with_suffix(".parquet")
    parquet.write_table(arrow.table(columns), path)
    assert load(str(path), target="kind").fingerprint == first.fingerprint


def test_splits_depend_on_the_seed_alone(table):
    first, again, other = (load(str(table), target="kind", seed=s) for s in (1, 1, 2))
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_the_split_is_the_same_share_of_every_class(table):
    data = load(str(table), target="kind", test=0.4)
    assert torch.bincount(data.y_test).tolist() == [4, 4]


WRONG = [
    ({}, "target is missing, allowed are age, city, pay, kind"),
    ({"target": "kinds"}, "target = 'kinds' is not a column, .* Did you mean kind?"),
    ({"target": "kind", "columns": ["cty"]}, "columns = 'cty' is not a column"),
    ({"target": "kind", "drop": 3}, "drop = 3, allowed is a word or a list of words"),
    ({"target": "kind", "drop": ["age", "city", "pay"]}, "nothing is left to predict 'kind'"),
    ({"target": "kind", "task": "regression"}, "holds words, allowed for a regression"),
    ({"target": "kind", "task": "regresion"}, "Did you mean regression?"),
    ({"target": "city"}, "target = 'city' is missing in 5 rows, the first is row 3"),
    ({"target": "kind", "test": 1}, "test = 1, allowed is a number between 0 and 1"),
    ({"target": "kind", "test": 0.01}, "of 20 records leaves one side empty"),
    ({"target": "kind", "seed": -1}, "seed = -1"),
    ({"target": "kind", "split": "city"}, "split = 'city' holds '', allowed are train and test"),
    ({"target": "kind", "tset": 0.1}, "unknown setting 'tset', .* Did you mean test?"),
]


@pytest.mark.parametrize(("options", "says"), WRONG, ids=[row[1][:30] for row in WRONG])
def test_wrong_questions_are_one_sentence(table, options, says):
    with pytest.raises(ValueError, match=says) as refused:
        load(str(table), **options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has 0 lines, allowed are at least 2"),
        ("a,b\n", "has 1 lines"),
        ("a,b\n1,2\n3\n", "row 2 has 1 cells, allowed are 2"),
        ("a,a\n1,2\n", "the column 'a' is there twice"),
        (
            "a,b\n1,0\n,1\n2,0\n3,1\n",
            "column 'a' has 1 values that are missing or not finite, .* row 2",
        ),
        ("a,b\n1,0\ninf,1\n2,0\n3,1\n", "column 'a' has 1 values that are missing or not finite"),
    ],
)
def test_damaged_tables_are_one_sentence(tmp_path, text, says):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=says):
        load(str(path), target="b", test=0.5)


def test_too_many_words(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("name,y\n" + "".join(f"n{k},{k % 2}\n" for k in range(1500)))
    with pytest.raises(ValueError, match=r"'name' has 1200 different words, allowed are 1000"):
        load(str(path), target="y")


def test_files_that_are_not_what_they_say(tmp_path):
    for name in ("a.csv.gz", "a.parquet", "a.npz"):
        (tmp_path / name).write_bytes(b"neither of them")
        with pytest.raises(ValueError, match=r"readable|cannot be read"):
            load(str(tmp_path / name))
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"cannot be read"):
        load(str(tmp_path / "b.csv"))


# ---- Adult and IPUMS

PERSON = (
    "39, {work}, 77516, Bachelors, 13, Never-married, Sales, Husband, White, {sex}, 0, 0, 40, "
    "{home}, {pay}"
)


def test_adult_of_the_official_files(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_DATA", str(tmp_path))
    (tmp_path / "adult").mkdir()
    train = [
        PERSON.format(work="Private", sex="Male", home="Peru", pay="<=50K"),
        PERSON.format(work="?", sex="Female", home="Peru", pay=">50K"),
    ]
    test = [PERSON.format(work="Private", sex="Male", home="Cuba", pay=">50K.")]
    (tmp_path / "adult" / "adult.data").write_text("\n".join([*train, "", ""]))
    (tmp_path / "adult" / "adult.test").write_text("\n".join(["|1x3 Cross validator", *test, ""]))
    with pytest.raises(ValueError, match=r"Data adult: .* has MD5 .*, allowed is the official"):
        load("adult")
    data = load("adult", verify=False)
    assert data.y_train.tolist() == [0, 1] and data.y_test.tolist() == [1]
    # Six numbers, one word each of five columns, two sexes, Private and Peru.
    assert data.shape == (6 + 5 + 2 + 2,)
    assert data.columns["sex"].tolist() == [1, 0]
    assert data.columns["workclass"].tolist() == [0, -1]
    assert data.licence == "CC BY 4.0"
    assert len(load("adult", test=0.34, verify=False).x_test) == 1


def test_ipums_of_a_user_s_extract(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_DATA", str(tmp_path))
    rows = [f"{20 + k},{k % 2 + 1},{9_999_999 if k == 7 else 3000 * k}" for k in range(30)]
    (tmp_path / "ipums.csv").write_text("\n".join(["AGE,SEX,INCTOT", *rows]))
    data = load("ipums")
    assert len(data.x_train) + len(data.x_test) == 29 and data.shape == (2,)
    assert int(data.y_train.sum() + data.y_test.sum()) == 21
    assert data.classes == 2
    with pytest.raises(ValueError, match=r"income = 'INC' is not a column of numbers"):
        load("ipums", income="INC")


# ---- arrays of one's own

X, Y = np.zeros((5, 3)), np.array([0, 1, 2, 1, 0])


def save(path, **arrays):
    held = {"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:2]} | arrays
    np.savez(path, **{name: array for name, array in held.items() if array is not None})
    return str(path)


def test_arrays_of_one_s_own(tmp_path):
    data = load(save(tmp_path / "mine.npz", hospital=np.array(["b", "a", "b", "b", "a"])))
    assert data.name == "mine" and data.shape == (3,) and data.classes == 3
    assert data.x_train.dtype == torch.float32
    assert data.columns["hospital"].tolist() == [1, 0, 1, 1, 0]


def test_images_of_one_s_own_are_scaled(tmp_path):
    x = np.full((5, 8, 8, 3), 255, np.uint8)
    data = load(save(tmp_path / "mine.npz", x_train=x, x_test=x[:2]))
    assert data.shape == (3, 8, 8) and float(data.x_train.min()) == 1.0


def test_numbers_to_predict(tmp_path):
    y = np.linspace(0, 1, 5)
    data = load(save(tmp_path / "mine.npz", y_train=y, y_test=y[:2]))
    assert data.classes is None and data.outputs == 1
    whole = load(save(tmp_path / "mine.npz"), task="regression")
    assert whole.y_train.shape == (5, 1)


BAD = X.copy()
BAD[3, 1] = np.nan
WRONG_ARRAYS = [
    ({"x_train": BAD}, "x_train has 1 values that are NaN, infinite .*, the first in record 3"),
    ({"x_test": X[:2] + 1e39}, "x_test has 6 values that are NaN, infinite or too large"),
    ({"x_train": None}, "has no array 'x_train', allowed are files with x_train, y_train"),
    ({"y_train": Y[:4]}, "x_train has 5 records and y_train 4"),
    ({"x_test": np.zeros((2, 4))}, "allowed are the same of both"),
    ({"x_test": X[:0], "y_test": Y[:0]}, "one row for each record, and at least 1"),
    ({"y_train": Y - 1}, "y_train of shape .* does not hold classes"),
    ({"x_train": X.astype(str)}, "x_train is <U.* allowed are numbers"),
    ({"x_train": np.array([None] * 5)}, "is not a readable npz file"),
    ({"y_train": Y + 0.5, "task": "classification"}, "does not hold classes"),
    ({"farm": np.zeros(4)}, "farm is float64 of shape .4,., allowed beside"),
    ({"task": "class"}, "task = 'class', allowed are classification, regression"),
]


@pytest.mark.parametrize(
    ("arrays", "says"), WRONG_ARRAYS, ids=[row[1][:25] for row in WRONG_ARRAYS]
)
def test_wrong_arrays_are_one_sentence(tmp_path, arrays, says):
    arrays = dict(arrays)
    options = {"task": arrays.pop("task")} if "task" in arrays else {}
    with pytest.raises(ValueError, match=says) as refused:
        load(save(tmp_path / "mine.npz", **arrays), **options)
    assert "\n" not in str(refused.value)
