"""Kill -9 anywhere: the ledger never says less than what was released, and a run resumes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ledger_crash_scenario as scenario
from confide.ledger import Cap, Ledger, LedgerError

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") if sys.platform == "linux" else None
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 is of POSIX")


def run_scenario(kind: str, directory: Path, argument: str):
    """Run the scenario program; what it printed."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    arguments = [kind, str(directory / "runs"), argument]
    (directory / "runs").mkdir()
    if kind in ("syscall", "unsynced"):
        library = str(directory / "watch.so")
        source = str(HERE / "ledger_crash_syscalls.c")
        assert COMPILER is not None
        compile_it = [COMPILER, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]
        subprocess.run(compile_it, check=True)
        environment["LD_PRELOAD"] = library
        arguments.append(library)
    ran = subprocess.run(
        [sys.executable, str(HERE / "ledger_crash_scenario.py"), *arguments],
        env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def released(run: Path) -> set[str]:
    """The key indices of what left in a run; a torn last line left too, for all anyone knows."""
    file = run / "released"
    return (
        {line.split(" ")[0] for line in file.read_text().splitlines()} if file.exists() else set()
    )


def covers(ledger: Ledger, left: set[str]) -> bool:
    """Whether a ledger says at least what left: each release known, and all accounts charged."""
    keys = {scenario.release(number).key_index for number in range(scenario.ALLOWED)}
    count = len(left)
    accounts = [ledger.spent(name)[0] for name in ("world", *scenario.CLIENTS)] if left else []
    return left <= keys and all(spent >= count * scenario.COST for spent in accounts)


def check(run: Path, scratch: Path) -> None:
    """What must hold after a kill: nothing is forgotten, and the run can be finished."""
    path, left = run / "ledger.sqlite", released(run)
    if not path.exists():
        assert not left, run
    else:
        alone = scratch / "alone.sqlite"
        for side in ("", "-wal", "-shm"):
            Path(f"{alone}{side}").unlink(missing_ok=True)
        shutil.copyfile(path, alone)
        try:
            with Ledger.open(alone, readonly=True) as copied:
                assert covers(copied, left), f"{run}: the main file alone forgets a release"
        except LedgerError as refused:  # a copy taken while pages were being copied on
            assert "truncated" in str(refused) or "damaged" in str(refused), run
        with Ledger.open(path) as ledger:
            ledger.verify()
            assert covers(ledger, left), f"{run}: the ledger forgets a release"
            assert ledger.spent("world")[0] <= scenario.ALLOWED * scenario.COST
    scenario.play(run)
    with Ledger.open(path) as ledger:
        ledger.verify()
        assert ledger.pending() == [], run
        # Replayed bit for bit, so charged once, however often the run was interrupted.
        assert ledger.spent("world") == (scenario.ALLOWED * scenario.COST,), run
        assert len(released(run)) == scenario.ALLOWED, run


def kill_everywhere(kind: str, stride: int, directory: Path) -> int:
    """Kill the run at each stride-th point of a kind and check it; how often it was killed."""
    counted = run_scenario(kind, directory, str(stride))
    assert counted["alive"] == []
    runs = list((directory / "runs").iterdir())
    assert len(runs) == counted["killed"] + 1
    for run in runs:
        check(run, directory)
    return counted["killed"]


def test_killed_between_any_two_statements(tmp_path):
    assert kill_everywhere("statement", 1, tmp_path) > 200


def test_killed_inside_statements(tmp_path):
    assert kill_everywhere("instruction", 401, tmp_path) > 20


@pytest.mark.slow
def test_killed_inside_many_statements(tmp_path):
    assert kill_everywhere("instruction", 7, tmp_path) > 1000


if COMPILER:  # without a C compiler system calls cannot be watched

    def test_killed_between_system_calls(tmp_path):
        assert kill_everywhere("syscall", 3, tmp_path) > 60

    @pytest.mark.slow
    def test_killed_between_any_two_system_calls(tmp_path):
        assert kill_everywhere("syscall", 1, tmp_path) > 200

    def test_everything_is_synced_before_a_release_leaves(tmp_path):
        assert run_scenario("unsynced", tmp_path, "FULL") == [[]] * 4

    def test_a_missing_sync_would_be_noticed(tmp_path):
        moments = run_scenario("unsynced", tmp_path, "OFF")
        assert all("ledger.sqlite-wal" in files for files in moments)

    def test_the_name_of_a_new_ledger_is_synced(tmp_path, monkeypatch):
        synced, fsync = [], os.fsync

        def noting(handle):
            synced.append(Path(os.readlink(f"/proc/self/fd/{handle}")))
            fsync(handle)

        monkeypatch.setattr(os, "fsync", noting)
        Ledger.create(tmp_path / "new.sqlite", {"world": Cap(scenario.WORLD, (1.0,))}).close()
        assert [one == tmp_path for one in synced] == [False, True]  # the file, then its name


def test_processes_cannot_share_the_last_of_a_budget(tmp_path):
    allowed = run_scenario("race", tmp_path, "4")
    assert sum(allowed) == 40
    with Ledger.open(tmp_path / "runs" / "ledger.sqlite") as ledger:
        ledger.verify()
        assert ledger.left("world") == (0.0,)
        assert len(ledger.pending()) == 40


def test_the_check_can_fail(tmp_path):
    """A release that the ledger was never asked about is noticed: the checks above are no fake."""
    scenario.play(tmp_path)
    scenario.leave(tmp_path / "released", "run/9/update 00\n")
    with pytest.raises(AssertionError, match="forgets a release"):
        check(tmp_path, tmp_path)
