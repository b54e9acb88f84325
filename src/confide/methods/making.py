"""From a word to a method: a name of the list or `file.py:Class`, with its fields."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from confide.data.settings import nearest
from confide.engine.rounds import Method, Round
from confide.methods import CATALOGUE
from confide.runfiles.typed import checked


def label(name: str) -> str:
    """What a method is called in tables and directories."""
    return name if name in CATALOGUE else name.rpartition(":")[2]


def find(name: str) -> Any:
    """A class of the list, or whatever a Python file holds under that name."""
    if name in CATALOGUE:
        return CATALOGUE[name].load()
    path, _, inside = name.rpartition(":")
    if not path or not inside:
        raise ValueError(
            f"Method: {name!r} is unknown, allowed are the names that `confide methods` lists and "
            f"FILE.py:NAME.{nearest(name, CATALOGUE)}"
        )
    module = loaded(path)
    if not hasattr(module, inside):
        raise ValueError(f"Method: {path} has no {inside!r}.{nearest(inside, vars(module))}")
    return getattr(module, inside)


def loaded(path: str) -> ModuleType:
    """A Python file as a module, the same one for the same place."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"Method: file {path!r} does not exist, allowed is a Python file.")
    # A checkpoint names the classes in it by the module's name: it must be the same after a kill.
    name = f"confide_method_{file.stem}_{zlib.crc32(str(file.resolve()).encode()):08x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"Method: file {path!r} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as why:
        del sys.modules[name]
        raise ValueError(f"Method: {path} does not load: {type(why).__name__}: {why}.") from why
    return module


def field_names(thing: Any) -> list[str]:
    """The fields that may be set."""
    if not dataclasses.is_dataclass(thing):
        return []
    return [field.name for field in dataclasses.fields(thing) if field.init]


def make(name: str, values: Mapping[str, Any]) -> Method | Round:
    """An instance: a class is called with the values, an instance gets them replaced."""
    thing = find(name)
    known = label(name)
    kind: Any = thing if isinstance(thing, type) else cast("type[Any]", type(thing))
    if values:
        values = checked(f"Method {known}", kind, values)
    try:
        if isinstance(thing, type):
            thing = cast("type[Any]", thing)(**values)
        elif values:
            thing = dataclasses.replace(thing, **values)
    except (TypeError, ValueError) as why:
        raise ValueError(f"Method {known}: it cannot be built: {why}") from why
    if not isinstance(thing, Round | Method):
        raise ValueError(f"Method {known}: it is neither a Round nor a Method with round(past).")
    return thing
