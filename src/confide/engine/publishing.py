"""What leaves the server: the uploads' sums, aggregated, then through the publish stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

import torch
from torch import Tensor

from confide.aggregates import (
    ByLossAndSize,
    Mean,
    MeanOfPresent,
    ModeConnectivity,
    WeightedMean,
)
from confide.engine import spending
from confide.engine.client import passed, shared_streams
from confide.engine.public import ServersRecords
from confide.engine.rounds import Round, Sizes
from confide.engine.uploads import Received, in_the_servers_order, joined
from confide.randomness import Key, Stream
from confide.stages.correlated import Correlated, Echoes


@dataclass(eq=False)
class Publisher:
    """The server's part of a round, with the noise that goes on from round to round."""

    key: Key
    sizes: Sizes
    public: ServersRecords
    heard: dict[str, Echoes] = field(default_factory=dict[str, Echoes])

    def publish(
        self, r: Round, t: int, model: Tensor, got: Received, came: int
    ) -> dict[str, Tensor]:
        """What everybody sees of this round's vectors; also when nobody came."""
        shared = shared_streams(self.key, t)
        divisor = self.divisor(r, came)
        out: dict[str, Tensor] = {}
        for name, upload in r.uploads.items():
            if name == "model" and isinstance(r.aggregate, ModeConnectivity):
                order = self.key.stream(t, None, "shuffled uploads")
                models = in_the_servers_order(r, got.models, order) or [model]
                coins = self.key.stream(t, None, "curve")
                vector = joined(models, r.aggregate, self.public.gradient, coins)
            elif name in got.totals:
                vector = got.totals[name].div_(divisor)
            else:
                length = spending.length_after(upload, self.sizes.dim)
                vector = torch.zeros(length, dtype=torch.float64, device=model.device)
            own = self.key.stream(t, None, f"publish {name}")
            for stage in r.published(name):
                echoed = isinstance(stage, Correlated)
                brings = self.echoes(stage, name, t, len(vector)) if echoed else own
                vector = passed(stage, vector, shared, brings)
            out[name] = vector.to(model.dtype)
        return out

    def echoes(self, stage: Correlated, name: str, t: int, length: int) -> Stream:
        """The stream that brings this round's correlated noise of this vector."""
        if name not in self.heard:
            streams = (self.key.stream(t, None, f"correlated {name}") for t in count())
            self.heard[name] = Echoes(stage.c, streams)
        return self.heard[name].reach(t, length)

    def divisor(self, r: Round, came: int) -> float:
        """What the sum is divided by."""
        match r.aggregate:
            case Mean(by):
                return r.cohort.expected(self.sizes.clients) if by is None else by
            case MeanOfPresent() | ModeConnectivity():
                return float(max(came, 1))
            case WeightedMean(_, by):
                return by
            case ByLossAndSize():
                return 1.0
