"""A finished run as its audit needs it: made again from its run file, up to the first round.

The method, its noise, the federation and the plan are derived anew, by the code that a run begins
with. What the run left is only read: its model, its statement, its ledger and its taps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor, nn

from confide.audit.membership import Evidence
from confide.audit.planting import joined
from confide.data import load
from confide.data.dataset import Federation
from confide.engine import safetensors
from confide.engine.books import Books, opened
from confide.engine.calibrating import calibrated
from confide.engine.flat import Flat
from confide.engine.gradients import example_gradient_of, gradient_of
from confide.engine.materials import built, dealt, loss_of
from confide.engine.running import DTYPES
from confide.engine.spending import sizes_of
from confide.report.fields import Fields, NotARun
from confide.report.fields import load as load_json
from confide.report.finding import ended, find_runs
from confide.runfiles.reading import read
from confide.runfiles.runfile import RunFile, parse

if TYPE_CHECKING:
    from confide.engine.running import Run

ANY_SEED = 0
"""In place of a seed that is not there, where sizes do not depend on it."""


@dataclass(frozen=True, eq=False)
class Finished:
    """A run that has ended; `place` is its directory, if it has one."""

    method: str
    books: Books
    federation: Federation
    records: int  # of its training records; beyond them there are an audit's dummies
    module: nn.Module
    dtype: str
    rounds: int
    place: Path | None
    model: Mapping[str, Tensor] | None  # none where it diverged
    private: bool  # whether its private directory is there

    def flat(self) -> Flat:
        """The model's layout."""
        return Flat(self.module, DTYPES[self.dtype])

    def evidence(self) -> Evidence:
        """What everybody has of it: its last model, and how to compute with it."""
        flat = self.flat()
        loss = loss_of(self.module, self.federation.data)
        gradient, examples = gradient_of(flat, loss), example_gradient_of(flat, loss)
        assert self.model is not None

        def losses(model: Tensor, x: Tensor, y: Tensor) -> Tensor:
            return gradient.losses(model, x.to(model.dtype), y)

        def gradients(model: Tensor, x: Tensor, y: Tensor) -> Tensor:
            return examples.each(model, x.to(model.dtype), y)

        return Evidence("world", flat.gather(self.model), losses, gradients, self.rounds)


def of_run(run: Run) -> Finished:
    """A run that is still at hand."""
    return Finished(
        method=type(run.method).__name__,
        books=run.books,
        federation=run.federation,
        records=real_records(run),
        module=run.module,
        dtype=str(next(iter(run.parameters.values())).dtype).removeprefix("torch."),
        rounds=run.rounds,
        place=run.dir,
        model=None if run.failed else run.parameters,
        private=True,
    )


def real_records(run: Run) -> int:
    """How many training records are not an audit's."""
    held = len(run.federation.data.x_train)
    canaries = None if run.audit is None else run.audit.canaries
    return held if canaries is None or canaries.unit == "client" else canaries.first


def of_directory(place: Path) -> Finished:
    """The run that lies there; whatever is missing is one sentence."""
    found = find_runs([place])
    if found != [place]:
        names = ", ".join(str(one) for one in found[:4])
        raise NotARun(f"audit: {place} holds {len(found)} runs, allowed is one of them: {names}.")
    path = ended(place)
    public = Fields(path, load_json(path))
    file, private = run_file(place)
    seed = file.seeds[0]
    method = file.built()
    data = load(file.data.name, **file.data.options)
    federation = dealt(
        data, file.data.clients, file.data.partition, seed, file.data.validation,
        file.data.public, method,
    )  # fmt: skip
    if not private and not (federation.by_chance and equal(federation)):
        raise NotARun(
            f"audit: {place} has no private/run.toml, and the clients' numbers of records depend "
            "on the seed in it; allowed is the owner's whole directory."
        )
    module, _ = built(file.model.name, data, seed, file.model.norm, method)
    flat = Flat(module, DTYPES[file.run.dtype])
    if file.audit is not None:
        federation, _ = joined(federation, file.audit, method, flat, file.rounds, file.budget)
    sizes = sizes_of(federation, flat.layers)
    keeps = file.keeps_noise(method)
    if file.budget is not None and not keeps:
        method = calibrated(method, sizes, file.budget, file.rounds)
    books = opened(method, sizes, file.rounds, file.budget, not keeps, None)
    weights = place / "public" / "model.safetensors"
    model = safetensors.read(weights) if path.name == "run.json" else None
    return Finished(
        file.label, books, federation, len(data.x_train), module, file.run.dtype,
        public.whole("rounds"), place, model, private,
    )  # fmt: skip


def run_file(place: Path) -> tuple[RunFile, bool]:
    """The run file with its seed; without `private/`, the public one."""
    private, public = (place / part / "run.toml" for part in ("private", "public"))
    if private.is_file():
        return parse(read(str(private))), True
    if not public.is_file():
        raise NotARun(
            f"audit: {place} has no run.toml: it was started from Python, allowed there is "
            "confide.audit(run) with the run itself."
        )
    return replace(parse(read(str(public))), seeds=(ANY_SEED,)), False


def equal(federation: Federation) -> bool:
    """Whether records were dealt as evenly as they can be, whatever the seed."""
    sizes = federation.sizes
    return int(sizes.max() - sizes.min()) <= 1
