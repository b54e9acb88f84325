"""`run`: a method, data and a model become a finished run with its statement."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from confide.data import federate, load
from confide.data.dataset import Dataset, Federation
from confide.engine import adapting, spending
from confide.engine.calibrating import calibrated
from confide.engine.checkpoint import Progress
from confide.engine.checkpoint import load as load_checkpoint
from confide.engine.checkpoint import save as save_checkpoint
from confide.engine.devices import trainer_for
from confide.engine.directory import Directory
from confide.engine.flat import Flat
from confide.engine.loop import Diverged, Loop, Watch
from confide.engine.public import ServersRecords
from confide.engine.records import write
from confide.engine.rounds import Method, published_of
from confide.engine.spending import Budget
from confide.engine.trainers import Recipe
from confide.engine.uploads import check_joining
from confide.ledger import Ledger
from confide.models import build
from confide.published.value import Published
from confide.randomness import Key
from confide.rounding import bound
from confide.statements import Statement, state

CHECKPOINT = "checkpoint.pt"
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
    failed: str | None = None  # why there is no model

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
) -> Run:
    """Train `method` on `data` dealt to `clients`, and state what was given away.

    `budget` sets the method's noise (with `calibrate`), or ends the run before it would overspend
    (without). `out` is the run's directory; with `resume` the run that lies there goes on to the
    same bits as if it had never stopped. The seed is public and undoes the noise: a simulation.
    """
    if dtype not in DTYPES:
        raise ValueError(f"run: dtype = {dtype!r}, allowed are {' and '.join(DTYPES)}.")
    federation = dealt(data, clients, partition, seed, validation, public, method)
    module, named = built(model, federation.data, seed, norm, method)
    flat = Flat(module, DTYPES[dtype])
    sizes = spending.sizes_of(federation, flat.layers)
    if budget is not None and calibrate:
        method = calibrated(method, sizes, budget, rounds)
    plan = spending.check_planned(method, sizes, rounds)
    total = sum(count for _, count in plan)
    held: list[adapting.Account] | None = None
    afford: int | None = None
    if adapting.adapts(method):
        at, own = delta if budget is None else budget.delta, None if calibrate else budget
        held = adapting.accounts(plan, sizes, at, own)
        fits = adapting.starts(plan, sizes, held, own)
    else:
        afford = None if budget is None else spending.affordable(plan, sizes, budget)
        fits = afford != 0
    if not fits and budget is not None:
        raise ValueError(
            f"budget: epsilon = {budget.epsilon:g}, and not even one round fits; allowed is more, "
            "or more noise."
        )
    fingerprint = fingerprint_of(method, federation, named, seed, dtype, strategy)
    key = Key.from_seed(seed)
    recipe = Recipe(
        module,
        getattr(module, "loss", "cross-entropy" if federation.data.classes else "squared"),
        federation,
        key,
        DTYPES[dtype],
        strategy,
        *memory_for(plan, sizes, DTYPES[dtype]),
    )
    caps = (
        spending.accounts(plan, sizes, budget, afford or total)
        if held is None
        else {one.name: one.cap for one in held}
    )
    on_cuda = device != "cpu" and torch.cuda.is_available()
    for r, _ in plan:
        held_at = torch.device("cuda" if on_cuda else "cpu")
        check_joining(r, sizes, len(federation.public), DTYPES[dtype], held_at)
    with place(out, resume, caps) as (directory, ledger):
        progress = reached(directory, ledger, fingerprint) if resume else None
        progress = progress or Progress(flat.vector.clone(), np.zeros(sizes.clients, np.int64))
        recipe = with_memory(recipe, progress)
        trainer = trainer_for(recipe, plan[0][0], sizes, device, workers)
        progress.move(trainer.device)
        every = evaluate_every or max(1, total // 20)
        loop = Loop(
            method=method,
            sizes=sizes,
            weights=federation.sizes,
            key=key,
            key_name=f"seed {seed} {fingerprint[:16]}",
            trainer=trainer,
            ledger=ledger,
            progress=progress,
            plan=plan,
            public=ServersRecords(recipe),
            held=held,
            affordable=afford,
            rounds=rounds,
            evaluate_every=every,
            budget=budget,
            delta=delta if budget is None else budget.delta,
            caps=caps,
        )
        try:
            for now in loop.run(watch):
                stopping = watch is not None and watch.stopping
                due = now.t % (checkpoint_every or every) == 0
                if directory is not None and (due or stopping):
                    now.memory, now.remembered = recipe.memory, recipe.remembered
                    now.head = ledger.head()
                    directory.write_lines("public/metrics.jsonl", now.metrics)
                    save_checkpoint(directory.private / CHECKPOINT, now, fingerprint)
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


def dealt(
    data: str | Dataset | Federation,
    clients: int | None,
    partition: Mapping[str, Any] | None,
    seed: int,
    validation: float,
    public: float,
    method: Method,
) -> Federation:
    """The federation, by default with as many clients as the method's paper has."""
    if isinstance(data, Federation):
        return data
    loaded = load(data) if isinstance(data, str) else data
    setting: Any = getattr(type(method), "setting", None)
    if clients is None:
        clients = 100 if setting is None else setting.clients
    return federate(loaded, clients, partition, seed, validation=validation, public=public)


def built(
    model: str | nn.Module | None, data: Dataset, seed: int, norm: str | None, method: Method
) -> tuple[nn.Module, str]:
    """The model with its first parameters, and its name."""
    if isinstance(model, nn.Module):
        return model, type(model).__name__
    name = model or default_model(data)
    return build(name, data.shape, data.outputs, seed, norm=norm), name


def default_model(data: Dataset) -> str:
    """A small model that fits the records."""
    if data.classes is None:
        return "wind-cnn"
    return "mlp" if data.shape == (1, 28, 28) else "cnn2" if len(data.shape) == 3 else "tabular"


def fingerprint_of(
    method: Method, federation: Federation, model: str, seed: int, dtype: str, strategy: str
) -> str:
    """What must be the same for a run to go on."""
    total = hashlib.sha256(federation.data.fingerprint.encode())
    for held in federation.clients:
        total.update(np.ascontiguousarray(held).data)
    total.update(repr((repr(method), federation.partition, model, seed, dtype, strategy)).encode())
    return total.hexdigest()


def memory_for(
    plan: spending.Plan, sizes: spending.Sizes, dtype: torch.dtype
) -> tuple[Tensor | None, Tensor | None]:
    """Room for what clients keep, if a round of the method says that they do."""
    if not any(r.local.remembers for r, _ in plan):
        return None, None
    return (
        torch.zeros(sizes.clients, sizes.dim, dtype=dtype),
        torch.zeros(sizes.clients, dtype=torch.bool),
    )


def with_memory(recipe: Recipe, progress: Progress) -> Recipe:
    """The recipe, its memory filled from the checkpoint."""
    if progress.memory is not None and recipe.memory is not None:
        assert recipe.remembered is not None and progress.remembered is not None
        recipe.memory.copy_(progress.memory)
        recipe.remembered.copy_(progress.remembered)
    return recipe


@contextmanager
def place(
    out: str | Path | None, resume: bool, caps: dict[str, Any]
) -> Generator[tuple[Directory | None, Ledger]]:
    """The run's directory with its ledger; without `out`, a ledger for as long as the run lasts."""
    if out is None:
        with (
            tempfile.TemporaryDirectory(dir=memory_disk()) as passing,
            Ledger.create(Path(passing) / "ledger.sqlite", caps) as ledger,
        ):
            yield None, ledger
        return
    directory = Directory.open(Path(out)) if resume else Directory.create(Path(out))
    path = directory.private / "ledger.sqlite"
    if not path.exists() and (directory.private / CHECKPOINT).exists():
        raise ValueError(
            f"resume: {path} is missing, though the run has a checkpoint; allowed is the ledger "
            "that says what it has spent."
        )
    with Ledger.open(path) if path.exists() else Ledger.create(path, caps) as ledger:
        yield directory, ledger


def memory_disk() -> str | None:
    """Where a ledger that nobody will read again need not wait for a disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None


def reached(directory: Directory | None, ledger: Ledger, fingerprint: str) -> Progress | None:
    """The last checkpoint, if the ledger knows of every release that led to it."""
    if directory is None:
        raise ValueError("run: resume = True without out, allowed is out = the run's directory.")
    progress = load_checkpoint(directory.private / CHECKPOINT, fingerprint)
    if progress is not None:
        ledger.verify(progress.head)
    return progress


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
    claim = published_of(loop.method, loop.sizes)
    statement = statement_of(loop, claim)
    flat = Flat(module, p.model.dtype)
    return Run(
        method=loop.method,
        data=federation.data.name,
        model=model,
        seed=seed,
        clients=loop.sizes.clients,
        rounds=p.t,
        planned=sum(count for _, count in loop.plan),
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
        budget=loop.budget,
        dir=None if directory is None else directory.path,
        failed=None if failed is None else str(failed),
    )


def statement_of(loop: Loop, claim: Published | None) -> Statement:
    """What the rounds that were made give away, or what the filters allowed them to."""
    key, done = "public seed", max(loop.progress.t, loop.charged)
    if loop.held is not None:
        return adapting.state(loop.held, loop.plan, done, loop.sizes, claim, key)
    made = spending.first_rounds(loop.plan, done)
    return state(made, loop.sizes, delta=loop.delta, published=claim, key=key)
