"""Stages: what happens to a vector, and what that proves about it."""

from confide.stages.bounds import Assume, Clip, ClipLayers
from confide.stages.correlated import Correlated
from confide.stages.gridnoise import Binomial, DiscreteGaussian, Skellam
from confide.stages.maps import Mask, Places, RandK, Rotate, Scale, TopK, Unrotate
from confide.stages.noises import Gaussian, Laplace, RadialStaircase, Staircase
from confide.stages.quantize import Quantize
from confide.stages.randomizers import BallRandomizer, Ordinal, RandomizedResponse, TwoPoint
from confide.stages.stage import PerClient, Shared, Stage

__all__ = [
    "Assume",
    "BallRandomizer",
    "Binomial",
    "Clip",
    "ClipLayers",
    "Correlated",
    "DiscreteGaussian",
    "Gaussian",
    "Laplace",
    "Mask",
    "Ordinal",
    "PerClient",
    "Places",
    "Quantize",
    "RadialStaircase",
    "RandK",
    "RandomizedResponse",
    "Rotate",
    "Scale",
    "Shared",
    "Skellam",
    "Stage",
    "Staircase",
    "TopK",
    "TwoPoint",
    "Unrotate",
]
