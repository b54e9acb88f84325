"""Of words, two normal values each: the arithmetic behind `Stream.normal`."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray


def tail(words: NDArray[np.uint64], u: NDArray[np.float64]) -> None:
    """Make of whole words uniforms in (0, 1]: those near 0 keep all 53 significant bits.

    Their logarithm reaches far into the tail: 45 for an exponential, 9.4 sigma for a normal.
    """
    # Signed halves, because a processor guesses a whole word's first bit, mostly in vain.
    np.copyto(u, (words >> np.uint64(32)).view(np.int64))
    u *= 2.0**32
    words &= np.uint64((1 << 32) - 1)
    u += words.view(np.int64)
    u += 0.5
    u *= 2.0**-64


def polar(
    radius: NDArray[np.floating],
    half: NDArray[np.floating],
    cosine: NDArray[np.floating],
    sine: NDArray[np.floating],
) -> None:
    """Write r cos(2h) and r sin(2h), and anything into `half`."""
    if half.dtype == np.float64 and fast_tangent():
        # cos 2h = (1 - t t) / (1 + t t) and sin 2h = 2 t / (1 + t t), where t = tan h.
        np.tan(half, out=half)
        np.multiply(half, half, out=cosine)
        np.add(cosine, 1.0, out=sine)
        np.divide(radius, sine, out=sine)
        np.subtract(1.0, cosine, out=cosine)
        cosine *= sine
        sine *= half
        sine *= 2.0
        return
    half *= 2.0
    if half.dtype == np.float64:
        import torch  # here, because accounting reads keys without it

        turned = torch.from_numpy(half)  # three times as fast as numpy's on doubles
        torch.cos(turned, out=torch.from_numpy(cosine))
        torch.sin(turned, out=torch.from_numpy(sine))
    else:
        np.cos(half, out=cosine)
        np.sin(half, out=sine)
    cosine *= radius
    sine *= radius


@cache
def fast_tangent() -> bool:
    """Whether numpy takes eight tangents at a time here; otherwise they are slower than torch."""
    try:
        from numpy.lib.introspect import opt_func_info
    except ImportError:
        return False
    found = opt_func_info(func_name="^tan$", signature="float64")
    return any(kind in str(found) for kind in ("'current': 'X86_V4", "'current': 'AVX512"))
