"""Fed-SDP: every layer of a client's update is clipped, and noise is added to the update.

Wei, Liu, Wu, Su, Iyengar: Gradient-Leakage Resilient Federated Learning, 2021, Algorithm 1: their
name for what Geyer et al. 2017 and McMahan et al. 2018 do. docs/papers/fed-cdp.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from confide.channels import Sum
from confide.cohorts import Fixed, Poisson
from confide.engine.rounds import Local, Past, Round, Sizes
from confide.local import SGD
from confide.methods.fed_cdp import FedCDP, check, one_of
from confide.methods.setting import wholes
from confide.published import fed_cdp
from confide.published.value import Published
from confide.servers import Add, Momentum
from confide.stages import ClipLayers, Gaussian

PLACES = ("server", "client")


@dataclass(frozen=True)
class FedSDP:
    """As printed (Algorithm 1): every layer of every update is clipped to C, then noised.

    noise: who adds it, "server" or "client"; the paper has both and accounts for them alike.
    """

    T: int = 100
    K_t: int = 100
    L: int = 100
    B: int = 5
    C: float = 4.0
    sigma: float = 6.0
    eta: float = 0.1
    noise: str = "server"
    name: ClassVar = "fed-sdp"
    paper: ClassVar = "Wei et al. 2021"
    noise_field: ClassVar = "sigma"
    setting: ClassVar = FedCDP.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        wholes(self, "T", "K_t", "L", "B")
        check(self)
        one_of(self, "noise", PLACES)

    def round(self, past: Past) -> Round | None:
        """Lines 3 to 14: L plain steps, clip by layers, N(0, sigma^2 C^2) each, mean over K_t."""
        if past.t == self.T:
            return None
        clip, share = ClipLayers(self.C, past.public.layers), self.sigma * self.C
        at_client = self.noise == "client"
        return Round(
            cohort=Fixed(self.K_t),
            local=Local(SGD(self.eta), self.L, Fixed(self.B)),
            upload=(clip, Gaussian(share)) if at_client else (clip,),
            # The mean of K_t noises of this share has the law of one such noise.
            publish=() if at_client else (Gaussian(share / sqrt(self.K_t)),),
        )

    def published(self, sizes: Sizes) -> Published | None:
        """Table VI, whose rate is K_t/K and whose steps are T + 1; without noise no value."""
        if not self.sigma:
            return None
        rate = min(1.0, self.K_t / sizes.clients)
        return fed_cdp.moments_epsilon(rate, self.sigma, self.T + 1, 1e-5, "client")


@dataclass(frozen=True)
class FedSDPC(FedSDP):
    """Corrected: noise in units of S = C sqrt(M), the sensitivity of M clipped layers.

    noise "server": Poisson cohorts of K_t clients on average, noise once on their sum. "client":
    K_t clients without replacement, noise of the full multiplier in every upload.
    """

    L: int = 50
    B: int = 10
    C: float = 0.3
    sigma: float = 1.0
    beta: float = 0.0
    name: ClassVar = "fed-sdp-c"

    def round(self, past: Past) -> Round | None:
        """As Algorithm 1, divided once by the public K_t."""
        if past.t == self.T:
            return None
        layers = past.public.layers
        clip, std = ClipLayers(self.C, layers), self.sigma * self.C * sqrt(len(layers))
        local = Local(SGD(self.eta), self.L, Fixed(self.B))
        server = Momentum(self.beta) if self.beta else Add()
        if self.noise == "client":
            cohort = Fixed(self.K_t)
            return Round(cohort, local, upload=(clip, Gaussian(std)), server=server)
        if self.K_t > past.public.clients:
            raise ValueError(
                f"FedSDPC: K_t = {self.K_t}, allowed is at most the number of clients, "
                f"{past.public.clients}."
            )
        return Round(
            cohort=Poisson(self.K_t / past.public.clients),
            local=local,
            upload=(clip,),
            channel=Sum(),
            publish=(Gaussian(std / self.K_t),),
            server=server,
        )

    def published(self, sizes: Sizes) -> None:
        """The paper says nothing about this noise."""
