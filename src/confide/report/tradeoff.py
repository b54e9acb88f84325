"""Accuracy against proved epsilon; runs that prove nothing stand apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from confide.report.curves import MOST_LABELS, percent
from confide.report.drawing import (
    HEIGHT,
    LETTER,
    PAPER,
    apart,
    color,
    panel,
    render_figure,
    short,
)
from confide.report.markup import Html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IN_STRIP = 14
"""The letters of a name that fit beside the runs without a proof."""


@dataclass(frozen=True)
class Mark:
    """One run in the picture of accuracy against epsilon; infinite when nothing is proved."""

    label: str
    epsilon: float
    score: float
    kind: int = 0


def render_tradeoff(
    marks: Sequence[Mark], *, name: str, says: str, share: bool = True, across: str, beyond: str
) -> Html:
    """Accuracy against proved epsilon; what is infinite stands apart, `beyond` the scale."""

    def draw(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator

        proved = [m for m in marks if isfinite(m.epsilon)]
        endless = [m for m in marks if not isfinite(m.epsilon)]
        longest = max((len(short(m.label, IN_STRIP)) for m in endless), default=0)
        axes = panel(figure, right=max(96, 54 + LETTER * longest) if endless else 20)
        end = 1.15 * max((m.epsilon for m in proved), default=1.0)
        axes.set_xlim(0, end)
        frame(axes, marks, share)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.set_xlabel(across, labelpad=3)
        dots(axes, proved, [m.epsilon for m in proved], end)
        if endless:
            side = strip(figure, axes, beyond)
            dots(side, endless, [0.14] * len(endless), 1.0, hollow=True)

    return render_figure(draw, name=name, says=says)


def frame(axes: Axes, marks: Sequence[Mark], share: bool) -> None:
    """The vertical axis of accuracies or errors."""
    values = [m.score for m in marks]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    air = max(0.12 * (high - low), 0.02 if share else 0.05 * abs(high))
    axes.set_ylim(low - air, high + air)
    if share:
        axes.yaxis.set_major_formatter(percent)


def strip(figure: Figure, beside: Axes, name: str) -> Axes:
    """A narrow panel to the right, for runs whose epsilon is off the scale."""
    box = beside.get_position()
    axes = figure.add_axes((box.x1 + 0.025, box.y0, 0.965 - box.x1, box.height), sharey=beside)
    axes.set_xlim(0, 1)
    axes.tick_params(labelleft=False, bottom=False)
    axes.set_xticks([])
    axes.set_xlabel(name, labelpad=3, x=0, ha="left")
    return axes


def dots(
    axes: Axes, marks: Sequence[Mark], x: Sequence[float], end: float, hollow: bool = False
) -> None:
    """The runs, each with its name beside it, once for each kind."""
    for mark, at in zip(marks, x, strict=True):
        axes.plot(
            [at], [mark.score], "o", markersize=7.5, markeredgewidth=2, clip_on=False,
            color=color(mark.kind), markerfacecolor=PAPER if hollow else color(mark.kind),
        )  # fmt: skip
    kinds = dict.fromkeys(mark.kind for mark in marks)
    if len(kinds) > MOST_LABELS:
        return
    low, high = axes.get_ylim()
    unit = (high - low) / (axes.get_position().height * HEIGHT)
    members = [[i for i, mark in enumerate(marks) if mark.kind == kind] for kind in kinds]
    middles = [sum(marks[i].score for i in group) / len(group) for group in members]
    places = apart(middles, 14 * unit, low + 6 * unit, high - 6 * unit)
    for group, place in zip(members, places, strict=True):
        right = not hollow and max(x[i] for i in group) > 0.55 * end
        beside = min(x[i] for i in group) if right else max(x[i] for i in group)
        axes.annotate(
            short(marks[group[0]].label, IN_STRIP if hollow else 22), (beside, place),
            (-9, 0) if right else (9, 0), textcoords="offset points", va="center",
            ha="right" if right else "left", color=color(marks[group[0]].kind), fontweight="bold",
        )  # fmt: skip
