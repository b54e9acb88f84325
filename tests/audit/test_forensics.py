"""Noise that is not what it says is found; noise that is, is not accused."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from audit.broken import OneLayerForgotten, ShiftedStaircase, Weak
from audit.noises import (
    Everyones,
    LayersAlike,
    LowWord,
    OffGrid,
    OneWord,
    SeedZero,
    Torchs,
    Unseeded,
    Vanishing,
)
from confide.aggregates import Mean, MeanOfPresent, WeightedMean
from confide.audit.forensics import Forensics, forensics
from confide.audit.rehearsal import Rehearsal
from confide.audit.residuals import Draw, every_test
from confide.channels import Sum
from confide.cohorts import All, Fixed, Spaced
from confide.engine import client as clients
from confide.engine import uploads
from confide.engine.adapting import planned
from confide.engine.publishing import Publisher
from confide.engine.rounds import Local, Method, Past, Round, Upload
from confide.local import SGD
from confide.methods.making import make
from confide.randomness import Key, Stream
from confide.stages import Clip, Correlated, Gaussian, Laplace, Stage, Staircase


@dataclass(frozen=True)
class Uploads:
    """Everyone sends an update through these stages."""

    stages: tuple[Stage, ...]
    T: int = 4

    def round(self, past: Past) -> Round | None:
        return None if past.t == self.T else Round(cohort=All(), upload=self.stages)


@dataclass(frozen=True)
class Publishes:
    """Noise is added once, to the sum."""

    stages: tuple[Stage, ...]
    T: int = 4

    def round(self, past: Past) -> Round | None:
        r = Round(cohort=All(), upload=(Clip(1.0),), channel=Sum(), publish=self.stages)
        return None if past.t == self.T else r


@dataclass(frozen=True)
class Steps:
    """Noise is added in two local steps."""

    stages: tuple[Stage, ...]
    place: str = "batch"
    T: int = 4

    def round(self, past: Past) -> Round | None:
        local: Any = {"example": (Clip(1.0),), "batch": ()}
        local[self.place] = (*local[self.place], *self.stages)
        r = Round(cohort=All(), local=Local(SGD(0.1), 2, Fixed(4), **local))
        return None if past.t == self.T else r


SHARE = {"sure": 0.001 / 15, "likely": 0.05 / 15}
"""The levels that an audit leaves to its forensics: they are one of its tests, of 15 or more."""


def looked_at(method: Method, seed: int = 0) -> Forensics:
    show = Rehearsal.of(method, 6, Key.from_seed(0))
    statement = planned(method, show.plan, show.sizes)
    return forensics(method, statement, clients=6, seed=seed, **SHARE)


def kinds(found: Forensics) -> set[str]:
    return {fault.kind for fault in found.faults if fault.level == "fail"}


STD = 8.0
WRONG: dict[str, tuple[Method, str]] = {
    "0.8 of the scale": (Uploads((Clip(1.0), Weak(STD, 0.8))), "scale"),
    "0.9 of it, published": (Publishes((Weak(STD, 0.9),)), "scale"),
    "0.9 of it, in a local step": (Steps((Weak(STD, 0.9),)), "scale"),
    "0.9 of it, on examples": (Steps((Weak(STD, 0.9),), "example"), "scale"),
    "one eighth without": (Uploads((Clip(1.0), OneLayerForgotten(STD))), "frozen"),
    "another staircase": (Uploads((Clip(1.0, p=1), ShiftedStaircase(1.0, 2.0))), "law"),
    "torch's generator": (Uploads((Clip(1.0), Torchs(STD))), "generator"),
    "nobody's generator": (Publishes((Unseeded(STD),)), "generator"),
    "always the same": (Uploads((Clip(1.0), SeedZero(STD))), "frozen"),
    "the public stream": (Uploads((Clip(1.0), Everyones(STD))), "reuse"),
    "one word as a seed": (Uploads((Clip(1.0), OneWord(STD))), "seed"),
    "the low word as a seed": (Publishes((LowWord(STD),)), "seed"),
    "every layer's the same": (Uploads((Clip(1.0), LayersAlike(STD))), "reuse"),
    "between the grid's points": (Uploads((Clip(1.0, p=1), OffGrid(STD))), "lattice"),
    "rounded away": (Uploads((Clip(1e-6), Vanishing(1e-5))), "frozen"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_noise_is_found(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    method, kind = WRONG[name]
    found = looked_at(method)
    record_property("mutant", ["forensics", name, kind if kind in kinds(found) else ""])
    assert found.verdict == "fail"
    assert kind in kinds(found), found.faults


RIGHT: dict[str, Method] = {
    "uploaded": Uploads((Clip(1.0), Gaussian(STD))),
    "Laplace": Uploads((Clip(1.0, p=1), Laplace(STD))),
    "staircase": Uploads((Clip(1.0, p=1), Staircase(1.0, 2.0))),
    "published": Publishes((Gaussian(STD),)),
    "in steps": Steps((Gaussian(STD),)),
    "on examples": Steps((Gaussian(STD),), "example"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_noise_that_is_what_it_says_is_not_accused(name: str) -> None:
    for seed in range(3):
        found = looked_at(RIGHT[name], seed)
        assert found.faults == () and found.verdict == "pass"
        assert found.draws >= 4000 and "missing" in found.power


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_method_of_few_rounds_is_looked_at_to_its_end(rounds: int) -> None:
    assert not looked_at(Uploads((Clip(1.0), Gaussian(STD)), T=rounds)).faults
    found = looked_at(Publishes((Weak(STD, 0.8),), T=rounds))
    assert "scale" in kinds(found)


def test_the_same_seed_finds_the_same() -> None:
    first, second = (looked_at(RIGHT["uploaded"], 4) for _ in range(2))
    assert replace(first, seconds=0) == replace(second, seconds=0)


@dataclass(frozen=True)
class AtLast:
    """Another round at the end."""

    last: Stage
    loss: bool = False

    def round(self, past: Past) -> Round | None:
        noise = Upload((Clip(1.0), Gaussian(STD) if past.t < 3 else self.last))
        uploads = {"update": noise}
        if self.loss and past.t == 3:
            uploads["loss"] = Upload((), length=1, data="train")
        return None if past.t == 4 else Round(cohort=All(), upload=uploads)


def test_what_is_wrong_in_the_last_round_alone_is_found() -> None:
    quieter = looked_at(AtLast(Weak(STD, 0.9)))
    assert any("round 3, has 0.89" in fault.words for fault in quieter.faults), quieter.faults
    assert kinds(looked_at(AtLast(SeedZero(STD)))) >= {"frozen", "seed"}
    leaks = looked_at(AtLast(Gaussian(STD), loss=True))
    assert "`loss` leaves each client without noise" in str(leaks.faults)


# The engine's own faults ------------------------------------------------------------------------


def clients_alike(self: Any, purpose: str) -> Stream:
    return self._key.stream(self._t, 0, purpose)


def rounds_alike(self: Any, purpose: str) -> Stream:
    return self._key.stream(0, self._client, purpose)


def steps_alike(self: Any, purpose: str) -> Stream:
    return self._key.stream(self._t, self._client, purpose)


@pytest.mark.parametrize(
    ("own", "method", "words"),
    [
        (clients_alike, RIGHT["uploaded"], "is the same for clients "),
        (rounds_alike, RIGHT["uploaded"], "is the same for rounds "),
        (steps_alike, RIGHT["in steps"], "is the same for steps "),
    ],
)
def test_a_stream_that_is_used_twice_is_found(
    own: Callable[..., Stream],
    method: Method,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setattr(clients.Streams, "own", own)
    found = looked_at(method)
    told = words if any(words in fault.words for fault in found.faults) else ""
    record_property("mutant", ["forensics", f"a stream used twice, which {words.strip()}", told])
    assert "reuse" in kinds(found)
    assert any(words in fault.words for fault in found.faults)


def test_a_client_whose_noise_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(self: Round, client: int) -> Round:
        uploads = {n: replace(u, stages=u.stages[:1]) for n, u in self.uploads.items()}
        return replace(self, upload=uploads) if client == 1 else self

    monkeypatch.setattr(Round, "for_client", without)
    found = looked_at(RIGHT["uploaded"])
    assert "stages" in kinds(found)
    assert any("client 1" in fault.words for fault in found.faults)


def test_noise_that_the_server_forgets_in_the_last_round_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish = Publisher.publish

    def forgetful(self: Publisher, r: Round, t: int, *rest: Any) -> Any:
        return publish(self, replace(r, publish=()) if t == 3 else r, t, *rest)

    monkeypatch.setattr(Publisher, "publish", forgetful)
    found = looked_at(RIGHT["published"])
    assert "stages" in kinds(found)
    assert any("round 3, 0 of its 1 stages worked" in fault.words for fault in found.faults)


def test_what_is_added_after_the_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    work = clients.work

    def louder(*given: Any) -> dict[str, torch.Tensor]:
        return {name: 2 * vector for name, vector in work(*given).items()}

    monkeypatch.setattr(clients, "work", louder)
    found = looked_at(RIGHT["uploaded"])
    assert any("not what its last stage made" in fault.words for fault in found.faults)


@dataclass(frozen=True)
class Averages:
    """What is published is divided in one of the ways that the statement knows."""

    aggregate: Mean | MeanOfPresent | WeightedMean

    def round(self, past: Past) -> Round | None:
        stages: Any = {"channel": Sum(), "publish": (Gaussian(STD),)}
        r = Round(cohort=All(), upload=(Clip(1.0),), aggregate=self.aggregate, **stages)
        return None if past.t == 4 else r


AVERAGES = (Mean(), Mean(3.0), MeanOfPresent(), WeightedMean(20, 60))


@pytest.mark.parametrize("aggregate", AVERAGES, ids=repr)
def test_what_is_noised_must_be_the_mean_that_is_stated(
    aggregate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not looked_at(Averages(aggregate)).faults
    monkeypatch.setattr(Publisher, "divisor", lambda *_: 1.5)  # pyright: ignore
    found = looked_at(Averages(aggregate))
    assert kinds(found) == {"sum"}


def test_a_weight_above_its_cap_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    received = uploads.received

    def uncapped(r: Round, sent: Any, weights: Any) -> Any:
        aggregate = replace(r.aggregate, cap=1e9)  # pyright: ignore
        return received(replace(r, aggregate=aggregate), sent, weights)

    monkeypatch.setattr(uploads, "received", uncapped)
    assert "sum" in kinds(looked_at(Averages(WeightedMean(20, 60))))


def test_a_clip_of_the_whole_batch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_the_batch(self: clients.Batch, w: torch.Tensor) -> torch.Tensor:
        total = self._shop.gradient.total(w, self._x, self._y)  # pyright: ignore
        for stage in self._local.example:  # pyright: ignore
            total = stage(total, self._streams.shared, self._streams.own("example"))  # pyright: ignore
        return total

    plain = clients.Batch._of_examples  # pyright: ignore

    def faulty(self: clients.Batch, w: torch.Tensor) -> torch.Tensor:
        known = clients.is_clip(self._local.example[0])  # pyright: ignore
        return of_the_batch(self, w) if known else plain(self, w)

    monkeypatch.setattr(clients.Batch, "_of_examples", faulty)
    assert "clip" in kinds(looked_at(RIGHT["in steps"]))


# Correlated noise -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turns:
    """Noise that goes on from round to round, as it says."""

    stage: Correlated

    def round(self, past: Past) -> Round | None:
        spaced = Spaced(self.stage.bands)
        r = Round(cohort=spaced, upload=(Clip(1.0),), channel=Sum(), publish=(self.stage,))
        return None if past.t == 4 else r


@dataclass(frozen=True)
class Forgets(Correlated):
    """Says that it is correlated, and is not."""

    def __call__(self, x: torch.Tensor, shared: Any, own: Any) -> torch.Tensor:
        return x + self.std * torch.from_numpy(Key.from_system().stream(0, 0, "x").normal(len(x)))


def test_correlated_noise_must_be_correlated_as_it_says() -> None:
    assert not looked_at(Turns(Correlated(STD, (1.0, -0.9)))).faults
    found = looked_at(Turns(Forgets(STD, (1.0, -0.9))))
    words = " ".join(fault.words for fault in found.faults)
    assert "round 1" in words or "rounds 0 and 1" in words


# The tests themselves ---------------------------------------------------------------------------


def test_levels_hold_for_all_tests_together() -> None:
    alarms = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        draws = [
            Draw(("upload", name, 0), "Gaussian", run, t, client, 0, random.normal(size=40))
            for name in ("update", "rest")
            for run in range(2)
            for t in range(2)
            for client in range(2)
        ]
        tests = list(every_test(draws, (20, 20), 100))
        alarms += min(test.p for test in tests) <= 0.05 / len(tests)
    assert alarms <= 18


QUICK = ("dp-fedavg-c", "dp-bandmf", "cpsgd", "udp-fl-c", "dp-scaffold", "ldp-fl-c", "cldp-sgd")


@pytest.mark.parametrize("name", QUICK)  # test_catalogue.py has all of them
def test_no_method_of_the_list_is_accused(name: str) -> None:
    method: Any = make(name, {})
    show = Rehearsal.of(method, type(method).setting.clients, Key.from_seed(0))
    statement = planned(method, show.plan, show.sizes)
    found = forensics(method, statement, clients=show.sizes.clients, **SHARE)
    assert found.verdict == "pass", found.faults
    assert found.fields and all(fault.kind == "message" for fault in found.faults)
