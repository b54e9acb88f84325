"""The page: verdict, statement, charts, configuration and environment in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from confide.report import compare, digits, pictures, verdict
from confide.report.auditing import audit_section
from confide.report.document import document, section, written
from confide.report.fields import NotARun
from confide.report.finding import ended, find_runs, method_in, unfinished
from confide.report.markup import Html, el, join, pairs, table
from confide.report.naming import Series, series
from confide.report.private import Private
from confide.report.record import RunRecord, read_run
from confide.report.statement import statement

OWN_COPY = (
    "The owner's copy: it also shows what tells on the clients (what they hold, times, "
    "participations), so it must not be given away."
)


def write_report(runs: Sequence[Path | RunRecord], out: Path, *, private: bool = False) -> Path:
    """Read the runs, write the page; a directory of runs stands for the runs in it.

    Only what is public is read, so the page may be given away. `private` adds what the owner alone
    may see: what the clients hold, times, participations.
    """
    records = [run for run in runs if isinstance(run, RunRecord)]
    places = find_runs(run for run in runs if isinstance(run, Path))
    if not records and not places:
        raise NotARun("no run is given, allowed is at least one run directory.")
    waiting = [place for place in places if unfinished(place)]
    if not records and len(waiting) == len(places):
        ended(places[0])  # it has not, which this says
    records += [read_run(place, private=private) for place in places if place not in waiting]
    text = page(records, [method_in(place) for place in waiting])
    return written(text, out)


def page(runs: Sequence[RunRecord], waiting: Sequence[str] = ()) -> str:
    """The whole document; `waiting` names the methods of runs that have not ended."""
    groups = series(runs)
    title = heading(runs)
    body = one(runs[0]) if len(runs) == 1 else several(runs, groups)
    missing = compare.listed(list(waiting)) if waiting else None
    notes = join(
        facts(runs),
        el("p", f"Not shown, for it has not ended: {missing}.", class_="notice")
        if missing
        else None,
    )
    return document("Privacy report", title, notes, body)


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
        rounds(first) if same("rounds") and same("planned") else "",
        f"{first.model}, {digits.counted(first.parameters, 'parameter')}" if same("model") else "",
        digits.duration(sum(run.private.seconds for run in runs if run.private))
        if first.private
        else "",
    ]
    return join(
        el("p", " · ".join(part for part in parts if part), class_="facts"),
        el("p", OWN_COPY, class_="notice") if first.private else None,
        [
            el("p", note, class_="notice")
            for note in dict.fromkeys(n for r in runs if r.audit for n in r.audit.notes)
        ],
    )


def rounds(run: RunRecord) -> str:
    """60 rounds, or 12 of 60 rounds."""
    most = digits.counted(max(run.planned, run.rounds), "round")
    return most if run.rounds >= run.planned else f"{digits.plain(run.rounds)} of {most}"


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
        section("The audit of this run", audit_section(run.audit)) if run.audit else None,
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
            compare.comparison(groups),
            class_="part verdict",
        ),
        uncovered(runs),
        section("Side by side", gallery(charts)),
        [detail(group) for group in groups],
    )


def gallery(charts: Sequence[Html | None]) -> Html | None:
    """The charts that there is something to draw for."""
    drawn = [chart for chart in charts if chart is not None]
    return el("div", drawn, class_="gallery") if drawn else None


def detail(group: Series) -> Html | None:
    """The runs of one name in full; one of them speaks for all."""
    run = group.speaker
    note = "What follows is said of the one that gave away most." if len(group.runs) > 1 else ""
    return section(
        group.name,
        each(group),
        el("p", note, class_="quiet under") if note else None,
        verdict.verdict(run),
        el("h3", "The statement"),
        statement(run),
        join(el("h3", "The audit of this run"), audit_section(run.audit)) if run.audit else None,
        el("details", el("summary", "Configuration"), configuration(run)),
        el("details", el("summary", "Environment"), environment(run)),
    )


def each(group: Series) -> Html | None:
    """A table of runs that differ by their seed; the seeds themselves stay private."""
    if len(group.runs) == 1:
        return None
    metric = group.runs[0].metric
    rows = (
        (
            f"run {at} of {len(group.runs)}",
            "" if run.accuracy is None else digits.metric(run.accuracy, metric),
            "" if run.loss is None else f"{run.loss:.4g}",
            digits.plain(run.rounds),
            verdict.ending(run) or "",
        )
        for at, run in enumerate(group.runs, 1)
    )
    head = ("Seed", compare.SCORES[metric], "Loss", "Rounds", "")
    return table(head, rows, name=f"Runs of {group.name}", numbers=(1, 2, 3))


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
        ("Rounds", planned(run)),
        ("Budget", allowed(run)),
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
    """How many rounds there were, and what else the statement covers."""
    made = digits.plain(run.rounds)
    if run.planned > run.rounds:
        made += f" of {digits.plain(run.planned)}"
    return made if run.covered == run.rounds else f"{made} (the statement covers {run.covered})"


def allowed(run: RunRecord) -> str:
    """What the run was allowed to spend."""
    budget = run.budget
    if budget is None:
        return ""
    at = "" if budget.delta is None else f" at {digits.delta_is(budget.delta)}"
    return f"ε at most {budget.epsilon:g}{at} for one {budget.unit}, to the {budget.view}"


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
