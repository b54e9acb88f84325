"""Epsilon of a noise, and noise for an epsilon; nothing heavy is imported until it is asked for."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from confide.accounting.account import Answer
    from confide.accounting.calibration import Calibrated
    from confide.accounting.events import DpEvent

__all__ = ["HasEvent", "calibrate", "epsilon"]


@runtime_checkable
class HasEvent(Protocol):
    """A noise that knows its own event when the sensitivity S is 1."""

    def unit_event(self) -> DpEvent:
        """Return the event of one release at S = 1."""
        ...


def epsilon(
    noise: DpEvent | HasEvent | str,
    *,
    delta: float,
    rate: Fraction | float | str | None = None,
    steps: int = 1,
    multiplier: float | None = None,
    accountant: Any = "auto",
    **words: Any,
) -> Answer:
    """Return what `steps` releases of the noise prove at this delta.

    The noise is a name with a multiplier, an event, or an object with `unit_event()`; with a rate
    every release is on a Poisson sample. Other words are those of `confide account`.
    """
    from confide.accounting import account, mechanisms
    from confide.accounting.relations import Refused

    if isinstance(noise, str):
        if multiplier is None:
            raise Refused(f"multiplier is missing: {noise} noise needs one")
        read = mechanisms.read(mechanisms.Given(noise, rate=rate, steps=steps, **words))
        return account.epsilon(read.event(multiplier), delta, read.relation, accountant)
    if multiplier is not None:
        raise Refused(f"multiplier = {multiplier}: the noise given already has its own")
    release = noise.unit_event() if isinstance(noise, HasEvent) else noise
    event, relation = mechanisms.repeated(release, rate=rate, steps=steps, **words)
    return account.epsilon(event, delta, relation, accountant)


def calibrate(
    noise: str,
    *,
    epsilon: float,
    delta: float,
    rate: Fraction | float | str | None = None,
    steps: int = 1,
    accountant: Any = "auto",
    **words: Any,
) -> Calibrated:
    """Return the least multiplier of this noise that stays within (epsilon, delta)."""
    from confide.accounting import calibration, mechanisms

    read = mechanisms.read(mechanisms.Given(noise, rate=rate, steps=steps, **words))
    return calibration.calibrate(read, epsilon, delta, accountant)
