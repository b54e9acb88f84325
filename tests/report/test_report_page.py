"""The page as a file: it needs nothing else, injects nothing, and says what was proved."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from statistics import mean, stdev

import pytest

from confide.report import NotARun, digits, read_run, write_report
from confide.report.verdict import worst
from made_runs import SETTINGS

Builder = Callable[..., Path]
HOSTILE = '</title></style><script>alert(\'x\')</script>" onload="x" $\\bad{ #f1f2f0 \x00\x1b 数'
METHODS = ("dp-fedavg-c", "dp-fedsam-c", "fed-cdp", "fedavg")
VOID = {"meta", "br", "hr", "path", "use"}


class Page(HTMLParser):
    """Elements, their attributes, ids and text; open elements must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words += " ".join(data.replace("\N{NO-BREAK SPACE}", " ").split()) + " "


def read(place: Path) -> Page:
    page = Page(place.read_text(encoding="utf-8"))
    assert page.open == []
    return page


def test_one_run(build: Builder, tmp_path: Path) -> None:
    out = write_report([build()], tmp_path / "deep" / "report.html")
    page = read(out)
    assert out.stat().st_size < 200_000
    assert page.names.count("svg") == 3
    words = page.words.replace("\N{NARROW NO-BREAK SPACE}", " ")
    for said in (
        "one whole client is protected moderately (ε = 1.174)",
        "one single record is protected weakly (ε = 3.519)",
        "Against the server, nothing is protected: nothing has been done to hide it.",
        "% of held-out examples right",
        "right at most 76.4 % of the time",
        "Whoever knows the seed",
        "a search over them is a release of its own",
        "A row is void where one of its assumptions is not true",
        "real arithmetic: noise is drawn in floating point",
        "No number is published for this method",
        "budget 2",
        "partition = {kind",
        "ε at most 2 at δ = 0.0001 for one client, to the world",
        "Not in this file, which may be given away",
    ):
        assert said in words, said


OWNERS = ("16 at most", "263 413 examples/s", "6.8 s", "60 of 1 000 clients of mnist")


@pytest.mark.parametrize("methods", [METHODS[:1], METHODS])
def test_only_the_owners_copy_has_what_tells_on_the_clients(
    build: Builder, tmp_path: Path, methods: tuple[str, ...]
) -> None:
    runs = [build(m) for m in methods]
    public = read(write_report(runs, tmp_path / "public.html"))
    owner = read(write_report(runs, tmp_path / "owner.html", private=True))
    assert "it must not be given away" in owner.words
    assert "it must not be given away" not in public.words
    assert owner.names.count("svg") == public.names.count("svg") + 1
    for said in OWNERS[:: len(methods)]:
        assert said in owner.words.replace("\N{NARROW NO-BREAK SPACE}", " "), said
    for said in (*OWNERS, "424242", "1801742"):
        assert said not in public.words.replace("\N{NARROW NO-BREAK SPACE}", " "), said
    assert "424242" not in owner.words


def test_several_runs(build: Builder, tmp_path: Path) -> None:
    out = write_report([build(m) for m in METHODS], tmp_path / "report.html")
    page = read(out)
    assert out.stat().st_size < 400_000
    assert "4 methods on mnist" in page.words
    assert "fedavg protects nobody" in page.words
    assert "protect one whole client against everyone who sees the released model" in page.words
    assert "different relations" in page.words
    assert page.names.count("svg") == 4


def test_equal_protection_from_world_and_server_is_one_sentence(
    build: Builder, tmp_path: Path
) -> None:
    runs = [build("dp-fedavg-c"), build("fed-cdp")]
    path = runs[1] / "public" / "statement.json"

    def sentences(world: float, server: float) -> str:
        stated = json.loads(path.read_text())
        for row in stated["statement"]:
            if row["unit"] == "record" and row["observer"] in ("world", "server"):
                epsilon = {"world": world, "server": server}[row["observer"]]
                row.update(epsilon=epsilon, status="proved")
        path.write_text(json.dumps(stated))
        return read(write_report(runs, tmp_path / "report.html")).words

    whom = "protects one single record against"
    told = "everyone who sees the released model"
    assert f"{whom} {told}, and also against the server." in sentences(3.0, 3.0)
    apart = sentences(3.0, 4.0)
    assert f"{whom} {told}." in apart and f"{whom} the server." in apart
    assert "and also" not in sentences(3.0, 40.0)


def test_seeds_share_a_name(build: Builder, tmp_path: Path) -> None:
    runs = [build("dp-fedavg-c", name=f"seed{s}", seed=s) for s in range(3)]
    for run in runs[1:]:
        path = run / "public" / "metrics.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        rows[-1]["accuracy"] = {"seed1": 0.90, "seed2": 0.92}[run.name]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first = read_run(runs[0]).accuracy
    assert first is not None
    page = read(write_report(runs, tmp_path / "report.html"))
    assert "dp-fedavg-c on mnist" in page.words
    assert "dp-fedavg-c · 3 runs" in page.words
    assert "run 2 of 3" in page.words
    # Student's t with 2 degrees of freedom, over sqrt(3).
    half = 4.30265 * stdev([first, 0.90, 0.92]) / 3**0.5
    told = f"{100 * mean([first, 0.90, 0.92]):.1f} ± {100 * half:.1f} %"
    assert page.words.count(told) == 2  # in the sentence and in the table


def test_other_settings_make_another_row(build: Builder, tmp_path: Path) -> None:
    few = {**SETTINGS["dp-fedavg-c"], "sigma": 3.5}
    runs = [build(), build(name="more noise", settings=few)]
    page = read(write_report(runs, tmp_path / "report.html"))
    assert "dp-fedavg-c (sigma 2.4)" in page.words
    assert "dp-fedavg-c (sigma 3.5)" in page.words


def test_runs_that_have_not_ended_are_named_without_their_seed(
    build: Builder, tmp_path: Path
) -> None:
    done, waiting = build(), build("dp-fedsam-c", name="dp-fedsam-c-s424242")
    (waiting / "public" / "run.json").unlink()
    (waiting / "private" / "run.json").write_text("{}")
    page = read(write_report([done, waiting], tmp_path / "report.html"))
    assert "Not shown, for it has not ended: dp-fedsam-c." in page.words
    assert "424242" not in page.words
    with pytest.raises(NotARun, match="holds a run that has not ended"):
        write_report([waiting], tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()


def test_a_directory_of_runs_stands_for_its_runs(build: Builder, tmp_path: Path) -> None:
    for method in METHODS:
        build(method)
    assert "4 runs" in read(write_report([tmp_path / "runs"], tmp_path / "r.html")).words


@pytest.mark.parametrize("methods", [METHODS[:1], METHODS])
def test_nothing_is_loaded(build: Builder, tmp_path: Path, methods: tuple[str, ...]) -> None:
    out = write_report([build(m) for m in methods], tmp_path / "report.html")
    page = read(out)
    assert not {"script", "link", "img", "iframe", "object", "image"} & set(page.names)
    assert not [a for a in page.attributes if a[0] in ("src", "href", "data", "srcset", "action")]
    for name, value in page.attributes:
        if name == "xlink:href":
            assert value.startswith("#")
    assert "@import" not in out.read_text()
    assert re.findall(r"url\((?!#)", out.read_text()) == []
    assert "default-src 'none'" in str(page.attributes)


def test_ids_are_unique(build: Builder, tmp_path: Path) -> None:
    out = write_report([build(m) for m in METHODS], tmp_path / "report.html")
    ids = [value for name, value in read(out).attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_colours_come_from_the_page(build: Builder, tmp_path: Path) -> None:
    text = write_report([build(m) for m in METHODS], tmp_path / "report.html").read_text()
    assert "#f1f2" not in text
    drawings = "".join(re.findall(r"<svg.*?</svg>", text, flags=re.S))
    assert re.findall(r"#[0-9a-f]{6}\b", drawings) == []
    assert "DejaVu" not in drawings
    used = set(re.findall(r"var\((--\w+)\)", text))
    style = text[text.index("<style>") : text.index("</style>")]
    dark = style[style.index("prefers-color-scheme: dark") :]
    for name in used - {"--sans", "--mono"}:
        assert f"{name}:" in dark, name


def test_hostile_names_stay_text(build: Builder, tmp_path: Path) -> None:
    fields = ("method", "paper", "data", "data_source", "licence", "model", "partition", "strategy")
    changes = {name: HOSTILE for name in (*fields, "device", "stopped")}
    odd = {HOSTILE: HOSTILE}
    run = build(
        class_names=[HOSTILE] * 10, versions=odd, settings=odd, machine=odd, **changes
    )  # fmt: skip
    path = run / "public" / "statement.json"
    statement = path.read_text()
    statement = statement.replace("nothing has been done to hide it", "<script>x</script>")
    path.write_text(statement.replace("Gaussian: floating", "<img src=x> Gaussian: floating"))
    (run / "public" / "run.toml").write_text("</pre><script>x</script>")
    for runs in ([run], [run, build("fedavg")]):
        page = read(write_report(runs, tmp_path / "report.html"))
        assert not {"script", "img"} & set(page.names)
        assert not [a for a in page.attributes if a[0].startswith("on")]
        assert "<script>alert('x')</script>" in page.words


def test_the_report_is_the_same_twice(build: Builder, tmp_path: Path) -> None:
    runs = [build("dp-fedavg-c"), build("fedavg")]
    first = write_report(runs, tmp_path / "a.html").read_bytes()
    assert write_report(runs, tmp_path / "b.html").read_bytes() == first
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "b.html", "runs"]


def test_a_run_that_proves_nothing(build: Builder, tmp_path: Path) -> None:
    page = read(write_report([build("fedavg")], tmp_path / "report.html"))
    assert (
        "Nothing is protected, neither against everyone who sees the released model nor against "
        "the server: nothing has been done to hide it." in page.words
    )
    assert not re.search(r"is protected (strongly|moderately|weakly)", page.words)
    assert page.names.count("svg") == 2


def test_no_secret_of_the_cohorts_is_shown(build: Builder, tmp_path: Path) -> None:
    run = build()
    path = run / "public" / "metrics.jsonl"
    path.write_text(path.read_text().replace('"cohort": 100', '"cohort": 98765'))
    page = read(write_report([run], tmp_path / "report.html"))
    assert "98765" not in page.words.replace("\N{NARROW NO-BREAK SPACE}", "")


def test_a_diverged_run_of_errors_without_labels(build: Builder, tmp_path: Path) -> None:
    run = build(
        "fedavg",
        accuracy=None,
        loss=None,
        rounds=2,
        metric="mean absolute error",
        labels=None,
        class_names=None,
        failed="round 2: the loss is nan; try a smaller eta.",
    )
    (run / "public" / "metrics.jsonl").write_text("")
    page = read(write_report([run], tmp_path / "report.html", private=True))
    assert "The mean absolute error of the model is not known: it was not evaluated." in page.words
    assert (
        "The run failed and left no model: round 2: the loss is nan; try a smaller eta. "
        "The statement covers all that was spent." in page.words
    )
    assert "2 of 60 rounds" in page.words
    assert "svg" not in page.names


def test_a_failed_run_beside_others_has_no_score(build: Builder, tmp_path: Path) -> None:
    runs = [build(), build("dp-fedsam-c", failed="round 9: the loss is inf", rounds=9)]
    page = read(write_report(runs, tmp_path / "report.html"))
    assert "dp-fedsam-c · failed" in page.words
    cell = worst(read_run(runs[1]), "client", "world")
    assert cell is not None
    assert f"dp-fedsam-c ({digits.epsilon_is(cell.epsilon)}, failed)" in (
        page.words.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    )


def test_a_run_that_ended_early_says_why(build: Builder, tmp_path: Path) -> None:
    told = "the budget allows 60 rounds: one more would exceed epsilon 2"
    run = build(stopped=told, planned=90)
    page = read(write_report([run], tmp_path / "report.html"))
    assert f"The run ended early: {told}." in page.words
    assert "60 of 90 rounds" in page.words


def test_an_error_is_not_a_percentage(build: Builder, tmp_path: Path) -> None:
    run = build(metric="mean absolute error")
    error = read_run(run).accuracy
    assert error is not None
    page = read(write_report([run], tmp_path / "report.html"))
    assert f"The model has a mean absolute error of {error:.4g} on held-out examples" in page.words
    assert "Mean absolute error over rounds" in page.words


def test_groups_of_clients_and_side_releases(build: Builder, tmp_path: Path) -> None:
    page = read(write_report([build("dp-fedags")], tmp_path / "report.html"))
    assert "each row above speaks of the group that is protected least" in page.words
    assert "Each of 4 groups of clients" in page.words
    assert "250 clients like client 3" in page.words
    beside = "Not counted here is “loss”, released beside the model: "
    assert beside + "see its rows in the table." in page.words


def test_a_side_release_without_a_proof_is_said_at_the_top(build: Builder, tmp_path: Path) -> None:
    run = build("dp-fedags")
    path = run / "public" / "statement.json"
    data = json.loads(path.read_text())
    for row in data["statement"]:
        if (row["of"], row["observer"], row["unit"]) == ("loss", "server", "client"):
            row.update(epsilon="inf", status="infinite", reason="nothing has been done to hide it")
    path.write_text(json.dumps(data))
    page = read(write_report([run], tmp_path / "report.html"))
    said = "released beside the model: one client is not protected against the server."
    assert said in page.words


def test_the_published_claim_stands_apart(build: Builder, tmp_path: Path) -> None:
    page = read(write_report([build("dp-fedsam-c")], tmp_path / "report.html"))
    after = page.words[page.words.index("What the paper prints") :]
    assert "DP-FedSAM, eq. (16). Computed as printed there, not proved here." in after


def test_sixty_clients_of_many_classes_stay_small(build: Builder, tmp_path: Path) -> None:
    labels = [[1 + (i * k) % 7 for k in range(62)] for i in range(60)]
    run = build(labels=labels, class_names=None)
    out = write_report([run], tmp_path / "report.html", private=True)
    assert "Label distribution of 60 of 1" in out.read_text()
    assert out.stat().st_size < 500_000


def test_nothing_heavy_is_imported_before_something_is_drawn() -> None:
    code = "import sys, confide.report; print({'matplotlib', 'torch'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"
