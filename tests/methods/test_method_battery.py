"""Every method of the list is planned and trained, and refuses what makes no sense."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from math import isfinite
from typing import Any

import pytest

from confide.engine import loop
from confide.engine.adapting import planned
from confide.engine.running import Run, run
from confide.engine.spending import Budget, unrolled
from confide.methods import CATALOGUE, rows
from confide.methods.making import make
from confide.methods.setting import Setting
from methods.cases import CASES
from methods.world import SEED, World, network

NAMES = sorted(CATALOGUE)


def go(name: str, settings: Mapping[str, Any], world: World | None = None, **more: Any) -> Run:
    given = {"model": network(), "seed": SEED, "workers": 1, "device": "cpu", **more}
    method = make(name, {**CASES[name].settings, **settings})
    return run(method, (world or CASES[name].world).federation, **given)  # type: ignore[arg-type]


@cache
def sizes_of(setting: Setting) -> Any:
    return setting.sizes


@pytest.mark.parametrize("name", NAMES)
def test_the_defaults_are_planned_at_the_papers_setting(name: str) -> None:
    kind = CATALOGUE[name].load()
    assert (kind.name, kind.paper) == (name, CATALOGUE[name].paper)
    assert bool(getattr(kind, "noise_field", None)) == (CATALOGUE[name].unit != "none")
    method, sizes = kind(), sizes_of(kind.setting)
    statement = planned(method, unrolled(method, sizes), sizes)
    assert statement.rounds >= 1
    for cell in statement.cells:
        assert cell.status == ("proved" if isfinite(cell.epsilon) else "infinite")
        assert cell.status == "proved" or cell.reason
    if CATALOGUE[name].unit == "none":
        assert {cell.status for cell in statement.cells} == {"infinite"}


def test_a_corrected_sibling_proves_what_is_claimed() -> None:
    printed = {row["name"] for row in rows() if row["as_printed"]}
    for name, entry in CATALOGUE.items():
        assert entry.as_printed == (name in printed) == (not name.endswith("-c"))
        assert entry.summary.endswith((".", ":"))
        if entry.corrected is None:
            continue
        assert entry.corrected == f"{name}-c"
        sibling = CATALOGUE[entry.corrected]
        assert sibling.class_name == f"{entry.class_name}C"
        method, sizes = sibling.load()(), sizes_of(sibling.load().setting)
        cells = planned(method, unrolled(method, sizes), sizes).cells
        assert any(c.unit == entry.unit and isfinite(c.epsilon) for c in cells)


@pytest.mark.parametrize("name", NAMES)
def test_it_trains_in_single_precision_and_states_what_was_planned(name: str) -> None:
    done = go(name, {}, rounds=2)
    assert done.rounds == 2
    assert done.loss is not None and isfinite(done.loss)
    sizes = done.statement.sizes
    before = planned(done.method, unrolled(done.method, sizes, 2), sizes)
    assert [c.epsilon for c in done.statement.cells] == [c.epsilon for c in before.cells]


REFUSED = [
    pytest.param(name, changed, part, id=f"{name} {changed}")
    for name in NAMES
    for changed, part in CASES[name].wrong
]


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail as soon as a round begins."""

    def begins(*_: object) -> None:
        raise AssertionError("a round has begun")

    monkeypatch.setattr(loop.Loop, "one_round", begins)


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(("name", "changed", "part"), REFUSED)
def test_bad_settings_get_one_sentence_before_any_training(
    name: str, changed: dict[str, Any], part: str
) -> None:
    with pytest.raises((ValueError, TypeError)) as told:
        go(name, changed)
    words = str(told.value)
    assert part in words
    assert "\n" not in words and "allowed" in words


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize("name", NAMES)
def test_a_budget_that_is_spent_already_gets_one_sentence(name: str) -> None:
    unit = "record" if CATALOGUE[name].unit == "record" else "client"
    with pytest.raises(ValueError, match="not even one round fits"):
        go(name, {}, budget=Budget(1e-9, unit=unit), calibrate=False)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_client_is_trained_around_or_refused_in_one_sentence(name: str) -> None:
    try:
        done = go(name, {}, World((8, 0, 9, 8, 8, 8)), rounds=1)
    except ValueError as why:
        assert "\n" not in str(why) and "allowed" in str(why)
    else:
        assert done.loss is not None and isfinite(done.loss)


def test_every_field_is_a_plain_value_that_a_run_file_can_set() -> None:
    for name, entry in CATALOGUE.items():
        for field in dataclasses.fields(entry.load()):
            value = field.default
            assert isinstance(value, int | float | str | tuple | type(None)), (name, field.name)
            if value is not None:
                assert getattr(make(name, {field.name: value}), field.name) == value
