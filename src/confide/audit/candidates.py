"""Who was in a run and who was not: the records that Layer 3's attacks are asked about.

A record of a client is paired with one that no client holds, as if that one had been dealt in its
place. Where the run itself set records aside by a coin that looks at none of them, the coin decided
which of the two was in. Proof: when records are dealt IID (or in sizes drawn without looking at
them), every way to divide them into hands and a rest is equally likely. Match all of them in pairs
without looking at the hands. Given the pairs of which one is in some hand and the other in the
rest, and given everything but which of the two it is, both are equally likely, for all pairs
independently. That is the experiment that a one-run test needs, with replacing the record as its
neighbours; and all pairs of one client together are the same experiment for the client. It needs
that the run never looks at the rest: validation and public records are left out of it where the
method uses them.

Without such a rest the test records stand for those who were out. Nobody drew them by a coin of
this run, so what the attacks find is an estimate, and never a proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from confide.aggregates import ModeConnectivity
from confide.audit.membership import Candidates, Scores
from confide.data.dataset import Federation
from confide.engine.spending import Plan
from confide.randomness import Stream

CLIENTS = 100
RECORDS = 600
"""Members at the most; as many outsiders stand beside them."""

LEAST = 40
"""Fewer pairs than this say nothing at any level."""

Positions = NDArray[np.int64]
Coins = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Members and outsiders, one pair in each row; `group` numbers the pairs of one client."""

    members: Candidates
    outsiders: Candidates
    group: Positions
    by_coin: bool
    words: str

    def __len__(self) -> int:
        """How many."""
        return len(self.group)

    def everyone(self) -> Candidates:
        """Both, members first: the attack is not told."""
        a, b = self.members, self.outsiders
        return Candidates(
            torch.cat([a.x, b.x]), torch.cat([a.y, b.y]), np.concatenate([a.client, b.client])
        )

    def of(self, unit: str, scores: Scores) -> tuple[Scores, Scores]:
        """The members' scores and the outsiders'; a client's is the mean over its records."""
        ins, outs = scores[: len(self)], scores[len(self) :]
        if unit == "record":
            return ins, outs
        sizes = np.bincount(self.group)
        return np.bincount(self.group, ins) / sizes, np.bincount(self.group, outs) / sizes


def pairs_of(
    federation: Federation, records: int, plan: Plan, validates: bool, stream: Stream
) -> Pairs | None:
    """As many pairs as there are records for, up to a limit; None where there are too few.

    Beyond the first `records` of the federation there are only an audit's dummies.
    """
    data, owner = federation.data, owners(federation, records)
    rest = unseen(federation, owner, plan, validates)
    by_coin = federation.by_chance and federation.copies == 1 and len(rest) >= LEAST
    x, y = (data.x_train, data.y_train) if by_coin else (data.x_test, data.y_test)
    if by_coin:
        members, outsiders = matched(owner, rest, stream)
    else:
        members = shuffled(np.flatnonzero(owner >= 0), len(x), stream)
        outsiders = shuffled(np.arange(len(x), dtype=np.int64), len(members), stream)
    kept = of_some_clients(owner[members], stream)
    if len(kept) < LEAST:
        return None
    client = owner[members[kept]]
    return Pairs(
        at(data.x_train, data.y_train, members[kept], client),
        at(x, y, outsiders[kept], client),
        np.unique(client, return_inverse=True)[1].astype(np.int64),
        by_coin,
        "records that the run set aside by a coin" if by_coin else "test records",
    )


def owners(federation: Federation, records: int) -> Positions:
    """A client that holds each training record, or -1."""
    out = np.full(records, -1, np.int64)
    for client, held in enumerate(federation.clients):
        out[held[held < records]] = client
    return out


def matched(owner: Positions, rest: Positions, stream: Stream) -> tuple[Positions, Positions]:
    """Members and outsiders of pairs that were made without looking at who is in.

    All records are matched in pairs by a draw of the audit's own. Those pairs are kept of which one
    is in and the other in the rest: whatever the draw was, the run's coin decided which.
    """
    order = stream.permutation(len(owner))
    half = len(order) // 2
    a, b = order[:half], order[half : 2 * half]
    out = np.zeros(len(owner), np.bool_)
    out[rest] = True
    first, second = (owner[a] >= 0) & out[b], (owner[b] >= 0) & out[a]
    kept = first | second
    return np.where(first, a, b)[kept], np.where(first, b, a)[kept]


def of_some_clients(client: Positions, stream: Stream) -> Positions:
    """Which pairs are looked at: about equally many of each of some clients, in their order."""
    there = np.unique(client)
    some = there[stream.permutation(len(there))[:CLIENTS]]
    each = -(-RECORDS // max(1, len(some)))
    found = [np.flatnonzero(client == one)[:each] for one in some]
    return np.sort(np.concatenate(found))[:RECORDS] if found else np.zeros(0, np.int64)


def shuffled(records: Positions, most: int, stream: Stream) -> Positions:
    """Some of them, in random order."""
    return records[stream.permutation(len(records))[:most]]


def at(x: torch.Tensor, y: torch.Tensor, places: Positions, client: Positions) -> Candidates:
    """These records, as this client's each."""
    chosen = torch.from_numpy(places)
    return Candidates(x[chosen], y[chosen], client)


def unseen(federation: Federation, owner: Positions, plan: Plan, validates: bool) -> Positions:
    """Training records that neither a client nor the server has looked at."""
    out = owner < 0
    if validates:
        out[federation.validation] = False
    if any(isinstance(r.aggregate, ModeConnectivity) for r, _ in plan):
        out[federation.public] = False
    return np.flatnonzero(out).astype(np.int64)
