"""The `confide` command: one file per verb, loaded only when it is called."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from importlib import import_module
from typing import Any, NoReturn, Protocol

VERBS = {
    "run": "train by a run file, a preset, or the quick start",
    "plan": "a method's stages with what each proves, and the statement, without data",
    "account": "epsilon (or delta) of a mechanism",
    "calibrate": "the noise that reaches an epsilon",
    "methods": "every method, where it comes from, and its corrected sibling",
    "datasets": "every data set: what is here, what is missing and how to get it",
    "models": "every model, and where it comes from",
    "audit": "try to refute what is stated about a method or a finished run",
    "report": "one self-contained HTML file about one or several runs",
}

EXAMPLES = """examples:
  confide run
  confide account --noise gaussian --multiplier 1 --rate 0.01 --steps 1000 --delta 1e-5
  confide calibrate --noise laplace --epsilon 2 --delta 1e-5 --rate 0.01 --steps 1000
  confide plan examples/dp_fedavg.py:DPFedAvg
"""


class Wrong(Exception):
    """The call or a file is wrong: one sentence for the person, exit status 2."""


class Failed(Exception):
    """The run failed: one sentence, exit status 3; `answer` is what there is all the same."""

    def __init__(self, sentence: str, answer: dict[str, Any] | None = None) -> None:
        """The sentence, and the JSON object of what did not fail."""
        super().__init__(sentence)
        self.answer = answer


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one sentence, with the nearest match."""

    def error(self, message: str) -> NoReturn:
        """One sentence on standard error."""
        known = [o for action in self._actions for o in action.option_strings]
        word = message.rsplit(" ", 1)[-1]
        near = difflib.get_close_matches(word.split("=")[0], known, 1)
        hint = f" Did you mean {near[0]}?" if near and "unrecognized" in message else ""
        raise Wrong(f"{self.prog}: {message}.{hint}")


class Verb(Protocol):
    """What a verb's module offers."""

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        ...

    def run(self, given: argparse.Namespace) -> dict[str, Any]:
        """Do it and answer with the JSON object."""
        ...

    def show(self, answer: dict[str, Any]) -> None:
        """Print the answer for a person."""
        ...

    def example(self) -> str:
        """One call that works."""
        ...


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; 0 done, 1 the answer is no, 2 a wrong call, 3 a failed run, 130 interrupted."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        return dispatch(words)
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 2
    except Failed as failed:
        print(failed, file=sys.stderr)
        return 3
    except KeyboardInterrupt as interrupt:
        print(str(interrupt) or "interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has gone away; python would complain once more when it closes the stream.
        sys.stderr.close()
        return 0


def dispatch(words: list[str]) -> int:
    """Find the verb, parse its options, run it, print the answer."""
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        return 0
    if words[0] == "--version":
        from confide import __version__

        print(f"confide {__version__}")
        return 0
    name = words[0]
    if name not in VERBS:
        near = difflib.get_close_matches(name, VERBS, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise Wrong(f"confide: verb {name!r} is unknown, allowed are {', '.join(VERBS)}.{hint}")
    verb: Verb = import_module(f"confide.cli.{name}")  # pyright: ignore[reportAssignmentType]
    parser = Parser(
        prog=f"confide {name}",
        description=VERBS[name],
        epilog=f"example:\n  {verb.example()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    given = parser.parse_args(words[1:])
    try:
        answer = verb.run(given)
    except Failed as failed:
        if failed.answer is not None:
            tell(verb, failed.answer, given.json)
        raise
    tell(verb, answer, given.json)
    return 1 if answer.get("verdict") == "fail" else 0


def tell(verb: Verb, answer: dict[str, Any], as_json: bool) -> None:
    """The answer on standard output, for a script or for a person."""
    if as_json:
        print(json.dumps(answer, allow_nan=False))
    else:
        verb.show(answer)


def usage() -> str:
    """The first page."""
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:<{width}}  {what}" for name, what in VERBS.items())
    return (
        "usage: confide VERB [options]\n\nDifferentially private federated learning that one can "
        f"check.\n\nverbs:\n{verbs}\n\n{EXAMPLES}\nEvery verb takes --help and --json."
    )
