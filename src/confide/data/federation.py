"""From a data set to clients: what the server keeps, what is public, and who holds the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.data.dataset import Dataset, Federation
from confide.data.partitions import PARTITIONS, natural
from confide.data.settings import nearest, whole
from confide.randomness import Key

Positions = NDArray[np.int64]
BY_CHANCE = ("iid", "unbalanced")
"""Partitions that never look at the records they deal out."""


def federate(
    data: Dataset,
    clients: int | None,
    partition: Mapping[str, Any] | None,
    seed: int,
    *,
    validation: float = 0.0,
    public: float = 0,
) -> Federation:
    """Set records aside for validation and as public, and deal the others out to the clients.

    `validation` and `public` are numbers of training records, or shares of them below 1.
    `partition` names its kind and that kind's settings; without it, the records are dealt IID. With
    a natural column `clients` may be None: then every value of it is a client.
    """
    total = len(data.x_train)
    kept = _amount("validation", validation, total)
    shown = _amount("public", public, total)
    if kept + shown >= total:
        raise ValueError(
            f"Federation: validation = {validation!r} and public = {public!r} leave nothing of the "
            f"{total} training records, allowed are fewer."
        )
    kind, settings = _kind({} if partition is None else partition)
    key = Key.from_seed(seed)
    order = key.stream(0, None, "partition: validation and public").permutation(total)
    pool = np.sort(order[kept + shown :])
    if clients is None and kind == "column":
        clients = len(natural(data, pool, settings)[1])
    clients = whole("Federation", "clients", clients, 1)
    hands, words = PARTITIONS[kind](
        data, pool, clients, settings, key.stream(0, None, f"partition: {kind}")
    )
    held = tuple(np.sort(hand) for hand in hands)
    return Federation(
        data=data,
        clients=held,
        validation=np.sort(order[:kept]),
        public=np.sort(order[kept : kept + shown]),
        partition=words,
        copies=most_copies(held, total),
        by_chance=kind in BY_CHANCE,
    )


def most_copies(clients: Sequence[Positions], total: int) -> int:
    """The largest number of clients that hold one record, by counting; 1 when nothing is held."""
    held = np.concatenate(clients)
    return max(1, int(np.bincount(held, minlength=total).max()))


def _kind(partition: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    settings = dict(partition)
    kind = settings.pop("kind", "iid")
    if kind not in PARTITIONS:
        hint = nearest(str(kind), PARTITIONS)
        raise ValueError(f"Partition: kind = {kind!r}, allowed are {', '.join(PARTITIONS)}.{hint}")
    return kind, settings


def _amount(name: str, given: Any, total: int) -> int:
    """A number of records, or a share of them."""
    if isinstance(given, float) and 0 <= given < 1:
        return round(given * total)
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < total:
        return given
    raise ValueError(
        f"Federation: {name} = {given!r}, allowed is a share below 1 such as 0.1, or a number of "
        f"records below {total}."
    )
