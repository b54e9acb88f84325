"""Two pictures of an audit: bounds beside their claims, and an attack below its ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from confide.report import digits
from confide.report.audited import Found
from confide.report.drawing import (
    GRID,
    HEIGHT,
    INK,
    MUTED,
    PAPER,
    color,
    panel,
    render_figure,
    short,
)
from confide.report.markup import Html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW, AROUND = 34.0, 46.0
LEAST, MOST = 1e-2, 1e4
"""What lies beyond is drawn at the edge."""
RATE = 1e-3
"""The rarest false alarms and hits that are drawn."""


def render_bounds(rows: Sequence[Found], *, name: str) -> Html:
    """A line for each row: the claim as a bar, the valid bound as a dot, the estimate as a ring."""
    tall = max(HEIGHT, AROUND + ROW * len(rows))

    def draw(figure: Figure) -> None:
        axes = panel(figure, left=14, right=16, top=14)
        low, high = reach(rows)
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        axes.set_ylim(len(rows) - 0.4, -0.75)
        axes.set_yticks([])
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x", color=GRID)
        axes.set_xlabel("ε", labelpad=3)
        ticks(axes, low, high)
        for at, row in enumerate(rows):
            line(axes, row, at, low, high)

    told = "; ".join(
        f"{row.release}: claimed {digits.epsilon(row.claimed)}, at least {row.lower_bound:.3g}"
        for row in rows
    )
    return render_figure(draw, name=name, says=f"Lower bounds and claims. {told}", height=tall)


def reach(rows: Sequence[Found]) -> tuple[float, float]:
    """From below the smallest to above the largest number of them, whole decades."""
    values = [v for r in rows for v in (r.claimed, r.lower_bound, r.estimate or 0.0)]
    drawn = [min(max(v, LEAST), MOST) for v in values if v > 0]
    low, high = min(drawn, default=0.1) / 1.6, max(drawn, default=1.0) * 1.6
    return min(low, 0.1), max(high, 10.0)


def ticks(axes: Axes, low: float, high: float) -> None:
    """Plain numbers, a few for each decade."""
    from matplotlib.ticker import FixedLocator, NullLocator

    steps = (1.0,) if high / low > 2e3 else (1.0, 3.0)
    every = [s * 10.0**e for e in range(-3, 6) for s in steps if low <= s * 10.0**e <= high]
    axes.xaxis.set_major_locator(FixedLocator(every))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{tick:g}" for tick in every])


def line(axes: Axes, row: Found, at: int, low: float, high: float) -> None:
    """One row."""

    def inside(value: float) -> float:
        return min(max(value, low), high)

    ink = color(1 if row.verdict == "fail" else 4 if row.verdict == "warn" else 0)
    bound, claim = inside(row.lower_bound), inside(row.claimed)
    axes.plot([low, bound], [at, at], color=ink, linewidth=2)
    axes.plot([claim, claim], [at - 0.26, at + 0.26], color=INK, linewidth=2.4)
    if row.estimate is not None and row.estimate > 0:
        at_estimate = inside(row.estimate)
        axes.plot([bound, at_estimate], [at, at], color=ink, linewidth=1, linestyle=(0, (2, 2)))
        axes.plot(
            [at_estimate], [at], "o", markersize=6.5, color=ink, markerfacecolor=PAPER,
            markeredgewidth=1.8,
        )  # fmt: skip
    axes.plot([bound], [at], "o", markersize=6.5, color=ink, clip_on=False)
    label = f"{row.release} · {row.unit} · {row.observer}"
    axes.annotate(
        short(label, 52), (low, at), (0, 6), textcoords="offset points", va="bottom",
        ha="left", color=MUTED, fontsize=9.5,
    )  # fmt: skip


def render_curves(row: Found, *, name: str) -> Html:
    """The attack's hits below the ceiling that the claim is, both axes logarithmic."""

    def draw(figure: Figure) -> None:
        axes = panel(figure, right=16)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(RATE, 1)
        axes.set_ylim(RATE, 1.15)
        decades(axes)
        axes.set_xlabel("false alarms", labelpad=3)
        axes.plot([RATE, 1], [RATE, 1], color=MUTED, linewidth=1, linestyle=(0, (2, 3)))
        x, y = inner(row.ceiling)
        axes.fill_between(x, y, 1.15, color=MUTED, alpha=0.12, linewidth=0)
        axes.plot(x, y, color=INK, linewidth=1.6, linestyle=(0, (5, 2)))
        ink = color(0 if row.verdict == "pass" else 1)
        x, y = inner(row.points)
        axes.plot(x, y, color=ink, linewidth=1, alpha=0.6)
        x, y = inner(row.sure)
        axes.plot(x, y, color=ink, linewidth=2.4)
        for text, up, weight in (
            (f"ceiling of ε ≤ {digits.epsilon(row.claimed)}", 24, "bold"),
            ("dotted: a coin", 8, "normal"),
        ):
            axes.annotate(
                text, (1, 0), (-6, up), xycoords="axes fraction", textcoords="offset points",
                ha="right", color=INK if up > 8 else MUTED, fontweight=weight,
            )  # fmt: skip

    return render_figure(draw, name=name, says=curve_words(row))


def decades(axes: Axes) -> None:
    """0.1 %, 1 %, 10 %, 100 % on both axes."""
    from matplotlib.ticker import FixedLocator, NullLocator

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator([1e-3, 1e-2, 0.1, 1.0]))
        axis.set_minor_locator(NullLocator())
    axes.set_xticklabels(["0.1 %", "1 %", "10 %", "100 %"])
    axes.set_yticklabels(["0.1 %", "1 %", "10 %", "100 %"])


def inner(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """The part that a logarithmic picture can show."""
    kept = [(max(x, RATE), max(y, RATE)) for x, y in points]
    return [x for x, _ in kept], [y for _, y in kept]


def curve_words(row: Found) -> str:
    """The picture for those who cannot see it."""

    def at(points: Sequence[tuple[float, float]], rate: float) -> float:
        return max((y for x, y in points if x <= rate), default=0.0)

    said = ", ".join(
        f"at {rate:.0%} false alarms {at(row.points, rate):.1%} hits, "
        f"allowed {at(row.ceiling, rate):.1%}"
        for rate in (0.01, 0.1, 0.5)
    )
    claim = digits.epsilon(row.claimed)
    return f"Hits against false alarms below the ceiling of ε ≤ {claim}: {said}."
