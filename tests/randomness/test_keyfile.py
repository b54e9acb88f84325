from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from confide.randomness import keyfile
from confide.randomness.keyfile import KeyFile, KeyFileError


@pytest.fixture
def place(tmp_path: Path) -> KeyFile:
    (tmp_path / "run").mkdir()
    (tmp_path / "keys").mkdir(mode=0o700)
    return KeyFile(tmp_path / "keys" / "key", tmp_path / "run")


def test_a_key_is_stored_for_its_owner_only(place: KeyFile) -> None:
    old = os.umask(0)
    try:
        key = place.create()
    finally:
        os.umask(old)
    assert place.path.stat().st_mode & 0o777 == 0o600
    assert place.path.read_bytes() == key.material
    assert key.source == "operating system"
    assert place.load() == key


def test_an_existing_key_is_never_overwritten(place: KeyFile) -> None:
    key = place.create()
    with pytest.raises(KeyFileError, match="exists already"):
        place.create()
    assert place.load() == key


def test_erase_overwrites_before_it_unlinks(
    place: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create()
    synced: list[bytes] = []
    real = os.fsync

    def watch(descriptor: int) -> None:
        real(descriptor)
        synced.append(place.path.read_bytes() if place.path.exists() else b"gone")

    monkeypatch.setattr(keyfile.os, "fsync", watch)
    place.erase()
    assert synced == [bytes(32), b"gone"]
    with pytest.raises(KeyFileError, match="is missing"):
        place.load()
    with pytest.raises(KeyFileError, match="is missing"):
        place.erase()


def test_an_erasure_cut_short_leaves_no_key_and_can_be_finished(place: KeyFile) -> None:
    place.create()
    place.path.write_bytes(bytes(32))
    with pytest.raises(KeyFileError, match="only zeros"):
        place.load()
    place.erase()
    assert not place.path.exists()


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_directory_that_others_can_write_is_refused(place: KeyFile, mode: int) -> None:
    place.create()
    place.path.parent.chmod(mode)
    with pytest.raises(KeyFileError, match=f"mode {mode:04o}"):
        place.load()
    with pytest.raises(KeyFileError, match=f"mode {mode:04o}"):
        KeyFile(place.path.with_name("new"), place.run_directory).create()


@pytest.mark.parametrize("inside", ["key", "deep/key", "../run/key"])
def test_a_place_inside_the_run_directory_is_refused(place: KeyFile, inside: str) -> None:
    (place.run_directory / "deep").mkdir()
    with pytest.raises(KeyFileError, match="inside the run directory"):
        KeyFile(place.run_directory / inside, place.run_directory).create()


def test_a_link_into_the_run_directory_is_refused(place: KeyFile) -> None:
    link = place.path.parent / "link"
    link.symlink_to(place.run_directory)
    with pytest.raises(KeyFileError, match="inside the run directory"):
        KeyFile(link / "key", place.run_directory).create()


def test_a_link_in_place_of_the_file_is_not_followed(place: KeyFile) -> None:
    place.create()
    link = KeyFile(place.path.with_name("link"), place.run_directory)
    link.path.symlink_to(place.path)
    for act in (link.load, link.erase):
        with pytest.raises(KeyFileError, match="cannot be opened"):
            act()
    with pytest.raises(KeyFileError, match="exists already"):
        link.create()


def test_a_missing_directory_is_refused(place: KeyFile) -> None:
    with pytest.raises(KeyFileError, match="is missing; make it first"):
        KeyFile(place.path.parent / "no" / "key", place.run_directory).create()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_can_reach_is_refused(place: KeyFile, mode: int) -> None:
    place.create()
    place.path.chmod(mode)
    with pytest.raises(KeyFileError, match=f"mode {mode:04o}"):
        place.load()


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_file_of_another_size_is_refused(place: KeyFile, size: int) -> None:
    place.create()
    place.path.write_bytes(b"k" * size)
    with pytest.raises(KeyFileError, match=f"has {size} bytes"):
        place.load()


def test_a_file_with_a_second_name_is_refused(place: KeyFile) -> None:
    place.create()
    os.link(place.path, place.path.with_name("second"))
    with pytest.raises(KeyFileError, match="has 2 names"):
        place.erase()


def test_a_file_of_another_owner_is_refused(
    place: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.create()
    monkeypatch.setattr(keyfile.os, "geteuid", lambda: 4321)
    with pytest.raises(KeyFileError, match="not to user 4321"):
        place.load()


@pytest.mark.parametrize("kind", ["directory", "pipe"])
def test_what_is_no_regular_file_is_refused(place: KeyFile, kind: str) -> None:
    if kind == "directory":
        place.path.mkdir(mode=0o700)
    else:
        os.mkfifo(place.path, 0o600)
    with pytest.raises(KeyFileError, match="is not a regular file"):
        place.load()


def test_a_full_disk_leaves_no_half_key(place: KeyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(keyfile.os, "fsync", full)
    with pytest.raises(KeyFileError, match=r"cannot be written: .*No space left"):
        place.create()
    assert not place.path.exists()


def test_a_disk_error_while_erasing_is_told(
    place: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    place.create()
    monkeypatch.setattr(keyfile.os, "fsync", broken)
    with pytest.raises(KeyFileError, match="cannot be erased: "):
        place.erase()
