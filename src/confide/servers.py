"""What the server makes the next model of: published vectors and its own earlier state.

It sees nothing else, so whatever it does is post-processing and changes no statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from confide.local import between

if TYPE_CHECKING:
    from torch import Tensor

State = dict[str, "Tensor"]
"""Vectors that the server keeps from round to round; clients receive them with the model."""


class Server(Protocol):
    """A pure function of what was published and of its own state."""

    def __call__(
        self, model: Tensor, published: Mapping[str, Tensor], state: State
    ) -> tuple[Tensor, State]:
        """The next model and the next state."""
        ...


@dataclass(frozen=True)
class Add:
    """The model plus eta times the published update, or the published model itself.

    A published `control` (SCAFFOLD) is added to the server's with weight `share`: the expected
    share of the clients that took part.
    """

    eta: float = 1.0
    share: float = 1.0

    def __post_init__(self) -> None:
        """Sensible numbers."""
        between(self, "eta", 0, above=True)
        between(self, "share", 0, 1, above=True)

    def __call__(
        self, model: Tensor, published: Mapping[str, Tensor], state: State
    ) -> tuple[Tensor, State]:
        """One step."""
        if "control" in published:
            before = state.get("control")
            moved = self.share * published["control"]
            state = {**state, "control": moved if before is None else before + moved}
        return model + self.eta * direction(model, published), state


@dataclass(frozen=True)
class Momentum:
    """FedAvgM: heavy-ball momentum on the published updates.

    Hsu, Qi, Brown: Measuring the Effects of Non-Identical Data Distribution for Federated Visual
    Classification, 2019.
    """

    beta: float = 0.9
    eta: float = 1.0

    def __post_init__(self) -> None:
        """Sensible numbers."""
        between(self, "eta", 0, above=True)
        between(self, "beta", 0, 1)

    def __call__(
        self, model: Tensor, published: Mapping[str, Tensor], state: State
    ) -> tuple[Tensor, State]:
        """One step."""
        velocity = direction(model, published)
        if "velocity" in state:
            velocity = self.beta * state["velocity"] + velocity
        return model + self.eta * velocity, {**state, "velocity": velocity}


@dataclass(frozen=True)
class Adam:
    """FedAdam: the published update as a pseudo-gradient of Adam, with a floor tau.

    Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar, McMahan: Adaptive Federated Optimization,
    2021.
    """

    eta: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3

    def __post_init__(self) -> None:
        """Sensible numbers."""
        between(self, "eta", 0, above=True)
        between(self, "beta1", 0, 1)
        between(self, "beta2", 0, 1)
        between(self, "tau", 0, above=True)

    def __call__(
        self, model: Tensor, published: Mapping[str, Tensor], state: State
    ) -> tuple[Tensor, State]:
        """One step."""
        g = direction(model, published)
        first, second = state.get("first"), state.get("second")
        m = (1 - self.beta1) * g
        v = (1 - self.beta2) * g * g
        m = m if first is None else self.beta1 * first + m
        v = v if second is None else self.beta2 * second + v
        return model + self.eta * m / (v.sqrt() + self.tau), {**state, "first": m, "second": v}


def direction(model: Tensor, published: Mapping[str, Tensor]) -> Tensor:
    """Where the published vectors point from the model: the update, or the way to the new model.

    A published `rest` holds coordinates of the update that are released by themselves.
    """
    if "update" in published:
        rest = published.get("rest")
        update = published["update"].to(model)
        return update if rest is None else update + rest.to(model)
    if "model" in published:
        return published["model"].to(model) - model
    raise ValueError(
        f"Round: upload names {', '.join(published)}, allowed is at least one of update and model "
        "for a server that makes the next model of them."
    )
