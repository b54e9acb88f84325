"""`confide plan`: the stages with what each proves, and the statement, without data."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import importlib.util
import sys
import tomllib
from pathlib import Path
from typing import Any, cast

from confide.accounting.relations import Refused
from confide.cli import Wrong
from confide.engine.adapting import planned
from confide.engine.rounds import Method, Past, Round, Sizes, published_of
from confide.methods.making import make
from confide.methods.setting import Setting
from confide.trace import trace

MOST_ROUNDS = 1_000_000


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "method",
        metavar="NAME or FILE.py:NAME",
        help="of `confide methods`; or a Method class, an instance, or a Round in a file",
    )
    parser.add_argument("--clients", type=int, help="how many clients there are")
    parser.add_argument("--records", type=int, help="the least number of records of a client")
    parser.add_argument("--layers", help="lengths of the model's layers, such as 25088,32,320,10")
    parser.add_argument("--rounds", type=int, help="rounds, where the method does not say")
    parser.add_argument("--delta", type=float, help="for every row; by default 1 / (10 x units)")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="a field of the method"
    )


def example() -> str:
    """One call that works."""
    return "confide plan dp-fedsam-c --clients 1000 --set sigma=1.2"


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Build the method, list its rounds, derive the statement."""
    method = load(given.method, settings(given.set, given))
    sizes = sizes_of(method, given)
    rounds = unrolled(method, sizes, given.rounds)
    try:
        published = None if isinstance(method, Round) else published_of(method, sizes)
        statement = planned(method, rounds, sizes, given.delta, published)
        steps = trace(rounds[0][0], sizes)
    except (Refused, ValueError) as why:
        raise Wrong(f"plan: {why}") from why
    return {
        "method": given.method,
        "settings": fields_of(method),
        "round": steps,
        "statement": statement.rows(),
        "published": None if published is None else published.row(),
    }


def settings(pairs: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """The `--set` options as values: numbers, true/false, lists, else text."""
    values: dict[str, Any] = {}
    for pair in pairs:
        key, found, text = pair.partition("=")
        if not found or not key:
            raise Wrong(f"plan: --set {pair!r} is not understood, allowed is KEY=VALUE.")
        try:
            values[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[key] = text
        if isinstance(values[key], list):
            values[key] = tuple(cast("list[Any]", values[key]))
    return values


def load(where: str, values: dict[str, Any]) -> Method | Round:
    """A method of the list, or the named object of a Python file, with these fields."""
    path, _, name = where.rpartition(":")
    if not path or not name:
        try:
            return make(where, values)
        except ValueError as why:
            raise Wrong(f"plan: {why}") from why
    if not Path(path).is_file():
        raise Wrong(f"plan: file {path!r} does not exist; allowed is a Python file.")
    spec = importlib.util.spec_from_file_location("confide_plan", path)
    if spec is None or spec.loader is None:
        raise Wrong(f"plan: file {path!r} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as why:
        raise Wrong(f"plan: {path} does not load: {type(why).__name__}: {why}") from why
    if not hasattr(module, name):
        near = difflib.get_close_matches(name, vars(module), 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise Wrong(f"plan: {path} has nothing named {name!r}.{hint}")
    return built(getattr(module, name), name, values)


def built(thing: Any, name: str, values: dict[str, Any]) -> Method | Round:
    """An instance: a class is called with the settings, an instance gets them replaced."""
    if dataclasses.is_dataclass(thing):
        known = [f.name for f in dataclasses.fields(thing) if f.init]
        for key in values:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f" Did you mean {near[0]}?" if near else ""
                raise Wrong(
                    f"plan: {name} has no field {key!r}, allowed are {', '.join(known)}.{hint}"
                )
    try:
        if isinstance(thing, type):
            thing = cast("type[Any]", thing)(**values)
        elif values:
            thing = dataclasses.replace(thing, **values)
    except (TypeError, ValueError) as why:
        raise Wrong(f"plan: {name} cannot be built: {why}") from why
    if not isinstance(thing, Round | Method):
        raise Wrong(f"plan: {name} is neither a Round nor a Method with round(past).")
    return thing


def sizes_of(method: Method | Round, given: argparse.Namespace) -> Sizes:
    """The public numbers: an option wins over the method's own field or setting."""
    setting: Setting | None = getattr(type(method), "setting", None)
    own: object = method if setting is None else setting.sizes

    def number(name: str) -> Any:
        value = getattr(given, name)
        value = getattr(own, name, None) if value is None else value
        if value is None:
            raise Wrong(f"plan: {name} is not known; give --{name}, or the method a field {name}.")
        return value

    layers = number("layers")
    if isinstance(layers, str):
        try:
            layers = tuple(int(part) for part in layers.split(","))
        except ValueError as why:
            raise Wrong(
                f"plan: --layers {layers!r} is not understood, allowed are lengths with commas."
            ) from why
    try:
        return Sizes(
            number("clients"), number("records"), layers, getattr(own, "most_records", None)
        )
    except (TypeError, ValueError) as why:
        raise Wrong(f"plan: {why}") from why


def unrolled(method: Method | Round, sizes: Sizes, rounds: int | None) -> list[tuple[Round, int]]:
    """All rounds, equal neighbours counted together."""
    if rounds is not None and not 1 <= rounds <= MOST_ROUNDS:
        raise Wrong(f"plan: --rounds {rounds}, allowed is 1 to {MOST_ROUNDS}.")
    if isinstance(method, Round):
        return [(method, rounds or 1)]
    plan: list[tuple[Round, int]] = []
    for t in range(MOST_ROUNDS if rounds is None else rounds):
        try:
            now = method.round(Past(t=t, sizes=sizes))
        except (Refused, ValueError) as why:
            raise Wrong(f"plan: {why}") from why
        except Exception as why:
            raise Wrong(
                f"plan: round {t} cannot be planned without data ({type(why).__name__}: {why}); "
                "a method that adapts must say what it does before anything is released."
            ) from why
        if now is None:
            break
        if plan and plan[-1][0] == now:
            plan[-1] = (now, plan[-1][1] + 1)
        else:
            plan.append((now, 1))
    else:
        if rounds is None:
            raise Wrong(
                f"plan: the method does not end within {MOST_ROUNDS} rounds; give --rounds."
            )
    if not plan:
        raise Wrong("plan: the method has no rounds, so there is nothing to state.")
    return plan


def fields_of(method: Method | Round) -> dict[str, Any]:
    """The method's settings, as far as JSON can hold them."""
    if isinstance(method, Round) or not dataclasses.is_dataclass(method):
        return {}
    plain = (str, int, float, bool, tuple, list, type(None))
    values = {f.name: getattr(method, f.name) for f in dataclasses.fields(method)}
    return {k: v if isinstance(v, plain) else repr(v) for k, v in values.items()}


def show(answer: dict[str, Any]) -> None:
    """Two tables: the stages with their claims, the statement with its reasons."""
    from confide.cli.tables import print_plan

    print_plan(answer)
