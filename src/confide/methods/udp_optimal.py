"""UDP with the optimal T, found by trying several: what CRD is compared with.

Wei, Li, Ding, Ma, Su, Zhang, Poor: User-Level Privacy-Preserving Federated Learning: Analysis and
Performance Optimization, 2022. docs/papers/udp-crd.md.

The paper runs UDP once for every T and shows the best, as if that one alone had been run. Here the
search is part of the method, so every run of it is in the statement. A T that is known without
looking at data costs nothing: `confide.bounds.udp_crd.theorem_3` computes the one that the paper's
bound prefers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from confide.engine.rounds import Past, Round, Sizes
from confide.methods.setting import wholes
from confide.methods.udp import UDP, check, eq_10, exact, noised_loss, one_round, raw_loss, share
from confide.servers import Add, State, direction

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class UDPOptimal(UDP):
    """As compared with: Algorithm 1 for several numbers of rounds, the best by its test loss.

    tries: how many are tried, evenly spaced up to T. Each run spends the whole budget. The last
    test loss that is told in a run, of the model before its last step, decides.
    """

    tries: int = 5
    name: ClassVar = "udp-optimal"

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check_tries(self)

    def round(self, past: Past) -> Round | None:
        """The next round of the run that is being tried."""
        q, now = share(self, past.public), trying(lengths(self), past.t)
        if now is None:
            return None
        sigma = partial(eq_10, q, now.T)
        return one_round(self, past, sigma, raw_loss(), server=now.server)


@dataclass(frozen=True)
class UDPOptimalC(UDP):
    """Corrected: the runs share the exact budget equally, and noised, cut test losses decide."""

    tries: int = 5
    V_max: float = 4.0
    n_test: int = 200
    name: ClassVar = "udp-optimal-c"

    def __post_init__(self) -> None:
        """Sensible numbers."""
        check_tries(self)

    def round(self, past: Past) -> Round | None:
        """The next round of the run that is being tried."""
        now = trying(lengths(self), past.t)
        if now is None:
            return None
        sigma = partial(exact, self.tries * now.T)
        loss = noised_loss(self, self.V_max, self.n_test, sum(lengths(self)))
        return one_round(self, past, sigma, loss, server=now.server)

    def published(self, sizes: Sizes) -> None:
        """The paper says nothing about this noise."""


@dataclass(frozen=True)
class Begin:
    """The first step of a run, which also remembers where it began."""

    def __call__(
        self, model: Tensor, published: Mapping[str, Tensor], state: State
    ) -> tuple[Tensor, State]:
        """One step."""
        return model + direction(model, published), {**state, "first": model.clone()}


@dataclass(frozen=True)
class Restart:
    """The last step of a run: keeps its model if its loss is the least, and starts anew.

    After the last run of all, the model that was kept is the next model. All of it is made of what
    was published and of the server's own state.
    """

    over: bool

    def __call__(
        self, model: Tensor, published: Mapping[str, Tensor], state: State
    ) -> tuple[Tensor, State]:
        """Compare, keep, start anew."""
        if "best" not in state or bool(published["loss"] < state["least"]):
            reached = model + direction(model, published)
            state = {**state, "best": reached, "least": published["loss"].clone()}
        return (state["best"] if self.over else state.get("first", model)), state


@dataclass(frozen=True)
class Trying:
    """The run that is being tried, and what the server does in this round of it."""

    T: int
    server: Add | Begin | Restart


def trying(runs: list[int], t: int) -> Trying | None:
    """What round t of all runs together belongs to; None when the search is over."""
    for number, T in enumerate(runs, 1):
        if t < T:
            last = t == T - 1
            server = Restart(number == len(runs)) if last else Add() if t else Begin()
            return Trying(T, server)
        t -= T
    return None


def lengths(m: UDPOptimal | UDPOptimalC) -> list[int]:
    """The T of every run."""
    return [round(m.T * number / m.tries) for number in range(1, m.tries + 1)]


def check_tries(m: UDPOptimal | UDPOptimalC) -> None:
    """No more runs than there are different lengths."""
    check(m)
    wholes(m, "tries")
    if m.tries > m.T:
        raise ValueError(
            f"{type(m).__name__}: tries = {m.tries!r}, allowed is at most T = {m.T}: each run has "
            "another number of rounds."
        )
