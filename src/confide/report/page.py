"""The page: verdict, statement, charts, configuration and environment in one file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from confide.report import compare, digits, pictures, verdict
from confide.report.markup import Html, el, join, pairs
from confide.report.naming import Series, series
from confide.report.private import Private
from confide.report.record import NotARun, RunRecord, find_runs, read_run
from confide.report.statement import statement

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The browser itself refuses every request and every script of this page."""


OWN_COPY = (
    "The owner's copy: it also shows what tells on the clients (what they hold, times, "
    "participations), so it must not be given away."
)


def write_report(runs: Sequence[Path], out: Path, *, private: bool = False) -> Path:
    """Read the runs, write the page; a directory of runs stands for the runs in it.

    Only what is public is read, so the page may be given away. `private` adds what the owner alone
    may see: what the clients hold, times, participations.
    """
    records = [read_run(place, private=private) for place in find_runs(runs)]
    if not records:
        raise NotARun("no run is given, allowed is at least one run directory.")
    text = page(records)
    out.parent.mkdir(parents=True, exist_ok=True)
    half = out.with_name(f".{out.name}.{os.getpid()}")
    half.write_text(text, encoding="utf-8")
    half.replace(out)
    return out


def page(runs: Sequence[RunRecord]) -> str:
    """The whole document."""
    groups = series(runs)
    title = heading(runs)
    body = one(runs[0]) if len(runs) == 1 else several(runs, groups)
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
    top = el("header", el("p", "Privacy report", class_="kind"), el("h1", title), facts(runs))
    foot = el("footer", "Written by confide. This file loads nothing and runs no script.")
    main = el("main", top, body, foot)
    return f"<!doctype html>\n{el('html', head, el('body', main), lang='en')}\n"


def heading(runs: Sequence[RunRecord]) -> str:
    """What the page is about."""
    data = compare.listed(list(dict.fromkeys(run.data for run in runs)))
    methods = list(dict.fromkeys(run.method for run in runs))
    told = compare.listed(methods) if len(methods) <= 3 else f"{len(methods)} methods"
    return f"{told} on {data}"


def facts(runs: Sequence[RunRecord]) -> Html:
    """The line below the title; what differs between runs is left out."""
    first = runs[0]

    def same(name: str) -> bool:
        return all(getattr(run, name) == getattr(first, name) for run in runs)

    parts = [
        f"{len(runs)} runs" if len(runs) > 1 else "",
        digits.counted(first.clients, "client") if same("clients") else "",
        digits.counted(first.rounds, "round") if same("rounds") else "",
        f"{first.model}, {digits.counted(first.parameters, 'parameter')}" if same("model") else "",
        digits.duration(sum(run.private.seconds for run in runs if run.private))
        if first.private
        else "",
    ]
    return join(
        el("p", " · ".join(part for part in parts if part), class_="facts"),
        el("p", OWN_COPY, class_="notice") if first.private else None,
    )


def section(title: str, *inside: Html | None) -> Html | None:
    """A part of the page; none when it is empty."""
    return el("section", el("h2", title), inside, class_="part") if any(inside) else None


def one(run: RunRecord) -> Html:
    """The page of a single run."""
    groups = [Series(run.method, (run,))]
    charts = [
        pictures.progress(groups, "accuracy"),
        pictures.progress(groups, "loss"),
        pictures.spent(run),
        pictures.holdings([run]),
    ]
    return join(
        el("section", verdict.verdict(run), class_="part verdict"),
        uncovered([run]),
        section("The statement", statement(run)),
        section("The run", gallery(charts)),
        section("Configuration", configuration(run)),
        section("Environment", environment(run)),
    )


def several(runs: Sequence[RunRecord], groups: Sequence[Series]) -> Html:
    """The page that compares."""
    first, *others = compare.sentences(groups)
    charts = [
        pictures.tradeoff(groups),
        pictures.progress(groups, "accuracy"),
        pictures.spent_by_all(groups),
        pictures.progress(groups, "loss"),
        pictures.holdings(runs),
    ]
    return join(
        el(
            "section",
            el("p", first, class_="lead"),
            el("p", " ".join(others), class_="lead second") if others else None,
            compare.comparison(runs, groups),
            class_="part verdict",
        ),
        uncovered(runs),
        section("Side by side", gallery(charts)),
        [detail(run, group) for group in groups for run in group.runs],
    )


def gallery(charts: Sequence[Html | None]) -> Html | None:
    """The charts that there is something to draw for."""
    drawn = [chart for chart in charts if chart is not None]
    return el("div", drawn, class_="gallery") if drawn else None


def detail(run: RunRecord, group: Series) -> Html | None:
    """One of several runs in full."""
    more = f", {group.runs.index(run) + 1} of {len(group.runs)}" if len(group.runs) > 1 else ""
    return section(
        f"{group.name}{more}",
        verdict.verdict(run),
        el("h3", "The statement"),
        statement(run),
        el("details", el("summary", "Configuration"), configuration(run)),
        el("details", el("summary", "Environment"), environment(run)),
    )


def uncovered(runs: Sequence[RunRecord]) -> Html:
    """What stands outside of every statement."""
    lines = (el("li", line) for line in verdict.outside(runs))
    return el("section", el("h2", "What no row covers"), el("ul", lines), class_="part outside")


def configuration(run: RunRecord) -> Html:
    """What was run, and the run file."""
    rows = [
        ("Method", run.method),
        ("Paper", run.paper),
        ("Data", run.data),
        ("From", run.data_source),
        ("Licence", run.licence),
        ("Partition", run.partition),
        ("Clients", digits.plain(run.clients)),
        ("Model", f"{run.model}, {digits.counted(run.parameters, 'parameter')}"),
        ("Rounds", digits.plain(run.rounds) + planned(run)),
        *((name, shown(value)) for name, value in run.settings.items()),
    ]
    return el(
        "div",
        pairs((name, value) for name, value in rows if value),
        el("div", el("h4", "Run file"), el("pre", el("code", run.config.strip())))
        if run.config.strip()
        else None,
        class_="halves",
    )


def planned(run: RunRecord) -> str:
    """How many rounds the statement speaks of, where they are others than ran."""
    return f" (the statement covers {run.planned})" if run.planned != run.rounds else ""


def environment(run: RunRecord) -> Html:
    """Where it ran, and how fast."""
    rows = [
        *owner_rows(run.private),
        ("Strategy", run.strategy),
        *((name, shown(value)) for name, value in run.machine.items()),
        *((name, shown(value)) for name, value in run.versions.items()),
    ]
    return pairs((name, value) for name, value in rows if value)


def owner_rows(private: Private | None) -> list[tuple[str, str]]:
    """Times and participations."""
    if private is None:
        return []
    return [
        ("Time", digits.duration(private.seconds)),
        ("Speed", f"{digits.plain(private.examples_per_second)} examples/s"),
        ("Rounds of one client", f"{digits.plain(private.participations_most)} at most"),
    ]


def shown(value: Any) -> str:
    """A setting as text."""
    if isinstance(value, bool | None):
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else digits.plain(value)
    return (
        ", ".join(f"{k} {v}" for k, v in value.items())
        if isinstance(value, Mapping)
        else (json.dumps(value))
    )
