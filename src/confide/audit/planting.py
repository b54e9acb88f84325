"""Canaries for a run: which unit they are, where each of them points, which are in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from confide.audit.canaries import OVERSIZE
from confide.audit.claimed import Row, design, rows, tested
from confide.audit.targets import reach
from confide.data.dataset import Federation
from confide.engine import adapting
from confide.engine.books import Books
from confide.engine.calibrating import calibrated
from confide.engine.canaries import Canaries, Planting
from confide.engine.flat import Flat
from confide.engine.rounds import Method, Round
from confide.engine.sightings import Odds, main
from confide.engine.spending import Budget, check_planned, first_rounds, sizes_of
from confide.engine.trainers import Recipe

LOOKED_AT = 200
"""Records whose gradient tells at the start which coordinates the real units move."""
PURPOSE = "audit canaries"
"""What the coins' stream is for; nothing else is drawn from it."""


def joined(
    federation: Federation,
    wanted: Planting,
    method: Method,
    flat: Flat,
    rounds: int | None,
    budget: Budget | None,
) -> tuple[Federation, Planting]:
    """The federation with the canaries among its units, in or out, and which unit they are.

    A canary client is a client without records; canary records are dealt to the clients in turn.
    """
    m = wanted.canaries
    if m > flat.dim:
        raise ValueError(
            f"audit: canaries = {m}, allowed are at most the model's {flat.dim} parameters, as "
            "each has a coordinate of its own."
        )
    unit = wanted.unit or unit_of(federation, wanted, method, flat, rounds, budget)
    words = f"{federation.partition}; {m} canary {unit}s for an audit"
    held = with_records(federation, m) if unit == "record" else with_clients(federation, m)
    return replace(held, partition=words), replace(wanted, unit=unit)


def with_clients(federation: Federation, m: int) -> Federation:
    """So many clients more that hold nothing."""
    nobody = np.empty(0, np.int64)
    return replace(federation, clients=(*federation.clients, *[nobody] * m))


def with_records(federation: Federation, m: int) -> Federation:
    """So many dummy records more, dealt in turn to the clients that hold some."""
    data, first = federation.data, len(federation.data.x_train)
    holding = np.flatnonzero(federation.sizes)
    owners = holding[np.arange(m) % len(holding)]
    grown = replace(
        data,
        x_train=torch.cat([data.x_train, data.x_train.new_zeros(m, *data.shape)]),
        y_train=torch.cat([data.y_train, data.y_train[:1].expand(m, *data.y_train.shape[1:])]),
        columns={},
    )
    clients = tuple(
        np.concatenate([held, first + np.flatnonzero(owners == number)])
        for number, held in enumerate(federation.clients)
    )
    return replace(federation, data=grown, clients=clients)


def unit_of(
    federation: Federation,
    wanted: Planting,
    method: Method,
    flat: Flat,
    rounds: int | None,
    budget: Budget | None,
) -> str:
    """The unit of the row that is protected best, of those that canaries can test."""
    sizes = sizes_of(federation, flat.layers)
    if budget is not None:
        method = calibrated(method, sizes, budget, rounds)
    plan = check_planned(method, sizes, rounds)
    held = adapting.accounts(plan, sizes, None) if adapting.adapts(method) else None
    return design(rows(plan, sizes, None, held), plan, None, wanted.view).cell.unit


def sown(
    books: Books, federation: Federation, recipe: Recipe, flat: Flat, wanted: Planting
) -> tuple[Canaries, Odds | None]:
    """The canaries of this run, each with a coordinate and a coin of its own."""
    m, unit = wanted.canaries, wanted.unit or ""
    found = rows_of(books, books.planned)
    chosen = design(found, books.plan, unit, wanted.view)
    if unit == "client":
        first = len(federation.clients) - m
        owners = np.arange(first, first + m)
    else:
        first = len(federation.data.x_train) - m
        owners = np.empty(m, np.int64)
        for number, held in enumerate(federation.clients):
            owners[held[held >= first] - first] = number
    r = books.plan[0][0].for_client(int(owners[0]))
    canaries = Canaries(
        unit=unit,
        relation=chosen.relation,
        first=first,
        owners=owners,
        places=quiet(recipe, federation, flat, m, first if unit == "record" else None),
        length=OVERSIZE * length_of(r, unit, books.sizes.dim),
        coins=recipe.key.stream(0, None, PURPOSE).uint64(m) >> np.uint64(63) == 1,
    )
    world = [row for row in found if (row.cell.unit, row.cell.observer) == ("client", "world")]
    return canaries, world[0].odds if unit == "client" and world else None


def rows_of(books: Books, done: int) -> list[Row]:
    """The rows of a run's statement after so many rounds."""
    plan = books.plan if books.held is not None else first_rounds(books.plan, done)
    return rows(plan, books.sizes, books.delta, books.held)


def rows_to_test(books: Books, canaries: Canaries, done: int) -> list[Row]:
    """Those that the canaries are a case of."""
    return tested(rows_of(books, done), books.plan, canaries.unit, canaries.relation)


def length_of(r: Round, unit: str, dim: int) -> float:
    """What the stages let through of one unit at most; 1 where nothing bounds it."""
    inside = unit == "record" and r.local.example
    return reach(r.local.example if inside else r.uploads[main(r)].stages, dim)


def quiet(
    recipe: Recipe, federation: Federation, flat: Flat, m: int, first: int | None
) -> NDArray[np.int64]:
    """The coordinates with the smallest gradients of some records under the first model.

    Which they are matters for the power of the audit only: they are chosen before any coin.
    """
    data, gradient = federation.data, recipe.workshop().gradient
    held = np.concatenate(federation.clients)
    some = torch.from_numpy(held if first is None else held[held < first])[:LOOKED_AT]
    x, y = data.x_train[some].to(recipe.dtype), data.y_train[some]
    gradient.seed_dropout(0)
    total = gradient.total(flat.vector.clone(), x, y)
    return torch.argsort(total.abs(), stable=True)[:m].numpy()
