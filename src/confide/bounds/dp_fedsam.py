"""DP-FedSAM: its bounds on sensitivity before the clip, convergence and generalisation.

Symbols of the paper: eta the learning rate, rho the radius of SAM, K the local steps, T the rounds,
L the smoothness, sigma_l and sigma_g the local and global standard deviations of gradients, m of M
clients in a round, N training records, d parameters, p the share that top-k keeps. None of it is a
privacy statement, although the paper names two of the values epsilon and delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, expm1, inf, log, log1p, sqrt

from confide.bounds.value import Bound
from confide.published.value import count, positive, probability, real

EQ_13 = "E S² ≤ 6η²ρ²KL²(12K²L²η² + 10) / (1 - 2η²L²K)"
EQ_13_SGD = "E S² ≤ 6η²σ_l²K / (1 - 3η²KL²)"
THEOREM_3 = "2L(f(w1) - f*)/√(KT) + L²σ_l²/(KT²) + Σ_t(α_t σ_g² + α~_t L²)/T² + L²√T σ²C²pd/(m²√K)"
EQ_19 = "ε~ = log((N-m)/N + (m/N) exp(Lρ√(2 log(1/δ~))/(σCd) + (√2 Lρ/(σCd))²))"
EQ_19_DELTA = "δ = min over 1 ≤ t ≤ T of exp(-√2 t‖v‖σCd/m √log(1/δ~)) E exp(t<v, w'>)"
EQ_20 = "P[|R^ - R| < 4ε'] > 1 - 2 exp(-1.7ε') δ'/ε' ln(2/ε')"

NOT_PRIVACY = "An expectation before the clip: the clip alone decides what a client can change."
AT_RHO_0 = (
    "It is 0 at ρ = 0, where SAM is plain descent and its sensitivity is not: it cannot hold."
)
UP_TO = "Up to the constants that the O() of each term hides: here they are all 1."
DIMENSION = (
    "The dimension d stands in the denominator: a larger model would be more private. It describes "
    "generalisation only."
)


def theorem_1(eta: float, rho: float, K: int, L: float) -> Bound:
    """Theorem 1, eq. (13): the expected squared sensitivity of an update before the clip."""
    _check(eta=eta, L=L, K=K)
    _at_least_0("rho", rho)
    room = _room(1 - 2 * eta**2 * L**2 * K, "2 eta^2 L^2 K")
    value = 6 * eta**2 * rho**2 * K * L**2 * (12 * K**2 * L**2 * eta**2 + 10) / room
    return Bound(value, "E S²", "DP-FedSAM, Theorem 1", EQ_13, f"{NOT_PRIVACY} {AT_RHO_0}")


def theorem_1_sgd(eta: float, sigma_l: float, K: int, L: float) -> Bound:
    """Theorem 1 for plain descent, with which eq. (13) is compared."""
    _check(eta=eta, L=L, K=K, sigma_l=sigma_l)
    room = _room(1 - 3 * eta**2 * L**2 * K, "3 eta^2 L^2 K")
    value = 6 * eta**2 * sigma_l**2 * K / room
    return Bound(value, "E S²", "DP-FedSAM, Theorem 1, SGD", EQ_13_SGD, NOT_PRIVACY)


def clipping_factors(norms: Sequence[float], C: float) -> tuple[float, float]:
    """Eq. (18): alpha and alpha-tilde of one round, from its updates' norms before the clip."""
    _check(C=C)
    if not norms:
        raise ValueError("norms is empty; it must hold the norm of at least one update.")
    factors = [min(1.0, C / norm) if norm > 0 else 1.0 for norm in norms]
    mean = sum(factors) / len(factors)
    return mean, sum(abs(factor - mean) for factor in factors) / len(factors)


def theorem_3(
    *,
    L: float,
    gap: float,
    sigma_l: float,
    sigma_g: float,
    K: int,
    alphas: Sequence[float],
    alpha_tildes: Sequence[float],
    sigma: float,
    C: float,
    p: float,
    d: int,
    m: int,
) -> Bound:
    """Theorem 3: the mean of alpha_t E ‖grad f(w_t)‖^2; `gap` is f(w1) - f*, T the alphas."""
    _check(L=L, K=K, p=p, d=d, m=m)
    T = len(alphas)
    if not T or len(alpha_tildes) != T:
        raise ValueError(
            f"alphas has {T} and alpha_tildes {len(alpha_tildes)} values; both must have T."
        )
    clipping = sum(a * sigma_g**2 + b * L**2 for a, b in zip(alphas, alpha_tildes, strict=True))
    terms = {
        "optimisation": 2 * L * gap / sqrt(K * T) + L**2 * sigma_l**2 / (K * T**2),
        "clipping": clipping / T**2,
        "noise": L**2 * sqrt(T) * sigma**2 * C**2 * p * d / (m**2 * sqrt(K)),
    }
    value = sum(terms.values())
    return Bound(value, "mean α_t E‖∇f‖²", "DP-FedSAM, Theorem 3", THEOREM_3, UP_TO, terms)


def theorem_4(
    *, L: float, rho: float, sigma: float, C: float, d: int, m: int, N: int, T: int, delta: float
) -> tuple[Bound, Bound]:
    """Theorem 4, eq. (19): epsilon-tilde and delta of one round, from delta-tilde (`delta`).

    <v, w'> is normal with standard deviation s = ‖v‖ sigma C d / m, so the expectation is
    exp(t^2 s^2 / 2); ‖v‖ is its bound 2 L rho / m, and t is any real number from 1 to T.
    """
    _check(L=L, rho=rho, sigma=sigma, C=C, d=d, m=m, N=N, T=T)
    tail, spread = log(1 / probability("delta", delta)), sigma * C * d
    if m > N:
        raise ValueError(f"m is {m}; it must be at most N = {N}.")
    exponent = L * rho * sqrt(2 * tail) / spread + 2 * (L * rho / spread) ** 2
    epsilon = log1p(m / N * _expm1(exponent))
    s = 2 * L * rho / m * spread / m
    t = min(max(sqrt(2 * tail) / s, 1.0), float(T))
    log_delta = -sqrt(2 * tail) * t * s + (t * s) ** 2 / 2
    source = "DP-FedSAM, Theorem 4"
    found = exp(log_delta) if log_delta < 700 else inf
    return (
        Bound(epsilon, "ε~", source, EQ_19, DIMENSION),
        Bound(found, "δ", source, EQ_19_DELTA, DIMENSION),
    )


def theorem_5(*, epsilon: float, delta: float, tilde: float, m: int, N: int, T: int) -> Bound:
    """Theorem 5, eq. (20): the generalisation gap 4 epsilon', and with which probability.

    `epsilon` and `delta` are epsilon-tilde and delta of Theorem 4, `tilde` its delta-tilde.
    """
    _check(epsilon=epsilon, m=m, N=N, T=T)
    e = epsilon
    tanh = _expm1(e) / (_expm1(e) + 2)
    prime = sqrt(2 * T * log(1 / probability("tilde", tilde))) * e + T * e * tanh
    if prime >= T * e:
        raise ValueError(
            f"epsilon' is {prime:g}; eq. (20) has a value only below T epsilon~ = {T * e:g}."
        )
    drift = -(prime + T * e) / 2
    head = drift + T * (log(2 * T * e / (T * e - prime)) - log1p(exp(e)))
    head += drift / e * log((T * e + prime) / (T * e - prime))
    small = m * _at_least_0("delta", delta) / (N * (1 + exp(e)))
    large = exp(e) * small
    if large >= 1:
        raise ValueError(f"delta is {delta:g}; eq. (20) needs e^ε~ mδ < N (1 + e^ε~).")
    steps = ceil(prime / e)
    lost = -_expm1(steps * log1p(-large) + (T - steps) * log1p(-small))
    lost -= _expm1(T * log1p(-small))
    delta_prime = exp(head) + lost
    likely = 1 - 2 * exp(-1.7 * prime) * delta_prime / prime * log(2 / prime)
    least = 2 / prime**2 * (log(16) + prime - log(delta_prime)) if delta_prime else inf
    note = "" if 4 * prime < 1 else "Vacuous: losses lie within 1, and so does every gap. "
    note += DIMENSION
    terms = {"epsilon'": prime, "delta'": delta_prime, "probability": likely, "least N": least}
    return Bound(4 * prime, "|R^ - R|", "DP-FedSAM, Theorem 5", EQ_20, note, terms)


def _expm1(x: float) -> float:
    """exp(x) - 1, infinite where a float overflows."""
    return expm1(x) if x < 700 else inf


COUNTS = ("K", "T", "m", "N", "d")


def _check(**given: float) -> None:
    """Counts are whole and at least 1, everything else is above 0."""
    for name, value in given.items():
        if name in COUNTS:
            count(name, value)
        else:
            positive(name, value)


def _at_least_0(name: str, value: float) -> float:
    if real(name, value) < 0:
        raise ValueError(f"{name} is {value}; it must be at least 0.")
    return float(value)


def _room(room: float, what: str) -> float:
    if room <= 0:
        raise ValueError(f"{what} is {1 - room:g}; Theorem 1 has a value only below 1.")
    return room
