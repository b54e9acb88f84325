"""Many writers, one budget."""

import contextlib
import sqlite3
import threading

import pytest

from confide.ledger import BudgetSpent, Ledger, LedgerError, LedgerFailed
from ledger_cases import CAPS, python, release, world


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path):
    with Ledger.create(path, CAPS) as made:
        yield made


@pytest.mark.parametrize("shared", [True, False], ids=["one ledger", "a ledger each"])
def test_threads_cannot_share_the_last_of_a_budget(ledger, path, shared):
    allowed = []

    def spend_all(writer):
        mine = ledger if shared else Ledger.open(path)
        with contextlib.nullcontext() if shared else mine, contextlib.suppress(BudgetSpent):
            for number in range(50):
                mine.intend(release(number, world(1 / 64), key=f"{writer}/{number}"))
                allowed.append(writer)

    threads = [threading.Thread(target=spend_all, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(allowed) == 64
    assert ledger.spent("world") == (1.0,)
    ledger.verify()


def test_a_writer_that_never_ends_is_not_waited_for_forever(ledger, path):
    blocking = sqlite3.connect(path, isolation_level=None)
    with contextlib.closing(blocking), Ledger.open(path, wait=0.05) as impatient:
        blocking.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerFailed, match="another process has held the ledger for too long"):
            impatient.intend(release(0))
        blocking.execute("ROLLBACK")
        assert not impatient.intend(release(0)).replayed


def test_a_closed_or_inherited_ledger_is_refused(ledger):
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="is closed; open it again"):
        ledger.spent("world")
    script = f"""if True:
        import os, sys
        from confide.ledger import Ledger, LedgerError
        ledger = Ledger.open({str(ledger.path)!r})
        if os.fork() == 0:
            try:
                ledger.spent("world")
            except LedgerError as refused:
                print(refused, flush=True)
            os._exit(0)
        os.wait()
        print(ledger.spent("world"))
    """
    said = python(script)
    assert "was opened by another process; open it again" in said
    assert "(0.0,)" in said
