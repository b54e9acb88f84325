"""Curves over rounds, with their labels at their ends instead of a legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from confide.report.drawing import (
    HEIGHT,
    INK,
    LETTER,
    apart,
    color,
    dash,
    panel,
    render_figure,
    short,
)
from confide.report.markup import Html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 400
MOST_LABELS = 12


@dataclass(frozen=True)
class Line:
    """One curve. Curves of one `kind` share a colour; the first that is not faint is labelled."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    kind: int = 0
    faint: bool = False


def render_lines(
    lines: Sequence[Line],
    *,
    name: str,
    says: str,
    share: bool = False,
    zero: bool = False,
    limit: tuple[float, str] | None = None,
    across: str = "round",
) -> Html:
    """Curves over rounds with their labels at their ends; `limit` is a level with its name."""
    full = [line for line in lines if not line.faint]
    ends = [line for i, line in enumerate(full) if line.kind not in {x.kind for x in full[:i]}]
    labelled = ends if len(ends) <= MOST_LABELS else []
    told = [(short(line.label), line.y[-1], color(line.kind)) for line in labelled]
    if limit is not None:
        told.append((short(limit[1]), limit[0], INK))
    longest = max((len(label) for label, _, _ in told), default=0)

    def draw(figure: Figure) -> None:
        axes = panel(figure, right=14 + LETTER * longest)
        for line in lines:
            stroke(axes, line)
        bounds(axes, lines, limit, zero)
        if share:
            axes.yaxis.set_major_formatter(percent)
        if limit is not None:
            axes.axhline(limit[0], color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.set_xlabel(across, labelpad=3)
        label_ends(axes, told)

    return render_figure(draw, name=name, says=says)


def percent(share: float, _: float = 0) -> str:
    """A tick of an accuracy."""
    return f"{100 * share:g} %"


def stroke(axes: Axes, line: Line) -> None:
    """One curve, and a dot where it ends unless it is faint."""
    step = max(1, -(-len(line.x) // MOST_POINTS))
    kept = [*range(0, len(line.x), step)]
    if kept and kept[-1] != len(line.x) - 1:
        kept.append(len(line.x) - 1)
    x, y = [line.x[i] for i in kept], [line.y[i] for i in kept]
    if line.faint:
        axes.plot(x, y, color=color(line.kind), linewidth=1.0, alpha=0.45)
        return
    axes.plot(x, y, color=color(line.kind), linestyle=dash(line.kind))
    axes.plot(x[-1:], y[-1:], "o", color=color(line.kind), markersize=4.5, clip_on=False)


def bounds(axes: Axes, lines: Sequence[Line], limit: tuple[float, str] | None, zero: bool) -> None:
    """From zero where zero means something, and with air above."""
    values = [v for line in lines for v in line.y if isfinite(v)]
    if limit is not None:
        values.append(limit[0])
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if high == low:
        low, high = low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1)
    low = 0.0 if zero else low
    air = 0.08 * (high - low)
    axes.set_ylim(low if zero else low - air, high + air * (1.6 if limit else 1))
    axes.set_xlim(0, max((line.x[-1] for line in lines if len(line.x)), default=1) or 1)


def label_ends(axes: Axes, told: Sequence[tuple[str, float, str]]) -> None:
    """Labels, their levels and colours, beside the ends of the curves and never on each other."""
    if not told:
        return
    low, high = axes.get_ylim()
    unit = (high - low) / (axes.get_position().height * HEIGHT)
    places = apart([level for _, level, _ in told], 14 * unit, low + 5 * unit, high - 4 * unit)
    for (label, _, ink), place in zip(told, places, strict=True):
        axes.annotate(
            label, (1, place), (8, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", color=ink, fontweight="bold",
        )  # fmt: skip
