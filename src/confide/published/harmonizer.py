"""UDP-FL's Harmonizer (Algorithm 3): the noise multiplier for a budget, by the printed divergences.

It inverts section 4.1 by bisection. Algorithm 3 as printed makes the multiplier smaller when the
budget is exceeded; the two branches are exchanged here, as nothing else ends. No formula of the
paper takes the sampling rate, so none is used.
"""

from __future__ import annotations

import math
from functools import cache, partial

from confide.published import girgis, udp_fl
from confide.published.value import Published, count, positive, probability

STAIRCASE = (
    "Theorem 1 as printed is at least 1 in every step, so no budget below the number of steps can "
    "be met; the missing 1/(α-1) log is put in, and nu is that of Lemma 1."
)
LARGEST = 1e6


@cache
def multiplier(
    noise: str, epsilon: float, delta: float, steps: int, clients: int | None = None
) -> Published:
    """The least noise scale over the clip whose printed divergences keep `steps` within epsilon.

    `clients`: every step's divergence goes through the shuffler's Lemma 2 with that many first.
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    if noise not in ("gaussian", "laplace", "staircase"):
        raise ValueError(f"noise is {noise!r}; it must be gaussian, laplace or staircase.")
    low, high = 1e-3, LARGEST
    if _epsilon(noise, high, delta, steps, clients) > epsilon:
        raise ValueError(
            f"epsilon is {epsilon}; UDP-FL's Algorithm 3 has no {noise} multiplier for it over "
            f"{steps} steps."
        )
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        if _epsilon(noise, middle, delta, steps, clients) > epsilon:
            low = middle
        else:
            high = middle
    note = STAIRCASE if noise == "staircase" else ""
    text = "the least multiplier with min over α of Σ_t ε_α(t) + log(1/δ)/(α-1) <= ε"
    return Published(high, "noise multiplier", "UDP-FL, Algorithm 3", text, "record", note)


def _epsilon(noise: str, z: float, delta: float, steps: int, clients: int | None) -> float:
    """Section 4.1 at this multiplier."""
    step = partial(divergence, noise, z, clients)
    value = udp_fl.section_4_1_epsilon(step, count("steps", steps), delta, ORDERS).value
    return float(value.real)


ORDERS = (*range(2, 33), *range(34, 65, 2), 80, 96, 128, 160, 192, 256)


def divergence(noise: str, z: float, clients: int | None, alpha: int) -> Published:
    """One step's divergence at sensitivity 1, as Table 3 or Theorem 1 print it."""
    if noise == "gaussian":
        found = udp_fl.table_3_gaussian(alpha, 1.0, z)
    elif noise == "laplace":
        found = udp_fl.table_3_laplace(alpha, 1.0, z)
    else:
        found = staircase(alpha, 1 / z)
    if clients is None or math.isinf(found.value.real):
        return found
    return girgis.lemma_2_upper(alpha, float(found.value.real), clients)


def staircase(alpha: int, lam: float) -> Published:
    """Theorem 1's moment with the logarithm that it lacks."""
    nu = float(udp_fl.lemma_1_nu(lam).value.real)
    moment = float(udp_fl.theorem_1(alpha, lam, nu).value.real)
    value = math.log(moment) / (alpha - 1) if moment < math.inf else math.inf
    text = f"1/(α-1) log{{ {udp_fl.THEOREM_1} }}"
    return Published(value, "ε_α", "UDP-FL, Theorem 1 with a logarithm", text, "record", STAIRCASE)
