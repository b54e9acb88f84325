"""UDP with communication-rounds discounting (CRD): T shrinks when the test loss stops falling.

Wei, Li, Ding, Ma, Su, Zhang, Poor: User-Level Privacy-Preserving Federated Learning: Analysis and
Performance Optimization, 2022. docs/papers/udp-crd.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log, sqrt
from typing import ClassVar

from confide.engine.rounds import Past, Round, Sizes
from confide.local import between
from confide.methods.setting import wholes
from confide.methods.udp import UDP, check, mu, noised_loss, one_of, one_round, raw_loss, share


@dataclass(frozen=True)
class UDPCRD(UDP):
    """As printed (Algorithm 2): T shrinks when the test loss stops falling, noise by eq. (25)."""

    beta: float = 0.9
    zeta: float = 0.001
    name: ClassVar = "udp-crd"
    adapts: ClassVar = True

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check_discount(self)

    def round(self, past: Past) -> Round | None:
        """Lines 3 to 19; the test loss of a model is told by those who receive it."""
        q, losses = share(self, past.public), past.values("loss")
        rounds = discounted(self.T, self.beta, self.zeta, losses, past.t)
        if past.t >= rounds[-1]:
            return None

        def sigma(epsilon: float, delta: float) -> float:
            return eq_25(epsilon**2 / (2 * q * log(1 / delta)), rounds)

        return one_round(self, past, sigma, raw_loss())


@dataclass(frozen=True)
class UDPCRDC(UDP):
    """Corrected: eq. (25) with the exact budget, a filter before each release, a noisy trigger.

    trigger: "clients" follows the noised test losses; "public" follows the loss on the server's own
    validation records, and no test loss is sent. Both are smoothed over `window` rounds.
    """

    beta: float = 0.9
    zeta: float = 0.001
    V_max: float = 4.0
    n_test: int = 200
    trigger: str = "clients"
    window: int = 5
    name: ClassVar = "udp-crd-c"
    adapts: ClassVar = True

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check_discount(self)
        wholes(self, "window")
        one_of(self, "trigger", ("clients", "public"))

    @property
    def validates(self) -> bool:
        """Whether the loss on the server's own records is followed."""
        return self.trigger == "public"

    def round(self, past: Past) -> Round | None:
        """As Algorithm 2."""
        known = list(past.validation) if self.validates else past.values("loss")
        losses = smoothed(known, self.window)
        ahead = int(self.validates)
        rounds = discounted(self.T, self.beta, self.zeta, losses, past.t, self.window, ahead)
        if past.t >= rounds[-1]:
            return None

        def sigma(epsilon: float, delta: float) -> float:
            return eq_25(mu(epsilon, delta) ** 2, rounds)

        loss = None if self.validates else noised_loss(self, self.V_max, self.n_test, self.T)
        return one_round(self, past, sigma, loss)

    def published(self, sizes: Sizes) -> None:
        """The paper says nothing about this noise."""


def eq_25(cap: float, rounds: Sequence[int]) -> float:
    """Eq. (25) in units of the sensitivity: sqrt((T - t) / (cap - spent)), with each round's T.

    A round spends its share 1 / (T - t) of what is left of the cap.
    """
    left = cap
    for t, T in enumerate(rounds[:-1]):
        left -= left / (T - t)
    return sqrt((rounds[-1] - len(rounds) + 1) / left)


def discounted(
    T: int,
    beta: float,
    zeta: float,
    losses: Sequence[float],
    now: int,
    every: int = 1,
    ahead: int = 0,
) -> list[int]:
    """The T of each round up to `now`: floor(beta (T - t)) + t when the loss falls less than zeta.

    t is the round that has ended. `losses` are those of the models w_0, w_1, ...: at its beginning
    a round knows as many as rounds have ended, and `ahead` more. The loss is compared with that of
    `every` rounds before, and a trigger rests for as long.
    """
    rounds, rested = [T], 0
    for t in range(now):
        last, known = rounds[-1], losses[: t + 1 + ahead]
        rested += 1
        if rested >= every and len(known) > every and known[-1 - every] - known[-1] < zeta:
            last, rested = floor(beta * (last - t)) + t, 0
        rounds.append(last)
        if t + 1 >= last:
            break
    return rounds


def smoothed(losses: Sequence[float], window: int) -> list[float]:
    """Means over the last `window` values."""
    parts = [losses[max(0, i + 1 - window) : i + 1] for i in range(len(losses))]
    return [sum(part) / len(part) for part in parts]


def check_discount(m: UDPCRD | UDPCRDC) -> None:
    """The settings of both algorithms."""
    check(m)
    if not 0 < m.beta < 1:
        raise ValueError(f"{type(m).__name__}: beta = {m.beta!r}, allowed is above 0 and below 1.")
    between(m, "zeta", -1e300)
