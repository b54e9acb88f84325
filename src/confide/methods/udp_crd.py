"""UDP with communication-rounds discounting (CRD): T shrinks when the test loss stops falling.

Wei, Li, Ding, Ma, Su, Zhang, Poor: User-Level Privacy-Preserving Federated Learning: Analysis and
Performance Optimization, 2022. docs/papers/udp-crd.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log, sqrt
from typing import ClassVar

from confide.engine.rounds import Past, Round, Upload
from confide.methods.udp import UDP, column, exact, noised_loss, one_round, share


@dataclass(frozen=True)
class UDPCRD(UDP):
    """As printed (Algorithm 2): T shrinks when the test loss stops falling, noise by eq. (25)."""

    beta: float = 0.9
    zeta: float = 0.001
    name: ClassVar = "udp-crd"
    adapts: ClassVar = True

    def round(self, past: Past) -> Round | None:
        """Lines 3 to 19."""
        q, losses = share(self, past), past.values("loss")
        rounds = discounted(self.T, self.beta, self.zeta, losses, past.t)
        if past.t >= rounds[-1]:
            return None

        def sigma(e: float) -> float:
            return eq_25(e**2 / (2 * q * log(1 / self.delta)), rounds)

        return one_round(self, past, column(self.epsilon, sigma), Upload((), length=1, data="test"))


@dataclass(frozen=True)
class UDPCRDC(UDP):
    """Corrected: eq. (25) with the exact budget, a filter before each release, a noisy trigger.

    `trigger`: "clients" follows the noised losses, smoothed over `window` rounds; "public" follows
    the loss on the server's own validation records, and no test loss is sent.
    """

    beta: float = 0.9
    zeta: float = 0.001
    V_max: float = 4.0
    n_test: int = 200
    trigger: str = "clients"
    window: int = 5
    name: ClassVar = "udp-crd-c"
    adapts: ClassVar = True

    @property
    def validates(self) -> bool:
        """Whether the loss on the server's own records is followed."""
        return self.trigger == "public"

    def round(self, past: Past) -> Round | None:
        """As Algorithm 2."""
        public = self.trigger == "public"
        losses = list(past.validation) if public else smoothed(past.values("loss"), self.window)
        rounds = discounted(self.T, self.beta, self.zeta, losses, past.t, self.window)
        if past.t >= rounds[-1]:
            return None

        def sigma(e: float) -> float:
            return eq_25(exact(e, self.delta) ** 2, rounds)

        loss = None if public else noised_loss(self, self.V_max, self.n_test, self.T)
        return one_round(self, past, column(self.epsilon, sigma), loss)


def eq_25(cap: float, rounds: list[int]) -> float:
    """Eq. (25) in units of the sensitivity: sqrt((T - t) / (cap - spent)), with each round's T.

    A round spends its share 1 / (T - t) of what is left of the cap.
    """
    left = cap
    for t, T in enumerate(rounds[:-1]):
        left -= left / (T - t)
    return sqrt((rounds[-1] - len(rounds) + 1) / left)


def discounted(
    T: int, beta: float, zeta: float, losses: list[float], t: int, every: int = 1
) -> list[int]:
    """The T of each round up to t: floor(beta (T - t)) + t when the loss has fallen less than zeta.

    `losses` holds those of the models w_0, w_1, ... so far; a trigger rests for `every` rounds.
    """
    rounds, rested, last = [T], 0, T
    for now in range(1, t + 1):
        rested += 1
        known = losses[:now]
        stalls = len(known) > every and known[-1 - every] - known[-1] < zeta
        if stalls and rested >= every:
            last, rested = floor(beta * (last - now)) + now, 0
        rounds.append(last)
        if now >= last:
            break
    return rounds


def smoothed(losses: list[float], window: int) -> list[float]:
    """Means over the last `window` values."""
    parts = [losses[max(0, i + 1 - window) : i + 1] for i in range(len(losses))]
    return [sum(part) / len(part) for part in parts]
