"""Fed-CDP (Wei et al. 2021) and its baselines, done naively from the printed algorithms."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from methods.world import DIM, LAYERS, ROUNDS, Case, Vector, World, largest, shortened_layers


def bound(method: Any, t: int) -> float:
    """C, or a line from C to C_last over the T rounds."""
    last = getattr(method, "C_last", method.C)
    return method.C + (last - method.C) * t / (method.T - 1)


def fed_cdp(world: World, method: Any) -> Vector:
    """Algorithm 2: every layer of every example's gradient clipped, noise for every example."""
    w = world.start()
    for t in range(ROUNDS):
        C, total = bound(method, t), np.zeros(DIM)
        for client in world.fixed(t, method.K_t):
            total += sanitised(world, method, t, client, w, C) - w
        w = w + total / method.K_t
    return w


def sanitised(world: World, method: Any, t: int, client: int, w: Vector, C: float) -> Vector:
    """Lines 5 to 16: the client's model after L noisy steps."""
    mine, noise = w.copy(), world.stream(t, client, "example")
    for batch in world.subsets(t, client, method.L, method.B):
        total = np.zeros(DIM)
        for x, y in batch:
            g = shortened_layers(world.gradient(mine, x, y), C)
            total += g + method.sigma * C * noise.normal(DIM)
        mine = mine - method.eta * total / method.B
    return mine


def fed_cdp_c(world: World, method: Any) -> Vector:
    """Noise of multiplier sigma once for each batch, over C sqrt(M) with coins, else twice that."""
    w, velocity = world.start(), np.zeros(DIM)
    cohorts = [
        list(range(world.M)) if method.K_t is None else world.fixed(t, method.K_t)
        for t in range(ROUNDS)
    ]
    for t, cohort in enumerate(cohorts):
        C, total = bound(method, t), np.zeros(DIM)
        for client in cohort:
            mine, noise = w.copy(), world.stream(t, client, "batch")
            S, batches = C * sqrt(len(LAYERS)), world.coins
            drawn = method.B / min(world.sizes)
            if method.batches == "fixed":
                S, batches, drawn = 2 * S, world.subsets, round(method.B)
            for batch in batches(t, client, method.L, drawn):
                clipped = np.zeros(DIM)
                for x, y in batch:
                    clipped += shortened_layers(world.gradient(mine, x, y), C)
                clipped += method.sigma * S * noise.normal(DIM)
                mine = mine - method.eta * clipped / method.B
            total += mine - w
        velocity = method.beta * velocity + total / len(cohort)
        w = w + velocity
    return w


def plainly(world: World, method: Any, t: int, client: int, w: Vector) -> Vector:
    """L steps down the mean gradient of a fresh batch: the update."""
    mine = w.copy()
    for batch in world.subsets(t, client, method.L, method.B):
        mine = mine - method.eta * world.mean_gradient(mine, batch)
    return mine - w


def fed_sdp(world: World, method: Any) -> Vector:
    """Algorithm 1: every layer of every update clipped; the server's K_t noises are one draw."""
    w, K_t = world.start(), method.K_t
    for t in range(ROUNDS):
        total = np.zeros(DIM)
        for client in world.fixed(t, K_t):
            update = shortened_layers(plainly(world, method, t, client, w), method.C)
            if method.noise == "client":
                noise = world.stream(t, client, "upload update").normal(DIM)
                update = update + method.sigma * method.C * noise
            total += update
        if method.noise == "server":
            noise = world.stream(t, None, "publish update").normal(DIM)
            total += sqrt(K_t) * method.sigma * method.C * noise
        w = w + total / K_t
    return w


def fed_sdp_c(world: World, method: Any) -> Vector:
    """Noise of multiplier sigma over S = C sqrt(M): once on a Poisson cohort's sum, or for each."""
    w, velocity = world.start(), np.zeros(DIM)
    std = method.sigma * method.C * sqrt(len(LAYERS))
    for t in range(ROUNDS):
        at_server, total = method.noise == "server", np.zeros(DIM)
        for client in (
            world.poisson(t, method.K_t / world.M) if at_server else world.fixed(t, method.K_t)
        ):
            total += shortened_layers(plainly(world, method, t, client, w), method.C)
            if not at_server:
                total += std * world.stream(t, client, "upload update").normal(DIM)
        if at_server:
            total += std * world.stream(t, None, "publish update").normal(DIM)
        velocity = method.beta * velocity + total / method.K_t
        w = w + velocity
    return w


def dssgd(world: World, method: Any) -> Vector:
    """Shokri and Shmatikov: the largest entries of an update, or random ones above tau."""
    w, k = world.start(), round(method.theta_u * DIM)
    for t in range(ROUNDS):
        total = np.zeros(DIM)
        for client in world.fixed(t, method.K_t):
            update = plainly(world, method, t, client, w)
            if method.select == "largest":
                total += largest(update, k)
                continue
            places = [j for j in range(DIM) if abs(update[j]) > method.tau]
            if len(places) > k:
                drawn = world.stream(t, client, "upload update").choose(len(places), k)
                places = [places[i] for i in drawn]
            for j in places:
                total[j] += update[j]
        w = w + total / method.K_t
    return w


def fed_pruned(world: World, method: Any) -> Vector:
    """What is sent loses its smallest entries; before that it may be noised as Fed-CDP does."""
    w, k = world.start(), DIM - round(method.ratio * DIM)
    for t in range(ROUNDS):
        total = np.zeros(DIM)
        for client in world.fixed(t, method.K_t):
            match method.privacy:
                case "none":
                    update = plainly(world, method, t, client, w)
                case "fed-sdp":
                    update = shortened_layers(plainly(world, method, t, client, w), method.C)
                    noise = world.stream(t, client, "upload update").normal(DIM)
                    update = update + method.sigma * method.C * noise
                case "fed-cdp":
                    update = sanitised(world, method, t, client, w, method.C) - w
                case _:
                    update = sanitised(world, method, t, client, w, bound(method, t)) - w
            total += largest(update, k)
        w = w + total / method.K_t
    return w


PRINTED = {"T": ROUNDS, "K_t": 3, "L": 2, "B": 3, "C": 0.5, "sigma": 0.7, "eta": 0.2}
CORRECTED = {**PRINTED, "B": 4.0, "beta": 0.5}
# Batches of all 8 records: the same steps as epochs of one batch.
OFF = {"B": 8, "C": 1e12, "sigma": 0.0}
FEDAVG = {"T": ROUNDS, "m": 3, "E": 2, "B": 8, "eta": 0.2}
WRONG = (
    ({"K_t": 7}, "m = 7"),
    ({"sigma": -0.1}, "sigma = -0.1"),
    ({"C": 0.0}, "C = 0.0"),
    ({"L": 0}, "L = 0"),
    ({"T": 0}, "T = 0"),
    ({"eta": 0.0}, "eta = 0.0"),
)
LARGE = ({"B": 9}, "m = 9")  # no client has that many records
NOISE = ({"noise": "both"}, "noise = 'both'")
UNCLIPPED = {name: value for name, value in PRINTED.items() if name not in ("C", "sigma")}
DECAY = {"C": 0.6, "C_last": 0.2}
OFF_DECAY = {"C": 1e12, "C_last": 1e12}

CASES: dict[str, Case] = {
    "fed-cdp": Case(fed_cdp, PRINTED, OFF, FEDAVG, wrong=(*WRONG, LARGE)),
    "fed-cdp-c": Case(
        fed_cdp_c,
        CORRECTED,
        {**OFF, "beta": 0.0},
        FEDAVG,
        wrong=(
            *WRONG,
            ({"batches": "all"}, "batches = 'all'"),
            ({"batches": "fixed", "B": 2.5}, "B = 2.5"),
            ({"batches": "fixed", "B": 9.0}, "m = 9"),
        ),
    ),
    "fed-cdp-decay": Case(
        fed_cdp, {**PRINTED, **DECAY}, {**OFF, **OFF_DECAY}, FEDAVG, wrong=(*WRONG, LARGE)
    ),
    "fed-cdp-decay-c": Case(
        fed_cdp_c,
        {**CORRECTED, **DECAY},
        {**OFF, **OFF_DECAY, "beta": 0.0},
        FEDAVG,
        wrong=(*WRONG, ({"C_last": 0.0}, "C_last = 0.0")),
    ),
    "fed-sdp": Case(fed_sdp, PRINTED, OFF, FEDAVG, wrong=(*WRONG, LARGE, NOISE)),
    "fed-sdp-c": Case(
        fed_sdp_c,
        {**PRINTED, "beta": 0.5},
        {**OFF, "beta": 0.0, "K_t": 6},
        {**FEDAVG, "m": 6},
        wrong=(({"K_t": 7}, "K_t = 7"), *WRONG[1:], LARGE, NOISE),
    ),
    "dssgd": Case(
        dssgd,
        {**UNCLIPPED, "theta_u": 0.4},
        {"B": 8, "theta_u": 1.0},
        FEDAVG,
        wrong=(
            *(pair for pair in WRONG if not pair[0].keys() & {"sigma", "C"}),
            LARGE,
            ({"theta_u": 0.0}, "theta_u = 0.0"),
            ({"tau": -1.0}, "tau = -1.0"),
            ({"select": "best"}, "select = 'best'"),
        ),
    ),
    "fed-pruned": Case(
        fed_pruned,
        {**UNCLIPPED, "ratio": 0.3},
        {"B": 8, "ratio": 0.0},
        FEDAVG,
        wrong=(
            *WRONG,
            LARGE,
            ({"ratio": 1.0}, "ratio = 1"),
            ({"ratio": -0.1}, "ratio = -0.1"),
            ({"privacy": "dp"}, "privacy = 'dp'"),
        ),
    ),
}
