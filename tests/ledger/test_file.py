"""Files that are not, or no longer, a ledger: one sentence each, and not one byte changed."""

import contextlib
import hashlib
import os
import shutil
import sqlite3
import tempfile
import threading
from pathlib import Path

import pytest

from confide.ledger import Cap, Ledger, LedgerError
from ledger_cases import WORLD, python, release
from ledger_crash_scenario import play

CAPS = {"world": Cap(WORLD, (1000.0,))}


def hashes(directory: Path) -> dict[str, str]:
    """The bytes of every regular file below a directory."""
    return {
        str(one): hashlib.sha256(one.read_bytes()).hexdigest()
        for one in directory.rglob("*")
        if one.is_file()
    }


@pytest.fixture
def whole(tmp_path):
    """A finished ledger with some releases in it."""
    play(tmp_path)
    return tmp_path / "ledger.sqlite"


def refused(path: Path, said: str) -> None:
    """Both ways of opening refuse the file in one sentence that names it; nothing changes."""
    before = hashes(path.parent)
    for readonly in (False, True):
        with pytest.raises(LedgerError, match=said) as caught:
            Ledger.open(path, readonly=readonly)
        assert str(path.parent) in str(caught.value)
        assert "\n" not in str(caught.value)
    assert hashes(path.parent) == before


def test_a_missing_file_is_not_made(tmp_path):
    refused(tmp_path / "ledger.sqlite", "does not exist; Ledger.create makes")
    assert list(tmp_path.iterdir()) == []


def test_things_that_are_no_files(tmp_path):
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    os.symlink("itself", tmp_path / "itself")
    refused(tmp_path / "directory", "not a regular file")
    refused(tmp_path / "pipe", "not a regular file")
    refused(tmp_path / "itself", "does not exist|[Ll]evels of symbolic links")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"S", "truncated to 1 bytes"),
        (b"round,epsilon\n1,2\n", "not an SQLite file"),
        (b"SQLite format 3\0", "truncated to 16 bytes"),
        (b"SQLite format 3\0" + bytes(4000), "of another program"),
        (bytes(8192), "not an SQLite file"),
    ],
)
def test_foreign_files(tmp_path, content, said):
    (tmp_path / "ledger.sqlite").write_bytes(content)
    refused(tmp_path / "ledger.sqlite", said)


def test_a_database_of_another_program(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE entries (seq INTEGER PRIMARY KEY)")
    refused(path, "of another program")


def test_a_newer_format(whole):
    with contextlib.closing(sqlite3.connect(whole)) as sql:
        sql.execute("PRAGMA user_version = 2")
    refused(whole, "has ledger format 2; this version of confide reads format 1")


def test_truncated_at_any_page_and_at_any_byte_of_its_head(whole):
    content = whole.read_bytes()
    cuts = [*range(1, 100, 7), *range(100, len(content), 4096), len(content) - 1]
    assert len(cuts) > 30
    for cut in cuts:
        whole.write_bytes(content[:cut])
        refused(whole, "truncated")
    whole.write_bytes(content)
    with Ledger.open(whole) as ledger:
        ledger.verify()


def test_truncated_while_a_write_ahead_file_lies_beside_it(tmp_path):
    source, path = tmp_path / "from", tmp_path / "to" / "ledger.sqlite"
    source.mkdir()
    path.parent.mkdir()
    with Ledger.create(source / "ledger.sqlite", CAPS) as ledger:
        ledger.intend(release(0))
        for side in ("", "-wal"):  # as a kill leaves them
            shutil.copyfile(f"{ledger.path}{side}", f"{path}{side}")
    assert Path(f"{path}-wal").stat().st_size > 0
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refused(path, "truncated")
    path.write_bytes(content)
    Path(f"{path}-wal").unlink()  # tidied away: the release is in the main file already
    with Ledger.open(path) as ledger:
        assert ledger.spent("world") == (0.25,)


def test_killed_while_pages_were_copied_on(tmp_path):
    """A short file whose missing pages all lie in the write-ahead file is whole."""
    source, path = tmp_path / "from", tmp_path / "to" / "ledger.sqlite"
    source.mkdir()
    path.parent.mkdir()
    with Ledger.create(source / "ledger.sqlite", CAPS) as ledger:
        reader = sqlite3.connect(ledger.path, isolation_level=None)
        with contextlib.closing(reader):
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM entries").fetchall()  # keeps pages from being copied
            ledger.admit({f"client/{k}": CAPS["world"] for k in range(500)})
            for side in ("", "-wal"):
                shutil.copyfile(f"{ledger.path}{side}", f"{path}{side}")
    short, ahead = path.stat().st_size, Path(f"{path}-wal").read_bytes()
    frames = [ahead[at : at + 24 + 4096] for at in range(32, len(ahead), 24 + 4096)]
    first = [frame[24:] for frame in frames if int.from_bytes(frame[:4]) == 1][-1]
    with path.open("r+b") as file:
        file.write(first)  # the copying had come as far as the first page, with the new length
    assert int.from_bytes(first[28:32]) * 4096 > short
    with Ledger.open(path) as ledger:
        assert ledger.left("client/499") == (1000.0,)
        ledger.verify()
    Path(f"{path}-wal").unlink(missing_ok=True)
    path.write_bytes(first + path.read_bytes()[4096:short])
    refused(path, "truncated")  # without them it is not


def test_opened_while_a_writer_grows_the_file(tmp_path):
    """A short look at a file in motion is not mistaken for a truncated one."""
    path, failed, ended = tmp_path / "ledger.sqlite", [], threading.Event()

    def look():
        while not ended.is_set():
            try:
                Ledger.open(path).close()
            except LedgerError as refused:
                failed.append(str(refused))

    with Ledger.create(path, CAPS) as ledger:
        small = path.stat().st_size
        looker = threading.Thread(target=look)
        looker.start()
        for number in range(60):
            ledger.admit({f"client/{number}/{k}": CAPS["world"] for k in range(100)})
        ended.set()
        looker.join()
    assert path.stat().st_size > 3 * small
    assert failed == []


def test_a_journal_of_something_else_beside_it(whole):
    Path(f"{whole}-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600))
    refused(whole, "does not belong to the ledger")


def test_nothing_is_made_over_anything(whole, tmp_path):
    before = hashes(tmp_path)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(whole, CAPS)
    fresh = tmp_path / "fresh.sqlite"
    for side in ("-wal", "-shm", "-journal"):  # SQLite would play these into a new file
        Path(f"{fresh}{side}").write_bytes(b"remains")
        with pytest.raises(LedgerError, match=f"fresh.sqlite{side} exists already"):
            Ledger.create(fresh, CAPS)
        Path(f"{fresh}{side}").unlink()
    os.symlink("nowhere", fresh)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(fresh, CAPS)
    fresh.unlink()
    with pytest.raises(LedgerError, match="not a directory"):
        Ledger.create(tmp_path / "none" / "ledger.sqlite", CAPS)
    assert hashes(tmp_path) == before


def test_two_creators_make_one_ledger(tmp_path, monkeypatch):
    path = tmp_path / "ledger.sqlite"
    link = os.link

    def beaten(draft, target):
        monkeypatch.setattr(os, "link", link)
        Ledger.create(path, CAPS).close()
        link(draft, target)

    monkeypatch.setattr(os, "link", beaten)
    with pytest.raises(LedgerError, match="was just made by another process"):
        Ledger.create(path, {"other": CAPS["world"]})
    assert [one.name for one in tmp_path.iterdir()] == ["ledger.sqlite"]
    with Ledger.open(path) as ledger:
        assert ledger.left("world") == (1000.0,)


def test_a_path_with_odd_letters_and_a_link_to_it(tmp_path):
    path = tmp_path / "a b?mode=ro#%41é.sqlite"
    Ledger.create(path, CAPS).close()
    os.symlink(path, tmp_path / "link")
    with Ledger.open(tmp_path / "link") as ledger:
        ledger.intend(release(0))
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([path.name, "link"])


WORK_AS_READER = """if True:
    import os, sys
    from confide.ledger import Ledger, LedgerError
    path = sys.argv[1]
    if os.geteuid() == 0:  # root may write anything
        os.setgid(65534)
        os.setuid(65534)
    try:
        Ledger.open(path)
    except LedgerError as refused:
        print(refused)
    with Ledger.open(path, readonly=True) as ledger:
        print(ledger.spent("world"), ledger.head() == ledger.verify())
        try:
            ledger.done(3, 64 * "0")
        except LedgerError as refused:
            print(refused)
"""


@pytest.mark.parametrize("writable", ["file", "directory", "neither"])
def test_read_only_for_this_user(whole, writable):
    with tempfile.TemporaryDirectory() as place:  # tmp_path is closed to other users
        inner = Path(place, "inner")
        inner.mkdir()
        path = inner / "ledger.sqlite"
        shutil.copyfile(whole, path)
        path.chmod(0o666 if writable == "file" else 0o444)
        inner.chmod(0o777 if writable == "directory" else 0o555)
        Path(place).chmod(0o755)
        before = path.read_bytes()
        first, second, third = python(WORK_AS_READER, str(path)).splitlines()
        assert first.startswith(f"{path}: the file or its directory is read-only; allowed is")
        assert second == "(0.75,) True"
        assert third.endswith("is open for reading only; open it without readonly")
        assert path.read_bytes() == before
        inner.chmod(0o755)
