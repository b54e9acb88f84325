"""The words of `confide account` and `confide calibrate`, turned into an event.

The multiplier is the noise scale over S, the sensitivity under the relation in force: sigma / S
for Gaussian, scale / S for Laplace, 1 / epsilon0 with a step of S for the staircase and
sqrt(variance) / S for Skellam. Every refusal names the word, its value and what is allowed.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from confide.accounting import staircase
from confide.accounting.account import Answer
from confide.accounting.events import (
    DpEvent,
    GaussianDpEvent,
    LaplaceBothDpEvent,
    LaplaceDpEvent,
    LaplaceL2DpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    SkellamDpEvent,
    StaircaseDpEvent,
)
from confide.accounting.relations import Refused, Relation

NORMS = {
    "gaussian": ("l2",),
    "laplace": ("l1", "l2", "both"),
    "staircase": ("l1", "l2"),
    "skellam": ("l2",),
}
SAMPLINGS = ("none", "poisson", "fixed")
_T = TypeVar("_T")
RELATIONS = (Relation.ADD_REMOVE.value, Relation.REPLACE_ONE.value)


@dataclass(frozen=True)
class Words:
    """Everything about a mechanism but how much noise it has; defaults are filled in by `read`."""

    noise: str
    gamma: float | None
    norm: str
    grid: int | None
    dim: int | None
    rate: Fraction | float | None
    sampling: str
    steps: int
    relation: Relation

    def event(self, multiplier: float) -> DpEvent:
        """Return the event of the whole run at this multiplier."""
        if not 0 < multiplier < math.inf:
            raise Refused(f"multiplier = {multiplier}: must be a positive number")
        return _run(self._release(float(multiplier)), self.sampling, self.rate, self.steps)

    def _release(self, multiplier: float) -> DpEvent:
        match self.noise, self.norm:
            case "gaussian", _:
                return GaussianDpEvent(multiplier)
            case "laplace", "l1":
                return LaplaceDpEvent(multiplier)
            case "laplace", "l2":
                return LaplaceL2DpEvent(multiplier, self.dim)
            case "laplace", _:
                return LaplaceBothDpEvent(multiplier, multiplier, self.dim)
            case "staircase", norm:
                gamma = self.gamma_at(multiplier)
                return StaircaseDpEvent(1 / multiplier, _given(gamma), 1.0, norm, self.dim)
            case _:
                grid, dim = int(_given(self.grid)), int(_given(self.dim))
                l1 = min(math.sqrt(dim) * grid, float(grid * grid))
                return SkellamDpEvent((multiplier * grid) ** 2, float(grid), l1, dim)

    def gamma_at(self, multiplier: float) -> float | None:
        """Return the staircase's gamma, the least-variance one unless it was given."""
        if self.noise != "staircase" or self.gamma is not None:
            return self.gamma
        return staircase.optimal_gamma(1 / multiplier, cost="l2")

    def fields(self, multiplier: float, answer: Answer) -> dict[str, object]:
        """Return the fields of the answer that scripts rely on."""
        known: dict[str, object] = {
            "epsilon": _plain(answer.epsilon),
            "delta": answer.delta,
            "accountant": answer.accountant,
            "order": answer.order,
            "relation": answer.relation.value,
            "sampling": self.sampling,
            "norm": self.norm,
            "dim": self.dim,
            "gamma": self.gamma_at(multiplier),
            "multiplier": multiplier,
            "steps": self.steps,
            "assumptions": list(answer.assumptions),
        }
        return known | {"reason": answer.reason} if answer.reason else known


@dataclass(frozen=True)
class Given:
    """The words as they were typed; None where a word was left out."""

    noise: str
    gamma: float | None = None
    norm: str | None = None
    grid: int | None = None
    dim: int | None = None
    rate: Fraction | float | str | None = None
    sampling: str | None = None
    steps: int = field(default=1)
    relation: str | None = None


def read(given: Given) -> Words:
    """Fill in the defaults, or refuse in one sentence."""
    noise = _one_of("noise", given.noise, tuple(NORMS))
    norm = _one_of("norm", given.norm or NORMS[noise][0], NORMS[noise], f" for {noise} noise")
    sampling = _sampling(given.sampling, given.rate)
    dim = None if given.dim is None else _whole("dim", given.dim)
    if noise == "staircase" and dim is None:
        dim = 1
    return Words(
        noise=noise,
        gamma=_gamma(noise, given.gamma),
        norm=norm,
        grid=_grid(noise, given.grid, dim),
        dim=dim,
        rate=_rate(sampling, given.rate),
        sampling=sampling,
        steps=_whole("steps", given.steps),
        relation=_relation(sampling, given.relation),
    )


def repeated(
    release: DpEvent,
    rate: Fraction | float | str | None = None,
    sampling: str | None = None,
    steps: int = 1,
    relation: str | None = None,
) -> tuple[DpEvent, Relation]:
    """Return the event of a run that repeats a given release, and its relation."""
    chosen = _sampling(sampling, rate)
    event = _run(release, chosen, _rate(chosen, rate), _whole("steps", steps))
    return event, _relation(chosen, relation)


def _run(release: DpEvent, sampling: str, rate: Fraction | float | None, steps: int) -> DpEvent:
    if sampling == "poisson":
        release = PoissonSampledDpEvent(float(_given(rate)), release)
    elif sampling == "fixed":
        share = Fraction(_given(rate))
        release = SampledWithoutReplacementDpEvent(share.denominator, share.numerator, release)
    return SelfComposedDpEvent(release, steps)


def _sampling(sampling: str | None, rate: Fraction | float | str | None) -> str:
    return _one_of("sampling", sampling or ("none" if rate is None else "poisson"), SAMPLINGS)


def _one_of(name: str, value: object, allowed: tuple[str, ...], where: str = "") -> str:
    if isinstance(value, str) and value in allowed:
        return value
    near = difflib.get_close_matches(str(value), allowed, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise Refused(f"{name} = {value}: must be one of {', '.join(allowed)}{where}{hint}")


def _whole(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Refused(f"{name} = {value}: must be a whole number of at least 1")
    return value


def _gamma(noise: str, gamma: float | None) -> float | None:
    if gamma is None:
        return None
    if noise != "staircase":
        raise Refused(f"gamma = {gamma}: only staircase noise has a gamma, not {noise}")
    if not 0 <= gamma <= 1:
        raise Refused(f"gamma = {gamma}: must lie between 0 and 1")
    return float(gamma)


def _grid(noise: str, grid: int | None, dim: int | None) -> int | None:
    if noise != "skellam":
        if grid is not None:
            raise Refused(f"grid = {grid}: only skellam noise lies on a grid, not {noise}")
        return None
    if grid is None or dim is None:
        missing = "grid" if grid is None else "dim"
        raise Refused(f"{missing} is missing: skellam noise needs dim and grid, S in grid steps")
    return _whole("grid", grid)


def _rate(sampling: str, rate: Fraction | float | str | None) -> Fraction | float | None:
    if sampling == "none":
        if rate is not None:
            raise Refused(f"rate = {rate}: sampling none has no rate; use poisson or fixed")
        return None
    if rate is None:
        raise Refused(f"rate is missing: sampling {sampling} needs one")
    number = _number(rate)
    if not 0 < number <= 1:
        raise Refused(f"rate = {rate}: must be above 0 and at most 1")
    if sampling == "fixed" and not isinstance(number, Fraction):
        raise Refused(f"rate = {rate}: sampling fixed needs it as m/n, such as 50/1000")
    return number


def _number(rate: Fraction | float | str) -> Fraction | float:
    """Return a rate; a fraction stays one, so that a sample of fixed size keeps its size."""
    if not isinstance(rate, str):
        return rate
    try:
        return Fraction(rate) if "/" in rate else float(rate)
    except (ValueError, ZeroDivisionError):
        raise Refused(f"rate = {rate}: must be a number such as 0.05, or m/n") from None


def _relation(sampling: str, relation: str | None) -> Relation:
    implied = {"poisson": Relation.ADD_REMOVE, "fixed": Relation.REPLACE_ONE}.get(sampling)
    if relation is None:
        return implied or Relation.ADD_REMOVE
    chosen = Relation(_one_of("relation", relation, RELATIONS))
    if implied is not None and chosen is not implied:
        raise Refused(f"relation = {relation}: sampling {sampling} is proved for {implied} only")
    return chosen


def _given(value: _T | None) -> _T:
    assert value is not None, "read() fills in every word that the noise needs"
    return value


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"
