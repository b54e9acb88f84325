"""A number that a paper prints, kept apart from every number that is proved here.

Many printed formulas are wrong, some by orders of magnitude (docs/published.md). `Published` is
therefore no number: it has no float, no order and no arithmetic, so an event, an accountant or a
bound that receives one fails instead of turning a paper's claim into a proof.
"""

from __future__ import annotations

import cmath
import math
import numbers
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

Unit = Literal["record", "client"]


@dataclass(frozen=True, slots=True)
class Published:
    """The value of one printed formula: to be shown beside a proof, never to be computed with."""

    value: float | complex
    symbol: str
    """What the paper calls the value."""
    source: str
    """The paper and the number of the equation."""
    formula_text: str
    """The formula as the paper prints it."""
    unit: Unit
    """What one neighbour changes, as the paper says or its proof assumes."""
    note: str = ""
    """What a reader must know before trusting the value; empty when the formula is right."""
    delta: float | None = None
    """The delta that the paper prints with an epsilon, if it does."""

    # numpy would otherwise wrap the object in an array and compute with it element by element.
    __array_ufunc__ = None

    def __post_init__(self) -> None:
        """Refuse what is no number, and any text that is missing."""
        value: object = self.value
        if isinstance(value, bool) or not isinstance(value, numbers.Complex):
            raise TypeError(f"value is {value!r}; it must be a number.")
        if cmath.isnan(complex(value)):
            raise ValueError(f"value is NaN: {self.source} has no value here.")
        for name in ("symbol", "source", "formula_text"):
            text: object = getattr(self, name)
            if not isinstance(text, str) or not text:
                raise ValueError(f"{name} is {text!r}; it must say where the value comes from.")
        if self.unit not in ("record", "client"):
            raise ValueError(f"unit is {self.unit!r}; it must be 'record' or 'client'.")

    def __str__(self) -> str:
        """One phrase for the published column of a statement."""
        return f"published {self.symbol} = {self.value:.6g} ({self.source}; unit {self.unit})"

    def row(self) -> dict[str, Any]:
        """The `published` field of the JSON contract; only an epsilon can stand there."""
        if not self.symbol.startswith("ε") or isinstance(self.value, complex):
            raise ValueError(f"{self} is not an epsilon, which is what stands beside a statement.")
        epsilon = "inf" if self.value == math.inf else self.value
        source = f"{self.source}: {self.note}" if self.note else self.source
        return {"epsilon": epsilon, "delta": self.delta, "unit": self.unit, "source": source}

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(
            f"{self} is what a paper prints, not a proved number: it can be shown, "
            "but not compared or computed with."
        )

    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __divmod__ = __rdivmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _refuse
    __neg__ = __pos__ = __abs__ = __round__ = __floor__ = __ceil__ = _refuse


def real(name: str, value: object) -> float:
    """The symbol as a finite float; booleans, NaN, infinities and published values are refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {value}; it must be a real number.")
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}; it must be finite.")
    return float(value)


def positive(name: str, value: object) -> float:
    """A finite number above 0."""
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name} is {value}; it must be above 0.")
    return number


def probability(name: str, value: object) -> float:
    """A number strictly between 0 and 1."""
    number = positive(name, value)
    if number >= 1:
        raise ValueError(f"{name} is {value}; it must be below 1.")
    return number


def rate(name: str, value: object) -> float:
    """A sampling rate: above 0 and at most 1."""
    number = positive(name, value)
    if number > 1:
        raise ValueError(f"{name} is {value}; it must be at most 1.")
    return number


def order(name: str, value: object) -> float:
    """The order of a Renyi divergence: above 1."""
    number = real(name, value)
    if number <= 1:
        raise ValueError(f"{name} is {value}; it must be above 1.")
    return number


def count(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least `least`; a float is refused even when it is whole."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} is {value}; it must be a whole number.")
    if value < least:
        raise ValueError(f"{name} is {value}; it must be at least {least}.")
    return int(value)


def exp(x: float) -> float:
    """The exponential, infinite where a float overflows: a printed value may be that large."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf
