"""UDP and CRD: convergence, the number of rounds it prefers, and the moment of Fig. 2.

Symbols of the paper: mu and L of the Polyak-Lojasiewicz condition and of smoothness, eta the
learning rate, K of U clients in each of T rounds, (epsilon_i, delta_i) their budgets, Delta_l
(`sensitivity`) what one sample changes in a client's model, `gap` F(w_0) - F(w*), `divergence` how
far clients' gradients are from their mean, lambda (`lam`) the order of a moment. None of it is a
privacy statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from confide.bounds.value import Bound
from confide.published.sampled_gaussian import log_moment
from confide.published.value import count, positive, probability, rate, real

THEOREM_2 = "A^T (F(w_0) - F*) + (1 - A^T)(κ0 TK/U² Σ_i ln(1/δ_i)/ε_i² + κ1 U(U-K)/(K(U-1)))"
THEOREM_3 = "the T at which Theorem 2 is least"
EQ_14 = "ln Σ_l C(λ+1,l) (1-q)^(λ+1-l) q^l e^(l(l-1)Δl²/(2σ²))"
EQ_15 = "qλ(λ+1)Δl²/(2σ²)"

TOO_SMALL = (
    "The expected square of the noise is taken as that of one coordinate: in d dimensions the "
    "noise term is d times as large. The recursion is summed as if eta were 1/L; a smaller eta "
    "gives more. The noise of K clients is averaged without the 1/K that this gives."
)
NO_BOUND = "e^x - 1 is replaced by x: an approximation from below, which terms of (14) outweigh."


@dataclass(frozen=True)
class Analysis:
    """The constants of Assumption 1 and of the clients' noise, which nobody can read off data."""

    mu: float
    L: float
    eta: float
    gap: float
    sensitivity: float
    K: int
    epsilon: Sequence[float]
    delta: Sequence[float]
    divergence: float = 0.0

    def __post_init__(self) -> None:
        """What Assumption 1 asks for."""
        for name in ("mu", "L", "eta", "gap", "sensitivity"):
            positive(name, getattr(self, name))
        if self.mu > self.L:
            raise ValueError(f"mu is {self.mu}; it must be at most L = {self.L}.")
        if self.eta > 1 / self.L:
            raise ValueError(
                f"eta is {self.eta}; Assumption 1 allows at most 1/L = {1 / self.L:g}."
            )
        if not self.epsilon or len(self.epsilon) != len(self.delta):
            raise ValueError(
                f"epsilon has {len(self.epsilon)} and delta {len(self.delta)} values; both must "
                "have one for each client."
            )
        if count("K", self.K) > self.U:
            raise ValueError(f"K is {self.K}; it must be at most U = {self.U}.")
        if real("divergence", self.divergence) < 0:
            raise ValueError(f"divergence is {self.divergence}; it must be at least 0.")

    @property
    def U(self) -> int:
        """The number of clients."""
        return len(self.epsilon)

    @property
    def A(self) -> float:
        """How much of the gap a round leaves."""
        return 1 - 2 * self.mu * self.eta + self.mu * self.eta**2 * self.L

    @property
    def noise(self) -> float:
        """The noise term of one round of T: what T is multiplied by."""
        budgets = zip(self.epsilon, self.delta, strict=True)
        budget = sum(
            log(1 / probability("delta", d)) / positive("epsilon", e) ** 2 for e, d in budgets
        )
        return self.L**2 * self.sensitivity**2 / self.mu * self.K / self.U**2 * budget

    @property
    def choice(self) -> float:
        """The term of choosing K of U clients."""
        if self.K == self.U:
            return 0.0
        kappa_1 = self.eta**2 * self.L**2 * self.divergence / (2 * self.mu)
        return kappa_1 * self.U * (self.U - self.K) / (self.K * (self.U - 1))


def theorem_2(analysis: Analysis, T: int) -> Bound:
    """Theorem 2, eq. (22): how far the loss after T rounds is expected to be from the least."""
    left = analysis.A ** count("T", T)
    terms = {
        "start": left * analysis.gap,
        "noise": (1 - left) * analysis.noise * T,
        "choice": (1 - left) * analysis.choice,
    }
    value = sum(terms.values())
    return Bound(value, "E F(w_T) - F*", "UDP-CRD, Theorem 2", THEOREM_2, TOO_SMALL, terms)


def theorem_3(analysis: Analysis) -> Bound:
    """Theorem 3: the number of rounds at which eq. (22) is least.

    With c0, c1 the noise of a round and the choice term, h = A^T gap + (1 - A^T)(c0 T + c1) is
    convex in T up to (gap - c1)/c0 - 2/ln A; beyond that h' falls, towards c0 > 0. So h falls until
    its least value and rises ever after, and the first T with h(T) <= h(T + 1) is found by halving.
    """

    def rises(T: int) -> bool:
        return theorem_2(analysis, T).value <= theorem_2(analysis, T + 1).value

    low, high = 0, 1  # h does not rise at low, and does at high
    while not rises(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rises(middle) else (middle, high)
    least = theorem_2(analysis, high)
    return Bound(
        float(high), "T", "UDP-CRD, Theorem 3", THEOREM_3, TOO_SMALL, {"bound": least.value}
    )


def figure_2(sensitivity: float, q: float, sigma: float, lam: int) -> tuple[Bound, Bound]:
    """Fig. 2: the logarithm of the moment as the paper bounds it, eq. (15), and its true value."""
    ratio = positive("sensitivity", sensitivity) / positive("sigma", sigma)
    share = rate("q", q)
    bound = share * count("lambda", lam) * (lam + 1) * ratio**2 / 2
    truth = log_moment(share, 1 / ratio, lam + 1)
    source = "UDP-CRD, Fig. 2"
    note = NO_BOUND if truth > bound else ""
    return Bound(bound, "ln D", source, EQ_15, note), Bound(truth, "ln D", source, EQ_14)
