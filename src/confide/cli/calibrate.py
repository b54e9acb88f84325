"""`confide calibrate`: the noise that reaches an epsilon, and never passes it."""

from __future__ import annotations

import argparse
from typing import Any

from confide.cli.words import add_mechanism, add_target, mechanism, refusing, show_answer

show = show_answer


def example() -> str:
    """One call that works."""
    return "confide calibrate --noise laplace --epsilon 2 --delta 1e-5 --rate 0.01 --steps 1000"


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_mechanism(parser)
    add_target(parser, "--epsilon", required=True)
    add_target(parser, "--delta", required=True)


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Search for the multiplier."""
    with refusing("calibrate"):
        from confide.accounting import calibration

        words = mechanism(given)
        found = calibration.calibrate(words, given.epsilon, given.delta, given.accountant)
        return words.fields(found.scale, found.answer)
