"""Markup as functions: text is escaped unless it is already `Html`."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

ALONE = {"meta", "br", "hr"}


class Html(str):
    """Markup that was built here; everything else is text from outside and gets escaped.

    Joining or formatting `Html` with python's own operators gives a plain `str`, which is escaped
    once more: a mistake shows as visible tags, never as an injection.
    """

    __slots__ = ()


Inside = str | None | Iterable["str | None"]


def el(tag: str, /, *inside: Inside, **attributes: str | None) -> Html:
    """One element; `class_` is class, `aria_label` is aria-label, None leaves a thing out."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if tag in ALONE:
        return Html(f"<{tag}{shown}>")
    return Html(f"<{tag}{shown}>{join(*inside)}</{tag}>")


def join(*parts: Inside) -> Html:
    """The parts one after another, text escaped."""
    return Html("".join(escaped(part) for part in parts))


def escaped(part: Inside) -> str:
    """One part as markup."""
    if part is None:
        return ""
    if isinstance(part, Html):
        return part
    if isinstance(part, str):
        return escape(part)
    return "".join(escaped(each) for each in part)


def table(
    head: Iterable[str], rows: Iterable[Iterable[Inside]], *, name: str, numbers: Iterable[int] = ()
) -> Html:
    """A table that scrolls by itself when the window is narrow; `numbers` are right-aligned.

    A phone shows every row as a card, whose cells are named by what `data-head` holds.
    """
    right, titles = set(numbers), tuple(head)

    def kind(at: int) -> str | None:
        return "number" if at in right else None

    top = el("tr", (el("th", text, scope="col", class_=kind(i)) for i, text in enumerate(titles)))
    body = (el("tr", (cell(x, titles[i], kind(i)) for i, x in enumerate(row))) for row in rows)
    return el(
        "div",
        el("table", el("thead", top), el("tbody", body), aria_label=name),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=name,
    )


def cell(inside: Inside, title: str, kind: str | None) -> Html:
    """A cell; one that spans columns comes as an element of its own."""
    if isinstance(inside, Html) and inside.startswith("<td"):
        return inside
    return el("td", inside, data_head=title, class_=kind)


def pairs(rows: Iterable[tuple[str, Inside]]) -> Html:
    """Names with their values."""
    return el("dl", (el("div", el("dt", name), el("dd", value)) for name, value in rows))
