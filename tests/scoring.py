"""The score of the planted bugs, at the end of the tests."""

from collections.abc import Iterable
from typing import Any

Killed = tuple[str, str, str]  # layer, bug, what was found


def planted(reports: Iterable[Any]) -> list[Killed]:
    """What the tests recorded about planted bugs."""
    return [
        (value[0], value[1], value[2])
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "mutant" and report.when == "call"
    ]


def score(found: list[Killed]) -> list[str]:
    """How many were killed, and a line for each layer with the bugs that it killed."""
    killed = [one for one in found if one[2]]
    lines = [f"Planted privacy bugs: {len(killed)} of {len(found)} killed."]
    for layer in sorted({layer for layer, _, _ in killed}):
        bugs = sorted(bug for by, bug, _ in killed if by == layer)
        lines.append(f"  by the {layer} ({len(bugs)}): {'; '.join(bugs)}.")
    lines += [f"  SURVIVED: {bug}." for _, bug, words in found if not words]
    return lines
