"""Drawing for a page: matplotlib figures as inline SVG whose colours the page decides.

Figures are drawn in marker colours that become CSS variables, so that one drawing reads well in
light, in dark and on paper. Text stays text, in the page's font.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from confide.report.markup import Html, el

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = "#f1f2f0", "#f1f2f1", "#f1f2f2", "#f1f2f3"
SERIES = tuple(f"#f1f2{i:02x}" for i in range(16, 23))
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    PAPER: "var(--card)",
    **{color: f"var(--c{i})" for i, color in enumerate(SERIES)},
}

WIDTH, HEIGHT = 380.0, 226.0
"""One chart, in the units of its own coordinates: half a page wide, the whole of a phone."""

LETTER = 6.1
"""The width to keep for a letter, which is more than common fonts need at this size."""

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 10.5,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.facecolor": "none",
    "axes.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 1.0,
    "xtick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "ytick.left": False,
    "xtick.major.size": 4,
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "round",
}


def color(at: int) -> str:
    """The colour of a series."""
    return SERIES[at % len(SERIES)]


def dash(at: int) -> Any:
    """The stroke of a series, so that colour is never all that tells two apart."""
    return DASHES[at % len(DASHES)]


def short(text: str, most: int = 22) -> str:
    """A name that fits a chart; the page has it in full."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def panel(
    figure: Figure,
    *,
    left: float = 46,
    right: float = 12,
    top: float = 10,
    bottom: float = 40,
) -> Axes:
    """Axes with these margins, in the chart's own units."""
    from matplotlib.ticker import MaxNLocator

    wide, high = figure.get_figwidth() * 72, figure.get_figheight() * 72
    axes = figure.add_axes(
        (left / wide, bottom / high, 1 - (left + right) / wide, 1 - (top + bottom) / high)
    )
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    return axes


def render_figure(
    draw: Callable[[Figure], None],
    *,
    name: str,
    says: str,
    width: float = WIDTH,
    height: float = HEIGHT,
) -> Html:
    """Draw on a new figure; the result is inline SVG with `says` for those who cannot see it.

    `name` keeps the ids of several drawings on one page apart.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    drawn = StringIO()
    style: dict[Any, Any] = {**STYLE, "svg.hashsalt": name}
    with rc_context(style), warnings.catch_warnings():
        # Only the layout uses matplotlib's own font; the page's font has the letter.
        warnings.filterwarnings("ignore", message=r"Glyph \d+")
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        figure.patch.set_visible(False)
        draw(figure)
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(drawn, format="svg", metadata=nothing)
    return inline(drawn.getvalue(), says, width, height)


def inline(svg: str, says: str, width: float, height: float) -> Html:
    """The drawing without its document: no ids of groups, no style sheet, no fixed size."""
    inside = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    inside = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", inside, flags=re.S
    )
    inside = re.sub(r'<g id="[^"]*"', "<g", inside)
    inside = re.sub(r"<defs>\s*</defs>", "", inside)
    inside = re.sub(r"<[^>]*>", lambda found: adapted(found[0]), inside)
    return el(
        "svg",
        Html(inside.strip()),
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=says,
        class_="chart",
    )


def adapted(tag: str) -> str:
    """One tag, never the text between tags: the page's font and colours, and fewer digits."""
    # Versions of matplotlib differ: one shorthand, or properties of their own.
    tag = re.sub(r"font: (?:(\w+) )?([\d.]+px) [^;\"]*", r"font-weight: \1; font-size: \2", tag)
    tag = re.sub(r"font-weight: ;|font-family: [^;\"]*;?", "", tag)
    tag = re.sub(r"#f1f2[0-9a-f]{2}", lambda found: VARIABLES[found[0]], tag)
    tag = re.sub(r"(\d\.\d{2})\d+", r"\1", tag)
    return re.sub(r"\s*\n\s*", " ", tag)


def apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places for labels as near as possible to where they belong, at least `gap` from another."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    groups: list[tuple[list[int], float]] = []  # members and where the lowest stands
    for at in order:
        members, start = [at], min(max(wanted[at], low), high)
        while groups and groups[-1][1] + gap * len(groups[-1][0]) > start:
            members = groups.pop()[0] + members
            middle = sum(wanted[i] - k * gap for k, i in enumerate(members)) / len(members)
            start = min(max(middle, low), high - gap * (len(members) - 1))
        groups.append((members, start))
    placed = [0.0] * len(wanted)
    for members, start in groups:
        for k, i in enumerate(members):
            placed[i] = start + k * gap
    return placed
