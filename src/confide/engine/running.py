"""`run`: a method, data and a model become a finished run with its statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from confide.data.dataset import Dataset, Federation
from confide.engine.books import Books, opened
from confide.engine.calibrating import calibrated
from confide.engine.canaries import Planting
from confide.engine.checkpoint import Progress
from confide.engine.devices import check_device, trainer_for
from confide.engine.directory import Directory
from confide.engine.ending import Diverged
from confide.engine.flat import Flat
from confide.engine.loop import Loop
from confide.engine.materials import built, dealt, fingerprint_of, loss_of
from confide.engine.public import ServersRecords
from confide.engine.records import write
from confide.engine.resuming import memory_for, place, reached, save_progress, with_memory
from confide.engine.rounds import Method, published_of
from confide.engine.sightings import Sightings
from confide.engine.spending import Budget, sizes_of
from confide.engine.tappable import check_taps
from confide.engine.taps import open_taps
from confide.engine.trainers import Recipe
from confide.engine.uploads import check_joining
from confide.engine.watching import Watch
from confide.published.value import Published
from confide.randomness import Key
from confide.rounding import bound
from confide.statements import Statement

if TYPE_CHECKING:
    from confide.audit.judging import OneRun

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run."""

    method: Method
    data: str
    model: str
    seed: int
    clients: int
    rounds: int
    planned: int
    metrics: tuple[dict[str, Any], ...]
    seconds: float
    examples: int
    statement: Statement
    published: Published | None
    parameters: Mapping[str, Tensor]
    strategy: str
    stopped: str | None
    participations: int  # the most that any client had
    federation: Federation
    budget: Budget | None
    dir: Path | None
    books: Books
    module: nn.Module  # with its first parameters
    failed: str | None = None  # why there is no model
    audit: OneRun | None = None  # what its canaries say, where it has some

    @property
    def examples_per_second(self) -> float:
        """How many examples' gradients were taken in a second."""
        return self.examples / self.seconds if self.seconds else 0.0

    @property
    def accuracy(self) -> float | None:
        """On the held-out records, after the last round; None for a regression."""
        return self.metrics[-1].get("accuracy") if self.metrics else None

    @property
    def loss(self) -> float | None:
        """On the held-out records, after the last round."""
        return self.metrics[-1]["loss"] if self.metrics else None

    def report(self, out: str | Path = "report.html") -> Path:
        """Write the HTML report: one file that needs no other."""
        from confide.report import record_of, write_report

        return write_report([self.dir or record_of(self)], Path(out))

    def __str__(self) -> str:
        """The run at a glance."""
        from confide.report.digits import counted

        right, loss = self.accuracy, self.loss
        score = f"accuracy {right:.1%}" if right is not None else f"loss {loss:.4g}"
        proved = [c for c in self.statement.cells if c.of == "update" and c.epsilon < inf]
        told = ", ".join(f"{c.unit} to {c.observer} ε ≤ {bound(c.epsilon, 3)}" for c in proved)
        return (
            f"{type(self.method).__name__} on {self.data}: {score} "
            f"after {counted(self.rounds, 'round')}, {self.seconds:.1f} s; "
            f"{told or 'nobody is protected from anybody'}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """For notebooks."""
        from confide.report.notebook import card
        from confide.report.record import record_of

        return card(record_of(self), self.seconds)


def run(
    method: Method,
    data: str | Dataset | Federation = "mnist",
    *,
    clients: int | None = None,
    partition: Mapping[str, Any] | None = None,
    model: str | nn.Module | None = None,
    norm: str | None = None,
    rounds: int | None = None,
    seed: int = 0,
    budget: Budget | None = None,
    calibrate: bool = True,
    delta: float | None = None,
    device: str = "auto",
    dtype: str = "float32",
    workers: int | None = None,
    strategy: str = "auto",
    evaluate_every: int | None = None,
    checkpoint_every: int | None = None,
    validation: float = 0.0,
    public: float = 0,
    out: str | Path | None = None,
    resume: bool = False,
    watch: Watch | None = None,
    taps: Sequence[str] = (),
    audit: Planting | None = None,
) -> Run:
    """Train `method` on `data` dealt to `clients`, and state what was given away.

    `budget` sets the method's noise (with `calibrate`), or ends the run before it would overspend
    (without). `out` is the run's directory; with `resume` the run that lies there goes on to the
    same bits as if it had never stopped. The seed is public and undoes the noise: a simulation.
    `taps` names observers (`device`, `server`, `world`) whose views are kept in the directory.
    With `audit` the run holds canaries, and says what they tell about its statement.
    """
    if dtype not in DTYPES:
        raise ValueError(f"run: dtype = {dtype!r}, allowed are {' and '.join(DTYPES)}.")
    check_device(device)
    federation = dealt(data, clients, partition, seed, validation, public, method)
    module, named = built(model, federation.data, seed, norm, method)
    flat = Flat(module, DTYPES[dtype])
    if audit is not None:
        from confide.audit.planting import joined

        federation, audit = joined(federation, audit, method, flat, rounds, budget)
    sizes = sizes_of(federation, flat.layers)
    if budget is not None and calibrate:
        method = calibrated(method, sizes, budget, rounds)
    books = opened(method, sizes, rounds, budget, calibrate, delta)
    fingerprint = fingerprint_of(method, federation, named, seed, dtype, strategy)
    key = Key.from_seed(seed)
    recipe = Recipe(
        module,
        loss_of(module, federation.data),
        federation,
        key,
        DTYPES[dtype],
        strategy,
        *memory_for(books.plan, sizes, DTYPES[dtype]),
    )
    sightings: Sightings | None = None
    if audit is not None:
        from confide.audit.planting import sown

        canaries, odds = sown(books, federation, recipe, flat, audit)
        recipe, sightings = replace(recipe, canaries=canaries), Sightings(canaries, odds)
    on_cuda = device != "cpu" and torch.cuda.is_available()
    for r, _ in books.plan:
        held_at = torch.device("cuda" if on_cuda else "cpu")
        check_joining(r, sizes, len(federation.public), DTYPES[dtype], held_at)
    if taps:
        device = check_taps(taps, books.plan, sizes, DTYPES[dtype], out, device, strategy)
    with place(out, resume, books.caps) as (directory, ledger):
        progress = reached(directory, ledger, fingerprint) if resume else None
        progress = progress or Progress(flat.vector.clone(), np.zeros(sizes.clients, np.int64))
        recipe = with_memory(recipe, progress)
        if sightings is not None:
            sightings.kept = progress.sightings
        trainer = trainer_for(recipe, books.plan[0][0], sizes, device, workers)
        progress.move(trainer.device)
        every = evaluate_every or max(1, books.planned // 20)
        loop = Loop(
            books=books,
            weights=federation.sizes,
            key=key,
            key_name=f"seed {seed} {fingerprint[:16]}",
            trainer=trainer,
            ledger=ledger,
            progress=progress,
            public=ServersRecords(recipe),
            sightings=sightings,
            rounds=rounds,
            evaluate_every=every,
            taps=None if directory is None else open_taps(taps, directory.path, key, progress.t),
        )
        try:
            for now in loop.run(watch):
                stopping = watch is not None and watch.stopping
                due = now.t % (checkpoint_every or every) == 0
                if directory is not None and (due or stopping):
                    save_progress(directory, now, ledger, recipe, fingerprint)
                if stopping:
                    raise KeyboardInterrupt
        except Diverged as why:
            if directory is not None:
                write(directory, result(loop, federation, named, seed, module, directory, why))
            raise
        finally:
            trainer.close()
        finished = result(loop, federation, named, seed, module, directory)
        if directory is not None:
            write(directory, finished)
    return finished


def result(
    loop: Loop,
    federation: Federation,
    model: str,
    seed: int,
    module: nn.Module,
    directory: Directory | None,
    failed: Diverged | None = None,
) -> Run:
    """Everything that a run that has ended can be asked."""
    p = loop.progress
    if not p.t and failed is None:
        raise ValueError(f"run: {loop.stopped or 'the method has no rounds'}; nothing was trained.")
    books = loop.books
    claim = published_of(books.method, books.sizes)
    # Where a run diverges depends on what it saw: only all that was planned holds at every end.
    covered = max(p.t, loop.charged) if failed is None else books.rounds
    statement = books.statement(covered, claim)
    flat = Flat(module, p.model.dtype)
    return Run(
        method=books.method,
        data=federation.data.name,
        model=model,
        seed=seed,
        clients=books.sizes.clients,
        rounds=p.t,
        planned=books.planned,
        metrics=tuple(p.metrics),
        seconds=p.seconds,
        examples=p.examples,
        statement=statement,
        published=claim,
        parameters=flat.state_dict(p.model.cpu()),
        strategy=loop.trainer.words,
        stopped=loop.stopped,
        participations=int(p.participations.max()),
        federation=federation,
        budget=books.budget,
        dir=None if directory is None else directory.path,
        books=books,
        module=module,
        failed=None if failed is None else str(failed),
        audit=None if loop.sightings is None else judged(loop, loop.sightings),
    )


def judged(loop: Loop, sightings: Sightings) -> OneRun | None:
    """What the canaries of the rounds that were made tell; None before the first of them."""
    from confide.audit.judging import judge

    p = loop.progress
    return judge(loop.books, sightings, p.t, p.participations) if p.t else None
