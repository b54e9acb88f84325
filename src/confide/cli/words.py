"""The words that `account` and `calibrate` share."""

from __future__ import annotations

import argparse
from collections.abc import Generator
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

from confide.cli import Wrong

if TYPE_CHECKING:
    from confide.accounting.mechanisms import Words


def positive_number(text: str) -> float:
    """A finite number above 0, or a sentence."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} given, allowed is a finite number above 0")
    return value


def whole_number(text: str) -> int:
    """A whole number of at least 1, or a sentence; 1e6 is one too."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or value < 1 or value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} given, allowed is a whole number of at least 1")
    return int(value)


def add_mechanism(parser: argparse.ArgumentParser) -> None:
    """Everything about a mechanism but how much noise it has."""
    add = parser.add_argument
    add("--noise", required=True, help="gaussian, laplace, staircase or skellam")
    add("--gamma", type=positive_number, help="staircase: where in a step its density falls")
    add("--norm", help="the norm that is clipped: l1, l2, or both (laplace)")
    add("--grid", type=whole_number, help="skellam: the l2 sensitivity S in grid steps")
    add("--dim", type=whole_number, help="the number of coordinates")
    add("--rate", help="sampling rate; for --sampling fixed as m/n")
    add("--sampling", help="none, poisson (add-remove) or fixed (replace-one)")
    add("--steps", type=whole_number, default=1, metavar="T", help="how many releases")
    add("--relation", help="add-remove or replace-one; S is the sensitivity under it")
    add("--accountant", default="auto", help="auto, pld, rdp or gdp")


def add_target(
    parser: argparse._ActionsContainer,  # pyright: ignore[reportPrivateUsage]
    name: str,
    *,
    required: bool = False,
) -> None:
    """A target epsilon or delta."""
    parser.add_argument(name, type=positive_number, required=required, metavar=name[2].upper())


def mechanism(given: argparse.Namespace) -> Words:
    """The words, with their defaults."""
    from confide.accounting.mechanisms import Given, read

    names = ("noise", "gamma", "norm", "grid", "dim", "rate", "sampling", "steps", "relation")
    return read(Given(**{name: getattr(given, name) for name in names}))


@contextmanager
def refusing(verb: str) -> Generator[None]:
    """Turn what the accountant refuses into the one sentence a person sees."""
    from confide.accounting.relations import Refused

    try:
        yield
    except Refused as why:
        raise Wrong(f"confide {verb}: {why}") from why


def show_answer(answer: dict[str, Any]) -> None:
    """A table with the number first."""
    from confide.cli.tables import print_answer

    print_answer(answer)
