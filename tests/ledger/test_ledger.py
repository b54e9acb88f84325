"""The ledger: what it allows, what it refuses, and what no writer can take back."""

import math
import os
import time
from pathlib import Path

import pytest
from dp_accounting import dp_event

from confide.accounting import events
from confide.ledger import (
    UNPROVED,
    BudgetSpent,
    Cap,
    Charge,
    Head,
    Ledger,
    LedgerError,
    Scope,
)
from ledger_cases import CAPS, FREE, GAUSS, RENYI, WORLD, digest, python, release, world


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path):
    with Ledger.create(path, CAPS) as made:
        yield made


def test_a_release_is_charged_before_and_marked_after(ledger, path):
    with ledger.release(release(0)) as issue:
        with Ledger.open(path, readonly=True) as other:  # what another process sees meanwhile
            assert other.spent("world") == (0.25,)
            assert other.pending() == [issue.intent.id]
        issue.output = digest("model")
    assert not issue.intent.replayed
    assert issue.intent.output is None
    assert ledger.pending() == []
    assert ledger.spent("world") == (0.25,)
    assert ledger.left("world") == (0.75,)
    assert ledger.cap("world") == CAPS["world"]
    assert ledger.events("world") == GAUSS


def test_a_failed_release_stays_open_and_counts(ledger):
    with pytest.raises(ZeroDivisionError), ledger.release(release(0)):
        raise ZeroDivisionError
    with pytest.raises(LedgerError, match="no output"), ledger.release(release(1)):
        pass
    assert len(ledger.pending()) == 2
    assert ledger.spent("world") == (0.5,)


def test_each_round_s_last_output_can_be_asked_for(ledger):
    with ledger.release(release(0)) as issue:
        issue.output = digest("first")
    with pytest.raises(LedgerError, match="no output"), ledger.release(release(1)):
        pass
    assert ledger.outputs() == {0: digest("first"), 1: None}
    with pytest.raises(LedgerError, match="left with other bytes"):
        ledger.done(issue.intent.id, digest("second"))
    assert ledger.outputs()[0] == digest("second"), "it left again, and that was charged too"


def test_an_account_without_releases_is_not_epsilon_zero(ledger):
    with pytest.raises(LedgerError, match="'world' has no release; an empty ledger proves nothing"):
        ledger.events("world")


def test_events_are_composed_with_their_counts(ledger):
    other = events.PoissonSampledDpEvent(0.1, events.StaircaseDpEvent(1.0, 0.3))
    ledger.intend(release(0, world(0.1)))
    ledger.intend(release(1, world(0.1, other, count=3), world(0.1)))
    ledger.intend(release(2, world(0.1), Charge(("free",), FREE, events.OPEN)))
    assert ledger.events("world") == events.ComposedDpEvent(
        [events.SelfComposedDpEvent(GAUSS, 3), events.SelfComposedDpEvent(other, 3)]
    )
    assert ledger.spent("world") == pytest.approx((0.4,), rel=1e-15)
    assert ledger.events("free") == events.OPEN
    assert ledger.left("free") == ledger.spent("free") == ()


def test_what_does_not_fit_is_refused_and_leaves_no_trace(ledger):
    before = ledger.verify()
    with pytest.raises(
        BudgetSpent,
        match=r"round 7, update: the budget of 'world' is spent; with this release mu\^2 would be "
        r"1.25, allowed is 1.0",
    ):
        ledger.intend(release(7, Charge(("free",), FREE, GAUSS), world(1.25)))
    assert ledger.verify() == before
    with pytest.raises(LedgerError, match="no release"):
        ledger.events("free")  # the part that would have fitted was not charged either


def test_one_part_within_its_cap_is_enough(ledger):
    def renyi(*spend):
        return Charge(("record",), RENYI, GAUSS, spend)

    ledger.intend(release(0, renyi(0.1, 0.5, 2.0)))
    assert ledger.left("record") == (0.0, 0.5, 6.0)
    assert ledger.fits("record", (9.0, 0.5, 9.0))
    ledger.intend(release(1, renyi(0.1, 2.0, 2.0)))
    assert ledger.fits("record", (0.1, 0.1, 4.0))
    assert not ledger.fits("record", (0.1, 0.1, 4.1))
    with pytest.raises(BudgetSpent, match=r"renyi@32 would be 8.1, allowed is 8.0"):
        ledger.intend(release(2, renyi(0.1, 0.1, 4.1)))
    ledger.intend(release(3, renyi(0.1, 0.1, 4.0)))
    assert ledger.left("record") == (0.0, 0.0, 0.0)


def test_a_part_without_a_proof_is_used_up_for_ever(ledger):
    ledger.intend(release(0, Charge(("record",), RENYI, GAUSS, (UNPROVED, 0.5, UNPROVED))))
    assert ledger.left("record") == (0.0, 0.5, 0.0)
    assert not ledger.fits("record", (1e-9, 0.6, 1e-9))
    for spend in [(0.1, 0.6, 0.1), (UNPROVED,) * 3]:
        with pytest.raises(BudgetSpent):
            ledger.intend(release(1, Charge(("record",), RENYI, GAUSS, spend)))


def test_the_same_release_again_costs_nothing(ledger, path):
    first = ledger.intend(release(0, world(1.0)))
    ledger.close()
    with Ledger.open(path) as again:  # the budget is spent, but this is no new release
        second = again.intend(release(0, world(1.0)))
        assert (second.id, second.replayed, second.output) == (first.id, True, None)
        again.done(second.id, digest("model"))
        third = again.intend(release(0, world(1.0)))
        assert (third.id, third.replayed, third.output) == (first.id, True, digest("model"))
        again.done(third.id, digest("model"))
        assert again.spent("world") == (1.0,)
        assert again.pending() == []
        again.verify()


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        (release(0, inputs="y"), "inputs"),
        (release(1, key="run/0"), "round or purpose"),
        (release(0, purpose="control"), "round or purpose"),
        (release(0, world(0.125)), "charges"),
        (release(0, world(event=events.GaussianDpEvent(3.0))), "charges"),
        (release(0, world(count=2)), "charges"),
        (release(0, world(), Charge(("free",), FREE, GAUSS)), "charges"),
    ],
)
def test_the_same_noise_on_anything_else_is_refused(ledger, other, differs):
    ledger.intend(release(0))
    before = ledger.verify()
    with pytest.raises(LedgerError, match=f"'run/0' has drawn .* with other {differs}; .* new key"):
        ledger.intend(other)
    assert ledger.verify() == before


def test_new_noise_for_the_same_round_is_charged_anew(ledger):
    ledger.intend(release(0))
    assert not ledger.intend(release(0, key="second try")).replayed
    assert ledger.spent("world") == (0.5,)


def test_other_bits_under_one_name_are_two_releases(ledger):
    intent = ledger.intend(release(0, world(0.75)))
    ledger.done(intent.id, digest("model"))
    with pytest.raises(LedgerError, match=f"release {intent.id} has left with other bytes before"):
        ledger.done(intent.id, digest("another model"))
    assert ledger.spent("world") == (1.5,)  # beyond the cap, because it has happened
    assert ledger.left("world") == (0.0,)
    assert ledger.events("world") == events.SelfComposedDpEvent(GAUSS, 2)
    assert ledger.pending() == []
    ledger.verify()


def test_what_had_been_spent_before_a_round(ledger):
    for number, cost in ((3, 0.25), (4, 0.125)):
        ledger.intend(release(number, world(cost)))
    found = [ledger.spent("world", before=number) for number in (4, 3, 9)]
    assert found == [(0.25,), (0.0,), (0.375,)]
    assert ledger.spent("world") == (0.375,)


def test_an_end_without_a_release_is_refused(ledger):
    for wrong in (1, 99, -1):
        with pytest.raises(LedgerError, match="no release has this number"):
            ledger.done(wrong, digest(""))
    intent = ledger.intend(release(0))
    for output in ("", "abc", digest("").upper(), None, 64 * "g"):
        with pytest.raises(LedgerError, match="64 hexadecimal digits"):
            ledger.done(intent.id, output)
    assert ledger.pending() == [intent.id]


class HomemadeDpEvent(dp_event.DpEvent):
    pass


@pytest.mark.parametrize(
    ("charge", "said"),
    [
        (world(event=HomemadeDpEvent()), "HomemadeDpEvent.*not an event"),
        (world(event=None), "not an event"),
        (world(event=events.GaussianDpEvent(math.nan)), "noise_multiplier is nan"),
        (world(event=events.OPEN), "has no bound"),
        (world(event=events.PoissonSampledDpEvent(0.1, events.OPEN)), "has no bound"),
        (world(event=events.ComposedDpEvent([GAUSS, events.OPEN])), "has no bound"),
        (world(accounts=("nobody",)), "no account 'nobody'"),
        (world(accounts=("world", "free")), "charge to 'free' has Scope"),
        (Charge(("world",), Scope("client", "world", "zero-out", ("mu^2",)), GAUSS, (0.1,)),
         "the account allows .*add-remove"),
        (Charge(("world",), Scope("client", "world", "add-remove", ("rho",)), GAUSS, (0.1,)),
         "the account allows .*mu"),
    ],
)  # fmt: skip
def test_a_charge_that_proves_nothing_writes_nothing(ledger, charge, said):
    before = ledger.verify()
    with pytest.raises(LedgerError, match=said):
        ledger.intend(release(0, charge))
    assert ledger.verify() == before


def test_accounts_are_named_once(ledger, tmp_path):
    ledger.admit({"late": Cap(WORLD, (2.0,))})
    assert ledger.left("late") == (2.0,)
    before = ledger.verify()
    for caps, said in [
        ({"later": CAPS["world"], "late": CAPS["world"]}, "already has the account 'late'"),
        ({}, "caps is empty"),
        ({"": CAPS["world"]}, "printable"),
        ({"one": 1.0}, "allowed are Cap objects"),
    ]:
        with pytest.raises(LedgerError, match=said):
            ledger.admit(caps)
    assert ledger.verify() == before
    with pytest.raises(LedgerError, match="caps is empty"):
        Ledger.create(tmp_path / "none.sqlite", {})
    assert os.listdir(tmp_path) != []
    assert not (tmp_path / "none.sqlite").exists()
    for asked in (lambda: ledger.left("nobody"), lambda: ledger.fits("world", (1.0, 2.0))):
        with pytest.raises(LedgerError, match=r"no account|2 numbers"):
            asked()


def test_the_ledger_loads_neither_torch_nor_the_accountants():
    said = python("import sys, confide.ledger; print({'torch', 'dp_accounting'} & {*sys.modules})")
    assert said.strip() == "set()"


def test_one_hundred_thousand_clients_are_quick(path):
    caps = {f"client/{k}": Cap(WORLD, (float(k % 7 + 1),)) for k in range(100_000)}
    Ledger.create(path, caps).close()
    start = time.perf_counter()
    with Ledger.open(path) as ledger:
        opened = time.perf_counter() - start
        cohort = tuple(f"client/{k}" for k in range(0, 100_000, 100))
        for number in range(3):
            ledger.intend(release(number, world(accounts=cohort)))
        start = time.perf_counter()
        for k in range(0, 100_000, 200):
            assert ledger.left(f"client/{k}") == (k % 7 + 1 - 0.75,)
        each = (time.perf_counter() - start) / 500
        assert ledger.left("client/99999") == (float(99_999 % 7 + 1),)
    assert opened < 0.5
    assert each < 1e-3


def test_what_is_left_takes_as_long_after_many_rounds(ledger):
    """Constant time as SQLite sees it: the steps of its machine, not the clock."""

    def steps():
        taken = [0]
        ledger._sql.set_progress_handler(lambda: taken.__setitem__(0, taken[0] + 1), 1)
        ledger.left("world")
        ledger._sql.set_progress_handler(None, 1)
        return taken[0]

    ledger.intend(release(0, world(1e-3)))
    early = steps()
    for number in range(1, 60):
        ledger.intend(release(number, world(1e-3)))
    assert 0 < steps() <= early


def test_heads_are_public_and_times_are_not_part_of_a_release(ledger):
    ledger.intend(release(0))
    head = ledger.head()
    assert head == ledger.verify() == Head(3, head.digest)
    assert len(head.digest) == 64
    ledger.intend(release(1))
    assert ledger.head() != head
    assert ledger.verify(through=head) == ledger.head()


def test_the_file_is_for_its_owner_and_writes_ahead(ledger):
    assert Path(ledger.path).stat().st_mode & 0o777 == 0o600
    asked = {pragma: ledger._sql.execute(f"PRAGMA {pragma}").fetchone()[0]
             for pragma in ("journal_mode", "synchronous")}  # fmt: skip
    assert asked == {"journal_mode": "wal", "synchronous": 2}
