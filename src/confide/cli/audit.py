"""`confide audit`: try to refute what is stated about a method."""

from __future__ import annotations

import argparse
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from confide.accounting.relations import Refused
from confide.cli import Wrong
from confide.cli.plan import load, settings
from confide.cli.tables import console
from confide.rounding import bound

COLOURS = {"pass": "green", "warn": "yellow", "fail": "bold red"}
KINDS = {"raw": "yellow", "noised": "green"}
LEVELS = {"fail": "against the statement:", "warn": "perhaps:", "told": "not hidden:"}


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("method", metavar="NAME or FILE.py:NAME", help="of `confide methods`, or in a file")
    add("--seconds", type=float, default=40.0, help="about how long, by default 40")
    add("--seed", type=int, default=0, help="another one makes other draws")
    add("--set", metavar="KEY=VALUE", action="append", default=[], help="a field of the method")


def example() -> str:
    """One call that works."""
    return "confide audit dp-fedsam-c --seconds 20"


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Attack every release."""
    if not 0 < given.seconds < float("inf"):
        raise Wrong(f"audit: --seconds {given.seconds}, allowed is a finite number above 0.")
    given.clients = given.records = given.layers = given.rounds = None
    method = load(given.method, settings(given.set, given))
    from confide.audit import audit
    from confide.engine.rounds import Round

    if isinstance(method, Round):
        raise Wrong("audit: this is a Round, allowed is a Method, which says how many there are.")
    try:
        return {
            **audit(method, seconds=given.seconds, seed=given.seed).row(),
            "method": given.method,
        }
    except (Refused, ValueError) as why:
        raise Wrong(f"audit: {why}") from why


def show(answer: dict[str, Any]) -> None:
    """A table of the releases, then the verdict."""
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
    show_message(screen, answer["noise"])
    told = [
        one for one in answer["accounts"]["rows"] if one["at_least"] or one["verdict"] == "fail"
    ]
    for one in (*told, *answer["accounts"]["drawn"]):
        screen.print(f"Accounts: {one['words']}.", highlight=False)
    verdict = Text(answer["verdict"].upper(), style=COLOURS[answer["verdict"]])
    screen.print(
        verdict, Text(f"after {answer['seconds']:.0f} s, claims at δ = 1e-05 for one round")
    )


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
