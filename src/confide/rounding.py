"""Bounds as people read them: fewer digits, and never below what was proved."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from math import inf


def up(value: float, digits: int) -> Decimal:
    """A finite bound with this many significant digits, rounded up."""
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(repr(value)))
    return rounded.normalize()


def bound(value: float | str, digits: int) -> str:
    """The same as text; infinity is the text "inf" in JSON, and its sign for people."""
    if value in (inf, "inf"):
        return "∞"
    rounded = up(float(value), digits)
    plain = value == 0 or 1e-4 <= float(value) < 1e6
    return f"{rounded:f}" if plain else f"{float(rounded):.{digits}g}"
