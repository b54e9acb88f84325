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


def own_weight(m: Any, world: World, client: int, loss: float, told: list[float]) -> float:
    """The client's weight times the number of clients, from what is public and its own numbers."""
    by_size = world.sizes[client] / m.records
    by_loss = loss / max(sum(told) / len(told), 0.01 * m.L_max) if told else 1.0
    return (by_size + by_loss) / 2 if m.weights == "dynamic" else by_size


def dp_fedags_c(world: World, m: Any) -> Vector:
    """Two groups by the last public aggregate, raw weights inside the clip, one joint release."""
    w, before, told = world.start(), world.start(), [0.0] * 0
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
            g = own_weight(m, world, client, loss, told[-m.window :]) * g
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
            told.append(losses / (m.q * world.M))
        before, w = w, w - m.eta * total / (m.q * world.M)
    return w


def dp_fedsnlc(world: World, m: Any) -> Vector:
    """Noise on a whole update whose client's loss has changed by the share tau."""
    w = world.start()
    sigma = m.scale * m.Delta_S / m.epsilon * sqrt(2 * (log(1.25) + m.epsilon))
    noisy = 0
    for t in range(ROUNDS):
        total, n = np.zeros(DIM), 0
        for client in world.fixed(t, m.m):
            g = summed_gradients(world, m, t, client, w)
            before, after = loss_of(world, w, client), loss_of(world, w - m.eta * g, client)
            g = shortened(g, m.C)
            if abs(before - after) / before >= m.tau:
                g -= sigma * m.C * world.stream(t, client, "upload update").normal((DIM,))
                noisy += 1
            total += world.sizes[client] * g
            n += world.sizes[client]
        w = w - m.eta * total / n
    assert not m.scale or 0 < noisy < ROUNDS * m.m, "both kinds of updates belong into the test"
    return w


def dp_fedsnlc_c(world: World, m: Any) -> Vector:
    """Two bounds, by what the released losses say; one joint release in every round."""
    w, told, bounds = world.start(), [0.0] * 0, [0.0] * 0
    for t in range(ROUNDS):
        C = m.C
        if len(told) >= 2 * m.window:
            recent, older = (
                max(sum(part) / m.window, 0.01 * m.L_max)
                for part in (told[-m.window :], told[-2 * m.window : -m.window])
            )
            C = m.C if abs(older - recent) / older >= m.tau else m.C_N
        total, losses = np.zeros(DIM), 0.0
        for client in world.poisson(t, m.q):
            by_size = world.sizes[client] / m.records
            total += shortened(by_size * summed_gradients(world, m, t, client, w), C)
            losses += min(loss_of(world, w, client), m.L_max)
        noise = world.stream(t, None, "publish update").normal((DIM,))
        total -= m.sigma / sqrt(1 - m.loss_share) * C * noise
        noise = world.stream(t, None, "publish loss").normal((1,))
        losses += m.sigma / sqrt(m.loss_share) * m.L_max * float(noise[0])
        told.append(losses / (m.q * world.M))
        bounds.append(C)
        w = w - m.eta * total / (m.q * world.M)
    assert not m.sigma or set(bounds) == {m.C, m.C_N}, "both kinds of rounds belong into the test"
    return w


LOCAL = {"T": ROUNDS, "E": 2, "B": 3, "eta": 0.3}
PRINTED = {**LOCAL, "m": 3, "C": 0.5, "epsilon": 9.0, "q": 3.0, "Delta_S": 0.8}
CORRECTED = {
    **LOCAL, "q": 0.5, "C": 0.5, "C_N": 0.2, "omega": 0.5, "sigma": 0.6, "loss_share": 0.2,
    "other_share": 0.3, "L_max": 1.2, "window": 2, "records": 6.0,
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
        {**OFF, "omega": 1.0, "q": 1.0, "sigma": 0.0, "records": 8.0},
        {**FEDAVG, "m": 6},
        wrong=(
            *WRONG,
            ({"q": 1.2}, "q = 1.2"),
            ({"sigma": -0.1}, "sigma = -0.1"),
            ({"C_N": 0.0}, "C_N = 0.0"),
            ({"omega": 0.0}, "omega = 0.0"),
            ({"L_max": 0.0}, "L_max = 0.0"),
            ({"window": 0}, "window = 0"),
            ({"records": 0.0}, "records = 0.0"),
            ({"loss_share": 0.9}, "loss_share + other_share"),
        ),
    ),
    "dp-fedsnlc": Case(
        dp_fedsnlc,
        {**LOCAL, "m": 3, "C": 0.5, "epsilon": 9.0, "Delta_S": 0.8, "tau": 0.3},
        {"C": 1e12, "scale": 0.0},
        FEDAVG,
        wrong=(
            *WRONG[:4],
            ({"m": 7}, "m = 7"),
            ({"scale": -1.0}, "scale = -1.0"),
            ({"epsilon": 0.0}, "epsilon = 0.0"),
            ({"tau": -0.1}, "tau = -0.1"),
        ),
    ),
    "dp-fedsnlc-c": Case(
        dp_fedsnlc_c,
        {
            **LOCAL, "q": 0.5, "C": 0.5, "C_N": 0.2, "tau": 0.3, "sigma": 0.3, "loss_share": 0.4,
            "L_max": 1.2, "window": 1, "records": 6.0,
        },
        {"C": 1e12, "C_N": 1e12, "q": 1.0, "sigma": 0.0, "records": 8.0},
        {**FEDAVG, "m": 6},
        wrong=(
            *WRONG[:4],
            ({"q": 1.2}, "q = 1.2"),
            ({"sigma": -0.1}, "sigma = -0.1"),
            ({"C_N": 0.0}, "C_N = 0.0"),
            ({"tau": -0.1}, "tau = -0.1"),
            ({"L_max": 0.0}, "L_max = 0.0"),
            ({"window": 0}, "window = 0"),
            ({"records": 0.0}, "records = 0.0"),
            ({"loss_share": 1.0}, "loss_share = 1.0"),
        ),
    ),
}  # fmt: skip
