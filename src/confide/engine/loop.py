"""The one loop that runs every method.

In each round: ask the method what to do, charge the ledger, draw the cohort, train, pass the
uploads through channel, aggregate and publish, let the server make the next model, record the end
of the release. The commits on disk come in the order charge, end, metrics, checkpoint; after a kill
at any point the same rounds are run again from the last checkpoint, to the same bits, and the
ledger replays what it has seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.channels import Sum
from confide.cohorts import All, Fixed, Poisson, Spaced
from confide.engine.books import Books
from confide.engine.checkpoint import Progress
from confide.engine.client import Job
from confide.engine.ending import Diverged, RunFailed
from confide.engine.public import ServersRecords
from confide.engine.publishing import Publisher
from confide.engine.rounds import Past, Released, Round
from confide.engine.sightings import Sightings
from confide.engine.taps import Taps, Uploads
from confide.engine.trainers import Trainer, one_thread
from confide.engine.uploads import Received, received
from confide.engine.watching import Watch
from confide.ledger import BudgetSpent, Ledger, Release
from confide.randomness import Key
from confide.stages import Clip, ClipLayers

MODEL = ("update", "model")
"""The next model is made of these, so they are not kept beside it."""


@dataclass(eq=False)
class Loop:
    """One run: what it needs, and where it stands."""

    books: Books
    weights: NDArray[np.int64]  # each client's number of records
    key: Key
    key_name: str
    trainer: Trainer
    ledger: Ledger
    progress: Progress
    public: ServersRecords
    sightings: Sightings | None = None  # of an audit's canaries
    rounds: int | None = None
    evaluate_every: int = 1
    stopped: str | None = None
    last: tuple[Round, Any] | None = None
    charged: int = 0  # rounds that were paid for, whether or not their model was kept
    taps: Taps | None = None

    def __post_init__(self) -> None:
        """The server has said nothing yet."""
        self.publisher = Publisher(self.key, self.books.sizes, self.public)

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
                watch.round_done(self.progress.t, self.books.rounds, examples, took)
            if self.due():
                self.evaluated(r, watch)
            yield self.progress
        p = self.progress
        if p.t and (not p.metrics or p.metrics[-1]["round"] < p.t):  # it ended before its plan did
            self.evaluated(self.books.plan[-1][0] if done is None else done, watch)

    def evaluated(self, r: Round, watch: Watch | None) -> None:
        """One more row of metrics."""
        row = self.evaluate(r)
        self.progress.metrics.append(row)
        if watch is not None:
            watch.evaluated(row)

    @property
    def validates(self) -> bool:
        """Whether the method follows the loss on the server's own records."""
        return bool(getattr(self.books.method, "validates", False))

    def due(self) -> bool:
        """Whether the model is evaluated after this round."""
        t = self.progress.t
        return t % self.evaluate_every == 0 or t == self.books.rounds

    def next_round(self) -> Round | None:
        """What the method does next; None when it is over, or when it would overspend."""
        p = self.progress
        if self.rounds is not None and p.t >= self.rounds:
            return None
        if self.validates and not p.validation:
            p.validation = (self.public.loss(p.model),)
        past = Past(p.t, self.books.sizes, p.model, p.earlier, p.released, p.validation)
        r = self.books.method.round(past)
        if r is None:
            self.books.check_end(p.t)
            return None
        most, budget = self.books.affordable, self.books.budget
        if most is not None and p.t >= most:
            assert budget is not None
            self.stopped = (
                f"the budget allows {most} rounds: one more would exceed epsilon "
                f"{budget.epsilon:g} for a {budget.unit} to the {budget.view}"
            )
            return None
        return r

    def cohort(self, r: Round) -> NDArray[np.int64] | None:
        """Who takes part, in the order in which their uploads are added; None: too few may."""
        p, clients = self.progress, self.books.sizes.clients
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
        if self.sightings is not None:
            drawn = self.sightings.canaries.present(drawn)
        # The largest first, so that no process is left with a long one at the end.
        return drawn[np.argsort(-self.weights[drawn], kind="stable")]

    def one_round(self, r: Round, cohort: NDArray[np.int64]) -> Published:
        """Charge, train, aggregate, publish; nothing is kept until `accept`."""
        p = self.progress
        with self.ledger.release(self.release(r)) as issue:
            self.charged = p.t + 1
            came = self.received(r, cohort)
            published = self.publisher.publish(r, p.t, p.model, came, len(cohort))
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
        if self.taps is not None:
            self.taps.ended(p.t, r, p.model, p.server, published)
        return Published(model, server, published, output)

    def release(self, r: Round) -> Release:
        """The round as the ledger sees it: the draws it uses, what it depends on, what it costs."""
        p = self.progress
        self.books.check_planned(r, p.t)
        if self.last is None or self.last[0] != r:
            self.last = r, self.books.charges(r, p.t)
        inputs = hashlib.sha256(f"{self.key_name} {p.t} {r!r} {p.output}".encode())
        if not p.output:  # which is made of the model and the server's vectors, later
            inputs.update(digest(p.model, *p.server.values()).encode())
        return Release(p.t, "round", f"{self.key_name}/{p.t}", inputs.hexdigest(), self.last[1])

    def received(self, r: Round, cohort: NDArray[np.int64]) -> Received:
        """What the cohort uploads, added in its order."""
        p = self.progress
        if isinstance(r.channel, Sum) and len(cohort) < (r.channel.survivors or 0):
            raise RunFailed(
                f"round {p.t}: {len(cohort)} clients came, allowed are at least "
                f"{r.channel.survivors} (Sum: survivors); the round is aborted."
            )
        inside = self.taps is not None and self.taps.inside
        job = Job(p.t, r, p.model, p.server, inside)
        clients = [int(client) for client in cohort]
        sent: Uploads = zip(clients, self.trainer.train(job, clients), strict=True)
        weights = self.weights
        if self.sightings is not None:
            weights = self.sightings.canaries.weighed(weights)
        recorders = [one for one in (self.taps, self.sightings) if one is not None]
        for one in recorders:
            sent = one.heard(r, sent)
        came = received(r, sent, weights)
        for one in recorders:
            one.summed(came.totals)
        return came

    def accept(self, r: Round, cohort: NDArray[np.int64], done: Published) -> None:
        """Take the release into the past; refuse a model that is not made of numbers."""
        p = self.progress
        if not bool(torch.isfinite(done.model).all()):
            raise Diverged(
                f"round {p.t}: the model has values that are not finite; {self.remedy(r)} What was "
                "spent stays spent."
            )
        if self.sightings is not None:
            self.sightings.ended(p.t, r, p.model, p.server, done.published)
            p.sightings = self.sightings.kept
        keep = int(getattr(self.books.method, "keep", 0))
        p.earlier = (*p.earlier, p.model)[-keep:] if keep else ()
        small = [
            Released(p.t, name, value_of(vector), "world")
            for name, vector in done.published.items()
            if r.uploads[name].length is not None and name not in MODEL
        ]
        p.released = (*p.released, *small)
        p.model, p.server, p.output = done.model, done.server, done.output
        if self.validates:
            p.validation = (*p.validation, self.public.loss(p.model))
        p.participations[cohort] += 1
        p.t += 1

    def remedy(self, r: Round) -> str:
        """The setting that a model without numbers most likely comes from."""
        sent = (s for at, name, s in r.stages() if at == "upload" and name in ("update", "model"))
        clip = next((stage for stage in sent if isinstance(stage, Clip | ClipLayers)), None)
        eta = getattr(r.local.step, "eta", None)
        if clip is not None:  # so it is nothing that a client did
            likely = f"a smaller clip than {clip}, less noise, or a smaller step than {r.server},"
        elif eta is not None:
            likely = f"a smaller learning rate than eta = {eta}, or a clip,"
        else:
            likely = "a smaller learning rate, or a clip,"
        return f"{likely} would prevent that (settings: {self.books.method})."

    def evaluate(self, r: Round) -> dict[str, Any]:
        """One row of metrics, with what has been spent so far."""
        scores = self.trainer.evaluate(self.progress.model)
        row: dict[str, Any] = {"round": self.progress.t, **scores.figures()}
        if not isfinite(row["loss"]):
            raise Diverged(
                f"round {self.progress.t - 1}: the loss is {row['loss']}; {self.remedy(r)} "
                "What was spent stays spent."
            )
        row["spent"] = self.books.spent(self.ledger, self.progress.t)
        return row


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
