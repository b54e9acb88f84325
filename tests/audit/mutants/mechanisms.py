"""Bugs of one stage, which the audit of the mechanism has to find."""

from __future__ import annotations

from dataclasses import replace

from audit.broken import (
    ClaimsL1,
    ClipsEachLayer,
    NoClip,
    OneLayerForgotten,
    OnlyAboveThreshold,
    ShiftedStaircase,
    Weak,
)
from audit.mutants import stages as bad
from audit.mutants.kinds import SCALAR, Mutant, of_round, stage
from confide.channels import Sum
from confide.cohorts import Fixed, Poisson
from confide.engine.rounds import Local, Round
from confide.stages import (
    Binomial,
    Clip,
    Gaussian,
    Laplace,
    Quantize,
    RandomizedResponse,
    Rotate,
    Scale,
    Skellam,
    Staircase,
    TwoPoint,
)

S = 2 / 0.925
"""Epsilon 4 at delta 1e-5 for two vectors of length 1."""
CLIP, NOISE = Clip(1.0), Gaussian(S)
RIGHT = (CLIP, NOISE)
SMALL = Clip(0.1), Gaussian(0.1 * S)
L1 = (Clip(1.0, p=1), Laplace(2.0))
STAIRS = (Clip(1.0, p=1), Staircase(2.0, 2.0))
LEVELS = (CLIP, Quantize(9, 1.0, norm=1.0))
STEP = LEVELS[1].step
CENTRAL = Round(cohort=Poisson(0.5), upload=(CLIP,), channel=Sum(), publish=(Gaussian(0.1),))
BATCHES = Round(
    cohort=Fixed(4),
    local=Local(sampler=Poisson(0.2), example=(CLIP,), batch=(Gaussian(1.08),)),
)

MUTANTS: list[Mutant] = [
    stage("noise forgotten", RIGHT, (CLIP, bad.Forgotten(S))),
    stage("noise forgotten in one layer", RIGHT, (CLIP, OneLayerForgotten(S))),
    stage("half of sigma", RIGHT, (CLIP, Weak(S, 0.5))),
    stage("sigma / B", RIGHT, (CLIP, Weak(S, 1 / 64))),
    stage("the variance for the deviation", SMALL, (SMALL[0], bad.VarianceForDeviation(0.1 * S))),
    stage("noise of length sigma in all", RIGHT, (CLIP, bad.LengthForDeviation(S))),
    stage("one number of noise for all coordinates", RIGHT, (CLIP, bad.OneNumber(S))),
    stage("seed used again in every layer", RIGHT, (CLIP, bad.LayersAlike(S))),
    stage("seed used again in every round", RIGHT, (CLIP, bad.FixedSeed(S))),
    stage("noise from the public stream", RIGHT, (CLIP, bad.PublicNoise(S))),
    stage("noise in units of the vector's length", RIGHT, (CLIP, bad.AsLongAsTheVector(S))),
    stage("noise multiplied", RIGHT, (CLIP, bad.Multiplied(S))),
    stage("noise only where there is something", RIGHT, (CLIP, bad.OnlyWhereNotZero(S))),
    stage("mask chosen by the client's own data", RIGHT, (CLIP, bad.OwnLargest(S))),
    stage("signed threshold", RIGHT, (CLIP, OnlyAboveThreshold(S))),
    stage("noise only after clipping", RIGHT, (CLIP, bad.OnlyIfClipped(S))),
    stage("uniform noise", RIGHT, (CLIP, bad.Uniform(S)), draws=2000, canary="dense"),
    stage("large noise is cut", RIGHT, (CLIP, bad.CutOff(S))),
    stage("Laplace noise without its sign", L1, (L1[0], bad.OneSided(2.0))),
    stage("epsilon / Delta for Delta / epsilon", L1, (L1[0], bad.InverseScale(2.0))),
    stage(
        "l2 clip said to be an l1 clip, Laplace",
        L1,
        (ClaimsL1(1.0, p=1), L1[1]),
        draws=8000,
        canary="dense",
    ),
    stage("l2 clip said to be an l1 clip, staircase", STAIRS, (ClaimsL1(1.0, p=1), STAIRS[1])),
    stage(
        "UDP-FL's shifted staircase sampler",
        STAIRS,
        (STAIRS[0], ShiftedStaircase(2.0, 2.0)),
        sizes=SCALAR,
        draws=3000,
    ),
    stage(
        "binomial noise of too few trials",
        (*LEVELS, Binomial(STEP, 8000)),
        (*LEVELS, bad.FewerTrials(STEP, 8000)),
    ),
    stage(
        "Skellam noise in another unit",
        (*LEVELS, Skellam(STEP, 400.0)),
        (*LEVELS, bad.WrongUnits(STEP, 400.0)),
    ),
    stage(
        "randomised response that lies too seldom",
        (RandomizedResponse(3, 1.0, 0.05),),
        (bad.LiesTooSeldom(3, 1.0, 0.05),),
    ),
    stage("a bit that follows the sign", (TwoPoint(1.0, 0.05),), (bad.TooSure(1.0, 0.05),)),
    stage("no clip", RIGHT, (NoClip(1.0), NOISE)),
    stage("a copy is clipped", RIGHT, (bad.ClipsCopy(1.0), NOISE)),
    stage("no number passes the clip", RIGHT, (bad.NaNPasses(1.0), NOISE)),
    stage("values clipped, not the norm", RIGHT, (bad.EveryEntry(1.0), NOISE)),
    stage("the norm of the first layer", RIGHT, (bad.FirstLayer(1.0), NOISE)),
    stage("root of the mean square for the norm", RIGHT, (bad.MeanLength(1.0), NOISE)),
    stage("every layer clipped, claimed as one clip", RIGHT, (ClipsEachLayer(1.0), NOISE)),
    stage(
        "rotation that is not orthonormal",
        (CLIP, Rotate(), NOISE),
        (CLIP, bad.NotOrthonormal(), NOISE),
    ),
    stage(
        "rounding up after the clip", (CLIP, Scale(1.0), NOISE), (CLIP, bad.RoundsUp(1.0), NOISE)
    ),
    stage("scaled after the clip", (CLIP, Scale(1.0), NOISE), (CLIP, bad.Louder(1.0), NOISE)),
    of_round(
        "an empty cohort adds no noise",
        CENTRAL,
        replace(CENTRAL, publish=(bad.NotForNobody(0.1),)),
    ),
    of_round(
        "the server forgets its noise", CENTRAL, replace(CENTRAL, publish=(bad.Forgotten(0.1),))
    ),
    of_round(
        "examples are not clipped",
        BATCHES,
        replace(BATCHES, local=replace(BATCHES.local, example=(NoClip(1.0),))),
    ),
    of_round(
        "noise of a batch forgotten",
        BATCHES,
        replace(BATCHES, local=replace(BATCHES.local, batch=(bad.Forgotten(1.08),))),
    ),
]
