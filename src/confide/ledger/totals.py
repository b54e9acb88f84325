"""Running totals of spends: sums that do not drift, as bytes, and the test against a cap.

A total is kept as two doubles per part whose exact sum is the total: the nearest double and the
nearest double of what it misses. Each addition is rounded once, at 2**-106 of the total, so a
million releases stay within 1e-25 of the exact sum, and a run that was planned to end exactly at
its cap does not lose its last round to rounding.
"""

from __future__ import annotations

import math
import struct

Vector = tuple[float, ...]

SLACK = 1 + 1e-12
"""How far over its cap a total may stand: it absorbs the rounding of the caps and the spends."""


def pack(vector: Vector) -> bytes:
    """The doubles as bytes, the same on every machine."""
    return struct.pack(f"<{len(vector)}d", *vector)


def unpack(data: bytes) -> Vector:
    """The doubles that `pack` wrote."""
    return struct.unpack(f"<{len(data) // 8}d", data)


def zero(parts: int) -> Vector:
    """The total before any spend: a high and a low double per part."""
    return (0.0,) * (2 * parts)


def add(total: Vector, spend: Vector) -> Vector:
    """The total after one more spend (`math.fsum` rounds the exact sum once)."""
    pairs: list[float] = []
    for high, low, new in zip(total[0::2], total[1::2], spend, strict=True):
        nearest = math.fsum((high, low, new))
        pairs += (nearest, math.fsum((high, low, new, -nearest)))
    return tuple(pairs)


def spent(total: Vector) -> Vector:
    """The total as one double per part."""
    return total[0::2]


def left(total: Vector, limits: Vector) -> Vector:
    """What remains of each limit, at least 0."""
    pairs = zip(total[0::2], total[1::2], limits, strict=True)
    return tuple(max(0.0, math.fsum((limit, -high, -low))) for high, low, limit in pairs)


def fits(total: Vector, limits: Vector) -> bool:
    """Whether at least one part is within its limit; without parts there is no limit."""
    pairs = zip(spent(total), limits, strict=True)
    return not limits or any(high <= limit * SLACK for high, limit in pairs)
