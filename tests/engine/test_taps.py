"""Taps: the views of a run's observers, exactly, whole after a kill, and free when off."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from confide.channels import Each, Shuffle, Sum
from confide.cohorts import All, Epoch, Fixed, Poisson
from confide.engine import overheard, safetensors, taps
from confide.engine.rounds import Local, Round, Upload
from confide.engine.running import Run, run
from confide.local import SGD, Scaffold
from confide.stages import Clip, Gaussian
from moments import Killed, Moments
from small import Anything, Private, federation, mlp, plain, total

VIEWS = ("device", "server", "world")
NOISY = Anything(
    Round(
        cohort=Fixed(3),
        local=Local(SGD(0.1), 1, Epoch(10, True), example=(Clip(1.0), Gaussian(0.5))),
        upload=(Clip(0.5), Gaussian(0.1)),
        channel=Each(),
    ),
    T=3,
)


def go(out: Path | None, method: Any, **options: Any) -> Run:
    given: dict[str, Any] = {"model": mlp(), "workers": 1, "dtype": "float64", **options}
    return run(method, federation(), out=out, **given)


def through(channel: Any) -> Anything:
    """The noisy method with another channel."""
    return Anything(replace(NOISY.what, channel=channel), T=NOISY.T)


def files(out: Path) -> dict[str, bytes]:
    """Everything that the taps left."""
    place = out / taps.FOLDER
    return {str(p.relative_to(place)): p.read_bytes() for p in sorted(place.rglob("*.s*"))}


def models(done: Run, out: Path) -> list[torch.Tensor]:
    """Every model that the world saw, in order."""
    flat = torch.cat([part.reshape(-1) for part in done.parameters.values()])
    return [seen.received for seen in taps.read(out, "world")] + [flat]


def test_the_server_sees_each_upload_and_who_sent_it(tmp_path: Path) -> None:
    done = go(tmp_path, NOISY, taps=VIEWS)
    before = models(done, tmp_path)
    for seen in taps.read(tmp_path, "server"):
        uploads = seen.vectors["upload update"]
        assert set(seen.vectors) == {"upload update"}
        assert len(seen.clients) == len(uploads) == 3
        mean = uploads.sum(0) / 3
        torch.testing.assert_close(before[seen.round] + mean, before[seen.round + 1])


def test_under_a_sum_it_sees_the_sum_and_no_upload(tmp_path: Path) -> None:
    each, summed = tmp_path / "each", tmp_path / "sum"
    go(each, NOISY, taps=["server"])
    go(summed, through(Sum()), taps=["server"])
    for one, other in zip(taps.read(each, "server"), taps.read(summed, "server"), strict=True):
        assert set(other.vectors) == {"sum update"} and other.clients == tuple(sorted(one.clients))
        torch.testing.assert_close(other.vectors["sum update"], one.vectors["upload update"].sum(0))


@pytest.mark.parametrize("per", ["client", "coordinate"])
def test_under_a_shuffle_nobody_can_tell_whose_upload_it_is(per: str, tmp_path: Path) -> None:
    each, mixed = tmp_path / "each", tmp_path / "mixed"
    go(each, NOISY, taps=["server"])
    go(mixed, through(Shuffle(per)), taps=["server"])
    moved = 0
    for one, other in zip(taps.read(each, "server"), taps.read(mixed, "server"), strict=True):
        rows, shown = one.vectors["upload update"], other.vectors["shuffled update"]
        assert other.clients == tuple(sorted(one.clients))
        if per == "coordinate":
            assert torch.equal(shown, rows.sort(0).values)
        else:
            places = [next(i for i, r in enumerate(rows) if torch.equal(r, s)) for s in shown]
            assert sorted(places) == [0, 1, 2]
            moved += places != [0, 1, 2]
    assert per == "coordinate" or moved


def test_the_world_sees_models_and_what_was_published_but_nobody(tmp_path: Path) -> None:
    done = go(tmp_path, NOISY, taps=["world"])
    before = models(done, tmp_path)
    assert len(before) == done.rounds + 1
    for seen in taps.read(tmp_path, "world"):
        assert set(seen.vectors) == {"published update"} and seen.clients == ()
        after = before[seen.round] + seen.vectors["published update"]
        torch.testing.assert_close(after, before[seen.round + 1])


def test_the_device_sees_gradients_after_their_noise_and_what_its_client_reports(
    tmp_path: Path,
) -> None:
    go(tmp_path, NOISY, taps=VIEWS)
    for inside, server in zip(
        taps.read(tmp_path, "device"), taps.read(tmp_path, "server"), strict=True
    ):
        assert inside.clients == ()
        for row, client in enumerate(server.clients):
            mine = {
                n.removeprefix(f"client {client} "): v
                for n, v in inside.vectors.items()
                if n.startswith(f"client {client} ")
            }
            assert set(mine) == {"examples", "local update", "report update"}
            assert torch.equal(mine["report update"], server.vectors["upload update"][row])
            held = len(federation().clients[client])
            assert mine["examples"].shape == (min(10, held), len(inside.received))
            if 0 < held <= 10:  # one step: the update is minus eta times the sum of what was seen
                torch.testing.assert_close(mine["local update"], -0.1 * mine["examples"].sum(0))
                noise = mine["examples"].std() / 0.5
                assert 0.9 < float(noise) < 1.1


def test_scaffold_sends_its_control_and_that_is_seen(tmp_path: Path) -> None:
    scaffold = Anything(
        plain(
            Local(Scaffold(0.1), 1, Epoch(10, True), remembers=True),
            Fixed(4),
            upload={"update": Upload(), "control": Upload()},
        ),
        T=3,
    )
    go(tmp_path, scaffold, taps=["server", "world"])
    first, second, *_ = taps.read(tmp_path, "world")
    assert "sent control" not in first.vectors
    share = scaffold.what.server.share  # pyright: ignore[reportAttributeAccessIssue]
    assert torch.equal(second.vectors["sent control"], share * first.vectors["published control"])
    seen = next(taps.read(tmp_path, "server"))
    assert {"upload update", "upload control"} <= set(seen.vectors)


def test_a_run_without_taps_calls_nothing_and_one_with_them_has_its_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tapped = go(tmp_path / "tapped", NOISY, taps=VIEWS)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is tapped")

    for name in ("__init__", "heard", "summed", "ended"):
        monkeypatch.setattr(taps.Taps, name, refuse)
    monkeypatch.setattr(overheard, "first_examples", refuse)
    bare = go(tmp_path / "bare", NOISY)
    assert total(bare.parameters) == total(tapped.parameters)
    assert not (tmp_path / "bare" / taps.FOLDER).exists()
    assert taps.recorded(tmp_path / "bare") == ()


def test_workers_tell_the_same(tmp_path: Path) -> None:
    go(tmp_path / "one", NOISY, taps=VIEWS, workers=1)
    go(tmp_path / "two", NOISY, taps=VIEWS, workers=2)
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_an_empty_cohort_is_a_round_too(tmp_path: Path) -> None:
    done = go(tmp_path, Private(T=4, q=0.02), taps=["server", "world"])
    seen = list(taps.read(tmp_path, "server"))
    assert len(seen) == done.rounds and any(not one.clients for one in seen)


def kills(out: Path) -> Iterator[int]:
    """One for each moment at which something becomes durable."""
    with pytest.MonkeyPatch.context() as patch:
        moments = Moments(patch)
        go(out, NOISY, taps=VIEWS, checkpoint_every=2)
    yield from range(3, moments.count + 1, 7)


def test_killed_and_resumed_they_are_those_of_the_uninterrupted_run(tmp_path: Path) -> None:
    for number in kills(tmp_path / "whole"):
        out = tmp_path / str(number)
        with pytest.MonkeyPatch.context() as patch:
            Moments(patch, number)
            with pytest.raises(Killed):
                go(out, NOISY, taps=VIEWS, checkpoint_every=2)
        begun = (out / "private" / "run.json").is_file()
        go(out, NOISY, taps=VIEWS, checkpoint_every=2, resume=begun)
        assert files(out) == files(tmp_path / "whole")


def full(_: Path) -> Any:
    """A disk with a thousand bytes left."""
    return type("Usage", (), {"free": 1000})


def test_what_cannot_be_recorded_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="taps = 'servers', allowed are device, server, world"):
        go(tmp_path / "a", NOISY, taps=["servers"])
    with pytest.raises(ValueError, match="taps = server without out"):
        go(None, NOISY, taps=["server"])
    with pytest.raises(ValueError, match="taps = device with device = 'auto' and strategy"):
        go(tmp_path / "a", NOISY, taps=["device"], strategy="cohort")
    monkeypatch.setattr("shutil.disk_usage", full)
    with pytest.raises(ValueError, match=r"taps = world take .* GiB of .* allowed is what is free"):
        go(tmp_path / "a", NOISY, taps=["world"])
    assert not (tmp_path / "a").exists()


def test_a_run_does_not_change_its_taps_half_way(tmp_path: Path) -> None:
    go(tmp_path, NOISY, taps=["server"], evaluate_every=1)
    with pytest.raises(ValueError, match="resume: taps = world, but the first 3 rounds were run"):
        go(tmp_path, NOISY, taps=["world"], resume=True)
    with pytest.raises(ValueError, match="resume: taps = none"):
        go(tmp_path, NOISY, resume=True)


def test_reading_what_is_not_whole_is_one_sentence(tmp_path: Path) -> None:
    go(tmp_path, NOISY, taps=["server"])
    with pytest.raises(ValueError, match="has no taps of the view 'world', allowed are server"):
        taps.read(tmp_path, "world")
    last = taps.file_of(tmp_path / taps.FOLDER, "server", 2)
    data = last.read_bytes()
    last.write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match="is not a whole safetensors file"):
        list(taps.read(tmp_path, "server"))
    last.unlink()
    with pytest.raises(ValueError, match="lacks round 2, allowed is every round"):
        taps.read(tmp_path, "server")


def test_files_hold_every_kind_of_vector(tmp_path: Path) -> None:
    kept = {
        "short": torch.arange(3, dtype=torch.float32),
        "wide": torch.tensor(2.5, dtype=torch.float64),
        "numbers": torch.arange(4).view(2, 2),
        "nothing": torch.zeros(0, 5),
    }
    safetensors.write(tmp_path / "a", kept)
    found = safetensors.read(tmp_path / "a")
    assert set(found) == set(kept)
    assert all(torch.equal(found[name], value) for name, value in kept.items())
    assert all(found[name].dtype == value.dtype for name, value in kept.items())


def test_room_is_estimated_from_above(tmp_path: Path) -> None:
    from confide.engine.spending import sizes_of
    from confide.engine.tappable import bytes_of

    channels: list[Any] = [Each(), Sum(), Shuffle()]
    for number, channel in enumerate(channels):
        out = tmp_path / str(number)
        method = through(channel)
        go(out, method, taps=VIEWS)
        sizes = sizes_of(federation(), (784 * 6 + 6, 70))
        assert sizes.dim == len(next(taps.read(out, "server")).received)
        for view in VIEWS:
            size = max(p.stat().st_size for p in (out / taps.FOLDER / view).iterdir())
            most = bytes_of(method.what, sizes, 8, [view])
            assert size <= most + 4000  # the header
            assert most <= 4 * size


def test_poisson_cohorts_may_be_larger_than_expected() -> None:
    from confide.engine.rounds import Sizes
    from confide.engine.tappable import clients_at_most

    sizes = Sizes(10_000, 5, (10,))
    assert 100 < clients_at_most(Round(Poisson(0.01)), sizes) <= 160
    assert clients_at_most(Round(All()), sizes) == 10_000
