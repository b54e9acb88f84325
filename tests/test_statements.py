"""Statements: the papers' systems against numbers derived elsewhere, and what cannot be stated."""

import math
from dataclasses import replace

import pytest
from scipy.stats import binom

from confide.accounting import gdp
from confide.accounting.account import epsilon as account
from confide.accounting.events import (
    BinomialDpEvent,
    GaussianDpEvent,
    LaplaceBothDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.relations import Refused, Relation
from confide.aggregates import MeanOfPresent, WeightedMean
from confide.cells import epsilon_of
from confide.channels import Each, Shuffle, Sum
from confide.cohorts import All, Epoch, Fixed, Poisson
from confide.derive import Release, derive
from confide.engine import Local, Round, Sizes, Upload
from confide.published import dp_fedsam
from confide.stages import (
    BallRandomizer,
    Binomial,
    Clip,
    ClipLayers,
    Gaussian,
    Laplace,
    Mask,
    PerClient,
    Quantize,
    Scale,
    Skellam,
    TopK,
    TwoPoint,
)
from confide.statements import Statement, state

C, SIGMA, M, Q = 0.2, 0.95, 500, 0.1
SIZES = Sizes(clients=M, records=100, layers=(1000, 24))


def dp_fedsam_c() -> Round:
    """Noise once on the sum of a Poisson cohort."""
    noise = Gaussian(SIGMA * C / (Q * M))
    return Round(cohort=Poisson(Q), upload=(Clip(C),), channel=Sum(), publish=(noise,))


def dp_fedsam_printed() -> Round:
    """A noise share for each of 50 clients."""
    return Round(cohort=Fixed(50), upload=(Clip(C), Gaussian(SIGMA * C / math.sqrt(50))))


def test_dp_fedsam_corrected() -> None:
    r = [(dp_fedsam_c(), 300)]
    assert state(r, SIZES, delta=1 / 500).cell("client", "world").epsilon == pytest.approx(
        9.37246, rel=1e-3
    )
    own = state(r, SIZES).cell("client", "world")
    assert own.delta == 1 / 5000
    assert own.epsilon == pytest.approx(11.38, rel=1e-3)
    assert own.relation == "add-remove"
    assert state(r, SIZES).cell("client", "server").status == "infinite"


def test_dp_fedsam_as_printed() -> None:
    s = state([(dp_fedsam_printed(), 300)], SIZES, delta=1 / 500)
    world = s.cell("client", "world")
    assert (world.relation, world.accountant) == ("replace-one", "rdp")
    assert world.epsilon == pytest.approx(300.8, rel=1e-3)
    once = replace(dp_fedsam_printed(), cohort=Fixed(50, at_most=1))
    server = state([(once, 300)], SIZES, delta=1 / 500).cell("client", "server")
    assert server.epsilon == pytest.approx(152.736, rel=1e-4)
    assert server.participations == 1
    assert s.cell("client", "server").participations == 300


def test_udp_at_epsilon_8() -> None:
    """One full-batch step, noise of eq. (10) on the clipped mean: 8.353 for a training record."""
    T, records, claimed, delta = 200, 800, 8.0, 1e-3
    clip, eta = 1.0, 0.1
    sensitivity = 2 * eta * clip / records
    sigma = sensitivity * math.sqrt(2 * T * math.log(1 / delta)) / claimed
    r = Round(
        cohort=All(),
        local=Local(
            sampler=All(), example=(Clip(clip),), batch=(Scale(eta / records), Gaussian(sigma))
        ),
        upload={"model": Upload(), "loss": Upload((), 1, data="test")},
    )
    sizes = Sizes(clients=50, records=records, layers=(1000,))
    s = state([(r, T)], sizes, delta=delta)
    assert s.cell("record", "server").epsilon == pytest.approx(8.352719, rel=1e-5)
    assert s.cell("record", "server", "loss").status == "infinite"
    assert s.cell("client", "server").status == "infinite"


def fed_cdp(sampler: Fixed | Epoch, steps: int) -> Round:
    """Per-layer clip C on three layers, noise of each example, batches of five."""
    layers = ClipLayers(4.0, (500, 500, 24))
    local = Local(
        steps=steps, sampler=sampler, example=(layers, Gaussian(24.0)), batch=(Scale(0.2),)
    )
    return Round(cohort=All(), local=local)


def test_fed_cdp_as_printed() -> None:
    """z = sigma sqrt(B/M)/2 = 3.873; without replacement 2.3026, in epochs 13.7578."""
    sizes = Sizes(clients=100, records=500, layers=(500, 500, 24))
    drawn = state([(fed_cdp(Fixed(5), 100), 100)], sizes, delta=1e-5).cell("record", "server")
    assert (drawn.relation, drawn.accountant) == ("replace-one", "rdp")
    assert drawn.epsilon == pytest.approx(2.302615, rel=1e-4)
    epochs = state([(fed_cdp(Epoch(5), 1), 100)], sizes, delta=1e-5).cell("record", "server")
    assert epochs.epsilon == pytest.approx(13.757824, rel=1e-5)
    device = state([(fed_cdp(Fixed(5), 1), 1)], sizes, delta=1e-5).cell("record", "device")
    assert device.epsilon == pytest.approx(gdp.epsilon(2 * math.sqrt(3) / 6, 1e-5), rel=1e-4)


def test_a_client_under_fed_cdp_pays_for_its_whole_batch() -> None:
    """mu = sqrt(T L) 2 sqrt(B M) / sigma = 129.1, epsilon 8883."""
    sizes = Sizes(clients=100, records=500, layers=(500, 500, 24))
    cell = state([(fed_cdp(Fixed(5), 100), 100)], sizes, delta=1e-5).cell("client", "server")
    assert cell.epsilon == pytest.approx(8882.94, rel=1e-4)


def test_few_shares_of_binomial_noise_reach_less_far_than_many() -> None:
    """One record moved from +1 to -1 under Bin(16) leaves the range with probability 17 / 2^16."""
    noise = Binomial(1.0, 16)
    local = Local(sampler=All(), example=(Quantize(3, 1.0), noise))
    r = [(Round(cohort=All(), local=local), 1)]
    told = float(binom.sf(14, noise.trials, 0.5))
    assert told == pytest.approx(17 / 2**16)
    for least, status in ((1, "infinite"), (100, "proved")):
        sizes = Sizes(clients=2, records=least, layers=(1,), most_records=100)
        cell = state(r, sizes, delta=told / 20).cell("client", "server")
        assert cell.status == status
    assert state(r, replace(sizes, records=1)).cell("client", "server").reason.endswith("of them")


def test_shares_of_skellam_noise_are_proved_for_clients_of_one_size() -> None:
    """Nothing proves that 100 shares over 100 times the distance are worse than one over one."""
    for noise, unequal in ((Skellam(1.0, 0.1), "infinite"), (Gaussian(0.3), "proved")):
        local = Local(sampler=All(), example=(Quantize(3, 1.0), noise))
        r = [(Round(cohort=All(), local=local), 1)]
        for least, status in ((1, unequal), (100, "proved")):
            sizes = Sizes(clients=2, records=least, layers=(1,), most_records=100)
            assert state(r, sizes, delta=0.02).cell("client", "server").status == status


def test_dp_sgd_inside_a_client() -> None:
    local = Local(steps=100, sampler=Poisson(0.01), example=(Clip(1.0),), batch=(Gaussian(4.0),))
    s = state([(Round(cohort=All(), local=local), 100)], SIZES, delta=1e-5)
    assert s.cell("record", "server").epsilon == pytest.approx(0.946867, rel=1e-3)
    assert s.cell("record", "server").relation == "add-remove"


def test_a_record_far_from_the_server_counts_its_participations() -> None:
    """Review A3: 35.95 for a schedule that the observer knows, drawn at rate 0.1."""
    shares = Round(
        cohort=Poisson(Q), upload=(Clip(C), Gaussian(SIGMA * C / math.sqrt(50))), channel=Sum(50)
    )
    cell = state([(shares, 300)], SIZES, delta=1 / 500).cell("client", "world")
    assert cell.relation == "zero-out"
    assert cell.epsilon == pytest.approx(35.95, rel=1e-3)


def test_a_record_goes_with_its_client_in_two_hops() -> None:
    quiet = replace(dp_fedsam_c(), publish=(Gaussian(3.0 * C / (Q * M)),))
    s = state([(quiet, 60)], SIZES, delta=1e-5)
    record, client = s.cell("record", "world"), s.cell("client", "world")
    assert record.relation == "replace-one"
    one = account(
        SelfComposedDpEvent(derive(quiet, SIZES)["client", "world", "update"][0].event, 60),
        1e-5 / (1 + math.exp(record.epsilon / 2)),
        Relation.ADD_REMOVE,
    )
    assert 2 * client.epsilon < record.epsilon < 4 * client.epsilon
    assert record.epsilon == pytest.approx(2 * one.epsilon, rel=1e-4)


@pytest.mark.parametrize("hops", [1, 2, 3, 5])
def test_hops_are_above_the_exact_group_of_a_gaussian(hops: int) -> None:
    mu, delta = 0.4, 1e-6
    way = Release(GaussianDpEvent(1 / mu), Relation.ADD_REMOVE, "all", hops=hops)
    stated = epsilon_of(way.event, delta, way, 0.0).epsilon
    exact = gdp.epsilon(hops * mu, delta)
    assert exact <= stated
    if hops == 1:
        assert stated == pytest.approx(exact, rel=1e-9)
    # The rule itself, at what it found: h steps of e, and a geometric sum of deltas.
    e = stated / hops
    assert gdp.delta(mu, e) * sum(math.exp(e * i) for i in range(hops)) <= delta * (1 + 1e-9)


def test_a_raw_loss_is_no_part_of_noisy_iterates() -> None:
    """The engine's own loss looks at raw records, also where its upload is not marked so."""
    local = Local(sampler=Poisson(0.1), example=(Clip(1.0),), batch=(Gaussian(2.0),))
    silent = Round(cohort=Fixed(50), local=local)
    loud = Round(cohort=Fixed(50), local=local, upload={"update": Upload(), "loss": Upload((), 1)})
    assert state([(silent, 3)], SIZES).cell("record", "server").status == "proved"
    cell = state([(loud, 3)], SIZES).cell("record", "server")
    assert cell.status == "infinite"
    assert "loss: made from raw data" in cell.reason


def test_the_order_of_stages_decides() -> None:
    noise = Gaussian(0.1)
    good = (Clip(C), noise, TopK(5))
    cells = [
        state([(Round(cohort=All(), upload=order), 1)], SIZES).cell("client", "server").status
        for order in (good, (noise, Clip(C)), (Clip(C), TopK(5)), (TopK(5), noise))
    ]
    assert cells == ["proved", "infinite", "infinite", "infinite"]


def test_rounds_of_different_relations_do_not_add_up() -> None:
    """Second reader, A5: 99 rounds of All are proved for zero-out only."""
    fixed = Round(cohort=Fixed(50), upload=(Clip(C),), channel=Sum(), publish=(Gaussian(0.01),))
    both = [(fixed, 1), (replace(fixed, cohort=All()), 99)]
    assert state(both, SIZES).cell("client", "world").status == "infinite"
    alike = [(fixed, 1), (replace(fixed, publish=(Gaussian(0.02),)), 99)]
    assert state(alike, SIZES).cell("client", "world").relation == "replace-one"


def test_a_cap_counts_only_where_every_round_has_it() -> None:
    """Second reader, A4."""
    upload = (Clip(C), Gaussian(0.4))
    capped = Round(cohort=All(at_most=1), upload=upload)
    free = Round(cohort=All(), upload=upload)
    all_of_them = state([(free, 101)], SIZES).cell("client", "server").epsilon
    for plan in ([(capped, 1), (free, 100)], [(free, 1), (capped, 100)]):
        cell = state(plan, SIZES).cell("client", "server")
        assert cell.participations == 101
        assert cell.epsilon == pytest.approx(all_of_them, rel=1e-6)
    assert state([(capped, 101)], SIZES).cell("client", "server").participations == 1


def test_unlike_clients_get_no_credit_without_replacement() -> None:
    """Second reader, A6: whoever is drawn instead must obey the same bounds."""
    norms = PerClient((1.0,) + (1000.0,) * (M - 1))
    unlike = Round(cohort=Fixed(1), upload=(Clip(norms),), channel=Sum(), publish=(Gaussian(2.0),))
    first = next(
        c
        for c in state([(unlike, 1)], SIZES, delta=1e-5).cells
        if (c.unit, c.observer, c.group) == ("client", "world", "1 clients like client 0")
    )
    assert first.epsilon > 0.9 * gdp.epsilon(1.0, 1e-5 * M)
    weighted = Round(
        cohort=Fixed(1), upload=(Clip(1.0), Gaussian(2.0)), aggregate=WeightedMean(1e3, 1e3)
    )
    assert all(
        way.open or way.rounds == "participations"
        for way in derive(weighted, SIZES)["client", "world", "update"]
    )


def test_columns_have_a_number_for_every_client() -> None:
    short = Round(cohort=All(), upload=(Clip(PerClient((1.0, 2.0))), Gaussian(1.0)))
    with pytest.raises(Refused, match="column has 2 numbers, allowed is one for each of the 500"):
        state([(short, 1)], SIZES)
    with pytest.raises(ValueError, match="Gaussian at publish has a per-client column"):
        Round(cohort=All(), publish=(Gaussian(PerClient((1.0,) * M)),))


def test_shares_of_unlike_clients_are_not_added_up() -> None:
    noise = Gaussian(PerClient((1.0,) * 10 + (0.0,) * (M - 10)))
    r = Round(cohort=All(), upload=(Clip(1.0), noise), channel=Sum())
    own = [c for c in state([(r, 1)], SIZES).cells if (c.unit, c.observer) == ("client", "server")]
    assert {c.status for c in own} == {"proved", "infinite"}
    (proved,) = (c for c in own if c.status == "proved")
    assert proved.epsilon == pytest.approx(gdp.epsilon(1.0, 1 / 5000), rel=1e-4)


def test_a_failing_bound_is_paid_for() -> None:
    rounded = (Clip(1.0), Quantize(2049, 1.0, norm=1.0, failure=1e-9))
    step = rounded[1].step  # pyright: ignore
    r = Round(cohort=All(), upload=(*rounded, Skellam(step, (4.0 / step) ** 2)), channel=Sum(1))
    sizes = Sizes(clients=100, records=10, layers=(64,))
    failing = state([(r, 10)], sizes, delta=1e-4).cell("client", "server")
    sure = replace(rounded[1], failure=0.0)
    safe = replace(r, upload=(rounded[0], sure, Skellam(step, (4.0 / step) ** 2)))
    assert failing.epsilon > state([(safe, 10)], sizes, delta=1e-4).cell("client", "server").epsilon
    hopeless = replace(rounded[1], failure=1e-4)
    r = replace(r, upload=(rounded[0], hopeless, Skellam(step, (4.0 / step) ** 2)))
    assert state([(r, 10)], sizes, delta=1e-4).cell("client", "server").status == "infinite"


def test_no_epsilon_is_left_where_a_smaller_delta_has_none() -> None:
    # cpSGD needs more noise for a smaller delta: 1e-3 has an epsilon, what failures leave has none.
    event = BinomialDpEvent(1200, 0.5, 9.0, 3.0, 1.0, 16)
    way = Release(event, Relation.ZERO_OUT, "all", fails=2.5e-4)
    assert account(event, 1e-3, Relation.ZERO_OUT).epsilon < math.inf
    assert epsilon_of(event, 1e-3, way, way.fails).epsilon == math.inf


def test_failures_are_counted_for_every_use() -> None:
    """Second reader, A11: a thousand steps rely on the bound a thousand times."""
    stage = Quantize(2049, 1.0, norm=1.0, failure=1e-9)
    example = (Clip(1.0), stage)
    local = Local(
        steps=1000, sampler=Poisson(0.1), example=example, batch=(Skellam(stage.step, 1e8),)
    )
    (way, *_) = derive(Round(cohort=All(), local=local), SIZES)["record", "server", "update"]
    assert not way.open
    assert way.fails == pytest.approx(1e-6)


def test_laplace_on_a_sum_pays_for_its_rounding() -> None:
    """Second reader, A12: a sum can move a grid step in every coordinate."""
    dim = 10**6
    sizes = Sizes(clients=10, records=1, layers=(dim,))
    tiny = Round(cohort=All(), upload=(Clip(1e-10, p=1),), channel=Sum(), publish=(Laplace(1.0),))
    (way, *_) = derive(tiny, sizes)["client", "world", "update"]
    assert isinstance(way.event, LaplaceBothDpEvent)
    assert 1 / way.event.l1_multiplier >= dim * 2**-40


def test_linked_vectors_are_not_shuffled_apart() -> None:
    """Second reader, A9."""
    bit = Upload((TwoPoint(1.0, 1.0),), length=1, data="train")
    one = Round(cohort=All(), upload={"a": bit}, channel=Shuffle())
    two = Round(cohort=All(), upload={"a": bit, "b": bit}, channel=Shuffle())
    cell = state([(one, 1)], SIZES).cell("client", "server")
    assert cell.epsilon < 0.7
    assert state([(two, 1)], SIZES).cell("client", "server").epsilon > 1.5


def test_shuffled_vectors_of_a_ball() -> None:
    r = Round(cohort=Fixed(300), upload=(BallRandomizer(1.0, 1.0),), channel=Shuffle())
    cell = state([(r, 1)], SIZES, delta=1e-6).cell("client", "server")
    assert cell.epsilon < 1.0
    assert "pld" in cell.accountant


def test_a_mask_narrows_laplace() -> None:
    plain = Round(cohort=All(), upload=(Clip(1.0), Laplace(3.0)))
    masked = Round(cohort=All(), upload=(Mask((0, 1)), Clip(1.0), Laplace(3.0)))
    cells = [state([(r, 1)], SIZES, delta=1e-5).cell("client", "server") for r in (plain, masked)]
    assert cells[1].epsilon < cells[0].epsilon


def test_test_data_have_a_row_of_their_own() -> None:
    loss = Upload((Clip(1.0, p=1), Laplace(5.0)), length=1, data="test")
    r = Round(cohort=All(), upload={"update": Upload((Clip(C), Gaussian(1.0))), "loss": loss})
    s = state([(r, 2)], SIZES, delta=1e-6)
    assert s.cell("record", "server", "loss").status == "proved"
    assert s.cell("client", "server").epsilon > s.cell("record", "server").epsilon
    with pytest.raises(ValueError, match="only test data"):
        Round(cohort=All(), upload={"loss": loss})


def test_sizes_and_rounds_are_checked() -> None:
    with pytest.raises(Refused, match="there are none"):
        state([], SIZES)
    with pytest.raises(Refused, match="there are none"):
        state([(dp_fedsam_c(), 0)], SIZES)
    for bad in ({"clients": 0}, {"records": 2.5}, {"layers": ()}, {"layers": (0,)}):
        with pytest.raises(ValueError, match="Sizes: "):
            replace(SIZES, **bad)  # pyright: ignore
    with pytest.raises(ValueError, match="most_records = 3"):
        replace(SIZES, most_records=3)
    with pytest.raises(Refused, match="survivors = 501"):
        state([(Round(cohort=All(), upload=(Clip(C),), channel=Sum(501)), 1)], SIZES)
    with pytest.raises(KeyError, match="no row for client"):
        state([(dp_fedsam_c(), 1)], SIZES).cell("client", "moon")


def full() -> Statement:
    return state(
        [(dp_fedsam_c(), 300)],
        SIZES,
        delta=1 / 500,
        published=dp_fedsam.eq_16_epsilon(q=Q, sigma=SIGMA, T=300, delta=1 / 500),
        key="operating system",
    )


def test_the_statement_as_data() -> None:
    rows = full().rows()
    assert {
        "unit",
        "observer",
        "of",
        "epsilon",
        "delta",
        "relation",
        "sampler",
        "accountant",
        "participations",
        "assumptions",
        "status",
        "reason",
    } <= set(rows[0])
    for row in rows:
        assert (row["epsilon"] == "inf") == (row["status"] == "infinite")
        assert bool(row["reason"]) == (row["status"] == "infinite")


def test_delta_is_at_most_a_tenth_of_a_unit_however_many_there_are() -> None:
    sizes = replace(SIZES, most_records=250)
    s = state([(dp_fedsam_c(), 3)], sizes)
    assert s.cell("record", "world").delta == 1 / (10 * 500 * 250)
    assert s.cell("client", "world").delta == 1 / (10 * 500)


def test_a_record_that_several_clients_hold_is_one_copy() -> None:
    copied = replace(SIZES, copies=7)
    alone, shared = (state([(fed_cdp(Fixed(5), 100), 10)], s, delta=1e-5) for s in (SIZES, copied))
    word = "one client's copy of it, and up to 7 clients hold the same"
    for cell, other in zip(shared.cells, alone.cells, strict=True):
        told = any(word in text for text in cell.assumptions)
        assert told == (cell.unit == "record" and cell.status == "proved")
        assert (cell.epsilon, cell.status) == (other.epsilon, other.status)
    assert any(word in text for cell in shared.cells for text in cell.assumptions)
    assert word in shared.words() and "copy" not in alone.words()


def test_the_statement_in_words() -> None:
    words = full().words()
    for part in (
        "300 rounds, 500 clients",
        "erased at the end",
        "add-remove",
        "no client is protected: nothing has been done to hide it",
        "Published, not proved here",
        "10.8526",
    ):
        assert part in words


def test_the_worst_group_is_the_statement() -> None:
    column = PerClient((2.0,) * 499 + (1.0,))
    s = state([(Round(cohort=All(), upload=(Clip(1.0), Gaussian(column))), 1)], SIZES)
    assert s.cell("client", "server").group == "1 clients like client 499"


def test_the_grid_is_stated() -> None:
    r = Round(cohort=All(), upload=(Clip(1.0), Laplace(2.0)))
    assert any("Laplace" in line and "grid" in line for line in state([(r, 1)], SIZES).noise)


def test_division_by_who_came_is_fine_where_that_is_public() -> None:
    r = Round(cohort=Fixed(50), upload=(Clip(C), Gaussian(0.1)), channel=Each())
    present = state([(replace(r, aggregate=MeanOfPresent()), 3)], SIZES)
    assert present.cell("client", "world").status == "proved"


def test_gaussian_releases_compose_exactly() -> None:
    r = Round(cohort=All(), upload=(Clip(1.0), Gaussian(2.0)))
    cell = state([(r, 16)], SIZES, delta=1e-5).cell("client", "server")
    assert cell.accountant == "gdp"
    assert cell.epsilon == pytest.approx(gdp.epsilon(4.0, 1e-5), rel=1e-6)
    event = SelfComposedDpEvent(GaussianDpEvent(1.0), 16)
    assert account(event, 1e-5, Relation.REPLACE_ONE).epsilon == pytest.approx(
        cell.epsilon, rel=1e-6
    )
