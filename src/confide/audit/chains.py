"""Whether the stages of a round worked at all: each once, one after the other, to the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch

from confide.aggregates import Mean, MeanOfPresent, WeightedMean
from confide.audit.faults import SEERS, Fault, against
from confide.audit.laws import is_noise
from confide.audit.rehearsal import Rehearsal, Seen
from confide.audit.residuals import told
from confide.audit.twins import Call
from confide.cohorts import Poisson
from confide.engine.client import is_clip
from confide.engine.rounds import Stages
from confide.randomness import Stream
from confide.stages.stage import Shared, Stage
from confide.statements import Statement


def ran(
    runs: Sequence[Sequence[Seen]], calls: Sequence[Call], statement: Statement
) -> Iterator[Fault]:
    """Every stage of every upload and publication worked once, one after the other, to the end."""
    made: dict[tuple[str, str, int, int, int | None], list[Call]] = {}
    for call in calls:
        made.setdefault((call.place, call.vector, call.run, call.t, call.client), []).append(call)
    for one in (seen for run in runs for seen in run):
        ways: list[tuple[str, str, int | None, int, torch.Tensor | None]] = []
        for name, upload in one.round.uploads.items():
            for client, vectors in one.sent.items():
                ways.append(("upload", name, client, len(upload.stages), vectors.get(name)))
            last = one.published.get(name)
            ways.append(("publish", name, None, len(one.round.published(name)), last))
        for place, name, client, stages, last in ways:
            mine = made.get((place, name, one.run, one.t, client), [])
            words = broken(mine, stages, last)
            if words:
                who = "the server" if client is None else f"client {client}"
                where, level = f"`{name}` at {place}", against(statement, SEERS[place])
                words = f"{where}: in round {one.t}, {words} ({who})"
                yield Fault("stages", words, level, where)
        yield from added_up(one, calls, statement)
    yield from unused(runs, calls, statement)


def broken(mine: Sequence[Call], stages: int, last: torch.Tensor | None) -> str:
    """Why these calls are not the whole chain; empty: they are."""
    if [call.number for call in mine] != list(range(stages)):
        return f"{len(mine)} of its {stages} stages worked"
    if any(not same(a.came, b.given) for a, b in pairwise(mine)):
        return "something happens between its stages"
    if mine and (last is None or not same(mine[-1].came.to(last.dtype), last)):
        return "what left is not what its last stage made"
    return ""


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal to the last bit; what is no number is equal to itself."""
    return a.shape == b.shape and bool(torch.equal(a.nan_to_num(), b.to(a.dtype).nan_to_num()))


CLOSE = 1e-6
"""Of the largest entry: sums in double precision are off by less, another divisor by more."""


def added_up(one: Seen, calls: Sequence[Call], statement: Statement) -> Iterator[Fault]:
    """The server noises the sum over the divisor that the statement speaks of, and nothing else."""
    first = {
        call.vector: call.given
        for call in calls
        if (call.place, call.run, call.t, call.number) == ("publish", one.run, one.t, 0)
    }
    r = one.round
    for name, given in first.items():
        if not any(is_noise(stage, given.numel()) for stage in r.published(name)):
            continue
        total = torch.zeros_like(given)
        for client, vectors in one.sent.items():
            weight = 1.0
            if isinstance(r.aggregate, WeightedMean):
                weight = min(float(one.weights[client]), r.aggregate.cap)
            total += weight * vectors[name].double()
        match r.aggregate:
            case Mean(by):
                divisor = r.cohort.expected(len(one.weights)) if by is None else by
            case WeightedMean(_, by):
                divisor = by
            case MeanOfPresent():
                divisor = float(len(one.sent))
            case _:
                return
        off = float((given - total / divisor).abs().max())
        if off > CLOSE * float(total.abs().max()) / divisor:
            words = f"`{name}` at publish: in round {one.t}, what is noised is not the sum of what "
            words += f"was sent over {divisor:g}"
            yield Fault("sum", words, against(statement, SEERS["publish"]), name)


def clips(show: Rehearsal, statement: Statement) -> Iterator[Fault]:
    """The engine's way to a sum of clipped gradients gives what clipping one by one gives."""
    r = show.plan[0][0].for_client(0)
    first = next(iter(r.local.example), None)
    if first is None or not is_clip(first):
        return
    fast, slow = (show.gradient(replace(r.local, example=(s,))) for s in (first, OneByOne(first)))
    off = float((fast - slow).norm())
    if not off <= BY_ANOTHER_WAY * float(slow.norm()):
        words = f"{told(('example', 'gradient', 0), type(first).__name__)}: the engine's sum of "
        words += "clipped gradients is not the sum of gradients that are clipped one by one"
        yield Fault("clip", words, against(statement, SEERS["example"]))


BY_ANOTHER_WAY = 1e-3
"""Single precision in another order is off by less; a clip of the whole batch by much more."""


@dataclass(frozen=True)
class OneByOne(Stage):
    """A clip that the engine does not know to be one, so it is given each gradient by itself."""

    clip: Stage

    def __call__(self, x: torch.Tensor, shared: Shared, own: Stream) -> torch.Tensor:
        """Clip it."""
        return self.clip(x, shared, own)


def unused(
    runs: Sequence[Sequence[Seen]], calls: Sequence[Call], statement: Statement
) -> Iterator[Fault]:
    """Noise of the local steps that some client never adds in some round.

    A batch drawn by coins may be empty, so there the rounds count together.
    """
    worked = {(call.place, call.number, call.client, call.run, call.t) for call in calls}
    ever = {one[:3] for one in worked}
    for one in (seen for run in runs for seen in run):
        coins = isinstance(one.round.local.sampler, Poisson)
        for place in ("example", "batch"):
            stages: Stages = getattr(one.round.local, place)
            for number, stage in enumerate(stages):
                if not is_noise(stage.for_client(0), 1):
                    continue
                where = told((place, "gradient", number), type(stage).__name__)
                for client in one.sent:
                    mine = place, number, client
                    if mine not in ever or not (coins or (*mine, one.run, one.t) in worked):
                        words = f"{where}: client {client} adds none of it in round {one.t}"
                        yield Fault("stages", words, against(statement, SEERS[place]), where)
