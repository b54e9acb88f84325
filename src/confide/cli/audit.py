"""`confide audit`: try to refute what is stated about a method, or about a finished run."""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from confide.accounting.relations import Refused
from confide.cli import Wrong
from confide.cli.plan import load, settings
from confide.cli.tables import console
from confide.cli.words import whole_number
from confide.rounding import bound

CANARIES = 2000
COLOURS = {"pass": "green", "warn": "yellow", "fail": "bold red"}
KINDS = {"raw": "yellow", "noised": "green"}
LEVELS = {"fail": "against the statement:", "warn": "perhaps:", "told": "not hidden:"}


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add(
        "method", metavar="NAME, FILE.py:NAME or RUN",
        help="of `confide methods`, in a file, or the directory of a finished run",
    )  # fmt: skip
    add("--seconds", type=float, default=40.0, help="about how long, by default 40")
    add("--seed", type=int, default=0, help="another one makes other draws")
    add("--set", metavar="KEY=VALUE", action="append", default=[], help="a field of the method")
    add(
        "--train",
        nargs="?",
        const=CANARIES,
        type=whole_number,
        metavar="CANARIES",
        help="also train 20 rounds on digits with canaries among the units (by default 2000), "
        "which shows what only a run can",
    )
    add("--report", type=Path, metavar="FILE", help="also write it as one HTML file")


def example() -> str:
    """One call that works."""
    return "confide audit dp-fedsam-c --seconds 20"


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Attack every release."""
    if not 0 < given.seconds < float("inf"):
        raise Wrong(f"audit: --seconds {given.seconds}, allowed is a finite number above 0.")
    if given.report is not None and given.report.is_dir():
        raise Wrong(f"audit: --report {given.report} is a directory, allowed is a file.")
    if is_run(given.method):
        return reported(of_run(given), given.report)
    method = load(given.method, settings(given.set, "audit"), "audit")
    from confide.audit import audit
    from confide.engine.rounds import Round

    if isinstance(method, Round):
        raise Wrong("audit: this is a Round, allowed is a Method, which says how many there are.")
    try:
        answer = audit(method, seconds=given.seconds, seed=given.seed).row()
        if given.train is not None:
            answer = with_canaries(answer, method, given)
    except (Refused, ValueError) as why:
        raise Wrong(f"audit: {why}") from why
    return reported({**answer, "method": given.method}, given.report)


def with_canaries(answer: dict[str, Any], method: Any, given: argparse.Namespace) -> dict[str, Any]:
    """Beside the stages, what canaries in a run of the method tell."""
    from confide.audit.trained import joined, trained

    began = perf_counter()
    found = trained(method, canaries=given.train, seed=given.seed)
    answer = joined(answer, found)
    return {**answer, "seconds": answer["seconds"] + perf_counter() - began}


def reported(answer: dict[str, Any], out: Path | None) -> dict[str, Any]:
    """The answer, once its page is written where one is wanted."""
    if out is None:
        return answer
    from confide.report.auditing import write_audit

    try:
        return {**answer, "report": str(write_audit(answer, out))}
    except OSError as why:
        raise Wrong(f"audit: --report {out}: {why.strerror or why}.") from why


def is_run(given: str) -> bool:
    """Whether this is a directory, not a method of the list or of a file."""
    if Path(given).is_dir():
        return True
    if "/" in given.replace("\\", "/") and ".py" not in given:
        raise Wrong(
            f"audit: {given} does not exist, allowed are the name of a method, FILE.py:NAME and "
            "the directory of a finished run."
        )
    return False


def of_run(given: argparse.Namespace) -> dict[str, Any]:
    """Audit what a run left."""
    if given.set:
        raise Wrong(f"audit: --set {given.set[0]!r} with a run, which has its own settings.")
    if given.train is not None:
        raise Wrong("audit: --train with a run, allowed is that with a method: a run is trained.")
    from confide.audit.of_run import audit_run
    from confide.ledger import LedgerError

    try:
        return audit_run(given.method, seconds=given.seconds, seed=given.seed).row()
    except (ValueError, TypeError, LedgerError) as why:  # Refused and NotARun are ValueErrors
        said = " ".join(str(why).split())
        raise Wrong(said if said.startswith("audit: ") else f"audit: {said}") from why
    except OSError as why:
        raise Wrong(f"audit: {why.filename or given.method}: {why.strerror or why}.") from why


def show(answer: dict[str, Any]) -> None:
    """What a run left, if it is one; then the method's stages, and the verdict."""
    if "run" in answer:
        show_run(answer["run"])
    if answer["releases"]:
        show_stages(answer)
    if "canaries" in answer:
        show_canaries(console(), answer["canaries"])
    after = f"after {answer['seconds']:.0f} s"
    console().print(Text(answer["verdict"].upper(), style=COLOURS[answer["verdict"]]), Text(after))


def show_run(run: dict[str, Any]) -> None:
    """What must agree, the attacks beside what the statement allows, and what was not done."""
    screen = console()
    for one in run["checks"]:
        verdict = Text(one["verdict"], style=COLOURS[one["verdict"]])
        screen.print(Text(f"{one['check']}:"), verdict, Text(f"{one['words']}."))
    if run["attacks"]:
        screen.print(attacks_table(run["attacks"]))
    for one in run["attacks"]:
        if one["verdict"] != "pass":
            screen.print(f"{one['release']}: {one['words']}.", highlight=False)
    if run["canaries"] is not None:
        show_canaries(screen, run["canaries"])
    for why in run["not_done"]:
        screen.print(Text(f"not done: {why}."))


def attacks_table(rows: list[dict[str, Any]]) -> Table:
    """How well each attack did, and how well any may do."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    numbers = ("claimed ε", "AUC, 95 %", "found at 1 % alarms", "allowed", "at least", "pairs")
    for name in ("attack", "about one", "seen by", *numbers, "verdict"):
        table.add_column(name, justify="right" if name in numbers else "left")
    for one in rows:
        auc, low, high = one["metrics"]["auc"]
        table.add_row(
            one["release"], one["unit"], one["observer"], bound(one["claimed"], 3),
            f"{auc:.3f} ({low:.3f} to {high:.3f})", f"{one['metrics']['tpr'][0]:.1%}",
            f"{one['ceiling']['tpr']:.1%}", f"{one['lower_bound']:.3g}", f"{one['draws'] // 2:,}",
            Text(one["verdict"], style=COLOURS[one["verdict"]]),
        )  # fmt: skip
    return table


def show_stages(answer: dict[str, Any]) -> None:
    """A table of the releases, with claims about one round."""
    screen = console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    numbers = ("claimed ε", "at least, 95 %", "estimate, 99.9 %", "draws")
    for name in ("release", "about one", "seen by", *numbers, "verdict"):
        table.add_column(name, justify="right" if name in numbers else "left")
    for one in answer["releases"]:
        table.add_row(
            one["release"], one["unit"], one["observer"], bound(one["claimed"], 3),
            f"{one['lower_bound']:.3g}", f"{one['estimate']:.3g}", f"{one['draws']:,}",
            Text(one["verdict"], style=COLOURS[one["verdict"]]),
        )  # fmt: skip
    screen.print(table)
    for one in answer["releases"]:
        screen.print(f"{one['release']}: {one['words']}.", highlight=False)
    screen.print(Text("claims at δ = 1e-05 for one round"))
    show_message(screen, answer["noise"])
    told = [
        one for one in answer["accounts"]["rows"] if one["at_least"] or one["verdict"] == "fail"
    ]
    for one in (*told, *answer["accounts"]["drawn"]):
        screen.print(f"Accounts: {one['words']}.", highlight=False)


def show_canaries(screen: Console, told: dict[str, Any]) -> None:
    """What the canaries of a run tell about each row of its statement."""
    for one in told["rows"]:
        who = f"{one['layer']}, {one['unit']} to the {one['observer']}, {one['relation']}:"
        word = Text(one["verdict"], style=COLOURS[one["verdict"]])
        screen.print(Text(who), word, Text(f"{one['words']}."))
    if not told["rows"]:
        screen.print(Text("canaries in the run: too few of them took part to say anything."))


def show_message(screen: Console, noise: dict[str, Any]) -> None:
    """What every field is made of, then what was found about the noise."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("field", "seen by", "entries", "it is", "raw", "the statement says"):
        table.add_column(name, justify="right" if name in ("entries", "raw") else "left")
    for one in noise["message"]:
        table.add_row(
            one["field"], one["observer"], f"{one['length']:,}",
            Text(one["kind"], style=KINDS.get(one["kind"], "")), f"{one['raw']:,}", one["declared"],
        )  # fmt: skip
    screen.print(table)
    for fault in noise["faults"]:
        word = Text(LEVELS[fault["level"]], style=COLOURS.get(fault["level"], "yellow"))
        screen.print(word, Text(f"{fault['words']}."))
    looked = f"{noise['tests']} tests of {noise['draws']:,} draws of its noise"
    screen.print(f"{looked}: {noise['power']}.", highlight=False)
