"""How fast the accountant is, beside the accountants that people use.

`python benchmarks/accounting.py [--json PATH [--add]] [--only TEXT] [--repeats N] [--docs]`
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator

import dp_accounting as dp
from measure import Benchmark, Comparison, Missing, Work, main

from confide.accounting import account, calibration, filters
from confide.accounting.events import (
    DpEvent,
    GaussianDpEvent,
    MixedDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.mechanisms import Given, read
from confide.accounting.relations import Relation

UDP_FL_SECONDS = 50.0  # what UDP-FL reports for its own calibration at T = 10,000
DELTA = 1e-5


def sampled(multiplier: float, rate: float, steps: int) -> SelfComposedDpEvent:
    return SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(multiplier)), steps)


def calibrations() -> Iterator[Comparison]:
    def ours(noise: str, rate: float | None) -> Callable[[], Work]:
        given = read(Given(noise, rate=rate, steps=10_000))
        return lambda: lambda: calibration.calibrate(given, 2.0, DELTA).scale

    def dp_accounting() -> Work:
        return lambda: dp.calibrate_dp_mechanism(
            lambda: dp.pld.PLDAccountant(value_discretization_interval=1e-3),
            lambda z: sampled(z, 0.01, 10_000),
            2.0,
            DELTA,
            tol=1e-3,
        )

    task = "calibrate: Poisson Gaussian, q = .01, T = 10,000"
    mine = ours("gaussian", 0.01)
    yield Comparison(task, mine, "dp-accounting (PLD, grid 1e-3)", dp_accounting)
    yield Comparison(task, mine, "Opacus (PRV)", opacus_calibration)
    note = "a citation, another machine"
    yield Comparison(task, mine, "UDP-FL, as reported", UDP_FL_SECONDS, note)
    for noise, rate in itertools.product(("gaussian", "laplace", "staircase"), (None, 0.01)):
        how = "not sampled" if rate is None else "q = .01"
        name = f"calibrate: {noise}, T = 10,000, {how}"
        bar = 0.3 if rate is None else 1.0
        yield Comparison(name, ours(noise, rate), "our bar", bar, bar=True)


def opacus_calibration() -> Work:
    try:
        from opacus.accountants.utils import get_noise_multiplier
    except ImportError:
        raise Missing("not installed") from None

    def run() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return get_noise_multiplier(
                target_epsilon=2.0,
                target_delta=DELTA,
                sample_rate=0.01,
                steps=10_000,
                accountant="prv",
            )

    return run


def epsilons() -> Iterator[Comparison]:
    for multiplier, rate in ((4.0, 0.01), (1.0, 0.001)):
        event = sampled(multiplier, rate, 1_000_000)

        def ours(event: SelfComposedDpEvent = event) -> Work:
            return lambda: account.epsilon(event, DELTA).epsilon

        def theirs(event: SelfComposedDpEvent = event) -> Work:
            return lambda: dp.pld.PLDAccountant().compose(event).get_epsilon(DELTA)

        yield Comparison(
            f"epsilon: Poisson Gaussian, z = {multiplier:g}, q = {rate:g}, T = 1,000,000",
            ours,
            "dp-accounting (PLD, its grid 1e-4)",
            theirs,
        )
    event = sampled(4.0, 0.01, 10_000)
    yield Comparison(
        "epsilon: Poisson Gaussian, z = 4, q = .01, T = 10,000",
        lambda: lambda: account.epsilon(event, DELTA).epsilon,
        "Opacus (PRV)",
        opacus_epsilon,
    )


def opacus_epsilon() -> Work:
    try:
        from opacus.accountants import PRVAccountant
    except ImportError:
        raise Missing("not installed") from None

    def run() -> float:
        accountant = PRVAccountant()
        accountant.history = [(4.0, 0.01, 10_000)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return accountant.get_epsilon(delta=DELTA)

    return run


ROUNDS = 10_000
NEW_MULTIPLIERS = itertools.count(5.0, 0.001)  # never one twice: their curves would be remembered
SAMPLINGS: dict[str, tuple[Callable[[float], DpEvent], Relation]] = {
    "not sampled": (GaussianDpEvent, Relation.ADD_REMOVE),
    "Poisson": (
        lambda z: PoissonSampledDpEvent(0.01, GaussianDpEvent(z)),
        Relation.ADD_REMOVE,
    ),
    "fixed size": (
        lambda z: SampledWithoutReplacementDpEvent(1000, 10, GaussianDpEvent(z)),
        Relation.REPLACE_ONE,
    ),
    "mixed": (lambda z: MixedDpEvent(0.01, GaussianDpEvent(z)), Relation.REPLACE_ONE),
}
# Flower composes its whole past anew in every check; the sampled ones would take minutes at round
# 10,000, so its past is shorter there and the ratio says too little in our favour.
FLOWER = {
    "not sampled": ("NO_AMPLIFICATION", "ADD_OR_REMOVE_ONE", ROUNDS),
    "Poisson": ("POISSON", "ADD_OR_REMOVE_ONE", 200),
    "fixed size": ("WITHOUT_REPLACEMENT", "REPLACE_ONE", 20),
}


def budget_checks() -> Iterator[Comparison]:
    for name, (release, relation) in SAMPLINGS.items():

        def spent(
            release: Callable[[float], DpEvent] = release, relation: Relation = relation
        ) -> filters.RenyiFilter:
            made = filters.RenyiFilter(1e6, DELTA, relation)
            for _ in range(ROUNDS):
                made.spend(release(4.0))
            return made

        def changing(
            release: Callable[[float], DpEvent] = release,
            spent: Callable[[], filters.RenyiFilter] = spent,
        ) -> Work:
            made = spent()
            return lambda: made.fits(release(next(NEW_MULTIPLIERS)))

        task = f"budget check at round 10,000 of a new noise: {name}"
        yield Comparison(task, changing, "our bar", 0.01, bar=True)
        if name in FLOWER:
            method, neighbours, past = FLOWER[name]
            yield Comparison(
                task,
                changing,
                f"Flower RdpAccountant.would_exceed, at round {past:,}",
                lambda words=(method, neighbours, past): flower_check(*words),
                "ours at the few orders of a filter, theirs at its default orders",
            )


def flower_check(method: str, neighbours: str, rounds: int) -> Work:
    try:
        from flwr.serverapp import (
            GaussianPrivacyEvent,
            NeighboringRelation,
            PrivacyConfig,
            RdpAccountant,
            SamplingMethod,
        )
    except ImportError:
        raise Missing("not installed") from None
    config = PrivacyConfig(
        target_delta=DELTA,
        population_size=1000,
        neighboring_relation=NeighboringRelation[neighbours],
        sampling_method=SamplingMethod[method],
        max_epsilon=1e6,
    )
    accountant = RdpAccountant(config)
    event = GaussianPrivacyEvent(noise_multiplier=4.0, sample_size=10, population_size=1000)
    for _ in range(rounds):
        accountant.compose(event)
    return lambda: accountant.would_exceed(event)


def comparisons() -> Iterator[Comparison]:
    yield from calibrations()
    yield from epsilons()
    yield from budget_checks()


if __name__ == "__main__":
    main(Benchmark("accounting", "Accounting", comparisons), __doc__)
