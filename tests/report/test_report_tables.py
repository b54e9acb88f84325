"""Tables of the page: on a phone a row is a card, so every cell must say what it is."""

import re
from collections.abc import Callable
from pathlib import Path

from confide.report import write_report
from confide.report.markup import el, table
from confide.report.statement import HEAD

Builder = Callable[..., Path]


def test_every_cell_says_its_column_or_spans_several(build: Builder, tmp_path: Path) -> None:
    runs = [build(name) for name in ("dp-fedavg-c", "fedavg")]
    text = write_report(runs, tmp_path / "report.html").read_text(encoding="utf-8")
    cells = re.findall(r"<td\b[^>]*>", text)
    assert cells and all(" data-head=" in cell or " colspan=" in cell for cell in cells)
    (proved, *_) = re.findall(r"<tr>(<td data-head=\"What\".*?)</tr>", text)
    assert tuple(re.findall(r'<td data-head="([^"]*)"', proved)) == HEAD


def test_a_column_with_a_hostile_name_stays_a_name() -> None:
    hostile = '"><script>'
    made = table([hostile], [["x"], [el("td", "y", colspan="1")]], name="t")
    assert made.count("&quot;&gt;&lt;script&gt;") == 2
    assert "<script>" not in made
