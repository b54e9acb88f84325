"""DP-FedAvg with adaptive clipping: the bound follows a quantile of the updates' lengths.

Andrew, Thakkar, McMahan, Ramaswamy: Differentially Private Learning with Adaptive Clipping, 2021.
docs/papers/beyond.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, ClassVar

from confide.channels import Sum
from confide.cohorts import Epoch, Poisson
from confide.engine.rounds import Local, Past, Round, Upload
from confide.local import SGD, between, norm
from confide.methods.setting import Setting, wholes
from confide.servers import Add, Momentum
from confide.stages import Clip, Gaussian
from confide.stages.bounds import finite

if TYPE_CHECKING:
    from torch import Tensor

    from confide.engine.outcomes import Outcome

FARTHEST = 20.0
"""The bound stays within e^20 of C_0 either way, so that no run of noisy bits carries it away."""


@dataclass(frozen=True)
class DPFedAvgAdaptive:
    """Each client sends its clipped update and one bit: whether the update was within C_t.

    z: the multiplier of both together; sigma_b: the noise on the sum of the bits, None: m/20, or z
    if that is more. beta: the server's momentum.

    The two sums are one release under one coin. A bit less 1/2 has length 1/2, so its multiplier is
    2 sigma_b, and the update's is z_Delta with 1/z^2 = 1/z_Delta^2 + 1/(2 sigma_b)^2: two Gaussian
    releases in orthogonal spaces, composed before the coin amplifies them. C_t is a function of
    released bits, and the noise is in proportion to it: every round has the multiplier that was
    planned, so rounds compose as if nothing had been chosen (docs/proofs/filters.md), and a round
    of another multiplier would end the run.
    """

    T: int = 1500
    q: float = 100 / 3400
    z: float = 1.0
    gamma: float = 0.5
    C_0: float = 0.1
    eta_C: float = 0.2
    sigma_b: float | None = None
    E: int = 1
    B: int = 20
    eta: float = 0.1
    beta: float = 0.9
    name: ClassVar = "dp-fedavg-adaptive"
    paper: ClassVar = "Andrew et al. 2021"
    noise_field: ClassVar = "z"
    setting: ClassVar = Setting(clients=3400, data="emnist", model="leaf-cnn", records=100)

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "E", "B")
        between(self, "q", 0, 1, above=True)
        between(self, "z", 0)
        between(self, "gamma", 0, 1)
        between(self, "C_0", 0, above=True)
        between(self, "eta_C", 0)
        between(self, "beta", 0, 1)
        if self.sigma_b is not None:
            between(self, "sigma_b", 0, above=True)
            if self.z >= 2 * self.sigma_b:
                raise ValueError(
                    f"DPFedAvgAdaptive: z = {self.z!r}, allowed is below 2 sigma_b = "
                    f"{2 * self.sigma_b:g}: the bits alone would cost more."
                )

    def round(self, past: Past) -> Round | None:
        """Clip to C_t, noise on both sums, and C_{t+1} = C_t exp(-eta_C (b - gamma))."""
        if past.t == self.T:
            return None
        m, C = self.q * past.public.clients, self.bound(past)
        sigma_b = max(m / 20, self.z) if self.sigma_b is None else self.sigma_b
        return Round(
            cohort=Poisson(self.q),
            local=Local(SGD(self.eta), self.E, Epoch(self.B, partial=True)),
            upload={
                "update": Upload((Clip(C),)),
                "bit": Upload((Clip(0.5),), length=1, value=Within(C)),
            },
            channel=Sum(),
            publish={
                "update": (Gaussian(left_for_updates(self.z, sigma_b) * C / m),),
                "bit": (Gaussian(sigma_b / m),),
            },
            server=Momentum(self.beta) if self.beta else Add(),
        )

    def bound(self, past: Past) -> float:
        """C_t, from the noisy shares b of updates within the bounds so far."""
        shares = [0.5 + float(bit) for bit in past.values("bit")]
        fallen = self.eta_C * sum(share - self.gamma for share in shares)
        return self.C_0 * exp(-min(max(fallen, -FARTHEST), FARTHEST))


@dataclass(frozen=True)
class Within:
    """1/2 if the update is no longer than C before the clip, else -1/2."""

    C: float

    def __call__(self, done: Outcome) -> Tensor:
        """The bit less 1/2; entries that are no numbers count as 0, as for the clip."""
        inside = norm(finite(done.update)) <= self.C
        return done.update.new_tensor([0.5 if inside else -0.5])


def left_for_updates(z: float, sigma_b: float) -> float:
    """z_Delta: what the updates may have when both sums together have the multiplier z."""
    return (z**-2 - (2 * sigma_b) ** -2) ** -0.5 if z else 0.0
