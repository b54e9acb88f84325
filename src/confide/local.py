"""Local steps: how a client moves its copy of the model by one gradient, or by several.

A step sees data only through `gradient(w)`, the (possibly clipped and noised) gradient of its batch
at any w. `gradients` says how often it asks and `losses` how often it looks at the value of a loss:
the statement charges every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING, Protocol

from confide.schedules import Schedule, between, check_rate, rate_of

if TYPE_CHECKING:
    from torch import Tensor

    from confide.stages.stage import PerClient


@dataclass
class Course:
    """What the steps of one client in one round share besides data.

    `start` is the model it received, `sent` what else the server sent to everyone, `memory` what
    the client itself kept from earlier rounds; `velocity` lives for one round only.
    """

    start: Tensor
    sent: Mapping[str, Tensor]
    memory: Tensor | None = None
    velocity: Tensor | None = None
    taken: int = 0


class Gradient(Protocol):
    """A batch, as far as a step may see it; every call is counted."""

    def __call__(self, w: Tensor) -> Tensor:
        """The gradient at w, after all stages; the next call may overwrite it."""
        ...

    def loss(self, w: Tensor) -> float:
        """The mean loss at w, raw: no noise on gradients covers it."""
        ...


class Step(Protocol):
    """One local step; it changes w in place."""

    @property
    def gradients(self) -> int:
        """How many gradients of the same batch one step takes; each is a release of its own."""
        ...

    @property
    def losses(self) -> int:
        """How many times one step looks at the value of the loss; noise on gradients misses it."""
        ...

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        """Move w."""
        ...


@dataclass(frozen=True)
class SGD:
    """w - eta g, with the usual momentum and weight decay."""

    eta: float | Schedule = 0.1
    momentum: float = 0.0
    decay: float = 0.0
    gradients = 1
    losses = 0

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check_descent(self)

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        """One step down the gradient."""
        descend(self, w, gradient(w), course)


@dataclass(frozen=True)
class SAM:
    """Sharpness-aware minimisation: the gradient at the worst point within rho (to first order).

    Foret, Kleiner, Mobahi, Neyshabur: Sharpness-Aware Minimization for Efficiently Improving
    Generalization, 2021.
    """

    eta: float | Schedule = 0.1
    rho: float = 0.5
    momentum: float = 0.0
    decay: float = 0.0
    losses = 0

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check_descent(self)
        between(self, "rho", 0)

    @property
    def gradients(self) -> int:
        """Two; with rho 0 it is plain descent."""
        return 2 if self.rho else 1

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        """Climb by rho along the gradient, and descend by the gradient found there."""
        g = gradient(w)
        length = norm(g)
        if self.rho and length > 0:
            g = gradient(w + g * (self.rho / length))
        descend(self, w, g, course)


@dataclass(frozen=True)
class Prox:
    """FedProx: a pull of strength mu back to the model that was received.

    Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith: Federated Optimization in Heterogeneous Networks,
    2020.
    """

    eta: float | Schedule = 0.1
    mu: float = 0.1
    momentum: float = 0.0
    decay: float = 0.0
    gradients = 1
    losses = 0

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check_descent(self)
        between(self, "mu", 0)

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        """The gradient of the loss plus mu/2 ‖w - start‖^2."""
        g = gradient(w)
        if self.mu:
            g = g + self.mu * (w - course.start)
        descend(self, w, g, course)


@dataclass(frozen=True)
class Scaffold:
    """Descent corrected by control variates: the server's c (sent) and the client's own (memory).

    Karimireddy, Kale, Mohri, Reddi, Stich, Suresh: SCAFFOLD, 2020; their option II for the new
    control.
    """

    eta: float = 0.1
    gradients = 1
    losses = 0

    def __post_init__(self) -> None:
        """Sensible numbers."""
        between(self, "eta", 0, above=True)

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        """One step along g - c_i + c."""
        g = gradient(w)
        if course.memory is not None:
            g = g - course.memory
        if "control" in course.sent:
            g = g + course.sent["control"]
        w.sub_(g, alpha=self.eta)

    def remember(self, w: Tensor, course: Course) -> Tensor | None:
        """The client's control after its steps: c_i - c + (start - w) / (steps eta)."""
        if not course.taken:
            return course.memory
        moved = (course.start - w) / (course.taken * self.eta)
        if course.memory is not None:
            moved = moved + course.memory
        return moved - course.sent["control"] if "control" in course.sent else moved


@dataclass(frozen=True)
class Blur:
    """Bounded local update regularisation: a pull once the update is longer than `radius`.

    Cheng, Wang, Zhang, Cheng: Differentially Private Federated Learning with Local Regularization
    and Sparsification, 2022. The regulariser is strength/2 (‖w - start‖^2 - radius^2) where that is
    positive. It shapes training and proves nothing: the clip that follows does.
    """

    eta: float | Schedule = 0.1
    strength: float = 0.1
    radius: float = 1.0
    momentum: float = 0.0
    decay: float = 0.0
    gradients = 1
    losses = 0

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check_descent(self)
        between(self, "strength", 0)
        between(self, "radius", 0, above=True)

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        """The gradient of the loss plus the regulariser's."""
        g = gradient(w)
        if self.strength:
            away = w - course.start
            if norm(away) > self.radius:
                g = g + self.strength * away
        descend(self, w, g, course)


@dataclass(frozen=True)
class Pulled:
    """Another step, on a loss with lam/2 ‖w - passed_on‖^2 added to it.

    `passed_on` is what the server sent of one client's earlier upload; before there is one, nothing
    pulls. It was released, so the pull sees no data.
    """

    step: Step
    lam: float | PerClient

    def __post_init__(self) -> None:
        """No negative pull."""
        values = (self.lam,) if isinstance(self.lam, int | float) else self.lam.values
        for value in values:
            if not 0 <= value < inf:
                raise ValueError(f"Pulled: lam = {value!r}, allowed is a finite number at least 0.")

    @property
    def gradients(self) -> int:
        """As many as the step's."""
        return self.step.gradients

    @property
    def losses(self) -> int:
        """As many as the step's."""
        return self.step.losses

    @property
    def remember(self) -> Callable[[Tensor, Course], Tensor | None] | None:
        """What the step keeps, if it keeps anything."""
        return getattr(self.step, "remember", None)

    def __call__(self, w: Tensor, gradient: Gradient, course: Course) -> None:
        """The step with the pull in its gradient."""
        anchor = course.sent.get("passed_on")
        if anchor is None or not self.lam:
            self.step(w, gradient, course)
            return
        assert isinstance(self.lam, int | float), "a column is resolved before a client trains"
        self.step(w, Towards(gradient, anchor, self.lam), course)


@dataclass(frozen=True)
class Towards:
    """A batch's gradient with a pull added."""

    gradient: Gradient
    anchor: Tensor
    lam: float

    def __call__(self, w: Tensor) -> Tensor:
        """The gradient of the loss plus lam/2 ‖w - anchor‖^2."""
        return self.gradient(w) + self.lam * (w - self.anchor)

    def loss(self, w: Tensor) -> float:
        """The loss without the pull."""
        return self.gradient.loss(w)


Descent = SGD | SAM | Prox | Blur


def descend(step: Descent, w: Tensor, g: Tensor, course: Course) -> None:
    """Weight decay, then heavy-ball momentum, then the move."""
    if step.decay:
        g = g + step.decay * w
    if step.momentum:
        before = course.velocity
        course.velocity = g.clone() if before is None else before.mul_(step.momentum).add_(g)
        g = course.velocity
    w.sub_(g, alpha=rate_of(step.eta, course.taken))


def norm(x: Tensor) -> float:
    """The l2 norm; single precision is summed in double, where torch's own norm is biased low."""
    return sqrt(float(x.double().square().sum()))


def check_descent(step: Descent) -> None:
    """A rate above 0, momentum below 1, no negative decay."""
    check_rate(step)
    between(step, "momentum", 0, 1)
    between(step, "decay", 0)
