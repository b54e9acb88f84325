"""Bugs of a round that the derivation sees, without a single draw: it reads what runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from audit.mutants.kinds import SIZES, Mutant, derived
from confide.aggregates import ByLossAndSize, Mean, MeanOfPresent
from confide.channels import Each, Sum
from confide.cohorts import All, Epoch, Fixed, Poisson
from confide.engine.rounds import Method, Past, Round, Upload
from confide.local import SAM, SGD
from confide.methods.dp_fedags import NoiseAboveThreshold
from confide.methods.dp_fedavg import DPFedAvgC
from confide.methods.fed_cdp import FedCDPC
from confide.methods.fed_smp import FedSMPRandK, FedSMPTopK
from confide.randomness import Stream
from confide.stages import Clip, ClipLayers, Correlated, Gaussian, Laplace, Shared, Stage, TopK
from confide.stages.stage import PerClient

SERVER, RECORD = ("client", "server", "update"), ("record", "server", "update")
LENGTHS = SIZES.layers
LOSS = Upload((), length=1, data="train")


def first(method: Method) -> Round:
    r = method.round(Past(sizes=SIZES))
    assert r is not None
    return r


CENTRAL = first(DPFedAvgC(q=0.5, C=1.0, sigma=2.0))
NOISE = CENTRAL.published("update")[0]
assert isinstance(NOISE, Gaussian)
STD = float(NOISE.std)  # type: ignore[arg-type]
RECORDS = first(FedCDPC(B=4, sigma=4.0))
SHARES = Round(cohort=Fixed(10), upload=(Clip(1.0), Gaussian(2.0)), channel=Sum())
ALONE = Round(cohort=All(), upload=(Clip(1.0), Gaussian(8.0)))
TWO = Round(
    cohort=Poisson(0.5),
    upload={"update": Upload((Clip(1.0),)), "control": Upload((Clip(1.0),))},
    channel=Sum(),
    aggregate=Mean(by=1.0),
    publish={"update": (Gaussian(4.0),), "control": (Gaussian(4.0),)},
)


@dataclass(frozen=True)
class Cubed(Stage):
    """Something without a proof."""

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        return x**3


@dataclass(frozen=True)
class LooksAtLosses(SGD):
    """A line search, say."""

    losses = 1


def local(**changed: object) -> Round:
    return replace(RECORDS, local=replace(RECORDS.local, **changed))


def without(r: Round) -> Round:
    return replace(r, publish=())


MUTANTS: list[Mutant] = [
    derived("clip after noise", ALONE, replace(ALONE, upload=ALONE.upload[::-1])),
    derived("no noise in the last round", CENTRAL, [(CENTRAL, 9), (without(CENTRAL), 1)]),
    derived(
        "noise that fades away",
        CENTRAL,
        [(CENTRAL, 5), (replace(CENTRAL, publish=(Gaussian(STD / 3),)), 5)],
    ),
    derived(
        "no noise at one client",
        ALONE,
        replace(ALONE, upload=(Clip(1.0), Gaussian(PerClient((0.0, *[8.0] * 19))))),
    ),
    derived("sigma C / m^2", CENTRAL, replace(CENTRAL, publish=(Gaussian(STD / 10),))),
    derived("noise of a mean on a sum", CENTRAL, replace(CENTRAL, aggregate=Mean(by=1.0))),
    derived(
        "the batch clipped for each example",
        RECORDS,
        local(example=(), batch=(*RECORDS.local.example, *RECORDS.local.batch)),
        RECORD,
    ),
    derived(
        "every layer clipped, the noise for one clip",
        CENTRAL,
        replace(CENTRAL, upload=(ClipLayers(1.0, LENGTHS),)),
    ),
    derived(
        "l1 noise for an l2 clip",
        replace(ALONE, upload=(Clip(1.0, p=1), Laplace(4.0))),
        replace(ALONE, upload=(Clip(1.0), Laplace(4.0))),
    ),
    derived(
        "noise of one world, not of both",
        local(sampler=Fixed(4), batch=(Gaussian(8 * 8**0.5),)),
        local(sampler=Fixed(4)),
        RECORD,
    ),
    derived(
        "raw loss in the message",
        ALONE,
        replace(ALONE, upload={"update": Upload(ALONE.upload), "loss": LOSS}),
    ),
    derived(
        "a control variate without noise",
        TWO,
        replace(TWO, publish={"update": (Gaussian(4.0),)}),
    ),
    derived(
        "a buffer that is not clipped",
        TWO,
        replace(TWO, upload={"update": Upload((Clip(1.0),)), "control": Upload(())}),
    ),
    derived("divided by those who came", CENTRAL, replace(CENTRAL, aggregate=MeanOfPresent())),
    derived(
        "weights of raw losses and sizes",
        replace(ALONE, upload={"update": Upload(ALONE.upload)}),
        replace(
            ALONE,
            upload={
                "update": Upload(ALONE.upload),
                "size": Upload((), length=1, data="train", value=lambda done: done.data),
                "loss": LOSS,
            },
            aggregate=ByLossAndSize(),
        ),
    ),
    derived("shares of noise behind a coin", SHARES, replace(SHARES, cohort=Poisson(0.5))),
    derived("no secure aggregation", SHARES, replace(SHARES, channel=Each()), SERVER),
    derived("most of the cohort may collude", SHARES, replace(SHARES, channel=Sum(1)), SERVER),
    derived("uploads passed on to everybody", CENTRAL, replace(CENTRAL, broadcast=True)),
    derived(
        "top-k after the noise",
        SHARES,
        replace(SHARES, upload=(Clip(1.0), Gaussian(2.0), TopK(8))),
        SERVER,
    ),
    derived(
        "each client's own mask, noise on it only",
        first(FedSMPRandK(q=0.5, C=1.0, sigma=20.0)),
        first(FedSMPTopK(q=0.5, C=1.0, sigma=20.0)),
    ),
    derived(
        "noise above a threshold",
        ALONE,
        replace(ALONE, upload=(Clip(1.0), NoiseAboveThreshold(3, 0.5, 0.5, 8.0))),
    ),
    derived(
        "a client that remembers, with the coin's credit", RECORDS, local(remembers=True), RECORD
    ),
    derived("a second gradient of the same batch", RECORDS, local(step=SAM()), RECORD),
    derived("a local step that looks at losses", RECORDS, local(step=LooksAtLosses()), RECORD),
    derived("twice as many local steps", RECORDS, local(steps=2), RECORD),
    derived("shuffled epochs for Poisson batches", RECORDS, local(sampler=Epoch(4)), RECORD),
    derived(
        "mathematics without a proof before the noise",
        CENTRAL,
        replace(CENTRAL, upload=(Clip(1.0), Cubed())),
    ),
    derived(
        "everybody in every round", CENTRAL, replace(CENTRAL, cohort=All(), aggregate=Mean(by=10))
    ),
    derived(
        "noise that goes on in rounds a client shares",
        CENTRAL,
        replace(CENTRAL, publish=(Correlated(STD, (1.0, -0.5)),)),
    ),
    derived(
        "a column of own numbers at the server",
        CENTRAL,
        lambda: replace(CENTRAL, publish=(Gaussian(PerClient((STD,) * 20)),)),
    ),
    derived(
        "a local average over a client's own number of records",
        RECORDS,
        lambda: local(average=Mean()),
        RECORD,
    ),
]
