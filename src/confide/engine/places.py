"""What may stand at the places of a round, and which of them go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from confide.aggregates import (
    ByLossAndSize,
    Mean,
    MeanOfPresent,
    ModeConnectivity,
    WeightedMean,
)
from confide.channels import Each, Shuffle, Sum
from confide.cohorts import All, Fixed, Poisson, Spaced
from confide.stages.stage import PerClient, Stage

if TYPE_CHECKING:
    from confide.engine.rounds import Round

KINDS: dict[str, tuple[type, ...]] = {
    "cohort": (All, Poisson, Fixed, Spaced),
    "channel": (Each, Sum, Shuffle),
    "aggregate": (Mean, MeanOfPresent, WeightedMean, ByLossAndSize, ModeConnectivity),
}


def check_kinds(r: Round, kinds: Mapping[str, tuple[type, ...]]) -> None:
    """Refuse what brings no proof at a place that the statement rests on."""
    for name, allowed in kinds.items():
        value = getattr(r, name)
        if not isinstance(value, allowed):
            names = ", ".join(kind.__name__ for kind in allowed)
            raise TypeError(f"Round: {name} = {value!r}, allowed are {names}.")


def check_uploads(r: Round) -> None:
    """Refuse uploads that say nothing, or that the aggregate cannot be made of."""
    if not isinstance(r.upload, tuple) and not r.upload:
        raise ValueError("Round: upload names no vector; allowed is at least one.")
    if all(u.data == "test" for u in r.uploads.values()):
        raise ValueError("Round: upload has only test data; allowed is at least one update.")
    for name, upload in r.uploads.items():
        if upload.data == "test" and upload.value is None and name != "loss":
            raise ValueError(
                f"Round: upload {name!r} has data = 'test', allowed is that for 'loss' or with "
                "a value of its own: all else is made in training."
            )
    if isinstance(r.aggregate, ByLossAndSize):
        check_weights(r, r.aggregate)
    check_single_uploads(r)


def check_weights(r: Round, aggregate: ByLossAndSize) -> None:
    """Weights of uploads need every upload by itself, and what they are made of."""
    if not isinstance(r.channel, Each):
        raise ValueError(
            f"Round: channel = {r.channel!r}, allowed with ByLossAndSize is Each(): the "
            "server weighs uploads by what their clients say."
        )
    missing = [name for name in aggregate.needs if name not in r.uploads]
    if missing:
        raise ValueError(
            f"Round: upload has no {' and no '.join(missing)}, allowed with ByLossAndSize are "
            "uploads that have both names its weights are made of."
        )


def check_single_uploads(r: Round) -> None:
    """Refuse an aggregate, or a server, that needs what the channel does not show."""
    if isinstance(r.aggregate, ModeConnectivity):
        single = isinstance(r.channel, Each) or r.channel == Shuffle()
        if not single or "model" not in r.uploads:
            raise TypeError(
                f"Round: aggregate = ModeConnectivity with channel = {r.channel!r} and uploads "
                f"{', '.join(r.uploads)}, allowed are Each() and Shuffle() with an upload `model`: "
                "it joins single models, which a sum does not show."
            )
    if r.passes_on is None:
        return
    if not isinstance(r.channel, Each) or not r.broadcast or "model" not in r.uploads:
        raise ValueError(
            f"Round: passes_on = {r.passes_on}, allowed with channel = Each(), broadcast = True "
            "and an upload `model`: the server must know whose it is, and everybody gets it."
        )


def check_stages(r: Round) -> None:
    """Refuse what is no stage, and numbers of single clients where no client is single."""
    for place, vector, stage in r.stages():
        anything: object = stage
        if not isinstance(anything, Stage):
            raise TypeError(f"Round: {place} of {vector} holds {stage!r}, allowed are stages.")
        if place == "publish" and columns_of(stage):
            raise ValueError(
                f"Round: {type(stage).__name__} at publish has a per-client column; allowed is "
                "one number, as it acts on everyone's aggregate."
            )


def columns_of(thing: object) -> list[tuple[float, ...]]:
    """The per-client columns of one stage or step."""
    if not is_dataclass(thing) or isinstance(thing, type):
        return []
    own = (getattr(thing, f.name) for f in fields(thing))
    return [value.values for value in own if isinstance(value, PerClient)]
