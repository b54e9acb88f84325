"""Which classes the clients hold, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from confide.report import digits
from confide.report.drawing import LETTER, MUTED, color, panel, render_figure, short
from confide.report.markup import Html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def render_labels(
    counts: Sequence[Sequence[int]], names: Sequence[str] | None, *, name: str, says: str
) -> Html:
    """Which classes each client holds: the size above, the shares of the classes below."""
    classes = len(counts[0])
    told = [short(t, 14) for t in names] if names and len(names) == classes else None
    told = told or [str(k) for k in range(classes)]
    left = max(46, 14 + LETTER * max(map(len, told)))
    height = 104 + max(136, min(13 * classes, 220))

    def draw(figure: Figure) -> None:
        bars(panel(figure, left=left, top=10, bottom=height - 52), [sum(row) for row in counts])
        axes = panel(figure, left=left, top=64, bottom=32)
        squares(axes, counts)
        every = max(1, -(-classes // 22))
        axes.set_yticks(range(0, classes, every), told[::every])
        axes.set_ylim(classes - 0.5, -0.5)
        axes.set_xlim(-0.5, len(counts) - 0.5)
        axes.set_xticks([])
        axes.grid(False)
        axes.set_xlabel(f"{digits.counted(len(counts), 'client')}", labelpad=6)

    return render_figure(draw, name=name, says=says, height=height)


def bars(axes: Axes, sizes: Sequence[int]) -> None:
    """How many records each client has."""
    axes.bar(range(len(sizes)), sizes, width=0.8, color=MUTED)
    axes.set_xlim(-0.5, len(sizes) - 0.5)
    axes.set_xticks([])
    axes.set_yticks([0, max(sizes)], ["0", digits.plain(max(sizes))])
    axes.set_ylim(0, max(1, *sizes) * 1.02)


LEVELS = 8


def squares(axes: Axes, counts: Sequence[Sequence[int]]) -> None:
    """A square for each client and class, the fuller the larger the share; one path per level."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    most = max(max(row) / max(1, sum(row)) for row in counts) or 1.0
    levels: dict[int, list[Any]] = {}
    for x, row in enumerate(counts):
        for y, count in enumerate(row):
            level = ceil(LEVELS * count / max(1, sum(row)) / most - 1e-9)
            if level > 0:
                corner = [(x - 0.44, y - 0.44), (x + 0.44, y - 0.44), (x + 0.44, y + 0.44)]
                points = [*corner, (x - 0.44, y + 0.44), (x - 0.44, y - 0.44)]
                levels.setdefault(level, []).append(Path(points, closed=True))
    for level, paths in sorted(levels.items()):
        whole = Path.make_compound_path(*paths)
        alpha = 0.08 + 0.92 * level / LEVELS
        axes.add_patch(PathPatch(whole, facecolor=color(0), alpha=alpha, linewidth=0))
