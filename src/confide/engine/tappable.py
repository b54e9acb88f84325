"""What taps ask before a run begins: whether a view can be recorded, and whether there is room."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from math import ceil, inf, sqrt
from pathlib import Path

import torch

from confide.channels import Sum
from confide.cohorts import Poisson
from confide.engine import spending
from confide.engine.rounds import Round, Sizes
from confide.engine.taps import VIEWS
from confide.engine.uploads import free_bytes
from confide.engine.ways import WAYS

MARGIN = 6
"""Standard deviations of the number of clients that come, for which there must be room."""

HELD = 2
"""Copies of a round's uploads: single ones as they come, and all of them as they are written."""


def check_taps(
    views: Sequence[str], plan: spending.Plan, sizes: Sizes, dtype: torch.dtype,
    out: str | Path | None, device: str, strategy: str,
) -> str:  # fmt: skip
    """Refuse what cannot be recorded; the device to train on, as only the CPU tells what is inside.

    There is a vmapped step on a GPU, which never holds single examples' gradients.
    """
    unknown = [view for view in views if view not in VIEWS]
    if unknown:
        raise ValueError(f"run: taps = {unknown[0]!r}, allowed are {', '.join(VIEWS)}.")
    if out is None:
        raise ValueError(
            f"run: taps = {', '.join(views)} without out, allowed is out = a directory: what "
            "observers saw is written there."
        )
    check_room(views, plan, sizes, dtype.itemsize, Path(out))
    if "device" not in views:
        return device
    if device == "cuda" or strategy in WAYS:
        raise ValueError(
            f"run: taps = device with device = {device!r} and strategy = {strategy!r}, allowed "
            "are 'cpu' and 'auto': a vmapped step does not hold single examples' gradients."
        )
    return "cpu"


def check_room(
    views: Sequence[str], plan: spending.Plan, sizes: Sizes, itemsize: int, place: Path
) -> None:
    """Refuse to begin where a round would not fit the memory, or all of them the disk."""
    each = [bytes_of(r, sizes, itemsize, views) for r, _ in plan]
    there = next(path for path in (place, *place.absolute().parents) if path.exists())
    memory = free_bytes(torch.device("cpu"))
    for needed, free, where in (
        (HELD * max(each), inf if memory is None else memory, "memory while a round is written"),
        (
            sum(n * size for (_, n), size in zip(plan, each, strict=True)),
            shutil.disk_usage(there).free,
            f"{there} for the planned rounds",
        ),
    ):
        if needed > free:
            raise ValueError(
                f"run: taps = {', '.join(views)} take {needed / 2**30:.3g} GiB of {where}, allowed "
                f"is what is free, {free / 2**30:.3g} GiB: take fewer views, rounds or clients, or "
                "a smaller model."
            )


def bytes_of(r: Round, sizes: Sizes, itemsize: int, views: Sequence[str]) -> int:
    """The most that one round's files take, but for cohorts that are larger than ever expected."""
    dim, most = sizes.dim * itemsize, clients_at_most(r, sizes)
    lengths = [spending.length_after(upload, sizes.dim) for upload in r.uploads.values()]
    before = sum(sizes.dim if u.length is None else u.length for u in r.uploads.values())
    one = sum(lengths) * itemsize
    total = 0
    for view in views:
        total += dim * (1 + len(r.uploads))
        if view == "world":
            total += one
        elif view == "device":
            batch = min(sizes.largest, ceil(r.local.sampler.expected(sizes.largest)) + MARGIN)
            total += most * (one + before * itemsize + batch * dim)
        else:
            total += 8 * sum(lengths) if isinstance(r.channel, Sum) else most * one
    return total


def clients_at_most(r: Round, sizes: Sizes) -> int:
    """How many clients come, but for the rarest draws."""
    expected = r.cohort.expected(sizes.clients)
    if isinstance(r.cohort, Poisson):
        expected += MARGIN * sqrt(expected)
    return min(sizes.clients, ceil(expected))
