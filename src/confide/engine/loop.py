"""The one loop that runs every method.

In each round: ask the method what to do, charge the ledger, draw the cohort, train, pass the
uploads through channel, aggregate and publish, let the server make the next model, record the end
of the release. The commits on disk come in the order charge, end, metrics, checkpoint; after a kill
at any point the same rounds are run again from the last checkpoint, to the same bits, and the
ledger replays what it has seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from math import isfinite
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.accounting.relations import Refused
from confide.aggregates import (
    ByLossAndSize,
    Mean,
    MeanOfPresent,
    ModeConnectivity,
    WeightedMean,
)
from confide.channels import Sum
from confide.cohorts import All, Fixed, Poisson, Spaced
from confide.derive import Key as CellKey
from confide.engine import adapting, spending
from confide.engine.adapting import Account
from confide.engine.checkpoint import Progress
from confide.engine.client import Job, passed, shared_streams
from confide.engine.public import ServersRecords
from confide.engine.rounds import Method, Past, Released, Round, Sizes
from confide.engine.spending import Budget, Plan
from confide.engine.trainers import Trainer, one_thread
from confide.engine.uploads import Received, in_the_servers_order, joined, received
from confide.ledger import BudgetSpent, Charge, Ledger, Release
from confide.randomness import Key, Stream
from confide.stages.correlated import Correlated, Echoes


class RunFailed(RuntimeError):
    """The run cannot go on; what was spent stays spent."""


class Diverged(RunFailed):
    """The model is no longer made of numbers."""


class Watch(Protocol):
    """Somebody who looks on, and may ask for an end after the round that is being run."""

    @property
    def stopping(self) -> bool:
        """Whether the run should save where it stands, and stop there."""
        ...

    def round_done(self, t: int, rounds: int | None, examples: int, seconds: float) -> None:
        """A round has ended."""
        ...

    def evaluated(self, row: Mapping[str, Any]) -> None:
        """The model was evaluated."""
        ...


@dataclass(eq=False)
class Loop:
    """One run: what it needs, and where it stands."""

    method: Method
    sizes: Sizes
    weights: NDArray[np.int64]  # each client's number of records
    key: Key
    key_name: str
    trainer: Trainer
    ledger: Ledger
    progress: Progress
    plan: Plan
    public: ServersRecords
    held: list[Account] | None = None  # the filters' rows, if the method adapts
    affordable: int | None = None
    rounds: int | None = None
    evaluate_every: int = 1
    budget: Budget | None = None
    delta: float | None = None
    stopped: str | None = None
    caps: dict[str, Any] = field(default_factory=dict[str, Any])
    last: tuple[Round, Any] | None = None
    heard: dict[str, Echoes] = field(default_factory=dict[str, Echoes])
    charged: int = 0  # rounds that were paid for, whether or not their model was kept

    def run(self, watch: Watch | None = None) -> Iterable[Progress]:
        """Yield after every round, so that whoever drives can write checkpoints."""
        done: Round | None = None
        while (r := self.next_round()) is not None:
            began = perf_counter()
            cohort = self.cohort(r)
            if cohort is None:
                break
            try:
                with one_thread():  # the cores are the workers'
                    self.accept(r, cohort, self.one_round(r, cohort))
            except BudgetSpent as why:
                self.stopped = str(why)
                break
            done = r
            examples = looked_at(r, self.weights[cohort])
            took = perf_counter() - began
            self.progress.examples += examples
            self.progress.seconds += took
            if watch is not None:
                watch.round_done(self.progress.t, self.planned_rounds(), examples, took)
            if self.due():
                self.evaluated(r, watch)
            yield self.progress
        p = self.progress
        if p.t and (not p.metrics or p.metrics[-1]["round"] < p.t):  # it ended before its plan did
            self.evaluated(self.plan[-1][0] if done is None else done, watch)

    def evaluated(self, r: Round, watch: Watch | None) -> None:
        """One more row of metrics."""
        row = self.evaluate(r)
        self.progress.metrics.append(row)
        if watch is not None:
            watch.evaluated(row)

    @property
    def validates(self) -> bool:
        """Whether the method follows the loss on the server's own records."""
        return bool(getattr(self.method, "validates", False))

    def planned_rounds(self) -> int | None:
        """How many rounds there will be, as far as that is known."""
        total = sum(count for _, count in self.plan)
        return total if self.affordable is None else min(total, self.affordable)

    def due(self) -> bool:
        """Whether the model is evaluated after this round."""
        t = self.progress.t
        return t % self.evaluate_every == 0 or t == self.planned_rounds()

    def next_round(self) -> Round | None:
        """What the method does next; None when it is over, or when it would overspend."""
        p = self.progress
        if self.rounds is not None and p.t >= self.rounds:
            return None
        if self.validates and not p.validation:
            p.validation = (self.public.loss(p.model),)
        past = Past(p.t, self.sizes, p.model, p.earlier, p.released, p.validation)
        r = self.method.round(past)
        if r is None:
            self.check_end()
            return None
        if self.affordable is not None and p.t >= self.affordable:
            assert self.budget is not None
            self.stopped = (
                f"the budget allows {self.affordable} rounds: one more would exceed epsilon "
                f"{self.budget.epsilon:g} for a {self.budget.unit} to the {self.budget.view}"
            )
            return None
        return r

    def check_end(self) -> None:
        """A method that ends before its plan does has chosen its end from what it has seen."""
        t, rounds = self.progress.t, self.planned_rounds() or 0
        if self.held is None and t < rounds:
            raise RunFailed(
                f"round {t}: {type(self.method).__name__} ends before the {rounds} rounds that it "
                "planned; a method that chooses its end from what it has seen says adapts = True."
            )

    def cohort(self, r: Round) -> NDArray[np.int64] | None:
        """Who takes part, in the order in which their uploads are added; None: too few may."""
        p, clients = self.progress, self.sizes.clients
        stream = self.key.stream(p.t, None, "cohort")
        most = r.cohort.at_most
        if isinstance(r.cohort, Spaced):
            drawn = r.cohort.draw(self.key.stream(0, None, "turns"), clients, p.t)
        elif most is None:
            drawn = r.cohort.draw(stream, clients)
        else:
            free = np.flatnonzero(p.participations < most)
            least = r.cohort.m if isinstance(r.cohort, Fixed) else 1
            if len(free) < least or (isinstance(r.cohort, All) and len(free) < clients):
                self.stopped = (
                    f"round {p.t}: {len(free)} clients may still take part (at_most = {most}), "
                    f"needed are {least if isinstance(r.cohort, Fixed) else clients}"
                )
                return None
            drawn = free[r.cohort.draw(stream, len(free))]
        # The largest first, so that no process is left with a long one at the end.
        return drawn[np.argsort(-self.weights[drawn], kind="stable")]

    def one_round(self, r: Round, cohort: NDArray[np.int64]) -> Published:
        """Charge, train, aggregate, publish; nothing is kept until `accept`."""
        p = self.progress
        with self.ledger.release(self.release(r)) as issue:
            self.charged = p.t + 1
            came = self.received(r, cohort)
            published = self.publish(r, came, len(cohort))
            model, server = r.server(p.model, published, dict(p.server))
            if came.passed_on is not None:
                server = {**server, "passed_on": came.passed_on}
            output = digest(model, *server.values())
            if issue.intent.output not in (None, output):
                raise RunFailed(
                    f"round {p.t}: this round was released before with other bits; resume on the "
                    "machine and with the settings that it ran on."
                )
            issue.output = output
        return Published(model, server, published, output)

    def release(self, r: Round) -> Release:
        """The round as the ledger sees it: the draws it uses, what it depends on, what it costs."""
        p = self.progress
        if self.held is None:
            self.check_planned(r)
        if self.last is None or self.last[0] != r:
            self.last = r, self.charges(r)
        inputs = hashlib.sha256(f"{self.key_name} {p.t} {r!r} {p.output}".encode())
        inputs.update(digest(p.model, *p.server.values()).encode())
        return Release(p.t, "round", f"{self.key_name}/{p.t}", inputs.hexdigest(), self.last[1])

    def charges(self, r: Round) -> tuple[Charge, ...]:
        """What the round costs every row."""
        if self.held is None:
            return spending.charges(r, self.sizes, self.caps)
        try:
            return adapting.charges(r, self.sizes, self.held)
        except Refused as why:
            raise RunFailed(f"round {self.progress.t}: {why}.") from why

    def check_planned(self, r: Round) -> None:
        """A round that was not planned for this moment needs filters."""
        t = self.progress.t
        planned = spending.planned_at(self.plan, t)
        if planned is None or not adapting.as_planned(r, planned, self.sizes):
            raise RunFailed(
                f"round {t}: {type(self.method).__name__} gives away something else than it "
                "planned before anything was released; a method that chooses its noise, its rates "
                "or its end from what it has seen says adapts = True."
            )

    def received(self, r: Round, cohort: NDArray[np.int64]) -> Received:
        """What the cohort uploads, added in its order."""
        p = self.progress
        if isinstance(r.channel, Sum) and len(cohort) < (r.channel.survivors or 0):
            raise RunFailed(
                f"round {p.t}: {len(cohort)} clients came, allowed are at least "
                f"{r.channel.survivors} (Sum: survivors); the round is aborted."
            )
        job = Job(p.t, r, p.model, p.server)
        clients = [int(client) for client in cohort]
        sent = zip(clients, self.trainer.train(job, clients), strict=True)
        return received(r, sent, self.weights)

    def publish(self, r: Round, got: Received, came: int) -> dict[str, Tensor]:
        """What leaves the server: aggregated, then the publish stages; also when nobody came."""
        p = self.progress
        shared = shared_streams(self.key, p.t)
        divisor = self.divisor(r, came)
        out: dict[str, Tensor] = {}
        for name, upload in r.uploads.items():
            if name == "model" and isinstance(r.aggregate, ModeConnectivity):
                order = self.key.stream(p.t, None, "shuffled uploads")
                models = in_the_servers_order(r, got.models, order) or [p.model]
                coins = self.key.stream(p.t, None, "curve")
                vector = joined(models, r.aggregate, self.public.gradient, coins)
            elif name in got.totals:
                vector = got.totals[name].div_(divisor)
            else:
                length = spending.length_after(upload, self.sizes.dim)
                vector = torch.zeros(length, dtype=torch.float64, device=p.model.device)
            own = self.key.stream(p.t, None, f"publish {name}")
            for stage in r.published(name):
                echoed = isinstance(stage, Correlated)
                brings = self.echoes(stage, name, len(vector)) if echoed else own
                vector = passed(stage, vector, shared, brings)
            out[name] = vector.to(p.model.dtype)
        return out

    def echoes(self, stage: Correlated, name: str, length: int) -> Stream:
        """The stream that brings this round's correlated noise of this vector."""
        if name not in self.heard:
            streams = (self.key.stream(t, None, f"correlated {name}") for t in count())
            self.heard[name] = Echoes(stage.c, streams)
        return self.heard[name].reach(self.progress.t, length)

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

    def accept(self, r: Round, cohort: NDArray[np.int64], done: Published) -> None:
        """Take the release into the past; refuse a model that is not made of numbers."""
        p = self.progress
        if not bool(torch.isfinite(done.model).all()):
            raise Diverged(
                f"round {p.t}: the model has values that are not finite; {self.remedy(r)} What was "
                "spent stays spent."
            )
        keep = int(getattr(self.method, "keep", 0))
        p.earlier = (*p.earlier, p.model)[-keep:] if keep else ()
        small = [
            Released(p.t, name, value_of(vector), "world")
            for name, vector in done.published.items()
            if r.uploads[name].length is not None
        ]
        p.released = (*p.released, *small)
        p.model, p.server, p.output = done.model, done.server, done.output
        if self.validates:
            p.validation = (*p.validation, self.public.loss(p.model))
        p.participations[cohort] += 1
        p.t += 1

    def remedy(self, r: Round) -> str:
        """The setting that a model without numbers most likely comes from."""
        eta = getattr(r.local.step, "eta", None)
        rate = "learning rate" if eta is None else f"learning rate than eta = {eta}"
        return f"a smaller {rate}, or a clip, would prevent that (settings: {self.method})."

    def evaluate(self, r: Round) -> dict[str, Any]:
        """One row of metrics, with what has been spent so far."""
        scores = self.trainer.evaluate(self.progress.model)
        row: dict[str, Any] = {"round": self.progress.t, **scores.figures()}
        if not isfinite(row["loss"]):
            raise Diverged(
                f"round {self.progress.t - 1}: the loss is {row['loss']}; {self.remedy(r)} "
                "What was spent stays spent."
            )
        row["spent"] = self.spent()
        return row

    def spent(self) -> dict[str, float | str]:
        """Epsilon so far for the rows that people watch: those that are cheap, and the budget's."""
        watched = [("client", "world"), ("client", "server"), ("record", "server")]
        if self.budget is not None and self.budget.key[:2] not in watched:
            watched.append(self.budget.key[:2])
        out: dict[str, float | str] = {}
        for unit, observer in watched:
            try:
                epsilon = self.spent_of((unit, observer, "update"))
            except Refused:
                continue
            out[f"{unit}/{observer}"] = epsilon if isfinite(epsilon) else "inf"
        return out

    def spent_of(self, key: CellKey) -> float:
        """Epsilon so far for one row, for the worst group of clients."""
        if self.held is not None:
            t = self.progress.t
            return max(adapting.spent(self.ledger, one, t) for one in self.held if one.key == key)
        done = spending.first_rounds(self.plan, self.progress.t)
        return spending.spent(done, self.sizes, key, self.delta).epsilon


@dataclass(frozen=True, eq=False)
class Published:
    """What one round made."""

    model: Tensor
    server: dict[str, Tensor]
    published: dict[str, Tensor]
    output: str


def value_of(vector: Tensor) -> Any:
    """A released number as a float, a vector as it is."""
    return float(vector) if vector.numel() == 1 else vector.clone()


def looked_at(r: Round, records: NDArray[np.int64]) -> int:
    """How many examples' gradients these clients take in the round (on average under Poisson)."""
    sampler, steps = r.local.sampler, r.local.steps * r.local.step.gradients
    if isinstance(sampler, Fixed):
        return steps * sampler.m * int(np.count_nonzero(records))
    share = sampler.q if isinstance(sampler, Poisson) else 1.0
    return round(steps * share * int(records.sum()))


def digest(*vectors: Tensor) -> str:
    """SHA-256 of the vectors' bytes."""
    total = hashlib.sha256()
    for vector in vectors:
        total.update(vector.detach().cpu().contiguous().numpy().data)
    return total.hexdigest()
