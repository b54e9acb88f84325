"""DP-FedSAM (Shi et al. 2023) and its baselines, done naively from the printed algorithm.

Algorithm 1 line by line; the corrected ones from docs/papers/dp-fedsam.md. Clients are summed one
by one, examples too.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from methods.world import DIM, ROUNDS, Case, Naive, Vector, World, largest, shortened

Step = Callable[[World, Any, Vector, Vector, list[Any]], Vector]
Change = Callable[[Vector, Any, World, int], Vector]


def descent(world: World, m: Any, w: Vector, start: Vector, batch: list[Any]) -> Vector:
    """The gradient that DP-FedAvg follows."""
    return world.mean_gradient(w, batch)


def sharp(world: World, m: Any, w: Vector, start: Vector, batch: list[Any]) -> Vector:
    """Eq. (9): the gradient at w + rho g / ‖g‖."""
    g = world.mean_gradient(w, batch)
    return world.mean_gradient(w + m.rho * g / sqrt(float(g @ g)), batch)


def bounded(world: World, m: Any, w: Vector, start: Vector, batch: list[Any]) -> Vector:
    """The gradient of the loss plus lam/2 (‖w - start‖^2 - C^2)+."""
    g = world.mean_gradient(w, batch)
    away = w - start
    return g + m.lam * away if float(away @ away) > m.C**2 else g


def trained(world: World, m: Any, step: Step, t: int, client: int, start: Vector) -> Vector:
    """E epochs of eq. (8) with heavy-ball momentum and weight decay: the update."""
    w, velocity = start.copy(), np.zeros(DIM)
    for batch in world.epochs(t, client, m.E, m.B):
        velocity = m.momentum * velocity + step(world, m, w, start, batch) + m.decay * w
        w = w - m.eta * velocity
    return w - start


def random_mask(world: World, t: int, p: float) -> Vector:
    """The k coordinates that everybody keeps in round t."""
    mask = np.zeros(DIM)
    for place in world.stream(t, None, "shared rand-k").choose(DIM, round(p * DIM)):
        mask[place] = 1
    return mask


def printed(step: Step, before: Change | None = None, after: Change | None = None) -> Naive:
    """Lines 2 to 17: a fixed cohort of m = q M, a share N(0, sigma^2 C^2 / m) in every upload."""

    def naive(world: World, method: Any) -> Vector:
        w = world.start()
        for t in range(ROUNDS):
            m = round(method.q * world.M)
            total = np.zeros(DIM)
            for client in world.fixed(t, m):
                update = trained(world, method, step, t, client, w)
                if before is not None:
                    update = before(update, method, world, t)
                update = shortened(update, method.C)
                noise = world.stream(t, client, "upload update").normal(DIM)
                noisy = update + method.sigma * method.C / sqrt(m) * noise
                if after is on_support:
                    noisy = np.where(update != 0, noisy, 0.0)
                elif after is not None:
                    noisy = after(noisy, method, world, t)
                total += noisy
            w = w + total / m
        return w

    return naive


def corrected(step: Step, before: Change | None = None, after: Change | None = None) -> Naive:
    """Coins for clients; one N(0, sigma^2 C^2) on the sum, also on an empty one; over q M."""

    def naive(world: World, method: Any) -> Vector:
        w, velocity = world.start(), np.zeros(DIM)
        for t in range(ROUNDS):
            total = np.zeros(DIM)
            for client in world.poisson(t, method.q):
                update = trained(world, method, step, t, client, w)
                if before is not None:
                    update = before(update, method, world, t)
                total += shortened(update, method.C)
            total += method.sigma * method.C * world.stream(t, None, "publish update").normal(DIM)
            mean = total / (method.q * world.M)
            if after is not None:
                mean = after(mean, method, world, t)
            velocity = method.beta * velocity + mean
            w = w + velocity
        return w

    return naive


def topk(x: Vector, method: Any, world: World, t: int) -> Vector:
    """Eq. (12)."""
    return largest(x, round(method.p * DIM))


def randk(x: Vector, method: Any, world: World, t: int) -> Vector:
    """The common mask."""
    return x * random_mask(world, t, method.p)


def on_support(x: Vector, method: Any, world: World, t: int) -> Vector:
    """A mark: noise only on what the client kept."""
    raise AssertionError("handled where the support is known")


def fed_smp_topk_c(world: World, method: Any) -> Vector:
    """Every R-th round has all coordinates; the others those that moved most in the last such."""
    w, velocity, mask = world.start(), np.zeros(DIM), np.ones(DIM)
    before = w
    for t in range(ROUNDS):
        if t % method.R == 0:
            mask = np.ones(DIM)
        elif t % method.R == 1:
            mask = np.where(largest(w - before, round(method.p * DIM)) != 0, 1.0, 0.0)
        total = np.zeros(DIM)
        for client in world.poisson(t, method.q):
            update = trained(world, method, descent, t, client, w)
            total += shortened(mask * update, method.C)
        total += method.sigma * method.C * world.stream(t, None, "publish update").normal(DIM)
        before = w
        velocity = method.beta * velocity + mask * total / (method.q * world.M)
        w = w + velocity
    return w


def fedsam(world: World, method: Any) -> Vector:
    """The mean of SAM updates."""
    w = world.start()
    for t in range(ROUNDS):
        total = np.zeros(DIM)
        for client in world.fixed(t, method.m):
            total += trained(world, method, sharp, t, client, w)
        w = w + total / method.m
    return w


LOCAL = {"T": ROUNDS, "E": 2, "B": 3, "eta": 0.3, "momentum": 0.4, "decay": 0.01}
PRINTED = {**LOCAL, "q": 0.5, "C": 0.15, "sigma": 0.8}
CORRECTED = {**PRINTED, "beta": 0.5}
OFF = {"momentum": 0.0, "decay": 0.0, "C": 1e12, "sigma": 0.0}
OFF_C = {**OFF, "q": 1.0, "beta": 0.0}
FEDAVG = {"T": ROUNDS, "m": 3, "E": 2, "B": 3, "eta": 0.3}
ALL = {**FEDAVG, "m": 6}
WRONG = (
    ({"q": 1.2}, "q = 1.2"),
    ({"q": 0.0}, "q = 0.0"),
    ({"sigma": -0.1}, "sigma = -0.1"),
    ({"C": 0.0}, "C = 0.0"),
    ({"E": 0}, "E = 0"),
    ({"T": 0}, "T = 0"),
    ({"eta": 0.0}, "eta = 0.0"),
)
WRONG_P = (*WRONG, ({"p": 0.0}, "p = 0.0"), ({"p": 1.5}, "p = 1.5"))


def pair(
    name: str,
    own: dict[str, Any],
    off: dict[str, Any],
    step: Step,
    before: Change | None = None,
    after: Change | None = None,
    after_c: Change | None = None,
) -> dict[str, Case]:
    """As printed, and corrected."""
    wrong = WRONG_P if "p" in own else WRONG
    first = Case(
        printed(step, before, after), {**PRINTED, **own}, {**OFF, **off}, FEDAVG, wrong=wrong
    )
    second = Case(
        corrected(step, before, after_c), {**CORRECTED, **own}, {**OFF_C, **off}, ALL, wrong=wrong
    )
    return {name: first, f"{name}-c": second}


CASES: dict[str, Case] = {
    **pair("dp-fedavg", {}, {}, descent),
    **pair("dp-fedsam", {"rho": 0.2}, {"rho": 0.0}, sharp),
    **pair(
        "dp-fedsam-topk",
        {"rho": 0.2, "p": 0.4},
        {"rho": 0.0, "p": 1.0},
        sharp,
        after=topk,
        after_c=topk,
    ),
    **pair(
        "fed-smp-randk", {"p": 0.4}, {"p": 1.0}, descent, before=randk, after=randk, after_c=randk
    ),
    "fed-smp-topk": Case(
        printed(descent, topk, on_support),
        {**PRINTED, "p": 0.4},
        {**OFF, "p": 1.0},
        FEDAVG,
        wrong=WRONG_P,
    ),
    "fed-smp-topk-c": Case(
        fed_smp_topk_c,
        {**CORRECTED, "p": 0.4, "R": 3},
        {**OFF_C, "p": 1.0},
        ALL,
        wrong=(*WRONG_P, ({"R": 0}, "R = 0")),
    ),
    **pair("dp-fedavg-blur", {"lam": 0.7}, {"lam": 0.0}, bounded),
    **pair("dp-fedavg-blurs", {"lam": 0.7, "p": 0.4}, {"lam": 0.0, "p": 1.0}, bounded, before=topk),
    "fedsam": Case(
        fedsam,
        {**LOCAL, "m": 3, "rho": 0.2},
        {"momentum": 0.0, "decay": 0.0, "rho": 0.0},
        FEDAVG,
        wrong=(({"m": 7}, "m = 7"), ({"rho": -1.0}, "rho = -1.0"), ({"T": 0}, "T = 0")),
    ),
}
