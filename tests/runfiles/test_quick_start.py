"""The quick start keeps its promise: settings of the search, proved epsilons, test scores."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from confide.engine.rounds import Sizes
from confide.engine.spending import unrolled
from confide.runfiles.reading import QUICK_START, read
from confide.runfiles.runfile import parse
from confide.statements import state

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
SIZES = Sizes(clients=1000, records=60, layers=(784 * 32, 32, 320, 10))
PROMISED = {
    "dp-fedavg-c": ("client", "world", 2.0, 0.9),
    "dp-fedsam-c": ("client", "world", 2.0, 0.9),
    "fed-cdp-c": ("record", "server", 8.0, 0.8),
}


def results(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"quickstart_{name}.json").read_text())


def test_four_methods_with_one_that_protects_nobody() -> None:
    assert parse(read(QUICK_START)).methods == ("fedavg", *PROMISED)


@pytest.mark.parametrize("name", PROMISED)
def test_the_statement_is_proved_below_the_promise(name: str) -> None:
    unit, view, most, _ = PROMISED[name]
    plan = unrolled(parse(read(QUICK_START)).single(name, 0).built(), SIZES)
    cell = state(plan, SIZES).cell(unit, view)
    assert cell.status == "proved"
    assert cell.epsilon <= most
    units = {"client": 1000, "record": 60_000}[unit]
    assert cell.delta <= 1 / (10 * units)


def test_the_settings_are_the_best_that_the_search_found() -> None:
    found = results("search")["methods"]
    file = parse(read(QUICK_START))
    for name in file.methods:
        best = found[name]["rows"][0]
        assert best["accuracy"] == max(row["accuracy"] for row in found[name]["rows"])
        for field, value in file.method[name].items():
            if field == "sigma":  # rounded up
                assert best[field] <= value <= best[field] * 1.001
            else:
                assert value == best[field], (name, field)


def test_every_seed_kept_the_promise_on_the_test_digits() -> None:
    rows = results("check")["rows"]
    assert len({row["seed"] for row in rows}) >= 3
    searched = set(results("search")["seeds"])
    assert not searched & {row["seed"] for row in rows}
    for row in rows:
        if row["method"] in PROMISED:
            unit, view, most, least = PROMISED[row["method"]]
            assert row["accuracy"] > least
            assert row["epsilon"][f"{unit}/{view}"] <= most


ROOT = Path(__file__).parents[2]


def test_the_readme_shows_what_the_check_found() -> None:
    command = [sys.executable, "benchmarks/quickstart.py", "table"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert shown in (ROOT / "README.md").read_text()
    for name in PROMISED:
        assert f"| `{name}` |" in shown


def test_the_run_file_of_the_readme_is_one() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    file = parse(tomllib.loads(block))
    assert file.count == 6
    assert file.singles()[0].built() != file.singles()[3].built()


def test_the_first_blocks_of_the_readme_are_those_that_are_run() -> None:
    blocks = re.findall(r"```sh\n(.*?)\n```", (ROOT / "README.md").read_text(), re.S)
    assert blocks == ["pip install -e . && confide run", "pip install -e '.[test]' && pytest"]
