"""A run file carried out: each method with each seed in a directory of its own, one after another.

The order of what is written makes every kill harmless: the run file first, the model last. What
has its `public/run.json` is finished; everything else goes on where its checkpoint is.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from confide.accounting.relations import Refused
from confide.data import federate, load
from confide.data.dataset import Dataset
from confide.engine.calibrating import noise_field
from confide.engine.devices import check_device
from confide.engine.directory import Directory
from confide.engine.flat import Flat
from confide.engine.materials import default_model
from confide.engine.rounds import Past, Sizes
from confide.engine.running import DTYPES, Run, run
from confide.engine.spending import sizes_of
from confide.engine.watching import Watch
from confide.models import build
from confide.report.fields import Fields
from confide.report.fields import load as load_json
from confide.runfiles.reading import moved
from confide.runfiles.runfile import RunFile
from confide.runfiles.toml import dump

RUN_FILE = "private/run.toml"
MOST_CLIENTS = 100


@dataclass(frozen=True)
class Place:
    """One run and its directory."""

    file: RunFile
    path: Path

    @property
    def finished(self) -> bool:
        """Whether it ran to its end and left a model."""
        return (self.path / "public" / "run.json").is_file()

    @property
    def failure(self) -> str | None:
        """Why it has no model and never will have; its statement stands all the same."""
        path = self.path / "public" / "failed.json"
        return Fields(path, load_json(path)).text("failed") if path.is_file() else None


def resolved(file: RunFile) -> RunFile:
    """The run file with the number of clients that its first method's paper has."""
    if file.data.clients is not None or (file.data.partition or {}).get("kind") == "column":
        return file
    setting: Any = getattr(type(file.singles()[0].built()), "setting", None)
    clients = MOST_CLIENTS if setting is None else setting.clients
    return replace(file, data=replace(file.data, clients=clients))


def loaded(file: RunFile) -> Dataset:
    """The data, once for all runs."""
    return load(file.data.name, **file.data.options)


def check(file: RunFile, data: Dataset) -> None:
    """Everything that can be refused before a directory is made or a model trained."""
    check_device(file.run.device)
    sizes = sizes_at(file, data)
    for name in file.methods:
        single = file.single(name, file.seeds[0])
        method = single.built()
        if file.budget and not single.keeps_noise(method) and noise_field(method) is None:
            raise Refused(
                f"Method {single.label}: with [budget] it would need a noise that can be "
                "calibrated (noise_field), and it has none; allowed is a run without it."
            )
        if method.round(Past(sizes=sizes)) is None:
            raise ValueError(
                f"Method {single.label}: it has no rounds, so there is nothing to run."
            )


def sizes_at(file: RunFile, data: Dataset) -> Sizes:
    """The public numbers of the federation of the first seed."""
    dealt, model = file.data, file.model.name or default_model(data)
    federation = federate(
        data,
        dealt.clients,
        dealt.partition,
        file.seeds[0],
        validation=dealt.validation,
        public=dealt.public,
    )
    module = build(model, data.shape, data.outputs, file.seeds[0], norm=file.model.norm)
    return sizes_of(federation, Flat(module, DTYPES[file.run.dtype]).layers)


def places(file: RunFile, out: Path) -> list[Place]:
    """The directory of every run: `out` itself for a single one."""
    singles = file.singles()
    if len(singles) == 1:
        return [Place(file, out)]
    return [Place(single, out / f"{single.label}-s{single.seeds[0]}") for single in singles]


def begin(file: RunFile, out: Path) -> list[Place]:
    """A new directory with the run file in it."""
    for taken in ("private", "public"):
        if (out / taken).exists():
            raise ValueError(
                f"--out: {out} holds a run already, allowed is a new directory, or --resume {out}."
            )
    found = places(file, out)
    private = out / "private" if len(found) > 1 else out
    try:
        private.mkdir(parents=True, mode=0o700 if len(found) > 1 else 0o777, exist_ok=True)
    except OSError as why:
        raise ValueError(
            f"--out: {out} cannot be made: {why.strerror}, allowed is a directory in a place that "
            "can be written to."
        ) from why
    if len(found) > 1:
        write_run_file(file, Directory(out), public=False)
    return found


def prepared(place: Place) -> None:
    """The directory of one run with its run files, unless they are there."""
    if (place.path / RUN_FILE).is_file() and (place.path / "private" / "run.json").is_file():
        return
    if (place.path / "private").exists() and not (place.path / "private/ledger.sqlite").exists():
        undo(place.path)  # it was killed before anything was trained
    directory = Directory.create(place.path)
    write_run_file(place.file, directory, public=False)
    write_run_file(place.file, directory, public=True)


def write_run_file(file: RunFile, directory: Directory, *, public: bool) -> None:
    """With the seeds in private, without them in public."""
    table = moved(file.table(secret=not public), public=public)
    directory.write_text(f"{'public' if public else 'private'}/run.toml", dump(table))


def train(place: Place, data: Dataset, watch: Watch | None) -> Run:
    """One run, from its beginning or from its last checkpoint."""
    fresh = not (place.path / "private").exists()
    prepared(place)
    file = place.file
    method = file.built()
    try:
        return run(
            method,
            data,
            clients=file.data.clients,
            partition=file.data.partition,
            model=file.model.name,
            norm=file.model.norm,
            rounds=file.rounds,
            seed=file.seeds[0],
            budget=file.budget,
            calibrate=not file.keeps_noise(method),
            device=file.run.device,
            dtype=file.run.dtype,
            workers=file.run.workers,
            evaluate_every=file.run.evaluate_every,
            checkpoint_every=file.run.checkpoint_every,
            validation=file.data.validation,
            public=file.data.public,
            out=place.path,
            resume=True,
            watch=watch,
            taps=file.run.taps,
            audit=file.audit,
        )
    except (ValueError, TypeError):
        if fresh and not (place.path / "private" / "ledger.sqlite").exists():
            undo(place.path)  # refused before anything was spent
        raise


def undo(path: Path) -> None:
    """Take away what was made for a run, and nothing else that lies there."""
    for made in ("private", "public"):
        shutil.rmtree(path / made, ignore_errors=True)
    if not any(path.iterdir()):
        path.rmdir()


def answer(place: Place) -> dict[str, Any]:
    """A finished run as the JSON contract has it, read from its directory."""
    public, private, stated = (
        Fields(place.path / name, load_json(place.path / name))
        for name in ("public/run.json", "private/summary.json", "public/statement.json")
    )
    return {
        "method": public.get("method"),
        "data": public.get("data"),
        "model": public.get("model"),
        "rounds": public.get("rounds"),
        "clients": public.get("clients"),
        "seed": private.get("seed"),
        "accuracy": public.get("accuracy"),
        "loss": public.get("loss"),
        "seconds": private.get("seconds"),
        "examples_per_second": private.get("examples_per_second"),
        "statement": stated.get("statement"),
        "published": stated.get("published"),
        "dir": str(place.path),
    }


def report_of(out: Path, found: Sequence[Place], *, private: bool) -> Path:
    """The HTML report of all runs that have ended: to be given away, or the owner's copy."""
    from confide.report import write_report

    ended = [place.path for place in found if place.finished or place.failure]
    where = out / ("private" if private else "public")
    return write_report(ended, where / "report.html", private=private)


def default_out(name: str, now: datetime) -> Path:
    """runs/NAME-TIME, with a number where that is taken."""
    first = Path("runs") / f"{name}-{now:%Y%m%d-%H%M%S}"
    return next(path for path in numbered(first) if not path.exists())


def numbered(first: Path) -> Iterator[Path]:
    """The path, and the same with -2, -3, and so on."""
    yield first
    number = 2
    while True:
        yield first.with_name(f"{first.name}-{number}")
        number += 1
