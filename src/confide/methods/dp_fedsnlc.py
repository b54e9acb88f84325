"""DP-FedSNLC: noise where the change of the loss says that an update is significant.

As Zhang et al. (DP-FedAGS) describe the method that they compare with, of which nothing else is
known: the reference that they give is another method. docs/papers/dp-fedags.md numbers what is
assumed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from confide.claims import Claim
from confide.engine.rounds import Past, Round, Sizes, Upload
from confide.local import between
from confide.methods.dp_fedags import (
    PAPER,
    DPFedAGS,
    Part,
    Weighed,
    check,
    mean_loss,
    number,
    printed_round,
    weighted_round,
)
from confide.methods.setting import Setting
from confide.published import dp_fedags
from confide.published.value import Published
from confide.randomness import Stream
from confide.stages import Clip, Gaussian, Shared, Stage

if TYPE_CHECKING:
    from confide.engine.outcomes import Outcome


@dataclass(frozen=True)
class DPFedSNLC:
    """As described: an update gets noise if its client's loss has changed by the share `tau`."""

    T: int = 200
    m: int = 10
    E: int = 1
    B: int = 128
    eta: float = 0.1
    C: float = 1.0
    epsilon: float = 0.5
    Delta_S: float = 1.0
    tau: float = 0.1
    scale: float = 1.0
    name: ClassVar = "dp-fedsnlc"
    paper: ClassVar = PAPER
    noise_field: ClassVar = "scale"
    setting: ClassVar[Setting] = DPFedAGS.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check(self)

    def round(self, past: Past) -> Round | None:
        """m clients send g clipped, with the noise of eq. (2) or without; weights n_k / n."""
        if past.t == self.T:
            return None
        std = self.scale * number(dp_fedags.eq_2_sigma(self.Delta_S, self.epsilon)) * self.C
        noise = NoiseIfSignificant(self.C, std, self.tau)
        length = past.public.dim + 1
        update = Upload((noise,), length, data="train", value=WithChange(self.eta))
        return printed_round(self, update, losses=False)

    def published(self, sizes: Sizes) -> Published | None:
        """The privacy budget of the comparison; without noise it has no value."""
        return dp_fedags.theorem_2_epsilon(self.epsilon) if self.scale else None


@dataclass(frozen=True)
class DPFedSNLCC:
    """Corrected: released noisy losses say which rounds are significant; all rounds have noise.

    A round that is not has the smaller bound C_N, and noise in proportion. The loss of the last
    `window` rounds is compared with that of the `window` before. `records`: as in DP-FedAGS.
    """

    T: int = 200
    q: float = 0.1
    E: int = 1
    B: int = 128
    eta: float = 0.1
    C: float = 1.0
    C_N: float = 0.3
    tau: float = 0.1
    sigma: float = 1.0
    loss_share: float = 0.05
    L_max: float = 4.0
    window: int = 10
    records: float = 600.0
    name: ClassVar = "dp-fedsnlc-c"
    paper: ClassVar = PAPER
    noise_field: ClassVar = "sigma"
    setting: ClassVar[Setting] = DPFedAGS.setting

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check(self)
        between(self, "q", 0, 1, above=True)
        if not self.loss_share < 1:
            raise ValueError(
                f"DPFedSNLCC: loss_share = {self.loss_share!r}, allowed is below 1: the update has "
                "the rest."
            )

    def round(self, past: Past) -> Round | None:
        """Clip n_k g_k / n to C or C_N; one coin for the noisy sums of these and of the losses."""
        if past.t == self.T:
            return None
        bound = self.C if self.significant(past.values("loss")) else self.C_N
        parts = {
            "update": Part((), bound, 1 - self.loss_share),
            "loss": Part((), self.L_max, self.loss_share),
        }
        return weighted_round(self, past, parts, Weighed(self.eta, self.records, False, None))

    def significant(self, seen: list[float]) -> bool:
        """Whether the released loss changes, by the share tau of what it was."""
        if len(seen) < 2 * self.window:
            return True
        last = mean_loss(seen[-self.window :], self.L_max)
        before = mean_loss(seen[-2 * self.window : -self.window], self.L_max)
        return abs(before - last) >= self.tau * before


@dataclass(frozen=True)
class WithChange:
    """-g, and behind it the share by which the client's own loss has changed in its local steps."""

    eta: float

    def __call__(self, done: Outcome) -> Tensor:
        """Two looks at the client's data more."""
        before = float(done.loss)
        change = abs(before - done.data.loss(done.end)) / before if before else 0.0
        return torch.cat([done.update / self.eta, done.update.new_tensor([change])])


@dataclass(frozen=True)
class NoiseIfSignificant(Stage):
    """Take off the last entry, clip the others to C, and add noise if the entry is at least tau.

    It proves nothing: an update below tau leaves as it is.
    """

    C: float
    std: float
    tau: float

    def __call__(self, x: Tensor, shared: Shared, own: Stream) -> Tensor:
        """All coordinates or none."""
        clipped = Clip(self.C)(x[:-1], shared, own)
        return Gaussian(self.std)(clipped, shared, own) if float(x[-1]) >= self.tau else clipped

    def claim(self, c: Claim) -> Claim:
        """Whether there is noise depends on the client's data."""
        return c.forgotten(
            "an update whose client's loss has changed little leaves without noise, and the "
            "client's own data decide that"
        )
