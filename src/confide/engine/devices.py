"""Which trainer runs a method: by device, cohort and model, as the benchmarks justify."""

from __future__ import annotations

from difflib import get_close_matches

import torch

from confide.engine import spending
from confide.engine.pool import cores
from confide.engine.rounds import Round, Sizes
from confide.engine.trainers import Recipe, Trainer
from confide.engine.ways import WAYS
from confide.engine.workers import trainer_on_cpu

STRATEGIES = ("auto", "plain", *WAYS)


def check_device(device: str) -> None:
    """Refuse words that name no device, and a GPU where there is none."""
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"run: device = {device!r}, allowed are auto, cpu and cuda.")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            "run: device = 'cuda', but torch sees no CUDA GPU; allowed here are auto and cpu."
        )


def trainer_for(
    recipe: Recipe, first: Round, sizes: Sizes, device: str, workers: int | None
) -> Trainer:
    """A CUDA device if there is one and it was not refused, otherwise a process for every core."""
    if workers is not None and workers < 1:
        raise ValueError(f"run: workers = {workers}, allowed is a whole number of at least 1.")
    if recipe.strategy not in STRATEGIES:
        near = get_close_matches(recipe.strategy, STRATEGIES, 1, 0)[0]
        raise ValueError(
            f"run: strategy = {recipe.strategy!r}, allowed are {', '.join(STRATEGIES)}; "
            f"did you mean {near!r}?"
        )
    alone = recipe.canaries is not None and recipe.canaries.unit == "record"
    if alone and (device == "cuda" or recipe.strategy in WAYS):
        raise ValueError(
            f"run: device = {device!r} with strategy = {recipe.strategy!r}, allowed with canary "
            "records are device = 'auto' or 'cpu' with strategy = 'auto' or 'plain': their "
            "gradients go through the stages one by one."
        )
    usable = recipe.strategy in ("auto", *WAYS) and torch.cuda.is_available() and not alone
    on_cuda = device == "cuda" or (device == "auto" and usable)
    if on_cuda or recipe.strategy in WAYS:
        from confide.engine.cohort import Cohort

        return Cohort(recipe, "cuda" if on_cuda else "cpu")
    length = sum(spending.length_after(upload, sizes.dim) for upload in first.uploads.values())
    expected = max(1, round(first.cohort.expected(sizes.clients)))
    return trainer_on_cpu(recipe, min(workers or cores(), expected), length, first)
