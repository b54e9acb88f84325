"""DP-FedAGS (Zhang et al.), done naively from Algorithm 1 and from docs/papers/dp-fedags.md."""

from __future__ import annotations

from math import ceil, log, sqrt
from typing import Any

import numpy as np

from methods.world import DIM, ROUNDS, Case, Vector, World, shortened


def summed_gradients(world: World, m: Any, t: int, client: int, start: Vector) -> Vector:
    """Lines 16 to 21: E epochs of steps, and the sum of their gradients."""
    w, total = start.copy(), np.zeros(DIM)
    for batch in world.epochs(t, client, m.E, m.B):
        g = world.mean_gradient(w, batch)
        total += g
        w = w - m.eta * g
    return total


def loss_of(world: World, w: Vector, client: int) -> float:
    """L_k(W_t)."""
    records = world.records(client)
    return sum(world.loss(w, x, y) for x, y in records) / len(records)


def eq_37(m: Any, sizes: list[int], losses: list[float]) -> list[float]:
    """gamma_t(k), or n_k / n."""
    n, L = sum(sizes), sum(losses)
    if m.weights == "fixed":
        return [one / n for one in sizes]
    return [(a * L + n * b) / (2 * n * L) for a, b in zip(sizes, losses, strict=True)]


def dp_fedags(world: World, m: Any) -> Vector:
    """Algorithm 1, line by line."""
    w = world.start()
    both = m.epsilon * (1 - m.rest)
    cube = m.q ** (2 / 3)
    epsilon_1, epsilon_2 = both * cube / (1 + cube), both / (1 + cube)
    zeta = np.exp(-m.epsilon)
    sigma = m.scale * m.Delta_S / m.epsilon * sqrt(2 * log(1.25 / zeta))
    for t in range(1, ROUNDS + 1):
        sent: list[Vector] = []
        sizes: list[int] = []
        losses: list[float] = []
        for client in world.fixed(t - 1, m.m):
            g = shortened(summed_gradients(world, m, t - 1, client, w), m.C)
            draws = world.stream(t - 1, client, "upload update")
            alpha = draws.exponential((DIM,)) - draws.exponential((DIM,))
            beta = float((draws.exponential((1,)) - draws.exponential((1,)))[0])
            noise = draws.normal((DIM,))
            ordered = sorted(g)
            threshold = min(ordered[ceil(t * DIM / m.T) - 1], ordered[ceil(9 * DIM / 10) - 1])
            for j in range(DIM):
                answer = g[j] + m.Delta_S / epsilon_1 * alpha[j]
                if answer >= threshold + m.Delta_S / epsilon_2 * beta:
                    g[j] -= sigma * m.C * noise[j]  # drawn for -g
            sent.append(g)
            sizes.append(world.sizes[client])
            losses.append(loss_of(world, w, client))
        total = np.zeros(DIM)
        for weight, g in zip(eq_37(m, sizes, losses), sent, strict=True):
            total += weight * g
        w = w - m.eta * total
    return w


def own_weight(m: Any, world: World, client: int, loss: float, mean: float | None) -> float:
    """The client's weight times the number of clients, from what is public and its own numbers."""
    by_size = 2 * world.sizes[client] / (min(world.sizes) + max(world.sizes))
    by_loss = 1.0 if mean is None else loss / mean
    return (by_size + by_loss) / 2 if m.weights == "dynamic" else by_size


def dp_fedags_c(world: World, m: Any) -> Vector:
    """Two groups by the last public aggregate, raw weights inside the clip, one joint release."""
    w, before, mean = world.start(), world.start(), None
    for t in range(ROUNDS):
        k = ceil(max(1 - t / m.T, m.omega) * DIM)
        order = sorted(range(DIM), key=lambda j: -abs(w[j] - before[j]))
        groups = {"update": order[:k], "rest": order[k:]}
        bounds = {"update": m.C, "rest": m.C_N, "loss": m.L_max}
        shares = {"update": 1 - m.loss_share - m.other_share}
        if groups["rest"]:
            shares["rest"] = m.other_share
        if m.weights == "dynamic":
            shares["loss"] = m.loss_share
        sums = {"update": np.zeros(DIM), "rest": np.zeros(DIM)}
        losses = 0.0
        for client in world.poisson(t, m.q):
            loss = loss_of(world, w, client)
            g = summed_gradients(world, m, t, client, w)
            g = own_weight(m, world, client, loss, mean) * g
            for name, places in groups.items():
                part = np.zeros(DIM)
                part[places] = g[places]
                sums[name] += shortened(part, bounds[name])
            losses += min(loss, m.L_max)
        std = {
            name: m.sigma * sqrt(sum(shares.values()) / share) * bounds[name]
            for name, share in shares.items()
        }
        total = np.zeros(DIM)
        for name in shares.keys() - {"loss"}:
            noise = world.stream(t, None, f"publish {name}").normal((DIM,))
            for j in groups[name]:
                total[j] = sums[name][j] - std[name] * noise[j]  # drawn for -g
        if m.weights == "dynamic":
            losses += std["loss"] * float(world.stream(t, None, "publish loss").normal((1,))[0])
            mean = max(losses / (m.q * world.M), 0.01 * m.L_max)
        before, w = w, w - m.eta * total / (m.q * world.M)
    return w


LOCAL = {"T": ROUNDS, "E": 2, "B": 3, "eta": 0.3}
PRINTED = {**LOCAL, "m": 3, "C": 0.5, "epsilon": 9.0, "q": 3.0, "Delta_S": 0.8}
CORRECTED = {
    **LOCAL, "q": 0.5, "C": 0.5, "C_N": 0.2, "omega": 0.5, "sigma": 0.6, "loss_share": 0.2,
    "other_share": 0.3, "L_max": 1.2,
}  # fmt: skip
OFF = {"weights": "fixed", "C": 1e12}
FEDAVG = {"T": ROUNDS, "m": 3, "E": 2, "B": 3, "eta": 0.3}
WRONG = (
    ({"T": 0}, "T = 0"),
    ({"E": 0}, "E = 0"),
    ({"C": 0.0}, "C = 0.0"),
    ({"eta": 0.0}, "eta = 0.0"),
    ({"weights": "loss"}, "weights = 'loss'"),
)

CASES: dict[str, Case] = {
    "dp-fedags": Case(
        dp_fedags,
        PRINTED,
        {**OFF, "scale": 0.0},
        FEDAVG,
        wrong=(
            *WRONG,
            ({"m": 7}, "m = 7"),
            ({"scale": -1.0}, "scale = -1.0"),
            ({"epsilon": 0.0}, "epsilon = 0.0"),
            ({"rest": 1.0}, "rest = 1.0"),
            ({"q": 0.0}, "q = 0.0"),
        ),
    ),
    "dp-fedags-c": Case(
        dp_fedags_c,
        CORRECTED,
        {**OFF, "omega": 1.0, "q": 1.0, "sigma": 0.0},
        {**FEDAVG, "m": 6},
        wrong=(
            *WRONG,
            ({"q": 1.2}, "q = 1.2"),
            ({"sigma": -0.1}, "sigma = -0.1"),
            ({"C_N": 0.0}, "C_N = 0.0"),
            ({"omega": 0.0}, "omega = 0.0"),
            ({"L_max": 0.0}, "L_max = 0.0"),
            ({"loss_share": 0.9}, "loss_share + other_share"),
        ),
    ),
}
