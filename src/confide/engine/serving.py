"""A worker process's side: it trains the clients it is told to, and answers.

Only a round holds anything of the caller's; everything else that arrives is plain.
"""

from __future__ import annotations

import pickle
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor

from confide.engine.allocation import keep_pages
from confide.engine.client import Job, Workshop, work
from confide.engine.overheard import overheard
from confide.engine.trainers import Recipe, one_thread, scores, strategy_words

Layout = tuple[tuple[str, tuple[int, ...]], ...]

CANNOT_TRAVEL = (pickle.PicklingError, AttributeError, TypeError, ImportError)
"""What pickling raises, here or there, for something that has no name of its own."""


@dataclass(frozen=True, eq=False)
class Shared:
    """Memory that the loop and its workers both see."""

    model: Tensor
    slots: Tensor  # slot, client, values


@dataclass(frozen=True, eq=False)
class Needs:
    """What a worker needs to begin."""

    recipe: Recipe
    shared: Shared


def serve(pipe: Connection, inherited: list[Connection], needs: Needs | None) -> None:
    """A worker's life: answer until the pipe closes. A spawned one is sent what it needs."""
    for other in inherited:  # or this process would keep a dead loop's pipes open
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_pages()
    with one_thread(), suppress(EOFError, OSError):  # the loop has gone: there is nobody to tell
        try:
            sent, _ = pipe.recv()
            needs = needs or sent
            assert needs is not None
            shop = needs.recipe.workshop()
        except EOFError:
            return
        except Exception as why:
            pipe.send(refusal(why))
            return
        pipe.send(("words", strategy_words(shop)))
        answer_all(pipe, shop, needs.shared)


def answer_all(pipe: Connection, shop: Workshop, shared: Shared) -> None:
    """Task after task, until there is an end to it."""
    job: Job | Lost | None = None
    while True:
        try:
            what, given = pipe.recv()
        except CANNOT_TRAVEL as why:
            job = Lost(str(why))
            continue
        if what == "stop":
            return
        if what == "round":
            t, r, sent, inside = given
            vectors = {name: torch.from_numpy(array) for name, array in sent.items()}
            job = Job(t, r, shared.model.clone(), vectors, inside)
            continue
        try:
            answer = "done", done(shop, shared, job, what, *given)
        except Exception as why:
            answer = refusal(why)
        pipe.send(answer)


@dataclass(frozen=True)
class Lost:
    """A round that did not arrive, and why."""

    why: str


def done(
    shop: Workshop, shared: Shared, job: Job | Lost | None, what: str, task: Any, slot: int
) -> Any:
    """The answer to one task."""
    if what == "evaluate":
        return scores(shop, shared.model, task)
    assert job is not None
    if isinstance(job, Lost):
        raise cannot_travel(job.why)
    doing = overheard if job.inside else work
    return [
        packed(doing(shop, job, client), shared.slots[slot, row]) for row, client in enumerate(task)
    ]


def packed(vectors: Mapping[str, Tensor], row: Tensor) -> tuple[Layout, Any]:
    """Into shared memory if they fit there as they are, otherwise as arrays for the pipe."""
    same = all(vector.dtype == row.dtype for vector in vectors.values())
    if not same or sum(vector.numel() for vector in vectors.values()) > row.numel():
        return (), {name: vector.numpy() for name, vector in vectors.items()}
    for vector in vectors.values():
        row[: vector.numel()].copy_(vector.reshape(-1))
        row = row[vector.numel() :]
    return tuple((name, tuple(vector.shape)) for name, vector in vectors.items()), None


def cannot_travel(why: str) -> ValueError:
    """What to say of a later round that uses something the workers cannot be sent."""
    return ValueError(
        f"workers: the round cannot travel to another process ({why}); allowed is workers = 1."
    )


def refusal(why: Exception) -> tuple[str, Any]:
    """What went wrong, as something that travels."""
    if isinstance(why, ValueError | TypeError):
        return "wrong", type(why)(str(why))
    return "failed", f"a worker process failed: {type(why).__name__}: {why}"
