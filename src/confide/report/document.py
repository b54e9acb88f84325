"""A page as one file: its head, its style, its frame."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from confide.report.markup import Html, el

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The browser itself refuses every request and every script of this page."""


def document(kind: str, title: str, notes: Html, body: Html) -> str:
    """The whole document; `notes` stand below its title."""
    style = Html((files("confide.report") / "page.css").read_text(encoding="utf-8"))
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{title} · confide"),
        el("style", style),
    )
    top = el("header", el("p", kind, class_="kind"), el("h1", title), notes)
    foot = el("footer", "Written by confide. This file loads nothing and runs no script.")
    main = el("main", top, body, foot)
    return f"<!doctype html>\n{el('html', head, el('body', main), lang='en')}\n"


def section(title: str, *inside: Html | None) -> Html | None:
    """A part of the page; none when it is empty."""
    return el("section", el("h2", title), inside, class_="part") if any(inside) else None


def written(text: str, out: Path) -> Path:
    """Write the file whole or not at all."""
    out.parent.mkdir(parents=True, exist_ok=True)
    half = out.with_name(f".{out.name}.{os.getpid()}")
    half.write_text(text, encoding="utf-8")
    half.replace(out)
    return out
