"""Who holds which training record: one function for each kind of partition.

Each takes the records that may be dealt out, the number of clients, its settings and a stream, and
answers with the positions of every client and the partition in words. Clients are disjoint unless
`overlap = true` was asked for, and then records are dealt out so that as few clients as possible
hold the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.data.dataset import Dataset
from confide.data.dealing import cut, deal, even_sizes, lift, shares
from confide.data.settings import check_names, flag, positive, required, whole, word
from confide.randomness import Stream

Positions = NDArray[np.int64]
Dealt = tuple[list[Positions], str]
Settings = Mapping[str, Any]
Partition = Callable[[Dataset, Positions, int, Settings, Stream], Dealt]


def iid(data: Dataset, pool: Positions, clients: int, settings: Settings, stream: Stream) -> Dealt:
    """Uniformly at random, `records` for each client or all of them in equal sizes."""
    thing = "Partition iid"
    check_names(thing, settings, ("records", "overlap"))
    overlap = flag(thing, "overlap", settings.get("overlap", False))
    if "records" not in settings:
        if overlap:
            raise ValueError(f"{thing}: records is missing, allowed with overlap is a number.")
        sizes, words = even_sizes(len(pool), clients), "IID"
    else:
        each = whole(thing, "records", settings["records"], 1, len(pool))
        _enough(thing, clients * each, len(pool), overlap)
        sizes, words = [each] * clients, f"IID, {each} records each"
    return deal(stream, pool, sizes), words + _overlapping(overlap)


def unbalanced(
    data: Dataset, pool: Positions, clients: int, settings: Settings, stream: Stream
) -> Dealt:
    """Uniformly at random in unequal sizes: from `low` to `high`, or lognormal of a `spread`."""
    thing = "Partition unbalanced"
    check_names(thing, settings, ("low", "high", "spread"))
    if "spread" in settings:
        check_names(f"{thing} with spread", settings, ("spread",))
        spread = positive(thing, "spread", settings["spread"])
        weights = np.exp(spread * stream.normal(clients))
        ends = np.floor(np.cumsum(weights / weights.sum()) * len(pool)).astype(np.int64)
        ends[-1] = len(pool)
        sizes, words = np.diff(ends, prepend=0).tolist(), f"unbalanced, lognormal of {spread:g}"
    else:
        low = whole(thing, "low", required(thing, settings, "low", "a number of records"), 0)
        high = whole(thing, "high", required(thing, settings, "high", "a number of records"), low)
        sizes = (low + stream.integers(high - low + 1, clients)).tolist()
        words = f"unbalanced, {low} to {high} records each"
        if sum(sizes) > len(pool):
            raise ValueError(
                f"{thing}: low = {low} and high = {high} need {sum(sizes)} records and "
                f"{len(pool)} are there, allowed are lower ones or fewer clients."
            )
    return cut(pool[stream.permutation(len(pool))], sizes), words


def dirichlet(
    data: Dataset, pool: Positions, clients: int, settings: Settings, stream: Stream
) -> Dealt:
    """Each class is divided among the clients in proportions drawn from Dirichlet(alpha).

    Clients below `least` records get single ones from the largest clients: with many clients and a
    small alpha, drawing again would never end.
    """
    thing = "Partition dirichlet"
    check_names(thing, settings, ("alpha", "least"))
    alpha = positive(thing, "alpha", required(thing, settings, "alpha", "a number above 0"))
    least = whole(thing, "least", settings.get("least", 1), 0, len(pool) // clients)
    classes = _by_class(thing, data, pool, stream)
    counts = np.zeros((clients, len(classes)), np.int64)
    for k, members in enumerate(classes):
        ends = np.floor(np.cumsum(shares(stream, alpha, clients)) * len(members)).astype(np.int64)
        ends[-1] = len(members)
        counts[:, k] = np.diff(ends, prepend=0)
    counts = lift(counts, least)
    pieces = [cut(members, counts[:, k].tolist()) for k, members in enumerate(classes)]
    hands = [np.concatenate([piece[client] for piece in pieces]) for client in range(clients)]
    return hands, f"Dirichlet({alpha:g}) over the classes, at least {least} records each"


def shards(
    data: Dataset, pool: Positions, clients: int, settings: Settings, stream: Stream
) -> Dealt:
    """Records sorted by class are cut into equal shards, and each client gets `shards` of them."""
    thing = "Partition shards"
    check_names(thing, settings, ("shards", "records", "overlap"))
    each = whole(thing, "shards", settings.get("shards", 2))
    overlap = flag(thing, "overlap", settings.get("overlap", False))
    ordered = np.concatenate(_by_class(thing, data, pool, stream))
    if "records" in settings:
        records = whole(thing, "records", settings["records"], each, len(pool))
        if records % each:
            raise ValueError(
                f"{thing}: records = {records}, allowed is a multiple of shards = {each}."
            )
        size = records // each
        _enough(thing, clients * records, len(pool), overlap)
        pieces = cut(ordered, [size] * (len(pool) // size))
    else:
        if overlap:
            raise ValueError(f"{thing}: records is missing, allowed with overlap is a number.")
        _enough(thing, clients * each, len(pool), overlap)
        pieces = cut(ordered, even_sizes(len(pool), clients * each))
        size = len(pieces[0])
    if each > len(pieces):
        raise ValueError(
            f"{thing}: shards = {each} of {size} records each, and there are only {len(pieces)}."
        )
    if not overlap and clients * each > len(pieces):
        raise ValueError(
            f"{thing}: {clients} clients x {each} shards of {size} records are more than the "
            f"{len(pieces)} whole shards there are; allowed are fewer, or overlap = true."
        )
    drawn = deal(stream, np.arange(len(pieces)), [each] * clients)
    hands = [np.concatenate([pieces[shard] for shard in hand]) for hand in drawn]
    return hands, f"{each} shards of about {size} records each" + _overlapping(overlap)


def classes(
    data: Dataset, pool: Positions, clients: int, settings: Settings, stream: Stream
) -> Dealt:
    """Each client gets `classes` classes, every class equally often, and as much of each.

    `records` is how many a client holds: a number, or a range [low, high] that a size is drawn from
    for every client; without it, as many as every class has for all of its clients.
    """
    thing = "Partition classes"
    check_names(thing, settings, ("classes", "records", "overlap"))
    members = _by_class(thing, data, pool, stream)
    present = np.array([k for k, held in enumerate(members) if len(held)], np.int64)
    each = whole(thing, "classes", settings.get("classes", 2), 1, len(present))
    overlap = flag(thing, "overlap", settings.get("overlap", False))
    chosen = deal(stream, present, [each] * clients)
    sizes = _class_sizes(thing, settings, members, chosen, stream, overlap)
    amounts = np.zeros((clients, len(members)), np.int64)
    for client, (held, size) in enumerate(zip(chosen, sizes, strict=True)):
        amounts[client, held] = even_sizes(size, each)
    _enough_of_classes(thing, amounts, members, overlap)
    pieces = [deal(stream, m, amounts[:, k].tolist()) for k, m in enumerate(members)]
    hands = [np.concatenate([piece[client] for piece in pieces]) for client in range(clients)]
    words = f"{each} classes each in equal amounts, {_range(sizes)} records"
    return hands, words + _overlapping(overlap)


def column(
    data: Dataset, pool: Positions, clients: int, settings: Settings, stream: Stream
) -> Dealt:
    """One client for each value of a natural column; of more values than clients, some are drawn.

    `least` leaves out the values with fewer records.
    """
    thing = "Partition column"
    name, values, groups = natural(data, pool, settings)
    if clients > len(values):
        raise ValueError(
            f"{thing}: clients = {clients}, allowed is at most {len(values)}, the number of "
            f"different values of {name} that may be a client."
        )
    values = values[stream.choose(len(values), clients)]
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], values, "left")
    ends = np.searchsorted(groups[order], values, "right")
    hands = [pool[order[start:end]] for start, end in zip(starts, ends, strict=True)]
    return hands, f"one client for each {name}"


def natural(
    data: Dataset, pool: Positions, settings: Settings
) -> tuple[str, NDArray[np.int64], NDArray[np.int64]]:
    """A natural column's name, its values that may be a client, and every record's value."""
    thing = "Partition column"
    check_names(thing, settings, ("column", "least"))
    if not data.columns:
        raise ValueError(f"{thing}: {data.name} has no natural columns, allowed are other kinds.")
    given = required(thing, settings, "column", f"one of {', '.join(data.columns)}")
    name = word(thing, "column", given, data.columns)
    least = whole(thing, "least", settings.get("least", 1))
    groups = data.columns[name][pool]
    values, counts = np.unique(groups, return_counts=True)
    return name, values[counts >= least], groups


PARTITIONS: dict[str, Partition] = {
    "iid": iid,
    "unbalanced": unbalanced,
    "dirichlet": dirichlet,
    "shards": shards,
    "classes": classes,
    "column": column,
}


def _by_class(thing: str, data: Dataset, pool: Positions, stream: Stream) -> list[Positions]:
    """The records of each class, shuffled."""
    if data.classes is None:
        raise ValueError(
            f"{thing}: {data.name} has no classes, allowed for a regression are iid, unbalanced "
            "and column."
        )
    y = data.y_train.numpy()[pool]
    shuffled = stream.permutation(len(pool))
    order = shuffled[np.argsort(y[shuffled], kind="stable")]
    return cut(pool[order], np.bincount(y, minlength=data.classes).tolist())


def _class_sizes(
    thing: str,
    settings: Settings,
    members: list[Positions],
    chosen: list[Positions],
    stream: Stream,
    overlap: bool,
) -> list[int]:
    """How many records each client of a partition by classes holds."""
    each = len(chosen[0])
    given = settings.get("records")
    if given is None:
        if overlap:
            raise ValueError(f"{thing}: records is missing, allowed with overlap is a number.")
        holders = np.bincount(np.concatenate(chosen), minlength=len(members))
        amount = min(len(m) // int(n) for m, n in zip(members, holders, strict=True) if n)
        if amount == 0:
            raise ValueError(
                f"{thing}: {len(chosen)} clients x {each} classes are more than there are records "
                "in a class; allowed are fewer clients, or overlap = true with records."
            )
        return [amount * each] * len(chosen)
    if isinstance(given, list | tuple):
        if len(given) != 2:
            raise ValueError(f"{thing}: records = {given!r}, allowed is a number or [low, high].")
        low = whole(thing, "records[0]", given[0], each)
        high = whole(thing, "records[1]", given[1], low)
        return (low + stream.integers(high - low + 1, len(chosen))).tolist()
    return [whole(thing, "records", given, each)] * len(chosen)


def _enough_of_classes(
    thing: str, amounts: NDArray[np.int64], members: list[Positions], overlap: bool
) -> None:
    for k, (needed, there) in enumerate(zip(amounts.T, map(len, members), strict=True)):
        most, total = int(needed.max()), int(needed.sum())
        if most > there:
            raise ValueError(
                f"{thing}: a client needs {most} records of class {k} and {there} are there, "
                "allowed are fewer records or more classes."
            )
        if total > there and not overlap:
            raise ValueError(
                f"{thing}: {total} records of class {k} are needed and {there} are there; allowed "
                "are fewer clients or records, or overlap = true."
            )


def _enough(thing: str, needed: int, there: int, overlap: bool) -> None:
    if needed > there and not overlap:
        raise ValueError(
            f"{thing}: {needed} records are needed and {there} are there; allowed are fewer "
            "clients or records, or overlap = true."
        )


def _overlapping(overlap: bool) -> str:
    return ", overlapping" if overlap else ""


def _range(sizes: list[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{low}" if low == high else f"{low} to {high}"
