import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.data import Dataset, Federation, federate
from confide.data.dealing import deal, even_sizes, lift, shares
from confide.randomness import Key


def dataset(records: int = 240, classes: int | None = 6, groups: int = 5) -> Dataset:
    """Records whose value is their position."""
    x = torch.arange(records, dtype=torch.float32)[:, None]
    y = x.clone() if classes is None else torch.arange(records) % classes
    column = np.arange(records, dtype=np.int64) % groups
    return Dataset("counting", x, y, x[:1], y[:1], classes, {"farm": column})


def stream():
    return Key.from_seed(0).stream(0, None, "test")


def everything(federation) -> np.ndarray:
    parts = [*federation.clients, federation.validation, federation.public]
    return np.sort(np.concatenate(parts))


KINDS = st.sampled_from(
    [
        None,
        {"kind": "iid"},
        {"kind": "dirichlet", "alpha": 0.1},
        {"kind": "dirichlet", "alpha": 5, "least": 2},
        {"kind": "shards", "shards": 2},
        {"kind": "unbalanced", "spread": 1.5},
    ]
)


@given(KINDS, st.integers(1, 60), st.integers(0, 2**70), st.sampled_from([0, 0.1, 30]))
@settings(max_examples=60)
def test_disjoint_and_nothing_is_lost(partition, clients, seed, validation):
    federation = federate(dataset(), clients, partition, seed, validation=validation, public=7)
    assert len(federation.clients) == clients
    assert np.array_equal(everything(federation), np.arange(240))
    assert federation.copies == 1
    assert len(federation.validation) == (24 if validation == 0.1 else validation)
    assert len(federation.public) == 7
    again = federate(dataset(), clients, partition, seed, validation=validation, public=7)
    assert all(map(np.array_equal, federation.clients, again.clients))


@given(st.integers(1, 100), st.integers(0, 9))
@settings(max_examples=20)
def test_iid_sizes_differ_by_at_most_one(clients, seed):
    sizes = federate(dataset(), clients, None, seed).sizes
    assert sizes.max() - sizes.min() <= 1
    assert sizes.sum() == 240


def test_another_seed_is_another_partition():
    first, second = (federate(dataset(), 4, None, seed).clients[0] for seed in (1, 2))
    assert not np.array_equal(first, second)


@given(st.integers(2, 30), st.integers(1, 6), st.integers(0, 99))
@settings(max_examples=40)
def test_classes_in_equal_amounts(clients, classes, seed):
    federation = federate(dataset(600), clients, {"kind": "classes", "classes": classes}, seed)
    counts = federation.histogram()
    assert np.all((counts > 0).sum(1) == classes)
    assert np.all([len(set(row[row > 0])) == 1 for row in counts])
    holders = (counts > 0).sum(0)
    assert holders.max() - holders.min() <= 1
    held = np.concatenate(federation.clients)
    assert len(held) == len(np.unique(held))


def test_classes_with_sizes_from_a_range():
    partition = {"kind": "classes", "classes": 2, "records": [10, 30]}
    federation = federate(dataset(1200), 20, partition, 3)
    assert federation.sizes.min() >= 10 and federation.sizes.max() <= 30
    assert len(np.unique(federation.sizes)) > 5
    for row in federation.histogram():
        assert np.ptp(row[row > 0]) <= 1


@given(st.integers(1, 40), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=40)
def test_a_client_of_shards_has_at_most_so_many_classes(clients, shards, seed):
    federation = federate(dataset(960), clients, {"kind": "shards", "shards": shards}, seed)
    size = 960 / (clients * shards)
    spread = 1 if size <= 160 else int(np.ceil(size / 160))
    assert np.all((federation.histogram() > 0).sum(1) <= shards * (spread + 1))
    assert federation.sizes.sum() == 960


@pytest.mark.parametrize("kind", ["iid", "shards", "classes"])
@given(clients=st.integers(1, 50), seed=st.integers(0, 99))
@settings(max_examples=15)
def test_overlapping_clients_share_as_little_as_possible(kind, clients, seed):
    partition = {"kind": kind, "records": 40, "overlap": True}
    federation = federate(dataset(), clients, partition, seed)
    assert np.all(federation.sizes == 40)
    for held in federation.clients:
        assert len(np.unique(held)) == 40
    counts = np.bincount(np.concatenate(federation.clients), minlength=240)
    assert federation.copies == counts.max()
    # A class is drawn by at most one client more than its share, and 40 of 240 are a sixth.
    least = -(-clients * 40 // 240)
    assert federation.copies <= least + 1
    if kind in ("iid", "shards"):
        assert federation.copies == least


def test_a_full_copy_for_everybody():
    federation = federate(dataset(), 9, {"kind": "iid", "records": 240, "overlap": True}, 0)
    assert federation.copies == 9
    assert all(np.array_equal(held, np.arange(240)) for held in federation.clients)


def test_unbalanced_sizes_stay_in_their_range():
    federation = federate(dataset(), 8, {"kind": "unbalanced", "low": 10, "high": 30}, 0)
    assert federation.sizes.min() >= 10 and federation.sizes.max() <= 30
    assert federation.sizes.max() > federation.sizes.min()


def test_a_natural_column_is_the_partition():
    federation = federate(dataset(), None, {"kind": "column", "column": "farm"}, 0)
    assert len(federation.clients) == 5
    assert np.array_equal(everything(federation), np.arange(240))
    for held in federation.clients:
        assert len(np.unique(held % 5)) == 1
    fewer = federate(dataset(), 3, {"kind": "column", "column": "farm"}, 0)
    assert fewer.sizes.tolist() == [48] * 3
    least = federate(dataset(22), None, {"kind": "column", "column": "farm", "least": 5}, 0)
    assert least.sizes.tolist() == [5, 5]


def test_dirichlet_gives_everybody_at_least_so_many():
    federation = federate(dataset(), 60, {"kind": "dirichlet", "alpha": 0.01, "least": 3}, 0)
    assert federation.sizes.min() >= 3
    assert federation.sizes.sum() == 240


@pytest.mark.parametrize("alpha", [0.05, 0.6, 4.0])
def test_shares_follow_the_dirichlet_law(alpha):
    k, draws, source = 4, 4000, stream()
    drawn = np.stack([shares(source, alpha, k) for _ in range(draws)])
    assert np.allclose(drawn.sum(1), 1)
    variance = (1 / k) * (1 - 1 / k) / (k * alpha + 1)
    error = np.sqrt(variance / draws)
    assert np.all(np.abs(drawn.mean(0) - 1 / k) < 5 * error)
    spread = (drawn - 1 / k) ** 2
    assert np.all(np.abs(spread.mean(0) - variance) < 5 * spread.std(0) / np.sqrt(draws))


def test_shares_of_a_tiny_alpha_are_finite():
    drawn = shares(stream(), 1e-4, 50)
    assert np.isfinite(drawn).all() and drawn.sum() == pytest.approx(1)


@given(st.lists(st.integers(0, 12), max_size=40))
@settings(max_examples=40)
def test_hands_are_distinct_and_decks_are_used_up(sizes):
    hands = deal(stream(), np.arange(12), sizes)
    assert [len(hand) for hand in hands] == sizes
    assert all(len(np.unique(hand)) == len(hand) for hand in hands)
    counts = np.bincount(np.concatenate([np.empty(0, np.int64), *hands]), minlength=12)
    assert counts.max() <= -(-sum(sizes) // 12)


def test_lifting_keeps_the_classes():
    counts = np.array([[9, 1], [0, 0], [0, 1]])
    lifted = lift(counts, 3)
    assert lifted.sum(1).min() == 3
    assert lifted.sum(0).tolist() == counts.sum(0).tolist()


def test_even_sizes():
    assert even_sizes(7, 3) == [3, 2, 2]
    assert even_sizes(1, 3) == [1, 0, 0]


WRONG = [
    ({"kind": "dirchlet"}, "kind = 'dirchlet', allowed are .* Did you mean dirichlet?"),
    ({"kind": "dirichlet"}, "alpha is missing"),
    ({"kind": "dirichlet", "alpha": 0}, "alpha = 0, allowed is a finite number above 0"),
    ({"kind": "dirichlet", "alpha": 1, "least": 25}, "least = 25, allowed is .* from 0 to 24"),
    ({"kind": "iid", "record": 3}, "unknown setting 'record', .* Did you mean records?"),
    ({"kind": "iid", "records": 30}, "300 records are needed and 240 are there"),
    ({"kind": "iid", "overlap": True}, "records is missing"),
    ({"kind": "iid", "overlap": 1}, "overlap = 1, allowed are true and false"),
    ({"kind": "shards", "records": 25, "shards": 2}, "allowed is a multiple of shards = 2"),
    ({"kind": "shards", "shards": 300}, "3000 records are needed"),
    ({"kind": "shards", "records": 39, "shards": 3}, "390 records are needed"),
    ({"kind": "shards", "records": 24, "shards": 1}, None),
    ({"kind": "classes", "classes": 7}, "classes = 7, allowed is a whole number from 1 to 6"),
    ({"kind": "classes", "records": 100, "overlap": True}, "a client needs 50 records of class"),
    ({"kind": "classes", "records": 40}, "records of class . are needed and 40 are there"),
    ({"kind": "classes", "records": [40]}, r"allowed is a number or \[low, high\]"),
    ({"kind": "unbalanced", "low": 5}, "high is missing"),
    ({"kind": "unbalanced", "low": 5, "high": 4}, "high = 4, allowed is .* at least 5"),
    ({"kind": "unbalanced", "low": 50, "high": 60}, "records and 240 are there"),
    ({"kind": "unbalanced", "spread": 1, "low": 2}, "unknown setting 'low'"),
    ({"kind": "column", "column": "farms"}, "Did you mean farm?"),
    ({"kind": "column"}, "column is missing, allowed is one of farm"),
    ({"kind": "column", "column": "farm"}, "clients = 10, allowed is at most 5"),
]


@pytest.mark.parametrize(("partition", "says"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_wrong_partitions_are_one_sentence(partition, says):
    if says is None:
        assert federate(dataset(), 10, partition, 0).sizes.tolist() == [24] * 10
        return
    with pytest.raises(ValueError, match=says) as refused:
        federate(dataset(), 10, partition, 0)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", ["dirichlet", "shards", "classes"])
def test_a_regression_has_no_classes(kind):
    with pytest.raises(ValueError, match=r"has no classes, allowed for a regression"):
        federate(
            dataset(classes=None),
            4,
            {"kind": kind, "alpha": 1} if kind[0] == "d" else {"kind": kind},
            0,
        )
    assert federate(dataset(classes=None), 4, None, 0).histogram() is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"validation": 1.5}, "validation = 1.5"),
        ({"public": -1}, "public = -1"),
        ({"validation": True}, "validation = True"),
        ({"validation": 0.5, "public": 120}, "leave nothing of the 240"),
        ({"clients": 0}, "clients = 0, allowed is a whole number of at least 1"),
        ({"clients": None}, "clients = None"),
    ],
)
def test_wrong_federations_are_one_sentence(words, says):
    words = {"clients": 4, **words}
    with pytest.raises(ValueError, match=says):
        federate(dataset(), words.pop("clients"), None, 0, **words)


def test_more_clients_than_records_leaves_some_empty():
    federation = federate(dataset(10), 15, None, 0)
    assert sorted(federation.sizes.tolist()) == [0] * 5 + [1] * 10
    assert federation.histogram().sum() == 10


def test_it_prints_what_matters():
    text = repr(federate(dataset(), 4, {"kind": "iid", "records": 90, "overlap": True}, 0))
    assert "4 clients with 90 records each" in text
    assert "one record at up to 2 clients" in text


def test_no_record_of_the_server_is_a_clients():
    hands, nobody = (np.arange(100), np.arange(100, 200)), np.empty(0, np.int64)
    for part in ("validation", "public"):
        parts = {"validation": nobody, "public": nobody, part: np.array([199, 200])}
        with pytest.raises(ValueError, match=f"{part} has 1 records that clients hold too"):
            Federation(dataset(), hands, partition="by hand", copies=1, **parts)


def test_shared_records_are_counted():
    hands, nobody = (np.arange(100), np.arange(99, 200)), np.empty(0, np.int64)
    Federation(dataset(), hands, nobody, nobody, "by hand", 2)
    with pytest.raises(ValueError, match="copies = 1, but one record is held by 2 clients"):
        Federation(dataset(), hands, nobody, nobody, "by hand", 1)
