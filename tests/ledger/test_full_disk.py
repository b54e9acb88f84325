"""A disk that fills up: the release is refused and nothing that was recorded is lost."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

from confide.ledger import Cap, Ledger, LedgerError, LedgerFailed, file
from ledger_cases import WORLD, python, release

CAPS = {"world": Cap(WORLD, (1000.0,))}


def fill_up(ledger: Ledger) -> str:
    """Release until the disk refuses; nothing recorded may be lost by that."""
    for number in range(10_000):
        spent, head = ledger.spent("world"), ledger.head()
        try:
            ledger.intend(release(number))
        except LedgerFailed as full:
            assert ledger.spent("world") == spent == (number * 0.25,)
            assert ledger.verify() == head
            return str(full)
    raise AssertionError("the disk never filled up")


def test_a_full_disk(tmp_path, monkeypatch):
    path = tmp_path / "ledger.sqlite"
    Ledger.create(path, CAPS).close()
    pages = path.stat().st_size // 4096
    monkeypatch.setattr(file, "PRAGMAS", (*file.PRAGMAS, f"PRAGMA max_page_count = {pages + 4}"))
    with Ledger.open(path) as ledger:
        said = fill_up(ledger)
    assert said == (f"{path}: the disk is full; nothing was recorded, so no release may happen: "
                    "free some space and run again")  # fmt: skip
    monkeypatch.undo()
    with Ledger.open(path) as ledger:  # there is space again
        ledger.verify()
        ledger.intend(release(9_999))


def test_a_full_disk_while_a_ledger_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(file, "PRAGMAS", (*file.PRAGMAS, "PRAGMA max_page_count = 9"))
    with pytest.raises(LedgerFailed, match="the disk is full"):
        Ledger.create(tmp_path / "ledger.sqlite", CAPS)
    assert list(tmp_path.iterdir()) == []


FILE_LIMIT = """if True:
    import resource, signal, sys
    from pathlib import Path
    from test_full_disk import CAPS, fill_up
    from confide.ledger import Ledger
    path = Path(sys.argv[1])
    with Ledger.create(path, CAPS) as ledger:
        limit = path.stat().st_size + 20_000
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        print(fill_up(ledger))
"""


def test_a_file_that_may_not_grow(tmp_path):
    path = tmp_path / "ledger.sqlite"
    said = python(FILE_LIMIT, str(path))
    assert said.startswith(f"{path}: ")
    assert "so no release may happen" in said
    with Ledger.open(path) as ledger:
        ledger.verify()
        ledger.intend(release(9_999))


def can_mount() -> bool:
    """Whether a small memory disk can be mounted here (by root, outside most containers)."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    with tempfile.TemporaryDirectory() as place:
        mounted = mount(place)
        if mounted:
            subprocess.run(["umount", place], check=True)
        return mounted


def mount(place: str, size: str = "192k") -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place]
    return subprocess.run(command, capture_output=True).returncode == 0


if can_mount():  # elsewhere the two simulations above stand for it

    def test_a_really_full_disk(tmp_path):
        place = tmp_path / "small"
        place.mkdir()
        assert mount(str(place))
        try:
            with Ledger.create(place / "ledger.sqlite", CAPS) as ledger:
                said = fill_up(ledger)
            with Ledger.open(place / "ledger.sqlite") as ledger:
                ledger.verify()
            (place / "filler").write_bytes(b"")
            with pytest.raises(LedgerError), open(place / "filler", "wb") as filler:
                with contextlib.suppress(OSError):
                    filler.write(bytes(10**6))
                    filler.flush()
                Ledger.create(place / "second.sqlite", CAPS)
            assert not (place / "second.sqlite").exists()
        finally:
            subprocess.run(["umount", str(place)], check=True)
        assert "so no release may happen" in said
