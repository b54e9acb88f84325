"""The two faces of a stage, and how its numbers are checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from math import inf, isfinite
from typing import Any, Self, TypeVar

from torch import Tensor

from confide.claims import Claim
from confide.randomness import Stream

Shared = Callable[[str], Stream]
"""Public randomness of the round: the same stream for every client and again at `publish`."""


class Stage:
    """A pure function of a vector, and what it proves about the result.

    Subclasses are final frozen dataclasses. No state survives a call, so that whatever happens
    after noise really is post-processing.
    """

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """What it does to one vector; `own` is secret randomness, `shared` is public."""
        raise TypeError(f"{type(self).__name__} is not a stage that runs: it has no __call__.")

    def claim(self, c: Claim) -> Claim:
        """What it proves; nothing, unless a subclass brings a proof."""
        return c.forgotten(f"{type(self).__name__} proves nothing about its result")

    def for_client(self, client: int) -> Self:
        """The same stage with every per-client number replaced by this client's."""
        return resolved(self, client)


@dataclass(frozen=True, slots=True)
class PerClient:
    """A public column: one number for each client."""

    values: tuple[float, ...]


Thing = TypeVar("Thing")


def resolved(thing: Thing, client: int) -> Thing:
    """The same stage or step with every per-client number replaced by this client's."""
    if not is_dataclass(thing) or isinstance(thing, type):
        return thing
    own: dict[str, Any] = {
        f.name: value.values[client]
        for f in fields(thing)
        if isinstance(value := getattr(thing, f.name), PerClient)
    }
    return replace(thing, **own) if own else thing


def positive(
    stage: Stage, field: str, *, zero: bool = False, least: float = 0.0, most: float = inf
) -> None:
    """Refuse a number (or a column of them) that is not finite and positive."""
    value: Any = getattr(stage, field)
    allowed = "a finite number " + ("of at least 0" if zero else "above 0")
    if least > 0:
        allowed = f"from {least:g} to {most:g}"
    elif most < inf:
        allowed += f" and at most {most:g}"
    for number in value.values if isinstance(value, PerClient) else (value,):
        fine = isinstance(number, int | float) and not isinstance(number, bool)
        inside = fine and isfinite(number) and least <= number <= most
        if not inside or (number == 0 and not zero):
            raise ValueError(f"{type(stage).__name__}: {field} = {number!r}, allowed is {allowed}.")


def at_least(stage: Stage, field: str, least: int) -> None:
    """Refuse anything but a whole number that is large enough."""
    value: Any = getattr(stage, field)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"{type(stage).__name__}: {field} = {value!r}, allowed is a whole number "
            f"of at least {least}."
        )


def floating(stage: Stage, x: Tensor) -> Tensor:
    """The vector in a type that can carry a clipped norm; integers are refused, halves widened."""
    if not x.is_floating_point():
        raise TypeError(
            f"{type(stage).__name__}: the vector has type {x.dtype}, allowed are floating-point "
            "types; convert or leave out integer entries, they can be neither clipped nor noised."
        )
    return x.float() if x.dtype.itemsize < 4 else x
