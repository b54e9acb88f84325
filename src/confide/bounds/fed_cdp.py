"""Fed-CDP: how much noise a model bears before its answer on an example may change.

Proposition 2 is about utility. It is no privacy statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log

from confide.bounds.value import Bound
from confide.published.value import count, positive

EQ_7 = "‖ξ‖_u ≤ min over j ≠ y of (g_y(x; w) - g_j(x; w)) / L_v"
NOTE = (
    "A first-order bound for one example: L_v must bound the gradient of g_y - g_j wherever the "
    "noise can carry w. It is sufficient, not necessary."
)


def proposition_2(scores: Sequence[float], label: int, lipschitz: float | Sequence[float]) -> Bound:
    """Proposition 2, eq. (7): the length of noise below which the example keeps its class.

    `lipschitz`: L_v for every pair of classes, or one for each class (the label's is not used).
    """
    classes = range(len(scores))
    if len(scores) < 2 or label not in classes:
        raise ValueError(f"label is {label}; it must be one of at least 2 classes.")
    slopes = [lipschitz] * len(scores) if isinstance(lipschitz, int | float) else list(lipschitz)
    if len(slopes) != len(scores):
        raise ValueError(f"lipschitz has {len(slopes)} values; it must have {len(scores)}, or 1.")
    value = min(
        (scores[label] - scores[j]) / positive("lipschitz", slopes[j])
        for j in classes
        if j != label
    )
    return Bound(value, "‖ξ‖_u", "Fed-CDP, Proposition 2", EQ_7, NOTE)


def expected_noise(sigma: float, S: float, d: int) -> float:
    """E ‖N(0, sigma^2 S^2 I_d)‖_2, to hold against Proposition 2."""
    d = count("d", d)
    scale = positive("sigma", sigma) * positive("S", S)
    return scale * exp(0.5 * log(2) + lgamma((d + 1) / 2) - lgamma(d / 2))
