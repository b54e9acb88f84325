"""Numbers as a person reads them; a bound is never shown below what was proved."""

from __future__ import annotations

from math import ceil, exp, inf, isfinite

from confide.rounding import up

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def epsilon(value: float) -> str:
    """Four significant digits, rounded up."""
    if value == inf:
        return "∞"
    digits = up(value, 4)
    return power(float(digits)) if value >= 1e5 else f"{digits:f}"


def probability(value: float) -> str:
    """A small probability, rounded up to two digits: 0.0001, 1.7·10⁻⁶."""
    digits = up(value, 2)
    return power(float(digits)) if 0 < value < 1e-4 else f"{digits:f}"


def is_(symbol: str, value: str) -> str:
    """An equation that no line break tears apart."""
    return f"{symbol}\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{value}"


def epsilon_is(value: float) -> str:
    """ε = 1.174."""
    return is_("ε", epsilon(value))


def delta_is(value: float) -> str:
    """δ = 0.0001."""
    return is_("δ", probability(value))


def power(value: float) -> str:
    """A mantissa and a power of ten."""
    mantissa, exponent = f"{value:.3e}".split("e")
    times = f"{float(mantissa):g}·" if float(mantissa) != 1 else ""
    return f"{times}10{str(int(exponent)).translate(SUPERSCRIPT)}"


def best_guess(eps: float, delta: float) -> float:
    """The largest chance to guess right which of two neighbours was used, when both are likely.

    Proof. A test with false-positive rate a and true-positive rate b under (e, d)-DP has
    b <= e^e a + d and 1 - a <= e^e (1 - b) + d. Adding both, b - a <= (e^e - 1 + 2 d)/(e^e + 1);
    the guess is right with probability (1 + b - a)/2, at most (e^e + d)/(e^e + 1).
    """
    if eps > 700:
        return 1.0
    return min(1.0, (exp(eps) + delta) / (exp(eps) + 1))


def percent_up(share: float) -> str:
    """A share that must not be understated."""
    digits = 1 if share < 0.999 else 2
    scale = 10 ** (digits + 2)
    return f"{ceil(share * scale - 1e-9) / 10**digits:g} %"


def metric(value: float | None, name: str) -> str:
    """An accuracy in percent, an error as it is."""
    if value is None or not isfinite(value):
        return "not a number"
    return f"{100 * value:.1f} %" if name == "accuracy" else f"{value:.4g}"


def plain(value: float | None) -> str:
    """Any other number, with thousands kept apart."""
    if value is None or not isfinite(value):
        return "not a number"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", "\u202f")
    return plain(round(value)) if abs(value) >= 1000 else f"{value:.4g}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.{1 if seconds < 10 else 0}f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def counted(number: int, thing: str) -> str:
    """1 round, 60 rounds."""
    return f"{plain(number)} {thing}{'' if number == 1 else 's'}"
