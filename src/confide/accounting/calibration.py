"""The least noise for an epsilon, for any mechanism.

Epsilon falls as the noise grows. In log-log scale it is close to a line, so a bracketed secant
needs few evaluations, each by the accountant that will be quoted. What is returned was itself
evaluated: its epsilon is at most the target and within 0.1 % of it, whatever the curve's shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from confide.accounting import account, gdp
from confide.accounting.account import Accountant, Answer
from confide.accounting.events import DpEvent
from confide.accounting.mechanisms import Words
from confide.accounting.relations import Refused, Relation

SHORTFALL = 1e-3  # the epsilon reached may be below the target by this much, relative
AIM = 3e-4
LARGEST_SCALE = 1e12
EVALUATIONS = 80
_T = TypeVar("_T")


@dataclass(frozen=True)
class Calibrated:
    """A noise scale and what it was evaluated to prove."""

    scale: float
    answer: Answer


def calibrate(
    words: Words, epsilon: float, delta: float, accountant: Accountant = "auto"
) -> Calibrated:
    """Return the least multiplier at which the mechanism stays within (epsilon, delta)."""
    _check(epsilon, delta)
    return calibrate_scale(
        words.event, epsilon, delta, words.relation, accountant, _guess(words, epsilon, delta)
    )


def calibrate_scale(
    event_of_scale: Callable[[float], DpEvent],
    epsilon: float,
    delta: float,
    relation: Relation = Relation.ADD_REMOVE,
    accountant: Accountant = "auto",
    guess: float = 1.0,
) -> Calibrated:
    """Return the least noise scale at which the event stays within (epsilon, delta)."""
    _check(epsilon, delta)

    def ask(scale: float) -> Answer:
        return account.epsilon(event_of_scale(scale), delta, relation, accountant)

    search = Search(ask, epsilon)
    search.bracket(guess)
    return search.refine()


@dataclass
class Search:
    """A bracketed secant for the least noise at which what `ask` answers is within the target."""

    ask: Callable[[float], Answer]
    target: float
    loud: tuple[float, Answer] | None = None  # enough noise, the least so far
    quiet: tuple[float, float] | None = None  # too little noise, the most so far, and its epsilon

    def attempt(self, scale: float) -> float:
        """Ask at this scale and keep what it says about the bracket."""
        answer = self.ask(scale)
        found = answer.epsilon
        if found <= self.target:
            if self.loud is None or scale < self.loud[0]:
                self.loud = scale, answer
        elif self.quiet is None or scale > self.quiet[0]:
            self.quiet = scale, found
        return found

    def bracket(self, scale: float) -> None:
        """Find one scale on either side of the target, moving by what the last epsilon suggests."""
        while self.loud is None:
            found = self.attempt(scale)
            if self.loud is None:
                if scale >= LARGEST_SCALE:
                    raise Refused(
                        f"epsilon = {self.target}: cannot be reached, noise of {scale:g} S still "
                        f"gives {found:.6g}"
                    )
                grow = found / self.target if math.isfinite(found) else 16.0
                scale = min(scale * min(max(1.02 * grow, 1.01), 16.0), LARGEST_SCALE)
        while self.quiet is None and not self._done():
            scale, answer = self.loud
            if scale < 1 / LARGEST_SCALE:
                raise Refused(f"epsilon = {self.target}: more than the mechanism ever spends")
            try:
                self.attempt(scale * min(max(0.98 * answer.epsilon / self.target, 1 / 16), 0.99))
            except Refused as reason:
                raise Refused(
                    f"epsilon = {self.target}: cannot be met from below, at noise {scale:g} S "
                    f"epsilon is {answer.epsilon:.6g} and less is refused ({reason})"
                ) from None

    def _done(self) -> bool:
        return self.loud is not None and self.loud[1].epsilon >= self.target * (1 - SHORTFALL)

    def refine(self) -> Calibrated:
        """Close the bracket by secants in log-log scale, with a bisection when one stalls."""
        aim = math.log(self.target * (1 - AIM))
        for turn in range(EVALUATIONS):
            if self._done():
                break
            loud, quiet = _require(self.loud), _require(self.quiet)
            if loud[0] <= quiet[0] * (1 + 1e-12):
                break  # epsilon jumps over the target: the noisier side of the jump is the answer
            low, high = math.log(quiet[0]), math.log(loud[0])
            share = 0.5
            if turn % 4 != 3 and loud[1].epsilon > 0 and math.isfinite(quiet[1]):
                top, bottom = math.log(quiet[1]), math.log(loud[1].epsilon)
                share = min(max((top - aim) / (top - bottom), 1e-6), 1 - 1e-6)
            self.attempt(math.exp(low + share * (high - low)))
        scale, answer = _require(self.loud)
        return Calibrated(scale, answer)


def _guess(words: Words, epsilon: float, delta: float) -> float:
    """Where the multiplier would be if the total loss were normal; any guess is sound."""
    mu = gdp.mu(epsilon, delta) / math.sqrt(words.steps)
    if words.sampling == "none":
        return min(max(1 / mu, 1e-3), 1e9)
    rate = float(words.rate or 1)
    return min(max(1 / math.sqrt(math.log1p((mu / rate) ** 2)), 1e-3), 1e9)


def _require(value: _T | None) -> _T:
    assert value is not None, "bracket() comes first"
    return value


def _check(epsilon: float, delta: float) -> None:
    if not 0 < epsilon < math.inf:
        raise Refused(f"epsilon = {epsilon}: must be positive and finite")
    if not 0 < delta < 1:
        raise Refused(f"delta = {delta}: must lie strictly between 0 and 1")
