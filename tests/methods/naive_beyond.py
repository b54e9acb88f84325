"""Methods beyond the five papers, done naively."""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.correlations import least_error
from methods.naive_dp_fedsam import ALL, LOCAL, OFF, WRONG, descent, trained
from methods.world import DIM, Case, Vector, World, shortened

ROUNDS_BANDED = 6


def dp_bandmf(world: World, method: Any) -> Vector:
    """The noises of all rounds at once, by solving with the whole banded matrix."""
    c = least_error(method.T, method.b, method.beta)
    C = np.zeros((ROUNDS_BANDED, ROUNDS_BANDED))
    for row in range(ROUNDS_BANDED):
        for column in range(row + 1):
            C[row, column] = c[row - column] if row - column < len(c) else 0.0
    z = [world.stream(t, None, "correlated update").normal(DIM) for t in range(ROUNDS_BANDED)]
    noise = np.linalg.solve(C, np.array(z))
    order = [int(i) for i in world.stream(0, None, "turns").permutation(world.M)]
    w, velocity = world.start(), np.zeros(DIM)
    for t in range(ROUNDS_BANDED):
        total = method.sigma * method.C * noise[t]
        for place in range(t % method.b, world.M, method.b):
            total += shortened(trained(world, method, descent, t, order[place], w), method.C)
        velocity = method.beta * velocity + total * method.b / world.M
        w = w + velocity
    return w


CASES: dict[str, Case] = {
    "dp-bandmf": Case(
        dp_bandmf,
        {**LOCAL, "T": ROUNDS_BANDED, "b": 3, "C": 0.15, "sigma": 0.8, "beta": 0.5},
        {**OFF, "b": 1, "beta": 0.0},
        {**ALL, "T": ROUNDS_BANDED},
        wrong=(
            *(wrong for wrong in WRONG if "q" not in wrong[0]),
            ({"b": 0}, "b = 0"),
            ({"b": 7}, "b = 7"),
            ({"beta": -0.1}, "beta = -0.1"),
        ),
        rounds=ROUNDS_BANDED,
    ),
}
