"""Every field of a message is constant, noised or told of."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from audit.test_forensics import looked_at
from confide.aggregates import WeightedMean
from confide.audit.forensics import Forensics, forensics
from confide.audit.message import Field
from confide.audit.rehearsal import Rehearsal
from confide.channels import Sum
from confide.cohorts import All
from confide.engine import client as clients
from confide.engine.adapting import planned
from confide.engine.rounds import Past, Round, Upload
from confide.methods.making import make
from confide.randomness import Key
from confide.stages import Clip, Gaussian, Mask, RandomizedResponse, TopK


def audited(name: str, **values: Any) -> Forensics:
    method: Any = make(name, values)
    show = Rehearsal.of(method, type(method).setting.clients, Key.from_seed(0))
    statement = planned(method, show.plan, show.sizes)
    return forensics(method, statement, clients=show.sizes.clients)


def field(found: Forensics, name: str, observer: str = "server") -> Field:
    [one] = [f for f in found.fields if (f.name, f.seen_by) == (name, observer)]
    return one


def test_raw_losses_and_sizes_are_reported_and_sums_with_noise_are_not() -> None:
    printed = audited("dp-fedags")
    for name in ("loss", "size"):
        assert (field(printed, name).kind, field(printed, name).raw) == ("raw", 1)
        assert field(printed, name).declared == "infinite: nothing has been done to hide it"
        assert any(f"`{name}` leaves each client" in f.words for f in printed.faults)
    assert 0 < field(printed, "update").raw < 588, "what lies below the threshold"
    assert printed.verdict == "pass", "nothing is claimed, so nothing is refuted"
    corrected = audited("dp-fedags-c")
    assert corrected.faults == ()
    assert field(corrected, "loss", "world").kind == "noised"
    assert field(corrected, "loss", "world").declared == "finite for a client"


@dataclass(frozen=True)
class Two:
    """An update with noise, and something else."""

    update: Upload
    other: Upload
    T: int = 3

    def round(self, past: Past) -> Round | None:
        uploads = {"update": self.update, "other": self.other}
        return None if past.t == self.T else Round(cohort=All(), upload=uploads)


NOISED = Upload((Clip(1.0), Gaussian(8.0)))


def signs(done: Any) -> torch.Tensor:
    return done.update.sign()


ALSO_NOISED = Upload((Clip(1.0), Gaussian(8.0)), value=signs)


def one(done: Any) -> torch.Tensor:
    return torch.ones(1)


@pytest.mark.parametrize(
    ("other", "kind", "raw"),
    [
        (Upload((), length=1, value=one), "constant", 0),
        (ALSO_NOISED, "noised", 0),
        (Upload((Clip(1.0), Gaussian(8.0), Mask((0, 5))), value=signs), "noised", 0),
        (Upload((RandomizedResponse(2, 1.0, 1.0),), value=signs), "noised", 0),
        (Upload((), value=signs), "raw", None),
        (Upload((TopK(4),), value=signs), "raw", None),
    ],
)
def test_what_a_field_is(other: Upload, kind: str, raw: int | None) -> None:
    found = field(looked_at(Two(NOISED, other)), "other")
    assert found.kind == kind
    assert found.raw == raw if raw is not None else found.raw > 0
    assert bool(found.fault) == (kind == "raw")


@dataclass(frozen=True)
class Weighted:
    """Weights that are public, as it says."""

    def round(self, past: Past) -> Round | None:
        r = Round(
            cohort=All(),
            upload=(Clip(1.0),),
            channel=Sum(),
            aggregate=WeightedMean(20, 100),
            publish=(Gaussian(2.0),),
        )
        return None if past.t == 2 else r


def test_weights_and_participation_are_told_of() -> None:
    found = looked_at(Weighted())
    assert found.faults == ()
    assert "at most 20" in field(found, "number of records").declared
    assert field(found, "participation").declared == "everyone"
    assert field(found, "update").kind == "raw" and not field(found, "update").fault


def test_a_field_that_no_round_declares_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    work = clients.work

    def talkative(shop: Any, job: Any, client: int) -> dict[str, torch.Tensor]:
        return {**work(shop, job, client), "count": torch.tensor([3.0])}

    monkeypatch.setattr(clients, "work", talkative)
    found = looked_at(Two(NOISED, ALSO_NOISED))
    assert found.verdict == "fail"
    assert "`count` leaves each client, and the round has no such upload" in str(found.faults)


def test_a_field_whose_length_tells_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    work = clients.work

    def shorter(shop: Any, job: Any, client: int) -> dict[str, torch.Tensor]:
        sent = work(shop, job, client)
        return {**sent, "other": sent["other"][:1]} if client == 1 else sent

    monkeypatch.setattr(clients, "work", shorter)
    found = looked_at(Two(NOISED, ALSO_NOISED))
    assert found.verdict == "fail"
    assert "`other` leaves each client in different lengths" in str(found.faults)


def by_record(done: Any) -> torch.Tensor:
    return torch.zeros(done.records)


def test_a_method_that_cannot_be_made_with_a_small_model_is_told_of() -> None:
    found = looked_at(Two(NOISED, Upload((), length=1, data="train", value=by_record)))
    assert "cannot be made with a small model" in str(found.faults)
    assert found.power == "was not looked at"
