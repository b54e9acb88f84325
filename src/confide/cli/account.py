"""`confide account`: epsilon (or delta) of a mechanism."""

from __future__ import annotations

import argparse
from typing import Any

from confide.cli.words import (
    add_mechanism,
    add_target,
    mechanism,
    positive_number,
    refusing,
    show_answer,
)

show = show_answer


def example() -> str:
    """One call that works."""
    return "confide account --noise gaussian --multiplier 1 --rate 0.01 --steps 1000 --delta 1e-5"


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_mechanism(parser)
    parser.add_argument(
        "--multiplier", type=positive_number, required=True, metavar="Z", help="noise scale over S"
    )
    goal = parser.add_mutually_exclusive_group(required=True)
    add_target(goal, "--delta")
    add_target(goal, "--epsilon")


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Ask the accountant."""
    with refusing("account"):
        from confide.accounting import account

        words = mechanism(given)
        event = words.event(given.multiplier)
        if given.delta is not None:
            answer = account.epsilon(event, given.delta, words.relation, given.accountant)
        else:
            answer = account.delta(event, given.epsilon, words.relation, given.accountant)
        return words.fields(given.multiplier, answer)
