"""A user's model from a Python file."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from confide.data.settings import nearest


def find(where: str) -> Any:
    """The thing that `file.py:name` names."""
    path, _, name = where.rpartition(":")
    if not Path(path).is_file():
        raise ValueError(f"Model {where}: file {path!r} does not exist, allowed is a Python file.")
    # Two files of one name in different folders are two modules.
    code = zlib.crc32(str(Path(path).resolve()).encode())
    spec = importlib.util.spec_from_file_location(
        f"confide_model_{Path(path).stem}_{code:08x}", path
    )
    if spec is None or spec.loader is None:
        raise ValueError(f"Model {where}: file {path!r} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # so that its classes can be pickled
    try:
        spec.loader.exec_module(module)
    except Exception as why:
        del sys.modules[spec.name]
        raise ValueError(
            f"Model {where}: {path} does not load ({type(why).__name__}: {why})."
        ) from why
    if not hasattr(module, name):
        raise ValueError(f"Model {where}: {path} has no {name!r}.{nearest(name, vars(module))}")
    return getattr(module, name)


def factory(thing: Any, where: str) -> Callable[..., Any]:
    """A function of (shape, outputs, settings) from a module, a class or a function.

    A class or function gets shape and outputs only where it has parameters of these names.
    """
    if isinstance(thing, nn.Module):

        def ready(shape: tuple[int, ...], outputs: int) -> nn.Module:
            return thing

        return ready
    if not callable(thing):
        raise ValueError(
            f"Model {where}: it is a {type(thing).__name__}, allowed are a torch.nn.Module, a "
            "class, or a function that makes one."
        )
    parameters = inspect.signature(thing).parameters
    any_name = any(p.kind is p.VAR_KEYWORD for p in parameters.values())

    def make(shape: tuple[int, ...], outputs: int, **settings: Any) -> Any:
        sizes = {"shape": shape, "outputs": outputs}
        wanted = {k: v for k, v in sizes.items() if k in parameters or any_name}
        return thing(**wanted, **settings)

    return make
