"""Right releases pass and broken ones fail: the stages themselves, thousands of times."""

import json

import pytest

from audit.broken import BROKEN, RIGHT
from confide.audit.mechanism import Effort, Finding, findings
from confide.audit.targets import targets
from confide.audit.verdict import caught, strongest
from confide.audit.whole import audit
from confide.channels import Sum
from confide.cli import main
from confide.cohorts import All, Poisson
from confide.engine.rounds import Round, Sizes
from confide.methods.making import make
from confide.randomness import Key
from confide.stages import Clip, Gaussian, Stage

SIZES = Sizes(clients=10, records=8, layers=(8,) * 8)
QUICK = ("noise of sigma / B", "one layer without noise", "noise above a threshold only", "no clip")


def attacked(stages: tuple[Stage, ...], draws: int, seed: int = 1) -> Finding | None:
    [target] = targets(Round(cohort=All(), upload=stages), SIZES)
    return strongest(findings(target, Key.from_seed(seed), Effort(1, draws), 1e-5, 14, 0))


@pytest.mark.parametrize("name", QUICK)
def test_a_broken_release_is_refuted_at_once(name: str) -> None:
    found = attacked(BROKEN[name], 600)
    assert found is not None and found.refuted == 0.001
    assert found.lower_bound > 1.0, "by a bound that holds whatever the mechanism is"


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_release_is_not_refuted(name: str) -> None:
    found = attacked(RIGHT[name], 600)
    assert found is None or (found.refuted == 1.0 and found.lower_bound <= found.claimed)


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_release_is_refuted(name: str) -> None:
    weak = name in ("noise of 0.8 sigma", "noise of sigma / 2") or "Laplace" in name
    found = attacked(BROKEN[name], 20_000 if weak else 4000)
    assert found is not None and found.refuted == 0.001, found


def test_noise_added_once_is_audited_where_it_is_published() -> None:
    r = Round(
        cohort=Poisson(0.5), upload=(Clip(1.0),), channel=Sum(), publish=(Gaussian(3.7307 / 5),)
    )
    upload, published = targets(r, SIZES)
    assert not upload.claimed and "hide" in upload.reason
    assert (published.unit, published.observer) == ("client", "world")
    assert str(published.relation) == "add-remove"
    found = strongest(findings(published, Key.from_seed(2), Effort(1, 500), 1e-5, 14, 0))
    assert found is None or found.refuted == 1.0
    leak = strongest(findings(upload, Key.from_seed(2), Effort(1, 500), 1e-5, 14, 0))
    assert leak is not None and leak.lower_bound > 3


def test_the_same_seed_finds_the_same() -> None:
    method = make("dp-fedsam", {"q": 0.01})
    first, second = (audit(method, draws=400, seed=3).row() for _ in range(2))
    assert {**first, "seconds": 0} == {**second, "seconds": 0}
    assert first["verdict"] == "pass"
    assert first["releases"][0]["claimed"] < float("inf")


def test_methods_that_prove_nothing_are_shown_to_leak() -> None:
    found = audit(make("cofel-avg", {}), draws=400)
    assert found.verdict == "pass", "nothing is claimed, so nothing is refuted"
    assert "nothing is claimed, and it leaks" in found.worst.words()


def test_raw_fields_are_shown_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "dp-fedags", "--seconds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "not hidden: `loss` leaves each client without noise; the server sees each." in shown
    assert "infinite: nothing has been done to hide it" in shown


def test_what_would_have_been_caught_grows_with_the_draws() -> None:
    few, many = caught(4.0, 1e-5, 500, 14), caught(4.0, 1e-5, 20_000, 14)
    assert many is not None and many <= 0.2
    assert few is None or few > many


FAULTY = """
from dataclasses import dataclass
from confide.channels import Each
from confide.cohorts import All
from confide.engine.rounds import Past, Round
from confide.stages import Clip, Gaussian


@dataclass(frozen=True)
class Quarter(Gaussian):
    def __call__(self, x, shared, own):
        return Gaussian(self.std / 4)(x, shared, own)


@dataclass(frozen=True)
class Mine:
    T: int = 2
    sigma: float = 2.0

    def round(self, past):
        if past.t == self.T:
            return None
        return Round(cohort=All(), upload=(Clip(1.0), Quarter(2 * self.sigma)))
"""


def test_the_verb_fails_a_faulty_method_of_a_persons_own(
    tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "mine.py"
    file.write_text(FAULTY)
    assert main(["audit", f"{file}:Mine", "--seconds", "4", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "fail" and answer["faults"]
    assert answer["lower_bound"] > 0 and answer["claimed"]["delta"] == 1e-5
    needed = {"method", "observer", "claimed", "lower_bound", "confidence", "via", "verdict"}
    assert needed | {"power", "seconds", "faults"} <= answer.keys()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["dp-fedsan"], "dp-fedsam"),
        (["dp-fedsam", "--seconds", "0"], "--seconds 0"),
        (["dp-fedsam", "--set", "sigma=-1"], "sigma = -1"),
    ],
)
def test_bad_calls_get_one_sentence(
    words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", *words]) == 2
    told = capsys.readouterr().err
    assert part in told and told.count("\n") == 1
