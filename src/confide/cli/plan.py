"""`confide plan`: the stages with what each proves, and the statement, without data."""

from __future__ import annotations

import argparse
import dataclasses
import tomllib
from dataclasses import dataclass, replace
from typing import Any, cast

from confide.accounting.relations import Refused
from confide.cli import Wrong
from confide.data.settings import nearest
from confide.engine.adapting import planned
from confide.engine.flat import Flat
from confide.engine.rounds import Method, Past, Round, Sizes, published_of
from confide.methods.making import label, make
from confide.methods.setting import SHAPES, Setting
from confide.models import MODELS, build
from confide.trace import trace

MOST_ROUNDS = 1_000_000


def options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "method",
        metavar="NAME, FILE.py:NAME or FILE.toml",
        help="of `confide methods`; a Method class, an instance or a Round in a file; a run file",
    )
    parser.add_argument("--only", metavar="NAME", help="which method of a run file with several")
    parser.add_argument("--model", metavar="NAME", help="of `confide models`: its layers")
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
    it = subject(given)
    method, sizes = it.method, it.sizes
    rounds = unrolled(method, sizes, it.rounds)
    try:
        published = None if isinstance(method, Round) else published_of(method, sizes)
        statement = planned(method, rounds, sizes, it.delta, published)
        steps = trace(rounds[0][0], sizes)
    except (Refused, ValueError) as why:
        raise Wrong(f"plan: {why}") from why
    return {
        "method": it.name,
        "settings": fields_of(method),
        "round": steps,
        "statement": statement.rows(),
        "published": None if published is None else published.row(),
    }


def settings(pairs: list[str], verb: str = "plan") -> dict[str, Any]:
    """The `--set` options as values: numbers, true/false, lists, else text."""
    values: dict[str, Any] = {}
    for pair in pairs:
        key, found, text = pair.partition("=")
        if not found or not key:
            raise Wrong(f"{verb}: --set {pair!r} is not understood, allowed is KEY=VALUE.")
        try:
            values[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[key] = text
        if isinstance(values[key], list):
            values[key] = tuple(cast("list[Any]", values[key]))
    return values


def load(where: str, values: dict[str, Any], verb: str = "plan") -> Method | Round:
    """A method of the list, or the named object of a Python file, with these fields."""
    try:
        return make(where, values)
    except ValueError as why:
        raise Wrong(f"{verb}: {why}") from why


@dataclass(frozen=True)
class Subject:
    """What is planned: by its name, for these clients; `rounds` where the method does not say."""

    name: str
    method: Method | Round
    sizes: Sizes
    rounds: int | None
    delta: float | None


def subject(given: argparse.Namespace) -> Subject:
    """A method with the options, or one of a run file."""
    values = settings(given.set)
    if given.method.endswith(".toml"):
        try:
            return of_file(given, values)
        except (OSError, Refused, ValueError) as why:
            raise Wrong(f"plan: {why}") from why
    method = load(given.method, values)
    return Subject(given.method, method, sizes_of(method, given), given.rounds, given.delta)


def of_file(given: argparse.Namespace, values: dict[str, Any]) -> Subject:
    """A method of a run file, for the clients that its data are dealt to, within its budget."""
    from confide.engine.calibrating import calibrated
    from confide.runfiles.reading import read
    from confide.runfiles.runfile import parse
    from confide.runfiles.session import loaded, resolved, sizes_at

    file = parse(read(given.method))
    names = {label(name): name for name in file.methods}
    only = given.only or (next(iter(names)) if len(names) == 1 else "")
    if only not in names:
        raise ValueError(
            f"{given.method} has {len(names)} methods, so --only says which; allowed are "
            f"{', '.join(names)}.{nearest(only, names)}"
        )
    changed = {"clients": given.clients or file.data.clients}
    file = replace(file, data=replace(file.data, **changed), rounds=given.rounds or file.rounds)
    if given.model is not None:
        file = replace(file, model=replace(file.model, name=given.model))
    if values:
        file = replace(file, method={**file.method, only: {**file.method.get(only, {}), **values}})
    file = resolved(file)
    sizes, method = sizes_at(file, loaded(file)), file.single(names[only], file.seeds[0]).built()
    budget = file.budget
    if budget is not None and not file.single(names[only], 0).keeps_noise(method):
        method = calibrated(method, sizes, budget, file.rounds)
    delta = given.delta or (None if budget is None else budget.delta)
    return Subject(only, method, sizes, file.rounds, delta)


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

    layers = number("layers") if given.model is None else layers_of(given.model, setting)
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


def layers_of(model: str, setting: Setting | None) -> tuple[int, ...]:
    """The lengths of a model's layers, for the data of the method's paper."""
    shape, outputs = SHAPES.get("" if setting is None else setting.data, (None, None))
    try:
        if shape is None or outputs is None:
            shape, outputs = MODELS[model].example if model in MODELS else SHAPES["mnist"]
        return Flat(build(model, shape, outputs, 0)).layers
    except (OSError, ValueError) as why:
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
