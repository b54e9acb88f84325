"""`confide run`: train every method of a run file, compare them, write the report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.cli import Failed, Wrong
from confide.cli.words import whole_number

if TYPE_CHECKING:
    from confide.runfiles.runfile import RunFile
    from confide.runfiles.session import Place

OVERRIDES = ("method", "data", "clients", "rounds", "budget", "seeds", "set", "out", "preset")
HIDDEN = "a run's seed undoes its noise: keep `private` to yourself, `public` may be given away"
REPORTS = {
    "report": "report, may be given away",
    "report_private": "your own copy, with what the clients hold",
}


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("preset", nargs="?", metavar="PRESET or FILE.toml", help="by default the quick start")
    add(
        "--method",
        action="append",
        default=[],
        metavar="NAME",
        help="of `confide methods`, or FILE.py:CLASS; several with commas",
    )
    add("--data", metavar="NAME", help="of `confide datasets`, or a file or folder")
    add("--clients", type=whole_number, metavar="N", help="how many clients hold the records")
    add("--rounds", type=whole_number, metavar="N", help="how many rounds")
    add(
        "--budget",
        metavar="EPS[,DELTA[,UNIT[,VIEW]]]",
        help="sets the noise; by default for a client, to the world",
    )
    add("--seeds", metavar="0,1,2", help="one run for each")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a field of the methods, or of a table: sigma=1.2, dp-fedsam-c.rho=0.1, "
        "model.name=cnn2, data.partition.alpha=0.3, run.dtype=float64",
    )
    add("--device", choices=("auto", "cpu", "cuda"), help="by default auto")
    add("--workers", type=whole_number, metavar="N", help="processes; by default one for each core")
    add("--out", type=Path, metavar="DIR", help="by default runs/NAME-TIME")
    add("--resume", type=Path, metavar="DIR", help="go on with what lies there, to the same bits")


def example() -> str:
    """One call that works."""
    return "confide run --method dp-fedavg-c --clients 1000 --budget 2 --set eta=0.1"


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Read, check everything, train one after another, report."""
    with told():
        from confide.runfiles import session

        if given.resume is not None:
            file, out = resumed(given), given.resume
            data = session.loaded(file)
            found = session.places(file, out)
        else:
            file = session.resolved(run_file(given))
            data = session.loaded(file)
            session.check(file, data)
            out = given.out or session.default_out(name_of(given, file), datetime.now())
            found = session.begin(file, out)
    sentence = None
    with told(), resumable(out):
        for number, place in enumerate(found, 1):
            if not place.finished:
                sentence = failed_before(place) or one(place, data, number, len(found)) or sentence
    return summary(out, found, sentence)


def run_file(given: argparse.Namespace) -> RunFile:
    """The run file with the words of the command on top."""
    from confide.runfiles import changes, reading
    from confide.runfiles.runfile import parse

    raw: dict[str, Any] = {}
    methods = changes.names(given.method)
    if given.preset is not None or not methods:
        raw = reading.read(given.preset or reading.QUICK_START)
    if raw:
        parse(raw)  # what is wrong in the file is said of the file
    if methods:
        raw = changes.select(raw, methods)
    raw = changes.put(raw, given_tables(given))
    for name in ("rounds", "seeds", "budget"):
        value = getattr(given, name)
        if value is not None:
            read = {"seeds": changes.seeds, "budget": changes.budget}.get(name)
            raw[name] = read(value) if read else value
    return parse(changes.put(raw, changes.pairs(given.set)))


def given_tables(given: argparse.Namespace) -> dict[str, Any]:
    """The options that are fields of a table."""
    places = {
        "data": "data.name",
        "clients": "data.clients",
        "device": "run.device",
        "workers": "run.workers",
    }
    values = {place: getattr(given, name) for name, place in places.items()}
    return {place: value for place, value in values.items() if value is not None}


def resumed(given: argparse.Namespace) -> RunFile:
    """The run file that lies in a run directory; only where it runs may be changed."""
    from confide.runfiles import changes, reading
    from confide.runfiles.runfile import parse
    from confide.runfiles.session import RUN_FILE

    for name in OVERRIDES:
        if getattr(given, name):
            shown = "PRESET or FILE.toml" if name == "preset" else f"--{name}"
            raise Wrong(
                f"confide run: {shown} with --resume, allowed are --device and --workers only."
            )
    path = given.resume / RUN_FILE
    if not path.is_file():
        raise Wrong(
            f"confide run: --resume {given.resume} is not the directory of a run, allowed is one "
            f"with {RUN_FILE} in it."
        )
    return parse(changes.put(reading.read(str(path)), given_tables(given)))


def name_of(given: argparse.Namespace, file: RunFile) -> str:
    """What the default directory is called after."""
    from confide.runfiles.reading import QUICK_START

    if given.preset is not None:
        return Path(given.preset).stem
    return file.label if given.method else QUICK_START


def failed_before(place: Place) -> str | None:
    """What failed once fails again, to the same bits."""
    failure = place.failure
    return None if failure is None else failing(title_of(place), failure)


def title_of(place: Place) -> str:
    """What a run is called in messages."""
    return f"{place.file.label} seed {place.file.seeds[0]}"


def failing(title: str, why: str) -> str:
    """The sentence about a run without a model."""
    return f"confide run: {title} failed: {why}"


def one(place: Place, data: Any, number: int, total: int) -> str | None:
    """Train one run under a bar; a sentence if its model diverged."""
    from confide.cli.progress import Course, watching
    from confide.engine.ending import Diverged
    from confide.runfiles.session import train

    budget = place.file.budget
    title = title_of(place)
    course = Course(
        title if total == 1 else f"{number}/{total} {title}",
        None if budget is None else f"{budget.unit}/{budget.view}",
        None if budget is None else budget.epsilon,
        protects(place.file.methods[0]),
    )
    try:
        with watching(course) as watch:
            done = train(place, data, watch)
    except Diverged as why:
        sentence = failing(title, one_line(why))
        if number < total:  # the last one is what the command ends with
            tell(sentence)
        return sentence
    tell(f"{title}: {done.strategy}")
    if done.stopped:
        tell(f"{title}: {done.stopped}")
    return None


def protects(name: str) -> str | None:
    """Whom a method of the list protects; of a person's own nobody has said."""
    from confide.methods import CATALOGUE

    return CATALOGUE[name].unit if name in CATALOGUE else None


def summary(out: Path, found: Sequence[Place], sentence: str | None) -> dict[str, Any]:
    """What is in the directories, and the report about it."""
    from confide.report import NotARun
    from confide.runfiles.session import answer, report_of

    runs = [answer(place) for place in found if place.finished]
    reports: list[str | None] = [None, None]
    try:
        reports = [str(report_of(out, found, private=private)) for private in (False, True)]
    except (NotARun, OSError) as why:
        sentence = (
            sentence or f"confide run: the runs are in {out}, the report failed: {one_line(why)}"
        )
    told_of = {"runs": runs, "report": reports[0], "report_private": reports[1]}
    if sentence is not None:
        raise Failed(sentence, told_of)
    return told_of


@contextmanager
def told() -> Generator[None]:
    """What is wrong with the call, or what failed, as one sentence."""
    from confide.engine.ending import RunFailed
    from confide.engine.workers import WorkerDied
    from confide.ledger import LedgerError

    try:
        yield
    except (RunFailed, WorkerDied, LedgerError, MemoryError) as why:
        raise Failed(f"confide run: {one_line(why) or 'there is not enough memory.'}") from why
    except OSError as why:
        where = f" ({why.filename})" if why.filename else ""
        raise Failed(f"confide run: {why.strerror or one_line(why)}{where}.") from why
    except (ValueError, TypeError) as why:
        raise Wrong(f"confide run: {one_line(why)}") from why
    except Exception as why:
        line = own_line(why)
        if line is None:
            raise
        raise Wrong(f"confide run: {line}: {type(why).__name__}: {one_line(why)}") from why


def own_line(why: BaseException) -> str | None:
    """Where in a user's own file it went wrong, if it did so there."""
    at, found = why.__traceback__, None
    while at is not None:
        module = at.tb_frame.f_globals.get("__name__", "")
        if module.startswith(("confide_method_", "confide_model_")):
            found = f"{at.tb_frame.f_code.co_filename} line {at.tb_lineno}"
        at = at.tb_next
    return found


@contextmanager
def resumable(out: Path) -> Generator[None]:
    """Ctrl-C says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        words = f"interrupted; to go on: confide run --resume {out}"
        raise KeyboardInterrupt(words) from None


def one_line(why: BaseException) -> str:
    """What went wrong, without a line break."""
    return " ".join(str(why).split())


def tell(line: str) -> None:
    """A line beside the answer."""
    print(line, file=sys.stderr)


def show(answer: dict[str, Any]) -> None:
    """The table, and where everything is."""
    from confide.cli.comparison import print_comparison
    from confide.cli.tables import console

    print_comparison(answer["runs"])
    for name, what in REPORTS.items():
        if answer[name] is not None:
            console().print(f"{what}: {answer[name]}", soft_wrap=True, highlight=False)
    console().print(HIDDEN, style="dim", soft_wrap=True)
